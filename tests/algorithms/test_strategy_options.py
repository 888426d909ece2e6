"""Options of the strategy encoder: losses by hand, what each option changes when on, and nothing when off."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import ValidationError
from torch import Tensor

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.algorithms.ppo.loss import Coefficients, ppo_loss
from ludus.analysis.analysed_policy import AnalysedPolicy
from ludus.core.errors import ConfigError
from ludus.envs.base import BatchedEnv, StepResult
from ludus.envs.registry import make_env
from ludus.league.config import LeagueConfig
from ludus.league.opponents import LeagueOpponents
from ludus.nn.strategy import StrategyConfig
from ludus.policies.agent import Agent, agent_checkpoint
from ludus.policies.auxiliary import ActionPrediction
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.export import export_agent
from ludus.policies.policy import Policy
from ludus.rollout.buffer import Minibatch, RolloutBuffer
from ludus.store import save_checkpoint
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.estimates import estimate_memory, small_copy
from ludus.training.preflight import check_rollout

pytestmark = pytest.mark.train

TINY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 6, "latent": 8}
PPO = {"n_steps": 16, "batch_size": 128, "n_epochs": 2, "sequence_length": 16, "learning_rate": 3e-3}
ALL_ON = {
    "predict_actions": 0.5,
    "classify": 0.2,
    "stop_gradient": True,
    "block": ["opponent", "self"],
}
OPTIONS: list[dict[str, Any]] = [
    {"stop_gradient": True, "predict_actions": 0.5},
    {"predict_actions": 0.5},
    {"classify": 0.5},
    {"block": ["opponent", "self"]},
]
EVENLY = {"random": 1.0, "rock": 1.0, "cycle": 1.0}


def make_policy(env: BatchedEnv, strategy: dict[str, Any], **policy: Any) -> Policy:
    torch.manual_seed(3)
    return Policy(env.spec, PolicyConfig.model_validate({"strategy": TINY | strategy} | policy))


def make_learner(
    strategy: dict[str, Any],
    opponents: dict[str, float] = EVENLY,
    games: int = 16,
    *,
    rewarded: bool = False,
    policy: dict[str, Any] | None = None,
    **ppo: Any,
) -> tuple[PpoLearner, LeagueOpponents]:
    env = make_env("duel", games)
    made = make_policy(env, strategy, **(policy or {}))
    others = LeagueOpponents(env, made, opponents, LeagueConfig(keep=2), 5)
    config = PpoConfig.model_validate(PPO | ppo)
    reward = (lambda result: result.events["reward"]) if rewarded else no_reward
    learner = PpoLearner(env, made, config, reward=reward, learner=others.learner, opponents=others)
    others.attach(learner.rows)
    return learner, others


def no_reward(result: StepResult) -> Tensor:
    return torch.zeros_like(result.events["reward"])


def whole_rollout(learner: PpoLearner) -> Minibatch:
    return learner.rollout.minibatch(torch.arange(learner.rollout.segments))


def gradients(learner: PpoLearner, *, auxiliary: bool) -> dict[str, Tensor | None]:
    """Return the gradient of the PPO loss over the whole rollout, with the auxiliary losses or without."""
    policy, batch = learner.policy, whole_rollout(learner)
    evaluation = policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    levels = Coefficients(torch.tensor(0.0), torch.tensor(0.2), torch.tensor(0.1), None)
    loss, _ = ppo_loss(evaluation, batch.targets, levels, 0.5)
    if auxiliary:
        loss = learner.updater.auxiliary.add_to(loss, evaluation, batch)
    names, parameters = zip(*policy.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: "+".join(option))
def test_every_option_is_off_by_default_and_leaves_other_parameters_alone(option: dict[str, Any]) -> None:
    (on, _), (off, _) = make_learner(option), make_learner({})
    assert off.policy.config.strategy == StrategyConfig.model_validate(TINY)
    assert not off.policy.auxiliary_losses
    before, after = off.policy.state(), on.policy.state()
    assert set(before) <= set(after)
    if "block" not in option:  # which changes the shape of the encoder
        for name, tensor in before.items():
            assert torch.equal(after[name], tensor), name
    metrics = on.iterate()
    assert metrics["ratio_error"] < 1e-5
    assert metrics["skipped_updates"] == 0
    assert off.iterate()["ratio_error"] < 1e-5


@pytest.mark.parametrize("recurrent", [None, {"size": 8}, {"size": 8, "skip": True}])
def test_stop_gradient_leaves_the_encoder_to_the_auxiliary_losses(recurrent: dict[str, Any] | None) -> None:
    option = {"stop_gradient": True, "predict_actions": 0.5}
    learner, _ = make_learner(option, rewarded=True, policy={"recurrent": recurrent})
    learner.collect()
    for parameter in learner.policy.parameters():  # scales of 0 would stop every gradient
        parameter.data += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    alone, both = gradients(learner, auxiliary=False), gradients(learner, auxiliary=True)
    encoder = [name for name in alone if name.startswith("memory.strategy.")]
    assert encoder
    for name in encoder:
        assert alone[name] is None, name
        assert both[name].abs().sum() > 0.0, name  # type: ignore[union-attr]
    for name in alone:
        if not name.startswith(("memory.strategy.", "auxiliary.")):
            assert torch.equal(alone[name], both[name]), name  # type: ignore[arg-type]
    flowing, _ = make_learner(option | {"stop_gradient": False}, rewarded=True, policy={"recurrent": recurrent})
    flowing.collect()
    assert gradients(flowing, auxiliary=False)["memory.strategy.embedding.weight"].abs().sum() > 0.0  # type: ignore[union-attr]


def test_stop_gradient_needs_an_auxiliary_loss() -> None:
    with pytest.raises(ValidationError, match="stop_gradient is on, but no auxiliary loss"):
        StrategyConfig.model_validate({"stop_gradient": True})
    for name in ("predict_actions", "classify"):
        assert StrategyConfig.model_validate({"stop_gradient": True, name: 0.1}).stop_gradient


SMALL = StrategyConfig.model_validate(TINY)


def test_errors_of_predicted_actions_by_hand() -> None:
    one = ActionPrediction(SMALL, spaces.Discrete(3), 2)
    # Of 1 : 2 : 1 the second choice has 1/2, the first 1/4.
    logits = torch.tensor([[[1.0, 2.0, 1.0]], [[1.0, 2.0, 1.0]]]).log()
    errors, right = one.frame_errors(logits, torch.tensor([1, 0]))
    assert errors.tolist() == pytest.approx([math.log(2), math.log(4)])
    assert right.tolist() == [1.0, 0.0]
    two = ActionPrediction(SMALL, spaces.MultiDiscrete([2, 3]), 2)
    predictions = two(torch.zeros(4, 8), torch.zeros(4, 2))
    assert predictions.shape == (4, 2, 3)
    assert (torch.softmax(predictions, -1)[:, 0, 2] == 0.0).all()  # the first factor has two choices
    errors, right = two.frame_errors(
        torch.log(torch.tensor([[[0.25, 0.75, 1e-30], [0.1, 0.8, 0.1]]])), torch.tensor([[1, 2]])
    )
    assert errors.tolist() == pytest.approx([-(math.log(0.75) + math.log(0.1)) / 2])
    assert right.tolist() == [0.5]
    buttons = ActionPrediction(SMALL, spaces.MultiBinary(3), 2)
    errors, right = buttons.frame_errors(torch.zeros(1, 3, 2), torch.tensor([[0, 1, 0]], dtype=torch.int8))
    assert errors.tolist() == pytest.approx([math.log(2)])
    assert right.tolist() == pytest.approx([2 / 3])  # of equal ones the first is named
    pushes = ActionPrediction(SMALL, spaces.Box(-1.0, 1.0, (2,), np.float32), 2)
    errors, _ = pushes.frame_errors(torch.tensor([[0.5, 0.0]]), torch.tensor([[0.0, 1.0]]))
    assert errors.tolist() == pytest.approx([0.625])
    assert not pushes.has_accuracy


def test_features_of_the_observation_get_no_gradient_from_predicted_actions() -> None:
    head = ActionPrediction(SMALL, spaces.Discrete(3), 2)
    latent, features = torch.ones(1, 8, requires_grad=True), torch.ones(1, 2, requires_grad=True)
    head(latent, features).square().sum().backward()
    assert features.grad is None
    assert latent.grad is not None


class Witness(LeagueOpponents):
    """Notes all actions that the env was given: those of the last step lie in the same tensor when it acts again."""

    def __init__(self, *arguments: Any) -> None:
        self.noted: list[Tensor] = []
        super().__init__(*arguments)

    def after_step(self, result: StepResult) -> None:
        self.noted.append(self.given.clone())
        super().after_step(result)

    def act(self, observations: dict[str, Tensor], actions: Tensor) -> None:
        self.given = actions
        super().act(observations, actions)


def test_labels_are_the_first_rivals_actions_in_the_same_step() -> None:
    env = make_env("tug", 8, config={"blue": 2, "orange": 1, "rounds": 3})
    policy = make_policy(env, {"predict_actions": 0.5})
    mix = {"strong": 1.0, "self": 1.0, "mirror": 1.0}
    others = Witness(env, policy, mix, LeagueConfig(keep=2), 5)
    others.add_snapshot("earlier", 0, policy.state())
    config = PpoConfig.model_validate({"n_steps": 24, "sequence_length": 8, "n_minibatches": 1})
    learner = PpoLearner(env, policy, config, learner=others.learner, opponents=others)
    others.attach(learner.rows)
    seats = []
    take = learner.rows.take_opponents
    learner.rows.take_opponents = lambda tensor: (seats.append(learner.rows.index.clone()), take(tensor))[1]  # type: ignore[func-returns-value,method-assign]
    learner.collect()
    labels = learner.rollout.labels["opponent_actions"]
    rival = {0: 2, 1: 2, 2: 0}  # seats 0 and 1 are one team
    expected = [
        [int(noted[place // 3, rival[place % 3]]) for place in index.tolist()]
        for noted, index in zip(others.noted, seats, strict=True)
    ]
    assert labels.tolist() == expected
    batch = learner.rollout.minibatch(torch.tensor([1, learner.rollout.rows]))
    assert torch.equal(batch.labels["opponent_actions"], torch.stack((labels[:8, 1], labels[8:16, 0]), dim=1))
    assert math.isfinite(learner.iterate()["action_prediction_loss"])


def test_buttons_are_predicted_in_games_that_the_learner_plays_alone(make_arena: Any) -> None:
    env = make_arena(4)
    policy = make_policy(env, {"predict_actions": 0.5})
    learner = PpoLearner(env, policy, PpoConfig.model_validate(PPO | {"batch_size": 64}))
    learner.collect()
    actions, labels = learner.rollout.actions, learner.rollout.labels["opponent_actions"]
    assert torch.equal(labels.view(16, 4, 2, 4), actions.view(16, 4, 2, 4).flip(2))  # each seat's is the other's
    learner.update()
    assert learner.metrics()["action_prediction_loss"] == pytest.approx(math.log(2), abs=0.3)


def test_unknown_actions_count_nothing() -> None:
    learner, _ = make_learner({"predict_actions": 1.0})
    learner.collect()
    batch, auxiliary = whole_rollout(learner), learner.updater.auxiliary
    evaluation = learner.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    batch.labels["opponent_actions"][3:] = -1
    loss = auxiliary.add_to(torch.zeros(()), evaluation, batch)
    logits, actions = evaluation.auxiliary["action_prediction"][:3, :, 0], batch.labels["opponent_actions"][:3]
    assert loss.item() == pytest.approx(
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), actions.flatten()).item()
    )
    assert auxiliary.sums[2].item() == 3 * 16
    batch.labels["opponent_actions"].fill_(-1)
    assert auxiliary.add_to(torch.zeros(()), evaluation, batch).item() == 0.0
    with pytest.raises(ConfigError, match=r"predict_actions is 1, but rps-v1 has one team"):
        make_policy(make_env("rps", 2), {"predict_actions": 1.0})


EVENTS = {
    "block": ["self", "opponent"],
    "events": ["self.state_stun", "opponent.state_stun"],
    "predict_actions": 1.0,
    "predict_before_events": True,
}


def brawl_learner(strategy: dict[str, Any]) -> PpoLearner:
    env = make_env("brawl", 8, seed=3)
    learner = PpoLearner(env, make_policy(env, strategy), PpoConfig.model_validate(PPO), reward=unrewarded)
    learner.collect()
    return learner


def unrewarded(result: StepResult) -> Tensor:
    return torch.zeros(result.terminated.shape[0], 2)


def test_predictions_before_events_count_the_actions_that_an_event_follows() -> None:
    learner = brawl_learner(EVENTS)
    batch, auxiliary = whole_rollout(learner), learner.updater.auxiliary
    own, other = 34, 52 + 34  # columns of `state_stun`
    seen = batch.observations["vector"].clone()
    seen[..., [own, other]] = 0.0
    seen[5:9, 0, own] = 1.0  # begins at 5 and goes on
    seen[7, 1, other] = seen[8, 1, own] = 1.0  # the second is part of the first
    seen[0, 2, own] = 1.0  # what came before is not in this sequence
    seen[4, 3, other] = 1.0  # begins with an episode
    batch.episode_starts.zero_()
    batch.episode_starts[4, 3] = True
    batch = replace(batch, observations=batch.observations | {"vector": seen})
    evaluation = learner.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    loss = auxiliary.add_to(torch.zeros(()), evaluation, batch)
    assert auxiliary.sums[2].item() == 2
    picked = [(4, 0), (6, 1)]
    errors = [
        torch.nn.functional.cross_entropy(
            evaluation.auxiliary["action_prediction"][at], batch.labels["opponent_actions"][at].long()
        ).item()
        for at in picked
    ]
    assert loss.item() == pytest.approx(sum(errors) / 2)
    seen[..., [own, other]] = 0.0
    assert auxiliary.add_to(torch.zeros(()), evaluation, batch).item() == 0.0


def test_totals_before_events_are_those_of_the_whole_minibatch() -> None:
    learner = brawl_learner(EVENTS)
    rollout, auxiliary = learner.rollout, learner.updater.auxiliary
    rollout.observations["vector"][..., [34, 52 + 34]] = 0.0
    rollout.observations["vector"][3::5, ::2, 34] = 1.0
    segments = torch.arange(rollout.segments)
    totals = auxiliary.totals(rollout, rollout.frames_of(segments))
    batch = rollout.minibatch(segments)
    evaluation = learner.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    auxiliary.add_to(torch.zeros(()), evaluation, batch)
    assert totals.counts["action_prediction"].item() == auxiliary.sums[2].item() > 0


def test_an_agent_of_events_is_the_same_from_its_description() -> None:
    learner = brawl_learner(EVENTS)
    spec = learner.policy.spec
    description = PolicyDescription.of(spec, learner.policy.config)
    read = PolicyDescription.read(json.loads(description.model_dump_json()))
    policy = Policy(read.spec(), read.config)
    policy.load_state(learner.policy.state())
    batch = whole_rollout(learner)
    one, other = (
        made.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
        for made in (learner.policy, policy)
    )
    assert torch.equal(one.log_probs, other.log_probs)


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (
            {"events": ["opponent.state_stunned"]},
            r"has no field 'opponent\.state_stunned' \(did you mean 'opponent\.state_stun'\?\)",
        ),
        (
            {"events": ["self.state_stun"]},
            r"has no field 'self\.state_stun' .*block 'opponent'\); valid: opponent\.x, ",
        ),
    ],
)
def test_events_that_the_encoder_does_not_read_are_refused(strategy: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_policy(make_env("brawl", 1), strategy)
    nameless = replace(make_env("brawl", 1).spec, fields={})
    with pytest.raises(ConfigError, match="valid: none, its fields have no names"):
        Policy(nameless, PolicyConfig.model_validate({"strategy": TINY | strategy}))


def test_sequences_of_one_step_hold_no_action_before_an_event() -> None:
    env = make_env("brawl", 2)
    with pytest.raises(ConfigError, match=r"predict_before_events needs sequences .* ppo\.sequence_length is 1"):
        PpoLearner(
            env, make_policy(env, EVENTS), PpoConfig.model_validate(PPO | {"sequence_length": 1, "batch_size": 64})
        )


def test_a_deterministic_opponent_becomes_predictable() -> None:
    mix = {"rock": 1.0, "cycle": 1.0}
    learner, _ = make_learner({"predict_actions": 1.0}, mix, 32, batch_size=256, n_epochs=4, learning_rate=5e-3)
    metrics = [learner.iterate() for _ in range(8)]
    # In the second of ten rounds nobody can know which of the two it is.
    assert metrics[-1]["action_prediction_accuracy"] > 0.9
    assert metrics[-1]["action_prediction_loss"] < 0.25 < 0.6 < metrics[0]["action_prediction_loss"]
    assert "action_prediction_loss" in learner.loss_names


def test_snapshots_are_predicted_too() -> None:
    learner, _ = make_learner({"predict_actions": 1.0}, {"self": 1.0})
    assert learner.iterate()["action_prediction_accuracy"] > 0.1
    labels = learner.rollout.labels["opponent_actions"]
    assert labels.min() >= 0


@pytest.mark.parametrize("recurrent", [None, {"size": 8, "skip": True, "critic": "separate"}])
def test_film_starts_as_the_identity_and_then_acts(recurrent: dict[str, Any] | None) -> None:
    policy = make_policy(make_env("duel", 4), {}, recurrent=recurrent, activation="relu")
    episode_starts, seen = torch.ones(5, dtype=torch.bool), {"vector": torch.rand(5, 8)}
    first = policy.step(seen, policy.initial(5), episode_starts)
    assert policy.actor_film is not None
    assert policy.critic_film is not None
    assert all(parameter.abs().max() == 0.0 for parameter in policy.actor_film.parameters())
    with torch.no_grad():
        policy.critic_film.linear.bias[:64] = -1.0  # of the first hidden layer: h (1 - 1) + 0
        policy.critic_film.linear.bias[64:128] = 0.0
    values = policy.step(seen, policy.initial(5), episode_starts).values
    assert torch.equal(values, values[:1].expand(5))  # nothing is left of what was seen
    with torch.no_grad():
        policy.actor_film.linear.weight.normal_()
    assert not torch.equal(policy.step(seen, policy.initial(5), episode_starts).log_probs, first.log_probs)


def test_only_a_latent_beside_the_observation_modulates() -> None:
    env = make_env("duel", 4)
    behind_an_lstm = make_policy(env, {}, recurrent={"size": 8})
    without_layers = make_policy(env, {}, net_arch={"pi": [], "vf": []})
    for policy in (behind_an_lstm, without_layers):
        assert policy.actor_film is None
        assert policy.critic_film is None


def test_film_leaves_the_latent_at_its_full_size() -> None:
    recurrent = {"size": 8, "skip": True, "memory_feature_scale": 0.25}
    seen, episode_starts = {"vector": torch.rand(5, 8)}, torch.ones(5, dtype=torch.bool)
    policy = make_policy(make_env("duel", 4), {}, recurrent=recurrent)
    trunk, memory = policy._trunk_step(seen, policy.initial(5), episode_starts)
    assert trunk.latent is not None
    torch.testing.assert_close(trunk.actor[:, :8], 0.25 * memory["recurrent.hidden"])
    torch.testing.assert_close(trunk.actor[:, 8:16], seen["vector"])
    torch.testing.assert_close(trunk.actor[:, 16:], trunk.latent)


def test_ablation_reaches_film() -> None:
    """The latent acts through film alone here: zeroed, it must act no longer."""
    env = make_env("duel", 4)
    policy = make_policy(env, {})
    assert policy.actor_film is not None
    with torch.no_grad():
        policy.actor_film.linear.weight.normal_()
        policy.get_parameter("actor.layers.0.weight")[:, 8:] = 0.0
    episode_starts, seen = torch.ones(5, dtype=torch.bool), {"vector": torch.rand(5, 8)}
    as_is, zeroed, negated = (
        AnalysedPolicy(policy, "latent", change).step(seen, policy.initial(5), episode_starts)
        for change in (None, torch.zeros_like, torch.neg)
    )
    assert torch.equal(as_is.log_probs, policy.step(seen, policy.initial(5), episode_starts).log_probs)
    assert not torch.equal(as_is.log_probs, zeroed.log_probs)
    assert not torch.equal(as_is.log_probs, negated.log_probs)
    with torch.no_grad():
        policy.actor_film.linear.weight.zero_()
    assert torch.equal(zeroed.log_probs, policy.step(seen, policy.initial(5), episode_starts).log_probs)


def test_several_blocks_are_read_side_by_side() -> None:
    env = make_env("duel", 4)
    seen = torch.arange(16.0).view(2, 8)
    both = make_policy(env, {"block": ["opponent", "self"]})
    assert both.memory.columns == (5, 6, 7, 0, 1, 2, 3, 4)
    assert both.opponent_frames({"vector": seen})[1].tolist() == [13, 14, 15, 8, 9, 10, 11, 12]
    assert make_policy(env, {"block": ["opponent"]}).memory.columns == make_policy(env, {}).memory.columns
    assert make_policy(env, {"block": None}).memory.columns == tuple(range(8))
    with pytest.raises(ConfigError, match=r"reads block 'weather'.*valid: self, opponent"):
        make_policy(env, {"block": ["opponent", "weather"]})
    for wrong, said in ((["opponent", "opponent"], "names a block twice"), ([], "at least 1 item")):
        with pytest.raises(ValidationError, match=said):
            StrategyConfig.model_validate({"block": wrong})


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_give_the_losses_of_the_whole(parts: int) -> None:
    """What is a mean over the minibatch stays one."""
    option = {"predict_actions": 0.5, "classify": 0.2, "block": ["opponent", "self"]}
    whole, part = (make_learner(option, rewarded=True, n_accumulate=n)[0] for n in (1, parts))
    for _ in range(2):
        assert part.iterate() == pytest.approx(whole.iterate(), rel=1e-3, abs=1e-5, nan_ok=True)
    for name, tensor in whole.policy.state().items():
        torch.testing.assert_close(part.policy.state()[name], tensor, atol=2e-5, rtol=1e-4, msg=name)
    everything, _ = make_learner(ALL_ON, rewarded=True, n_accumulate=parts)
    metrics = everything.iterate()
    assert all(math.isfinite(metrics[name]) for name in everything.loss_names)


def test_everything_on_goes_on_bit_by_bit() -> None:
    memory = {"recurrent": {"size": 8, "skip": True, "memory_feature_scale": 0.5}}
    mix = EVENLY | {"self": 1.0, "mirror": 1.0}
    (first, opponents), (second, others) = (
        make_learner(ALL_ON, mix, rewarded=True, policy=memory, n_minibatches=2, sequence_length=8) for _ in range(2)
    )
    first.iterate()
    torch.rand(7)  # what else draws from torch's own generator changes nothing
    others.load_state(opponents.state())
    second.load_state(*first.state(), second.collector.env.restore(first.collector.env.snapshot()))
    for _ in range(2):
        assert first.iterate() == second.iterate()
    for name, tensor in first.policy.state().items():
        assert torch.equal(second.policy.state()[name], tensor), name


def test_files_take_everything_along(tmp_path: Path) -> None:
    learner, _ = make_learner(ALL_ON)
    learner.iterate()
    policy = learner.policy
    save_checkpoint(tmp_path / "agent", agent_checkpoint(policy.spec, policy.config, policy.state()))
    export_agent(tmp_path / "agent", tmp_path / "agent.ludus")
    agent = Agent.load(tmp_path / "agent.ludus")
    seen = torch.rand(3, 8)
    actions, state = agent.predict(seen, deterministic=True)
    step = policy.step({"vector": seen}, policy.initial(3), torch.ones(3, dtype=torch.bool))
    assert torch.equal(actions, step.actions)
    latent = agent.strategy_latent(seen, state)
    assert latent.shape == (3, 8)


def test_a_run_with_everything_is_checked_before_it_starts() -> None:
    strategy = TINY | ALL_ON
    raw = {"world": {"name": "duel", "num_envs": 4, "device": "cpu"}, "opponents": EVENLY | {"self": 1.0}}
    config = TrainConfig.model_validate(raw | {"policy": {"strategy": strategy}, "ppo": PPO | {"batch_size": 64}})
    with make_env("duel") as env:
        small = small_copy(config, env.spec)
    with Components(small) as components:
        check_rollout(components)
        dry_run = small.method.dry_run(components.learner)
        assert f"finite in all {len(list(components.policy.parameters()))} parameters" in dry_run.lines[0]
        estimate = estimate_memory(small, components, dry_run).parts["rollout"]
        buffer = components.learner.rollout
        assert isinstance(buffer, RolloutBuffer)
        del buffer.labels["opponent_actions"]
        assert estimate - estimate_memory(small, components, dry_run).parts["rollout"] == buffer.steps * buffer.rows * 8


def test_an_encoder_that_predicts_actions_alone_is_enough_to_win() -> None:
    """Without any gradient of the reward the latent knows what comes next, and the policy learns the reply to it."""
    option = {"stop_gradient": True, "predict_actions": 1.0, "block": ["opponent", "self"]}
    settings: dict[str, Any] = {"batch_size": 512, "n_epochs": 6, "learning_rate": 5e-3, "ent_coef": 0.01, "gamma": 0.5}
    learner, _ = make_learner(option, {"rock": 1.0, "cycle": 1.0}, 64, rewarded=True, **settings)
    returns = [learner.iterate()["episode_return"] for _ in range(12)]
    assert returns[0] < 2.0
    assert sum(returns[-3:]) / 3 > 7.0  # of ten rounds; the second is a guess


def test_continuous_actions_are_predicted_by_their_squared_error(make_arena: Any) -> None:
    env = make_arena(4)
    env.spec = replace(env.spec, action_space=spaces.Box(-1.0, 1.0, (3,), np.float32))
    policy = make_policy(env, {"predict_actions": 1.0})
    learner = PpoLearner(env, policy, PpoConfig.model_validate(PPO | {"batch_size": 64}))
    learner.collect()
    played, labels = learner.rollout.actions.view(16, 4, 2, 3), learner.rollout.labels["opponent_actions"]
    assert torch.equal(labels.view(16, 4, 2, 3), played.flip(2).clamp(-1.0, 1.0))  # as the world gets them
    batch, auxiliary = whole_rollout(learner), learner.updater.auxiliary
    assert auxiliary.names == ("action_prediction_loss",)
    evaluation = policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    batch.labels["opponent_actions"][1:] = math.nan
    loss = auxiliary.add_to(torch.zeros(()), evaluation, batch)
    expected = (evaluation.auxiliary["action_prediction"][0] - batch.labels["opponent_actions"][0]).square().mean()
    assert loss.item() == pytest.approx(expected.item())
    assert all(
        slope is None or slope.isfinite().all()
        for slope in torch.autograd.grad(loss, tuple(policy.parameters()), allow_unused=True)
    )
