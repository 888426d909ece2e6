"""Opponent classification: the loss by hand, labels of the step that was played, and what is learned from them."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, StepResult
from ludus.envs.registry import make_env
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.nn.strategy import StrategyConfig
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.auxiliary import OpponentClassifier
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy
from ludus.store import save_checkpoint
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.estimates import estimate_memory
from ludus.training.preflight import check_players, check_rollout

pytestmark = pytest.mark.train

TINY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 6, "latent": 8}
PPO = {"n_steps": 16, "batch_size": 128, "n_epochs": 2, "sequence_length": 16, "learning_rate": 3e-3}
EVENLY = {"random": 1.0, "rock": 1.0, "cycle": 1.0}  # not in the order of the world: rock, cycle, random


def make_policy(env: BatchedEnv, classify: float) -> Policy:
    torch.manual_seed(3)
    return Policy(env.spec, PolicyConfig.model_validate({"strategy": TINY | {"classify": classify}}))


def make_learner(
    classify: float, opponents: dict[str, float] = EVENLY, games: int = 16, **ppo: Any
) -> tuple[PpoLearner, LeagueOpponents]:
    env = make_env("duel", games)
    policy = make_policy(env, classify)
    others = LeagueOpponents(env, policy, opponents, LeagueConfig(), 5)
    config = PpoConfig.model_validate(PPO | ppo)
    learner = PpoLearner(env, policy, config, reward=no_reward, learner=others.learner, opponents=others)
    others.attach(learner.rows)
    return learner, others


def no_reward(result: StepResult) -> Tensor:
    return torch.zeros_like(result.events["reward"])


def test_the_loss_by_hand() -> None:
    # Of 1 : 2 : 1 the second class has 1/2, the first 1/4; evenly it is 1/3 each.
    logits = torch.tensor([[[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]], [[1.0, 1.0, 1.0], [5.0, 1.0, 1.0]]]).log()
    logits.requires_grad_()
    labels, head = torch.tensor([[1, 0], [2, -1]]), OpponentClassifier(StrategyConfig(), 3)
    counted = head.known(labels)
    assert counted.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    loss, right = head.errors(logits, labels, counted)
    assert loss.item() == pytest.approx(math.log(2) + math.log(4) + math.log(3))
    assert right.item() == 1.0  # of equal ones the first is named: wrong
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert logits.grad[1, 1].abs().sum() == 0.0
    assert logits.grad[0, 0].tolist() == pytest.approx([0.25, -0.5, 0.25])


def test_without_labels_there_is_nothing_to_learn() -> None:
    logits = torch.randn(2, 3, 4, requires_grad=True)
    labels, head = torch.full((2, 3), -1), OpponentClassifier(StrategyConfig(), 4)
    loss, right = head.errors(logits, labels, head.known(labels))
    assert (loss.item(), right.item(), head.known(labels).sum().item()) == (0.0, 0.0, 0.0)
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert logits.grad.abs().sum() == 0.0


class Witness(LeagueOpponents):
    """Notes the name of every game's opponent whenever it acts, and forgets nothing."""

    def __init__(self, *arguments: Any) -> None:
        self.noted: list[list[str]] = []
        super().__init__(*arguments)

    def act(self, observations: dict[str, Tensor], actions: Tensor) -> None:
        names = self.names
        self.noted.append([names[index] if index >= 0 else "" for index in self.opponents.tolist()])
        super().act(observations, actions)


