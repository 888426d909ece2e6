"""The update's options: target KL, gradients that are not finite, schedules, decay, and a loss by hand."""

import math
from typing import Any

import pytest
import torch
from tests.strategies import TINY_STRATEGY

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.loss import METRICS, Coefficients, ppo_loss
from ludus.algorithms.ppo.optimizer import FlatAdam
from ludus.algorithms.ppo.update import UPDATE_METRICS, Updater
from ludus.core.errors import ConfigError, StateError
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Evaluation, Policy
from ludus.rollout.buffer import RolloutBuffer, Targets

STEPS, ROWS = 16, 4


def _config(**changes: Any) -> PpoConfig:
    return PpoConfig.model_validate(
        {"n_steps": STEPS, "batch_size": 16, "n_epochs": 4, "learning_rate": 1e-2} | changes
    )


def _buffer(policy: Policy) -> RolloutBuffer:
    generator = torch.Generator().manual_seed(0)
    buffer = RolloutBuffer(policy, STEPS, ROWS, 1)
    buffer.observations["vector"].normal_(generator=generator)
    buffer.actions.random_(0, 2, generator=generator)
    for tensor in (buffer.advantages, buffer.returns, buffer.values):
        tensor.normal_(generator=generator)
    episode_starts = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    with torch.no_grad():
        old = policy.unroll(buffer.observations, buffer.memory, episode_starts, buffer.actions)
    buffer.log_probs.copy_(old.log_probs)
    return buffer


def _run(policy: Policy, config: PpoConfig, progress: float = 0.0) -> tuple[dict[str, float], Updater]:
    updater = Updater(policy, config)
    updater.update(_buffer(policy), progress, torch.Generator().manual_seed(0))
    names = (*UPDATE_METRICS, "learning_rate")
    return dict(zip(names, updater.device_metrics().tolist(), strict=True)), updater


@pytest.fixture
def policy(make_arena: type) -> Policy:
    torch.manual_seed(0)
    return Policy(make_arena(2).spec, PolicyConfig())


def test_loss_by_hand() -> None:
    half = math.log(0.5)
    evaluation = Evaluation(torch.tensor([half, half]), torch.tensor([1.0, 3.0]), torch.tensor([1.0, 4.0]))
    targets = Targets(
        torch.tensor([half, 2 * half]), torch.zeros(2), torch.tensor([1.0, 1.0]), torch.tensor([2.0, 2.0])
    )
    coefficients = Coefficients(torch.tensor(0.0), torch.tensor(0.2), torch.tensor(0.1), None)
    loss, metrics = ppo_loss(evaluation, targets, coefficients, 0.5)
    # Ratios 1 and 2, the second clipped to 1.2: policy loss -(1 + 1.2) / 2; values off by 1 and 2: 2.5; entropy 2.
    found = dict(zip(METRICS, metrics.tolist(), strict=True))
    assert found["policy_loss"] == pytest.approx(-1.1)
    assert found["value_loss"] == pytest.approx(2.5)
    assert found["entropy"] == pytest.approx(2.0)
    assert found["clip_fraction"] == pytest.approx(0.5)
    assert found["ratio_error"] == pytest.approx(1.0)
    assert found["approx_kl"] == pytest.approx((1.0 - math.log(2.0)) / 2)
    assert loss.item() == pytest.approx(-1.1 + 0.5 * 2.5 - 0.1 * 2.0)


def test_value_clipping_by_hand() -> None:
    evaluation = Evaluation(torch.zeros(2), torch.zeros(2), torch.tensor([0.1, 3.0]))
    targets = Targets(torch.zeros(2), torch.zeros(2), torch.zeros(2), torch.ones(2))
    coefficients = Coefficients(torch.tensor(0.0), torch.tensor(0.2), torch.tensor(0.0), torch.tensor(0.5))
    _, metrics = ppo_loss(evaluation, targets, coefficients, 0.5)
    assert metrics[1].item() == pytest.approx((0.9**2 + 0.5**2) / 2)


