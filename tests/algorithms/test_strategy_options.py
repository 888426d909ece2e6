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

from ludus.algorithms.ppo.auxiliary import contrastive_loss, latent_pairs, prediction_loss
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
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.export import export_agent
from ludus.policies.policy import Policy
from ludus.policies.strategy_heads import ActionPrediction, LatentSample, kl_to_standard_normal
from ludus.rollout.buffer import Minibatch, RolloutBuffer, Targets
from ludus.store import save_checkpoint
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.estimates import estimate_memory, small_copy
from ludus.training.preflight import check_rollout

TINY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 6, "latent": 8}
PPO = {"n_steps": 16, "batch_size": 128, "n_epochs": 2, "sequence_length": 16, "learning_rate": 3e-3}
ALL_ON = {
    "predict": 0.5,
    "predict_weighting": "surprise",
    "predict_actions": 0.5,
    "classify": 0.2,
    "contrast": 0.2,
    "contrast_gap": 4,
    "condition": "film",
    "stop_gradient": True,
    "variational": 0.01,
    "block": ["opponent", "self"],
}
OPTIONS: list[dict[str, Any]] = [
    {"stop_gradient": True, "predict": 0.5},
    {"predict_actions": 0.5},
    {"contrast": 0.5},
    {"condition": "film"},
    {"variational": 0.01},
    {"block": ["opponent", "self"]},
    {"predict": 0.5, "predict_weighting": "surprise"},
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
    assert not {"action_prediction", "contrast", "actor_film", "critic_film", "latent_sample"} & {
        name for name, _ in off.policy.named_children()
    }
    before, after = off.policy.state(), on.policy.state()
    assert set(before) <= set(after)
    if "variational" not in option and "block" not in option:  # which change the shape of the encoder
        for name, tensor in before.items():
            assert torch.equal(after[name], tensor), name
    metrics = on.iterate()
    assert metrics["ratio_error"] < 1e-5
    assert metrics["skipped_updates"] == 0
    assert off.iterate()["ratio_error"] < 1e-5


@pytest.mark.parametrize("recurrent", [None, {"size": 8, "skip": True}])
@pytest.mark.parametrize("condition", ["concat", "film"])
def test_stop_gradient_leaves_the_encoder_to_the_auxiliary_losses(
    recurrent: dict[str, Any] | None, condition: str
) -> None:
    option = {"stop_gradient": True, "predict_actions": 0.5, "condition": condition}
    learner, _ = make_learner(option, rewarded=True, policy={"recurrent": recurrent})
    learner.collect()
    for parameter in learner.policy.parameters():  # scales of 0 would stop every gradient
        parameter.data += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    alone, both = gradients(learner, auxiliary=False), gradients(learner, auxiliary=True)
    encoder = [name for name in alone if name.startswith("strategy.")]
    assert encoder
    for name in encoder:
        assert alone[name] is None, name
        assert both[name].abs().sum() > 0.0, name  # type: ignore[union-attr]
    for name in alone:
        if not name.startswith(("strategy.", "action_prediction.")):
            assert torch.equal(alone[name], both[name]), name  # type: ignore[arg-type]
    flowing, _ = make_learner(option | {"stop_gradient": False}, rewarded=True, policy={"recurrent": recurrent})
    flowing.collect()
    assert gradients(flowing, auxiliary=False)["strategy.embedding.weight"].abs().sum() > 0.0  # type: ignore[union-attr]


def test_stop_gradient_needs_an_auxiliary_loss() -> None:
    for option in ({}, {"variational": 0.1}):
        with pytest.raises(ValidationError, match="stop_gradient is on, but no auxiliary loss"):
            StrategyConfig.model_validate({"stop_gradient": True} | option)
    for name in ("predict", "predict_actions", "classify", "contrast"):
        assert StrategyConfig.model_validate({"stop_gradient": True, name: 0.1}).stop_gradient


SMALL = StrategyConfig.model_validate(TINY)


def test_errors_of_predicted_actions_by_hand() -> None:
    one = ActionPrediction(SMALL, spaces.Discrete(3), 2)
    # Of 1 : 2 : 1 the second choice has 1/2, the first 1/4.
    logits = torch.tensor([[[1.0, 2.0, 1.0]], [[1.0, 2.0, 1.0]]]).log()
    errors, right = one.errors(logits, torch.tensor([1, 0]))
    assert errors.tolist() == pytest.approx([math.log(2), math.log(4)])
    assert right.tolist() == [1.0, 0.0]
    two = ActionPrediction(SMALL, spaces.MultiDiscrete([2, 3]), 2)
    predictions = two(torch.zeros(4, 8), torch.zeros(4, 2))
    assert predictions.shape == (4, 2, 3)
    assert (torch.softmax(predictions, -1)[:, 0, 2] == 0.0).all()  # the first factor has two choices
    errors, right = two.errors(
        torch.log(torch.tensor([[[0.25, 0.75, 1e-30], [0.1, 0.8, 0.1]]])), torch.tensor([[1, 2]])
    )
    assert errors.tolist() == pytest.approx([-(math.log(0.75) + math.log(0.1)) / 2])
    assert right.tolist() == [0.5]
    buttons = ActionPrediction(SMALL, spaces.MultiBinary(3), 2)
    errors, right = buttons.errors(torch.zeros(1, 3, 2), torch.tensor([[0, 1, 0]], dtype=torch.int8))
    assert errors.tolist() == pytest.approx([math.log(2)])
    assert right.tolist() == pytest.approx([2 / 3])  # of equal ones the first is named
    pushes = ActionPrediction(SMALL, spaces.Box(-1.0, 1.0, (2,), np.float32), 2)
    errors, _ = pushes.errors(torch.tensor([[0.5, 0.0]]), torch.tensor([[0.0, 1.0]]))
    assert errors.tolist() == pytest.approx([0.625])
    assert not pushes.is_choice


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
    labels = learner.rollout.opponent_actions
    assert labels is not None
    rival = {0: 2, 1: 2, 2: 0}  # seats 0 and 1 are one team
    expected = [
        [int(noted[place // 3, rival[place % 3]]) for place in index.tolist()]
        for noted, index in zip(others.noted, seats, strict=True)
    ]
    assert labels.tolist() == expected
    batch = learner.rollout.minibatch(torch.tensor([1, learner.rollout.rows]))
    assert batch.opponent_actions is not None
    assert torch.equal(batch.opponent_actions, torch.stack((labels[:8, 1], labels[8:16, 0]), dim=1))
    assert math.isfinite(learner.iterate()["action_prediction_loss"])


def test_buttons_are_predicted_in_games_that_the_learner_plays_alone(make_arena: Any) -> None:
    env = make_arena(4)
    policy = make_policy(env, {"predict_actions": 0.5})
    learner = PpoLearner(env, policy, PpoConfig.model_validate(PPO | {"batch_size": 64}))
    learner.collect()
    actions, labels = learner.rollout.actions, learner.rollout.opponent_actions
    assert labels is not None
    assert torch.equal(labels.view(16, 4, 2, 4), actions.view(16, 4, 2, 4).flip(2))  # each seat's is the other's
    learner.update()
    assert learner.metrics()["action_prediction_loss"] == pytest.approx(math.log(2), abs=0.3)


def test_unknown_actions_count_nothing() -> None:
    learner, _ = make_learner({"predict_actions": 1.0})
    learner.collect()
    batch, auxiliary = whole_rollout(learner), learner.updater.auxiliary
    evaluation = learner.policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    assert batch.opponent_actions is not None
    assert evaluation.opponent_actions is not None
    batch.opponent_actions[3:] = -1
    loss = auxiliary.add_to(torch.zeros(()), evaluation, batch)
    logits, actions = evaluation.opponent_actions[:3, :, 0], batch.opponent_actions[:3]
    assert loss.item() == pytest.approx(
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), actions.flatten()).item()
    )
    assert auxiliary.sums[6].item() == 3 * 16
    batch.opponent_actions.fill_(-1)
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
    assert batch.opponent_actions is not None
    assert evaluation.opponent_actions is not None
    loss = auxiliary.add_to(torch.zeros(()), evaluation, batch)
    assert auxiliary.sums[6].item() == 2
    picked = [(4, 0), (6, 1)]
    errors = [
        torch.nn.functional.cross_entropy(evaluation.opponent_actions[at], batch.opponent_actions[at].long()).item()
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
    assert totals.known is not None
    assert totals.known.item() == auxiliary.sums[6].item() > 0


def test_an_agent_of_events_is_the_same_from_its_description() -> None:
    learner = brawl_learner(EVENTS)
    spec = learner.policy.spec
    description = PolicyDescription.of(spec, learner.policy.config)
    assert description.format == 9
    read = PolicyDescription.read(json.loads(description.model_dump_json()))
    policy = Policy(read.spec(), read.config)
    policy.load_state(learner.policy.state())
    batch = whole_rollout(learner)
    one, other = (
        made.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
        for made in (learner.policy, policy)
    )
    assert torch.equal(one.log_probs, other.log_probs)
    plain = PolicyDescription.of(spec, PolicyConfig.model_validate({"strategy": TINY, "recurrent": {"size": 8}}))
    document = json.loads(plain.model_dump_json())
    assert document["format"] == 5
    assert not {"events", "predict_before_events"} & set(document["config"]["strategy"])
    assert "chrono_init" not in document["config"]["recurrent"]


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
    labels = learner.rollout.opponent_actions
    assert labels is not None
    assert labels.min() >= 0


def test_pairs_of_latents_by_hand() -> None:
    episode_starts = torch.zeros(8, 4, dtype=torch.bool)
    episode_starts[2, 1] = True  # steps 0, 1 and 2 to 7
    episode_starts[[0, 3, 6], 2] = True  # 0 to 2, 3 to 5, 6 and 7
    episode_starts[:, 3] = True
    first, second, valid = latent_pairs(episode_starts, 2)
    assert second.tolist() == [7, 7, 2, 0]
    assert first.tolist() == [4, 5, 0, 0]  # 7 - 7 // 2; 7 - 5 // 2; 2 - 2
    assert valid.tolist() == [True, True, True, False]
    assert latent_pairs(episode_starts, 5).valid.tolist() == [True, True, False, False]
    assert latent_pairs(episode_starts, 5).first.tolist()[:2] == [2, 2]
    numbers = torch.arange(32.0).view(8, 4)
    assert latent_pairs(episode_starts, 2).take(numbers).tolist() == [[16, 21, 2, 3], [28, 29, 10, 3]]


def make_batch(steps: int, rows: list[int], bots: list[int]) -> Minibatch:
    flags = torch.zeros(steps, len(rows), dtype=torch.bool)
    labels, nothing = torch.tensor(bots).expand(steps, -1), torch.zeros(0)
    return Minibatch({}, {}, flags, nothing, Targets(*[nothing] * 4), bots=labels, rows=torch.tensor(rows))


def test_the_contrastive_loss_by_hand() -> None:
    east, north = [1.0, 0.0], [0.0, 2.0]
    projected = torch.tensor([[east, north, east], [east, north, north]], requires_grad=True)
    first_of_three = math.log(1 + 2 * math.exp(-1))  # itself 1, the others 0; at temperature 1
    batch = make_batch(4, [0, 1, 2], [-1, -1, -1])
    pairs = latent_pairs(batch.episode_starts, 2)
    # Sequence 0 likens its own (1) to 0 and 0; 1 its own (1) to 0 and 1; 2 its own (0) to 1 and 0.
    by_hand = [first_of_three, math.log(2 + math.exp(-1)), math.log(2 + math.e)]
    assert contrastive_loss(projected, pairs, batch, 1.0).item() == pytest.approx(sum(by_hand) / 3)
    # Sequences of one row say nothing about each other.
    batch = make_batch(4, [0, 1, 0], [-1, -1, -1])
    by_hand = [math.log(1 + math.exp(-1)), math.log(2 + math.exp(-1)), math.log(2)]
    assert contrastive_loss(projected, pairs, batch, 1.0).item() == pytest.approx(sum(by_hand) / 3)
    # The first two play the same bot: each is the other's positive (0 against 0; 0 against 1), and no negative.
    batch = make_batch(4, [0, 1, 2], [5, 5, -1])
    by_hand = [(math.log(1 + math.exp(-1)) + math.log(2)) / 2, (math.log(2) + math.log(1 + math.e)) / 2]
    by_hand += [math.log(2 + math.e)]
    loss = contrastive_loss(projected, pairs, batch, 1.0)
    assert loss.item() == pytest.approx(sum(by_hand) / 3)
    loss.backward()  # type: ignore[no-untyped-call]
    assert projected.grad is not None
    assert projected.grad.isfinite().all()


def test_without_negatives_or_pairs_there_is_nothing_to_contrast() -> None:
    projected = torch.randn(2, 3, 4, requires_grad=True)
    batch = make_batch(4, [0, 0, 0], [-1, -1, -1])
    for gap in (2, 9):
        loss = contrastive_loss(projected, latent_pairs(batch.episode_starts, gap), batch, 0.1)
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.item() == 0.0
        assert projected.grad is not None
        assert projected.grad.abs().sum() == 0.0


@pytest.mark.parametrize("labels", [True, False])
def test_the_contrastive_loss_falls_and_tells_bots_apart(labels: bool) -> None:
    settings: dict[str, Any] = {
        "batch_size": 512,
        "n_epochs": 1,
        "learning_rate": 1e-2,
    }  # one step per rollout: the first is untrained
    learner, _ = make_learner({"contrast": 1.0, "contrast_gap": 4}, {"rock": 1.0, "cycle": 1.0}, 32, **settings)
    if not labels:
        learner.collector._classified_opponents = None  # as in a world without bots
    losses = [learner.iterate()["contrast_loss"] for _ in range(15)]
    # Unless labels say so, half of the 32 play the same bot and cannot be told apart: log 16 is the least.
    least = 0.0 if labels else math.log(16)
    assert losses[0] > least + 0.1
    assert sum(losses[-4:]) / 4 < least + 0.03
    assert "contrast_loss" in learner.loss_names
    bots = learner.rollout.bots
    assert bots is not None
    assert (bots >= 0).all() == labels


def test_gaps_must_fit_in_sequences() -> None:
    with pytest.raises(ConfigError, match=r"contrast_gap is 8, but ppo\.sequence_length is 8"):
        make_learner({"contrast": 1.0}, sequence_length=8)
    make_learner({"contrast": 0.0}, sequence_length=8)


@pytest.mark.parametrize("recurrent", [None, {"size": 8}, {"size": 8, "skip": True, "critic": "separate"}])
def test_film_starts_as_the_identity_and_then_acts(recurrent: dict[str, Any] | None) -> None:
    env = make_env("duel", 4)
    film, plain = (
        make_policy(env, {"condition": kind}, recurrent=recurrent, activation="relu") for kind in ("film", "concat")
    )
    episode_starts, seen = torch.ones(5, dtype=torch.bool), {"vector": torch.rand(5, 8)}
    one, other = (policy.step(seen, policy.initial(5), episode_starts) for policy in (film, plain))
    for ours, theirs in zip(one[:3], other[:3], strict=True):
        assert torch.equal(ours, theirs)
    assert film.actor_film is not None
    assert film.critic_film is not None
    with torch.no_grad():
        film.critic_film.linear.bias[:64] = -1.0  # of the first hidden layer: h (1 - 1) + 0
        film.critic_film.linear.bias[64:128] = 0.0
    values = film.step(seen, film.initial(5), episode_starts).values
    assert torch.equal(values, values[:1].expand(5))  # nothing is left of what was seen
    with torch.no_grad():
        film.actor_film.linear.weight.normal_()
    changed = film.step(seen, film.initial(5), episode_starts).log_probs
    assert not torch.equal(changed, one.log_probs)


def test_film_leaves_the_latent_at_its_full_size() -> None:
    env = make_env("duel", 4)
    recurrent = {"size": 8, "skip": True, "memory_feature_scale": 0.25}
    seen, episode_starts = {"vector": torch.rand(5, 8)}, torch.ones(5, dtype=torch.bool)
    parts = []
    for kind in ("film", "concat"):
        policy = make_policy(env, {"condition": kind}, recurrent=recurrent)
        trunk, _ = policy._trunk_step(seen, policy.initial(5), episode_starts)
        parts.append(trunk.actor)
        assert trunk.latent is not None
        factor = 1.0 if kind == "film" else 0.25
        torch.testing.assert_close(trunk.actor[:, 16:], factor * trunk.latent)
    assert torch.equal(parts[0][:, :16], parts[1][:, :16])  # the memory is scaled, the observation is not
    with pytest.raises(ConfigError, match="no hidden layers"):
        make_policy(env, {"condition": "film"}, net_arch={"pi": [], "vf": []})


def test_ablation_reaches_film() -> None:
    """The latent acts through film alone here: zeroed, it must act no longer."""
    env = make_env("duel", 4)
    policy = make_policy(env, {"condition": "film"})
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


def test_the_divergence_by_hand() -> None:
    # Mean 1 and deviation e^-1: (1 + e^-2 - 1 + 2) / 2; mean -2 and deviation 1: 4 / 2.
    latent = torch.tensor([[1.0, -2.0, math.exp(-1), 1.0]])
    assert kl_to_standard_normal(latent).tolist() == pytest.approx([(math.exp(-2) + 2) / 2 + 2.0])
    gaussian = torch.distributions.Normal(torch.tensor([0.3, -0.7]), torch.tensor([0.2, 1.9]))
    expected = torch.distributions.kl_divergence(gaussian, torch.distributions.Normal(0.0, 1.0)).sum()
    assert kl_to_standard_normal(torch.cat((gaussian.mean, gaussian.stddev))).item() == pytest.approx(expected.item())


def test_heads_read_samples_in_updates_and_means_elsewhere() -> None:
    learner, _ = make_learner({"variational": 0.01, "predict": 0.5})
    learner.collect()
    policy, batch = learner.policy, whole_rollout(learner)
    arguments = (batch.observations, batch.memory, batch.episode_starts, batch.actions)
    latent = policy.strategy_latent(*arguments[:3])
    assert latent.shape[-1] == 16
    assert (latent[..., 8:] > 0.0).all()
    assert torch.equal(policy.unroll(*arguments).latents, latent[..., :8])  # type: ignore[arg-type]
    drawn = []
    for seed in (1, 1, 2):
        with policy.updating(torch.Generator().manual_seed(seed)):
            latents = policy.unroll(*arguments).latents
        assert latents is not None
        drawn.append(latents)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    noise = (drawn[0] - latent[..., :8]) / latent[..., 8:]
    assert noise.mean().item() == pytest.approx(0.0, abs=0.1)
    assert noise.std().item() == pytest.approx(1.0, abs=0.1)
    assert torch.equal(policy.unroll(*arguments).values, policy.unroll(*arguments).values)


def test_the_divergence_is_reported_and_falls_by_its_weight() -> None:
    settings: dict[str, Any] = {"n_epochs": 8, "learning_rate": 1e-2}
    last = []
    for weight in (1e-6, 1.0):
        learner, _ = make_learner({"variational": weight, "predict": 1.0}, **settings)
        last.append([learner.iterate()["latent_kl"] for _ in range(5)][-1])
    assert 0.0 <= last[1] < 0.1 * last[0]
    assert "latent_kl" in learner.loss_names


def test_several_blocks_are_read_side_by_side() -> None:
    env = make_env("duel", 4)
    seen = torch.arange(16.0).view(2, 8)
    both = make_policy(env, {"block": ["opponent", "self"]})
    assert both.strategy_columns == (5, 6, 7, 0, 1, 2, 3, 4)
    assert both.opponent_frames({"vector": seen})[1].tolist() == [13, 14, 15, 8, 9, 10, 11, 12]
    assert make_policy(env, {"block": ["opponent"]}).strategy_columns == make_policy(env, {}).strategy_columns
    assert make_policy(env, {"block": None}).strategy_columns == tuple(range(8))
    predicting = make_policy(env, {"block": ["opponent", "self"], "predict": 1.0})
    assert predicting.prediction is not None
    assert predicting.prediction[-1].out_features == 8
    with pytest.raises(ConfigError, match=r"reads block 'weather'.*valid: self, opponent"):
        make_policy(env, {"block": ["opponent", "weather"]})
    for wrong, said in ((["opponent", "opponent"], "names a block twice"), ([], "at least 1 item")):
        with pytest.raises(ValidationError, match=said):
            StrategyConfig.model_validate({"block": wrong})


def test_surprise_by_hand() -> None:
    frames = torch.zeros(3, 4, 1)
    predictions = torch.tensor([1.0, 1.0, 3.0, 0.0]).expand(3, 4).unsqueeze(-1).clone().requires_grad_()
    episode_starts = torch.zeros(3, 4, dtype=torch.bool)
    # Errors 1, 1, 9 and 0 of the sequences, 11/4 on average: weights 4/11, 4/11, 36/11 and 0, which becomes 1/4.
    found = prediction_loss(predictions, frames, episode_starts, 1, by_surprise=True)
    assert found.plain.item() == pytest.approx(11 / 4)
    assert found.weighed.item() == pytest.approx((4 / 11 + 4 / 11 + 9 * 36 / 11) / 4)
    found.weighed.backward()  # type: ignore[no-untyped-call]
    assert predictions.grad is not None
    # 2 (p - 0) w / 8 pairs: weights have no gradient of their own.
    assert predictions.grad[0, :, 0].tolist() == pytest.approx([2 / 8 * 4 / 11, 2 / 8 * 4 / 11, 6 / 8 * 36 / 11, 0.0])
    large = torch.tensor([100.0, *[0.01] * 9]).expand(3, 10).unsqueeze(-1)
    weighed = prediction_loss(large, torch.zeros(3, 10, 1), torch.zeros(3, 10, dtype=torch.bool), 1, by_surprise=True)
    assert weighed.weighed.item() == pytest.approx((4 * 1e4 + 9 * 0.25 * 1e-4) / 10)
    perfect = prediction_loss(frames, frames, episode_starts, 1, by_surprise=True)
    assert (perfect.plain.item(), perfect.weighed.item()) == (0.0, 0.0)


def test_surprise_changes_the_gradient_of_both_predictions() -> None:
    for name in ("predict", "predict_actions"):
        found = []
        for weighting in ("uniform", "surprise"):
            learner, _ = make_learner({name: 1.0, "predict_weighting": weighting})
            learner.collect()
            found.append(gradients(learner, auxiliary=True)["strategy.latent.weight"])
        assert not torch.equal(found[0], found[1])  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_give_the_losses_of_the_whole(parts: int) -> None:
    """What is a mean over the minibatch stays one: all but the options that compare sequences of a part."""
    option = {
        "predict": 0.5,
        "predict_actions": 0.5,
        "classify": 0.2,
        "condition": "film",
        "block": ["opponent", "self"],
    }
    whole, part = (make_learner(option, rewarded=True, n_accumulate=n)[0] for n in (1, parts))
    for _ in range(2):
        assert part.iterate() == pytest.approx(whole.iterate(), rel=1e-3, abs=1e-5, nan_ok=True)
    for name, tensor in whole.policy.state().items():
        torch.testing.assert_close(part.policy.state()[name], tensor, atol=2e-5, rtol=1e-4, msg=name)
    everything, _ = make_learner(ALL_ON, rewarded=True, n_accumulate=parts)
    metrics = everything.iterate()
    assert all(math.isfinite(metrics[name]) for name in everything.loss_names)
    reference = make_learner(ALL_ON, rewarded=True)[0].iterate()
    assert metrics["latent_kl"] == pytest.approx(reference["latent_kl"], rel=0.2)


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
    assert latent.shape == (3, 16)
    assert (latent[:, 8:] > 0.0).all()


def test_only_agents_with_options_are_of_the_new_format() -> None:
    with make_env("duel") as env:
        spec = env.spec
    plain = PolicyConfig.model_validate({"strategy": TINY | {"predict": 0.5}})
    document = PolicyDescription.of(spec, plain).model_dump()
    assert document["format"] == 5
    assert not {"contrast", "condition", "variational", "predict_actions"} & set(document["config"]["strategy"])
    assert PolicyDescription.read(document).config == plain
    for option in OPTIONS:
        config = PolicyConfig.model_validate({"strategy": TINY | option})
        described = PolicyDescription.of(spec, config)
        assert described.format == 7, option
        assert PolicyDescription.read(described.model_dump_json()).config == config


def test_a_run_with_everything_is_checked_before_it_starts() -> None:
    strategy = TINY | ALL_ON | {"predict_ahead": 12, "contrast_gap": 12}
    raw = {"world": {"name": "duel", "num_envs": 4, "device": "cpu"}, "opponents": EVENLY | {"self": 1.0}}
    config = TrainConfig.model_validate(raw | {"policy": {"strategy": strategy}, "ppo": PPO | {"batch_size": 64}})
    with make_env("duel") as env:
        small = small_copy(config, env.spec)
    assert small.policy.strategy is not None
    assert (small.policy.strategy.predict_ahead, small.policy.strategy.contrast_gap) == (7, 7)
    with Components(small) as components:
        check_rollout(components)
        dry_run = small.method.dry_run(components.learner)
        assert f"finite in all {len(list(components.policy.parameters()))} parameters" in dry_run.lines[0]
        estimate = estimate_memory(small, components, dry_run).parts["rollout"]
        buffer = components.learner.rollout
        assert isinstance(buffer, RolloutBuffer)
        buffer.opponent_actions = None
        assert estimate - estimate_memory(small, components, dry_run).parts["rollout"] == buffer.steps * buffer.rows * 8


def test_an_encoder_that_predicts_actions_alone_is_enough_to_win() -> None:
    """Without any gradient of the reward the latent knows what comes next, and the policy learns the reply to it."""
    option = {"stop_gradient": True, "predict_actions": 1.0, "condition": "film", "block": ["opponent", "self"]}
    settings: dict[str, Any] = {"batch_size": 512, "n_epochs": 6, "learning_rate": 5e-3, "ent_coef": 0.01, "gamma": 0.5}
    learner, _ = make_learner(option, {"rock": 1.0, "cycle": 1.0}, 64, rewarded=True, **settings)
    returns = [learner.iterate()["episode_return"] for _ in range(12)]
    assert returns[0] < 2.0
    assert sum(returns[-3:]) / 3 > 7.0  # of ten rounds; the second is a guess


def test_random_layers_are_active_in_updates_alone() -> None:
    learner, _ = make_learner({"variational": 0.1})
    sample = learner.policy.latent_sample
    assert isinstance(sample, LatentSample)
    modes = [sample.training]
    with learner.policy.updating(torch.Generator()):
        modes.append(sample.training)
    learner.policy.train()
    assert [*modes, sample.training] == [False, True, False]


def test_continuous_actions_are_predicted_by_their_squared_error(make_arena: Any) -> None:
    env = make_arena(4)
    env.spec = replace(env.spec, action_space=spaces.Box(-1.0, 1.0, (3,), np.float32))
    policy = make_policy(env, {"predict_actions": 1.0})
    learner = PpoLearner(env, policy, PpoConfig.model_validate(PPO | {"batch_size": 64}))
    learner.collect()
    played, labels = learner.rollout.actions.view(16, 4, 2, 3), learner.rollout.opponent_actions
    assert labels is not None
    assert torch.equal(labels.view(16, 4, 2, 3), played.flip(2).clamp(-1.0, 1.0))  # as the world gets them
    batch, auxiliary = whole_rollout(learner), learner.updater.auxiliary
    assert auxiliary.names == ("action_prediction_loss",)
    evaluation = policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    assert batch.opponent_actions is not None
    assert evaluation.opponent_actions is not None
    batch.opponent_actions[1:] = math.nan
    loss = auxiliary.add_to(torch.zeros(()), evaluation, batch)
    expected = (evaluation.opponent_actions[0] - batch.opponent_actions[0]).square().mean()
    assert loss.item() == pytest.approx(expected.item())
    assert all(
        slope is None or slope.isfinite().all()
        for slope in torch.autograd.grad(loss, tuple(policy.parameters()), allow_unused=True)
    )