@pytest.mark.parametrize("mirror", [0.0, 1.0])
def test_labels_are_of_the_opponent_that_was_played(mirror: float) -> None:
    env = make_env("tug", 8, config={"blue": 2, "orange": 1, "rounds": 3})  # a game has one row or two
    policy = make_policy(env, 0.5)
    mix = {"strong": 1.0, "self": 1.0, "idle": 1.0} | ({"mirror": mirror} if mirror else {})
    others = Witness(env, policy, mix, LeagueConfig(keep=2), 5)
    others.add_snapshot("earlier", 0, policy.state())
    config = PpoConfig.model_validate({"n_steps": 24, "sequence_length": 8, "n_minibatches": 1})
    learner = PpoLearner(env, policy, config, learner=others.learner, opponents=others)
    others.attach(learner.rows)
    learner.collect()
    labels = learner.rollout.labels["bots"]
    games = (learner.rows.index // env.spec.seats).tolist()
    expected = [[{"idle": 0, "strong": 2}.get(names[game], -1) for game in games] for names in others.noted]
    assert labels.tolist() == expected
    drawn = {name for names in others.noted for name in names}
    assert drawn == {"strong", "idle", "earlier"} | ({""} if mirror else set())
    last = learner.rollout.dones[:-1] & (labels[1:] != labels[:-1])
    assert last.sum() > 10  # opponents change, and only where an episode ended
    assert torch.equal(last, labels[1:] != labels[:-1])
    batch = learner.rollout.minibatch(torch.tensor([1, learner.rollout.rows]))
    assert torch.equal(batch.labels["bots"], torch.stack((labels[:8, 1], labels[8:16, 0]), dim=1))


def test_bots_with_settings_of_their_own_are_the_same_bots() -> None:
    with make_env("brawl", 6, config={"threads": 1}) as env:
        policy = Policy(env.spec, PolicyConfig())
        others = LeagueOpponents(env, policy, {"aggressive:delay=8": 1.0, "random": 1.0}, LeagueConfig(), 1)
        bases = [others.names[index].partition(":")[0] for index in others.opponents.tolist()]
        assert set(bases) == {"aggressive", "random"}
        assert [env.spec.bots[index] for index in others.bots_met().tolist()] == bases


def test_off_is_as_if_it_did_not_exist() -> None:
    (on, _), (off, _) = make_learner(0.5), make_learner(0.0)
    assert not off.policy.auxiliary_losses
    assert not off.rollout.labels
    for name, tensor in off.policy.state().items():
        assert torch.equal(on.policy.state()[name], tensor)
    assert not {"recognition_loss", "recognition_accuracy"} & set(off.iterate())
    assert "recognition_loss" not in off.loss_names
    metrics = on.iterate()
    assert metrics["ratio_error"] < 1e-5
    assert metrics["recognition_loss"] == pytest.approx(math.log(3), abs=0.4)
    assert "recognition_loss" in on.loss_names


def test_bots_are_told_apart_without_any_reward() -> None:
    untrained, _ = make_learner(1.0, games=64, batch_size=1024, n_epochs=1, learning_rate=0.0)
    assert untrained.iterate()["recognition_accuracy"] < 0.6  # chance is one in three
    learner, _ = make_learner(1.0, games=64, batch_size=512, n_epochs=4, learning_rate=5e-3)
    metrics = [learner.iterate() for _ in range(12)]
    # Before the first move nobody can know; afterwards a few moves tell the three apart.
    assert sum(each["recognition_accuracy"] for each in metrics[-3:]) > 3 * 0.75
    assert metrics[-1]["recognition_loss"] < 0.5 < metrics[0]["recognition_loss"]


def test_games_against_past_selves_teach_nothing() -> None:
    learner, _ = make_learner(0.5, {"self": 1.0})
    head = learner.policy.auxiliary_losses["recognition"]
    before = [parameter.detach().clone() for parameter in head.parameters()]
    metrics = learner.iterate()
    assert metrics["recognition_loss"] == 0.0
    assert math.isnan(metrics["recognition_accuracy"])
    assert all(map(torch.equal, head.parameters(), before))


def test_the_weight_counts() -> None:
    norms = [make_learner(weight, max_grad_norm=1e9)[0].iterate()["gradient_norm"] for weight in (1e-6, 1.0)]
    assert norms[1] > norms[0]


def test_it_goes_on_bit_by_bit() -> None:
    (first, opponents), (second, others) = make_learner(0.5), make_learner(0.5)
    first.iterate()
    others.load_state(opponents.state())
    second.load_state(*first.state(), second.collector.env.restore(first.collector.env.snapshot()))
    assert first.iterate() == second.iterate()
    assert torch.equal(first.rollout.labels["bots"], second.rollout.labels["bots"])
    for name, tensor in first.policy.state().items():
        assert torch.equal(second.policy.state()[name], tensor)


def test_there_must_be_an_opponent_to_classify() -> None:
    with pytest.raises(ConfigError, match=r"classify is 0\.5, but rps-v1"):
        make_policy(make_env("rps", 2), 0.5)
    env = make_env("duel", 4)
    with pytest.raises(ConfigError, match=r"policy\.strategy\.classify is 0\.5.*rock, cycle, random"):
        PpoLearner(env, make_policy(env, 0.5), PpoConfig.model_validate(PPO | {"n_minibatches": 1}))
    knows_duel = make_policy(env, 0.5)
    assert knows_duel.config.strategy is not None
    knows_duel.auxiliary["recognition"] = OpponentClassifier(knows_duel.config.strategy, 8)
    others = LeagueOpponents(env, knows_duel, EVENLY, LeagueConfig(), 5)
    with pytest.raises(ConfigError, match="knows 8 bots, but duel-v1 has 3 now"):
        PpoLearner(
            env,
            knows_duel,
            PpoConfig.model_validate(PPO | {"batch_size": 64}),
            learner=others.learner,
            opponents=others,
        )


def test_a_run_without_bots_is_refused_before_it_starts() -> None:
    raw = {"world": {"name": "duel"}, "policy": {"strategy": TINY | {"classify": 0.5}}}
    with make_env("duel", 2) as env:
        for opponents in ({"self": 1.0}, {"self": 1.0, "rock": 0.0}, {"mirror": 1.0}):
            with pytest.raises(ConfigError, match=r"classify is 0\.5.*rock, cycle, random"):
                check_players(env, TrainConfig.model_validate(raw | {"opponents": opponents}))
        assert "self, rock" in check_players(
            env, TrainConfig.model_validate(raw | {"opponents": {"self": 1, "rock": 1}})
        )


def test_past_selves_and_files_take_its_parameters_along(tmp_path: Path) -> None:
    policy = make_learner(0.5)[0].policy
    stacked = StackedPolicy(policy, 2, values=False)
    stacked.load(1, policy.state())
    stacked.choose(torch.ones(3, dtype=torch.int64))
    episode_starts, seen = torch.ones(3, dtype=torch.bool), {"vector": torch.rand(3, 8)}
    step = stacked.step(seen, stacked.initial(3), episode_starts)
    assert torch.equal(step.actions, policy.step(seen, policy.initial(3), episode_starts).actions)
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    loaded = Agent.load(tmp_path / "agent").policy
    assert loaded.spec.bots == ("rock", "cycle", "random")
    for name, tensor in policy.state().items():
        assert torch.equal(loaded.state()[name], tensor)


def test_a_run_is_checked_and_its_labels_are_counted() -> None:
    found = []
    for classify in (0.0, 0.5):
        raw = {"world": {"name": "duel", "num_envs": 4, "device": "cpu"}, "opponents": EVENLY | {"self": 1.0}}
        strategy = {"policy": {"strategy": TINY | {"classify": classify}}, "ppo": PPO | {"batch_size": 64}}
        config = TrainConfig.model_validate(raw | strategy)
        with Components(config) as components:
            check_rollout(components)
            dry_run = config.method.dry_run(components.learner)
            assert f"finite in all {len(list(components.policy.parameters()))} parameters" in dry_run.lines[0]
            found.append(estimate_memory(config, components, dry_run).parts["rollout"])
    assert found[1] - found[0] == 16 * 4 * 8  # steps, rows, bytes of a label