def test_target_kl_stops_the_update(policy: Policy) -> None:
    free, _ = _run(policy, _config())
    assert free["updates"] == 16
    torch.manual_seed(0)
    other = Policy(policy.spec, PolicyConfig())
    held, _ = _run(other, _config(target_kl=0.002))
    assert 0 < held["updates"] < 16
    assert held["skipped_updates"] == 1  # the minibatch that went too far is not stepped on


def test_a_step_can_be_cancelled_without_a_trace(policy: Policy) -> None:
    optimiser = FlatAdam(policy, _config())
    optimiser.learning_rate.fill_(0.1)
    optimiser.gradient.fill_(1.0)
    before = {name: tensor.clone() for name, tensor in (optimiser.state() | policy.state()).items()}
    optimiser.step(torch.tensor(1.0))
    after = optimiser.state() | policy.state()
    assert all(torch.equal(before[name], after[name]) for name in before)
    optimiser.step(torch.tensor(0.0))
    # Adam's first step is as long as the learning rate, whatever the gradient.
    torch.testing.assert_close(
        policy.value_head.bias.detach(), before["parameter.value_head.bias"] - 0.1, rtol=1e-4, atol=1e-5
    )


def test_a_gradient_that_is_not_finite_never_reaches_the_parameters(policy: Policy) -> None:
    updater = Updater(policy, _config(normalize_advantage=False))
    buffer = _buffer(policy)
    buffer.returns[3, 2] = float("nan")
    updater.update(buffer, 0.0, torch.Generator().manual_seed(0))
    assert all(torch.isfinite(tensor).all() for tensor in policy.state().values())
    metrics = dict(zip(UPDATE_METRICS, updater.device_metrics().tolist(), strict=False))
    assert metrics["skipped_updates"] == 4  # one minibatch an epoch holds it
    assert math.isnan(metrics["value_loss"])  # and the metrics say so


def test_schedules_follow_the_progress(policy: Policy) -> None:
    ramp = {"kind": "linear", "start": 1e-2, "end": 0.0}
    metrics, updater = _run(
        policy, _config(learning_rate=ramp, clip_range=ramp, ent_coef=ramp, clip_range_vf=ramp), 0.25
    )
    assert metrics["learning_rate"] == pytest.approx(7.5e-3)
    assert updater._coefficients.clip.item() == pytest.approx(7.5e-3)
    assert updater._coefficients.entropy.item() == pytest.approx(7.5e-3)
    assert updater._coefficients.value_clip is not None
    assert updater._coefficients.value_clip.item() == pytest.approx(7.5e-3)


def test_the_kl_adaptive_rate_follows_the_metrics(policy: Policy) -> None:
    _, updater = _run(policy, _config(learning_rate={"kind": "kl_adaptive", "start": 1e-3, "target": 0.01}))
    updater.learn_from({"approx_kl": 1.0})
    assert updater.adaptive_rate == pytest.approx(1e-3 / 1.5)
    updater.learn_from({"approx_kl": 0.0})
    updater.learn_from({"approx_kl": 0.0})
    assert updater.adaptive_rate == pytest.approx(1.5e-3)
    updater.load_adaptive_rate(5e-4)
    assert updater.adaptive_rate == 5e-4


def test_weight_decay_shrinks_parameters(policy: Policy) -> None:
    optimiser = FlatAdam(policy, _config(weight_decay=0.1))
    optimiser.learning_rate.fill_(0.5)
    before = optimiser.flat.detach().clone()
    optimiser.step(torch.tensor(0.0))
    torch.testing.assert_close(optimiser.flat.detach(), before * (1.0 - 0.5 * 0.1))


def test_memory_learns_with_its_share_of_the_rate(make_arena: type) -> None:
    config = PolicyConfig(strategy=TINY_STRATEGY, recurrent=RecurrentConfig(size=8, critic="separate"))
    policy = Policy(make_arena(2).spec, config)
    optimiser = FlatAdam(policy, _config(memory_lr_scale=0.25))
    optimiser.learning_rate.fill_(0.1)
    optimiser.gradient.fill_(1.0)
    before = policy.state()
    optimiser.step(torch.tensor(1.0))
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state().items())
    optimiser.step(torch.tensor(0.0))
    moved = {name: before[name] - tensor for name, tensor in policy.state().items()}
    # Adam's first step is as long as the learning rate.
    for name, change in moved.items():
        expected = 0.025 if name.split(".")[1] in ("memory",) else 0.1
        torch.testing.assert_close(change, torch.full_like(change, expected), rtol=1e-3, atol=1e-5)
    assert {name.split(".")[1] for name in moved} >= {"memory", "actor", "critic"}


