"""The compiled functions against autograd: the same actions, losses, gradients and parameters."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ludus.algorithms.ppo import native_mlp
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.native_mlp import NativeMlp, supports
from ludus.algorithms.ppo.update import Updater
from ludus.envs.base import EnvSpec
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.buffer import RolloutBuffer

pytestmark = pytest.mark.compile

STEPS, ROWS = 12, 5  # 60 frames, minibatches of 20: not a multiple of the lanes
ACTION_SPACES: dict[str, spaces.Space[Any]] = {
    "categorical": spaces.Discrete(5),
    "multi-categorical": spaces.MultiDiscrete([2, 3, 4]),
    "buttons": spaces.MultiBinary(11),
    "gaussian": spaces.Box(-1.0, 1.0, (3,), np.float32),
}


def _policy(space: str, **changes: Any) -> Policy:
    torch.manual_seed(0)
    observations = spaces.Dict(
        {"a": spaces.Box(-np.inf, np.inf, (3,), np.float32), "b": spaces.Box(-np.inf, np.inf, (7,), np.float32)}
    )
    spec = EnvSpec("test", 1, (0,), observations, ACTION_SPACES[space], 30.0, None)
    settings = {"net_arch": {"pi": [13, 24], "vf": [9]}, "log_std": -0.3} | changes
    policy = Policy(spec, PolicyConfig.model_validate(settings))
    with torch.no_grad():
        for parameter in policy.head.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.3)  # away from the uniform start
    return policy


def _buffer(policy: Policy, rows: int = ROWS) -> RolloutBuffer:
    generator = torch.Generator().manual_seed(1)
    buffer = RolloutBuffer(policy, STEPS, rows, 1)
    for tensor in buffer.observations.values():
        tensor.normal_(generator=generator)
    policy.observe({name: tensor * 2.0 + 1.0 for name, tensor in buffer.observations.items()})
    noise = policy.draw_noise(STEPS, rows, generator)
    for t in range(STEPS):
        frame = {name: tensor[t] for name, tensor in buffer.observations.items()}
        step = policy.step(frame, {}, torch.zeros(rows, dtype=torch.bool), noise[t])
        buffer.actions[t], buffer.log_probs[t], buffer.values[t] = step.actions, step.log_probs, step.values
    for tensor in (buffer.advantages, buffer.returns):
        tensor.normal_(generator=generator)
    for tensor in (buffer.log_probs, buffer.values):
        tensor.add_(torch.randn(tensor.shape, generator=generator) * 0.1)
    return buffer


def _config(*, native: bool, **changes: Any) -> PpoConfig:
    settings = {
        "n_steps": STEPS,
        "sequence_length": 4,
        "batch_size": 20,
        "n_epochs": 3,
        "learning_rate": 3e-3,
        "ent_coef": 0.02,
    }
    return PpoConfig.model_validate(settings | changes | {"native": native})


def _update(policy: Policy, config: PpoConfig, rows: int = ROWS) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    updater = Updater(policy, config)
    assert (updater.native is not None) == config.native
    updater.update(_buffer(policy, rows), 0.0, torch.Generator().manual_seed(2))
    gradients = {f"gradient.{name}": p.grad for name, p in policy.named_parameters() if p.grad is not None}
    return policy.state() | updater.optimiser.state() | gradients, updater.device_metrics()


@pytest.mark.parametrize(
    ("space", "policy_changes", "changes"),
    [
        ("categorical", {}, {}),
        ("categorical", {"activation": "relu", "normalize": {"observations": True}}, {"clip_range_vf": 0.1}),
        ("categorical", {"net_arch": {"pi": [], "vf": []}}, {"normalize_advantage": False, "max_grad_norm": 1e3}),
        ("multi-categorical", {}, {"weight_decay": 0.1}),
        ("buttons", {}, {"target_kl": 0.02, "learning_rate": 3e-2}),
        ("gaussian", {}, {"clip_range_vf": 0.2, "betas": (0.8, 0.99)}),
    ],
)
def test_the_update_equals_autograd(space: str, policy_changes: dict[str, Any], changes: dict[str, Any]) -> None:
    native, native_metrics = _update(_policy(space, **policy_changes), _config(native=True, **changes))
    plain, plain_metrics = _update(_policy(space, **policy_changes), _config(native=False, **changes))
    torch.testing.assert_close(native_metrics, plain_metrics, atol=1e-5, rtol=1e-4)
    for name, tensor in plain.items():
        torch.testing.assert_close(native[name], tensor, atol=1e-5, rtol=1e-3, msg=name)
    if "target_kl" in changes:
        assert 0.0 < native_metrics[-3] < 9.0  # it stopped early


def test_minibatches_of_more_rows_than_are_packed_at_once() -> None:
    rows = 25
    changes: dict[str, Any] = {"batch_size": STEPS * rows, "n_epochs": 1}
    assert 2 * native_mlp.PACKED_ROWS < STEPS * rows < 3 * native_mlp.PACKED_ROWS
    native, _ = _update(_policy("buttons"), _config(native=True, **changes), rows)
    plain, _ = _update(_policy("buttons"), _config(native=False, **changes), rows)
    for name, tensor in plain.items():
        torch.testing.assert_close(native[name], tensor, atol=1e-5, rtol=1e-3, msg=name)


@pytest.mark.parametrize("space", list(ACTION_SPACES))
def test_threads_share_a_forward_pass_bit_for_bit(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, threads = 29, torch.get_num_threads()
    generator = torch.Generator().manual_seed(3)
    frame = {"a": torch.randn(rows, 3, generator=generator), "b": torch.randn(rows, 7, generator=generator)}
    policy, starts = _policy(space), torch.zeros(rows, dtype=torch.bool)
    noise = policy.draw_noise(1, rows, generator)[0]
    alone = Updater(policy, _config(native=True)).native
    assert alone is not None
    one = alone.step(frame, {}, starts, noise)
    monkeypatch.setattr(native_mlp, "_ROWS_WORTH_A_FORWARD_THREAD", 4)
    torch.set_num_threads(3)
    try:
        shared = Updater(policy, _config(native=True)).native
        assert shared is not None
        three = shared.step(frame, {}, starts, noise)
    finally:
        torch.set_num_threads(threads)
    assert [len(native._forward[rows].jobs) for native in (alone, shared)] == [1, 3]
    for name in ("actions", "log_probs", "values"):
        assert torch.equal(getattr(one, name), getattr(three, name)), name


@pytest.mark.parametrize("space", list(ACTION_SPACES))
def test_threads_share_a_minibatch(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, plain_metrics = _update(_policy(space), _config(native=False, target_kl=0.05, learning_rate=1e-2))
    monkeypatch.setattr(native_mlp, "_ROWS_WORTH_A_THREAD", 4)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        native, native_metrics = _update(_policy(space), _config(native=True, target_kl=0.05, learning_rate=1e-2))
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(native_metrics, plain_metrics, atol=1e-5, rtol=1e-4)
    for name, tensor in plain.items():
        torch.testing.assert_close(native[name], tensor, atol=1e-5, rtol=1e-3, msg=name)


@pytest.mark.parametrize("space", list(ACTION_SPACES))
@pytest.mark.parametrize("rows", [1, 8, 13])
def test_the_step_equals_the_policys(space: str, rows: int) -> None:
    policy = _policy(space, normalize={"observations": True})
    updater = Updater(policy, _config(native=True))
    assert isinstance(updater.native, NativeMlp)
    generator = torch.Generator().manual_seed(3)
    episode_starts = torch.zeros(rows, dtype=torch.bool)
    for _ in range(5):
        frame = {"a": torch.randn(rows, 3, generator=generator), "b": torch.randn(rows, 7, generator=generator)}
        policy.observe(frame)
        noise = policy.draw_noise(1, rows, generator)[0]
        plain, native = (
            policy.step(frame, {}, episode_starts, noise),
            updater.native.step(frame, {}, episode_starts, noise),
        )
        assert native.actions.dtype == plain.actions.dtype
        torch.testing.assert_close(native.actions, plain.actions)
        torch.testing.assert_close(native.log_probs, plain.log_probs, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(native.values, plain.values, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(updater.native.value(frame, {}, episode_starts), plain.values, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 3.0, float("nan")])
def test_a_weight_that_changes_between_steps_counts(value: float) -> None:
    policy = _policy("gaussian")
    native = Updater(policy, _config(native=True)).native
    assert native is not None
    frame = {name: torch.randn(2, size) for name, size in (("a", 3), ("b", 7))}
    starts = torch.zeros(2, dtype=torch.bool)
    before = native.value(frame, {}, starts).clone()
    first = next(layer for layer in policy.critic.layers if isinstance(layer, torch.nn.Linear))
    with torch.no_grad():
        first.weight[4, 2] = value
    after = native.value(frame, {}, starts)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, policy.value(frame, {}, starts), atol=2e-6, rtol=1e-5, equal_nan=True)


def test_a_gradient_that_is_not_finite_never_reaches_the_parameters() -> None:
    policy = _policy("categorical")
    buffer = _buffer(policy)
    buffer.returns[3, 2] = float("nan")
    updater = Updater(policy, _config(native=True, normalize_advantage=False))
    updater.update(buffer, 0.0, torch.Generator().manual_seed(0))
    assert all(torch.isfinite(tensor).all() for tensor in policy.state().values())
    assert updater.device_metrics()[-2] == 3.0  # one minibatch an epoch holds it


def test_tanh_is_exact_over_its_whole_range() -> None:
    policy = _policy("gaussian", net_arch={"pi": [1], "vf": [1]})
    updater = Updater(policy, _config(native=True))
    assert updater.native is not None
    inputs = torch.cat((torch.linspace(-12.0, 12.0, 4001), torch.logspace(-8, 0, 100)))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        dict(policy.named_parameters())["critic.layers.0.weight"][0, 0] = 1.0
        policy.value_head.weight.fill_(1.0)
    frame = {"a": torch.zeros(4101, 3), "b": torch.zeros(4101, 7)}
    frame["a"][:, 0] = inputs
    values = updater.native.value(frame, {}, torch.zeros(4101, dtype=torch.bool))
    torch.testing.assert_close(values.double(), torch.tanh(inputs.double()), atol=0.0, rtol=4e-7)


def test_an_observation_that_is_not_a_number_reaches_the_value() -> None:
    policy = _policy("categorical")
    updater = Updater(policy, _config(native=True))
    assert updater.native is not None
    frame = {"a": torch.ones(2, 3), "b": torch.ones(2, 7)}
    frame["b"][1, 4] = float("nan")
    values = updater.native.value(frame, {}, torch.zeros(2, dtype=torch.bool))
    assert torch.isfinite(values).tolist() == [True, False]


def test_other_policies_are_left_to_torch() -> None:
    assert supports(_policy("buttons"))
    assert not supports(_policy("buttons", recurrent={"size": 4}))
    assert not supports(_policy("buttons", encoder=[4]))
    assert not supports(_policy("buttons", activation="gelu"))
    assert not supports(_policy("buttons", net_arch={"pi": [1025], "vf": [4]}))
    assert not supports(_policy("gaussian", state_dependent_exploration=True))
    assert supports(_policy("buttons", bfloat16=True)), "bfloat16 is for CUDA devices alone"
