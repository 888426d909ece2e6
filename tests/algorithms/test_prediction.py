"""The auxiliary prediction of the opponent: its loss by hand, what it changes when it is on, and nothing when off."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.algorithms.ppo.auxiliary import prediction_loss
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import ConfigError
from ludus.envs.base import StepResult
from ludus.envs.registry import make_env
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.policies.stacked import StackedPolicy
from ludus.training.components import Components
from ludus.training.config import TrainConfig
from ludus.training.estimates import small_copy
from ludus.training.preflight import check_rollout

TINY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 6, "latent": 8}
PPO = {"n_steps": 16, "batch_size": 128, "n_epochs": 2, "sequence_length": 16, "learning_rate": 3e-3}


def make_learner(strategy: dict[str, Any], **ppo: Any) -> PpoLearner:
    torch.manual_seed(3)
    env = make_env("rps", 16)
    policy = Policy(env.spec, PolicyConfig.model_validate({"strategy": TINY | strategy}))
    return PpoLearner(env, policy, PpoConfig.model_validate(PPO | ppo), reward=no_reward)


def no_reward(result: StepResult) -> Tensor:
    return torch.zeros_like(result.events["reward"])


def test_the_loss_by_hand() -> None:
    frames = torch.tensor([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0], [2.0, 0.0]]).unsqueeze(1)
    predictions = torch.tensor([[1.0, 3.0], [9.0, 9.0], [2.0, 2.0], [7.0, 7.0]]).unsqueeze(1)
    episode_starts = torch.tensor([[True], [False], [True], [False]])
    # Pairs of one episode: frame 0 -> 1, off by (0, 2), and 2 -> 3, off by (0, 2); 1 -> 2 lies across an end.
    assert prediction_loss(predictions, frames, episode_starts, 1).plain.item() == pytest.approx(2.0)
    whole = torch.tensor([[True], [False], [False], [False]])
    # Two ahead: 0 -> 2 is off by (4, 2), 1 -> 3 by (7, 9): (10 + 65) / 2.
    assert prediction_loss(predictions, frames, whole, 2).plain.item() == pytest.approx(37.5)
    assert prediction_loss(predictions, frames, torch.ones_like(episode_starts), 1).plain.item() == 0.0


def test_frames_give_no_gradient() -> None:
    frames, predictions = torch.ones(3, 1, 2, requires_grad=True), torch.zeros(3, 1, 2, requires_grad=True)
    loss = prediction_loss(predictions, frames, torch.zeros(3, 1, dtype=torch.bool), 1)
    loss.weighed.backward()  # type: ignore[no-untyped-call]
    assert frames.grad is None
    assert predictions.grad is not None
    assert predictions.grad[-1].abs().sum() == 0.0  # nobody knows what comes after the last frame


def test_off_is_as_if_it_did_not_exist() -> None:
    on, off = make_learner({"predict": 1.0}), make_learner({})
    assert off.policy.prediction is None
    assert not any("prediction" in name for name in off.policy.state())
    for name, tensor in off.policy.state().items():
        assert torch.equal(on.policy.state()[name], tensor)
    metrics = off.iterate()
    assert "prediction_loss" not in metrics
    assert "prediction_loss" not in off.loss_names
    assert on.iterate()["ratio_error"] < 1e-5
    assert "prediction_loss" in on.loss_names


def test_the_loss_falls_without_any_reward() -> None:
    learner = make_learner({"predict": 1.0}, n_epochs=6)
    losses = [learner.iterate()["prediction_loss"] for _ in range(25)]
    # Knowing nothing of the next move, 2/9 of three numbers is the least; knowing the style, next to nothing.
    assert losses[0] > 0.2
    assert losses[-1] < 0.12


def test_the_weight_counts() -> None:
    small, large = (make_learner({"predict": weight}, max_grad_norm=1e9) for weight in (1e-6, 1.0))
    norms = [learner.iterate()["gradient_norm"] for learner in (small, large)]
    assert norms[1] > norms[0]


def test_it_goes_on_bit_by_bit() -> None:
    first, second = make_learner({"predict": 0.5}), make_learner({"predict": 0.5})
    first.iterate()
    tensors, counters = first.state()
    observations = second.collector.env.restore(first.collector.env.snapshot())
    second.load_state(tensors, counters, observations)
    assert first.iterate() == second.iterate()
    for name, tensor in first.policy.state().items():
        assert torch.equal(second.policy.state()[name], tensor)


def test_segments_must_hold_both_frames() -> None:
    with pytest.raises(ConfigError, match=r"ppo\.sequence_length is 8"):
        make_learner({"predict": 1.0, "predict_ahead": 8}, sequence_length=8)
    make_learner({"predict": 0.0, "predict_ahead": 8}, sequence_length=8)


def test_past_selves_take_its_parameters_along() -> None:
    policy = make_learner({"predict": 1.0}).policy
    stacked = StackedPolicy(policy, 2, values=False)
    stacked.load(1, policy.state())
    stacked.choose(torch.ones(3, dtype=torch.int64))
    episode_starts, seen = torch.ones(3, dtype=torch.bool), {"vector": torch.rand(3, 4)}
    step = stacked.step(seen, stacked.initial(3), episode_starts)
    assert torch.equal(step.actions, policy.step(seen, policy.initial(3), episode_starts).actions)


def test_the_small_copy_before_a_run_predicts_as_far_as_its_segments_reach() -> None:
    strategy = TINY | {"predict": 1.0, "predict_ahead": 12}
    raw = {"world": {"name": "rps"}, "policy": {"strategy": strategy}, "ppo": PPO}
    config = TrainConfig.model_validate(raw)
    with make_env("rps") as env:
        small = small_copy(config, env.spec)
    assert small.policy.strategy is not None
    assert (small.hyperparameters.sequence_length, small.policy.strategy.predict_ahead) == (8, 7)
    with Components(small) as components:
        check_rollout(components)
        dry_run = small.method.dry_run(components.learner)
    assert f"finite in all {len(list(components.policy.parameters()))} parameters" in dry_run.lines[0]