def test_scales_and_shifts_move_by_the_rate_over_the_size_of_the_latent(make_arena: type) -> None:
    policy = Policy(make_arena(2).spec, PolicyConfig(strategy=TINY_STRATEGY))
    assert policy.actor_film is not None
    optimiser = FlatAdam(policy, _config())
    optimiser.learning_rate.fill_(0.1)
    optimiser.gradient.fill_(1.0)
    optimiser.step(torch.tensor(0.0))
    # A latent of ones then changes every scale as fast as one weight of any other layer moves.
    moved = policy.actor_film.linear.weight.sum(dim=1)
    torch.testing.assert_close(moved, torch.full_like(moved, -0.1), rtol=1e-3, atol=1e-5)


def test_the_share_changes_nothing_without_memory(policy: Policy, make_arena: type) -> None:
    torch.manual_seed(0)
    other = Policy(make_arena(2).spec, PolicyConfig())
    for each, rate in ((policy, 1.0), (other, 0.25)):
        _run(each, _config(memory_lr_scale=rate))
    assert all(torch.equal(tensor, other.state()[name]) for name, tensor in policy.state().items())


def test_gradients_are_clipped_to_the_maximum(policy: Policy) -> None:
    optimiser = FlatAdam(policy, _config(max_grad_norm=0.5))
    optimiser.gradient.fill_(1.0)
    assert optimiser.clip().item() == pytest.approx(math.sqrt(optimiser.flat.numel()))
    assert optimiser.gradient.norm().item() == pytest.approx(0.5, rel=1e-5)
    optimiser.gradient.fill_(1e-4)
    optimiser.clip()
    assert optimiser.gradient[0].item() == pytest.approx(1e-4)


def test_optimiser_state_that_does_not_fit_is_refused(policy: Policy) -> None:
    optimiser = FlatAdam(policy, _config())
    state = optimiser.state()
    with pytest.raises(StateError, match="exp_avg"):
        optimiser.load_state(state | {"exp_avg": torch.zeros(3)})


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="16 steps x 3 rows"):
        _config(batch_size=32).minibatches(3)
    with pytest.raises(ConfigError, match=r"sequence_length 12 .*n_steps 16"):
        _config(sequence_length=12).sequence_length_for(has_memory=True)
    with pytest.raises(ConfigError, match=r"sequence_length 8 .*batch_size 12"):
        _config(sequence_length=8, batch_size=12).sequence_length_for(has_memory=True)
    assert _config(sequence_length=12).sequence_length_for(has_memory=False) == 1


def test_minibatches_are_contiguous_chunks_with_their_first_memory(make_arena: type) -> None:
    policy = Policy(make_arena(2).spec, PolicyConfig.model_validate({"recurrent": {"size": 3}}))
    buffer = RolloutBuffer(policy, STEPS, ROWS, 4)
    assert buffer.segments == STEPS // 4 * ROWS
    times = torch.arange(STEPS).unsqueeze(1) * 100 + torch.arange(ROWS)  # step * 100 + row
    buffer.values.copy_(times)
    buffer.observations["vector"].copy_(times.unsqueeze(-1).expand(-1, -1, 12))
    for chunk in range(STEPS // 4):
        buffer.store_memory(4 * chunk, {name: times[4 * chunk].unsqueeze(1).expand(-1, 3) for name in buffer.memory})
        buffer.store_memory(4 * chunk + 1, {name: torch.full((ROWS, 3), -1.0) for name in buffer.memory})
    batch = buffer.minibatch(torch.tensor([1, ROWS * 2 + 3]))  # row 1 of chunk 0, row 3 of chunk 2
    assert batch.targets.values.tolist() == [[1, 803], [101, 903], [201, 1003], [301, 1103]]
    assert batch.observations["vector"][:, :, 5].tolist() == batch.targets.values.tolist()
    assert batch.memory["recurrent.hidden"][:, 0].tolist() == [1, 803]
