"""The same numbers as Stable-Baselines3 and sb3-contrib on the same rollout: advantages, losses, gradients, Adam."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.update import Updater
from ludus.envs.base import EnvSpec
from ludus.nn.recurrent import Lstm
from ludus.policies.config import NetArch, PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.advantages import compute_gae
from ludus.rollout.buffer import RolloutBuffer

pytestmark = pytest.mark.train

STEPS, ROWS, SIZE = 32, 4, 16
SETTINGS: dict[str, Any] = {
    "n_steps": STEPS,
    "batch_size": STEPS * ROWS,
    "n_epochs": 1,
    "learning_rate": 3e-3,
    "clip_range": 0.1,
    "clip_range_vf": 0.15,
    "ent_coef": 0.02,
    "gamma": 0.97,
    "gae_lambda": 0.9,
    "max_grad_norm": 0.3,
    "seed": 3,
    "device": "cpu",
}
CONFIG = PpoConfig.model_validate(
    {
        "n_steps": STEPS,
        "batch_size": STEPS * ROWS,
        "n_epochs": 1,
        "sequence_length": STEPS,
        "learning_rate": 3e-3,
        "clip_range": 0.1,
        "clip_range_vf": 0.15,
        "ent_coef": 0.02,
        "gamma": 0.97,
        "gae_lambda": 0.9,
        "max_grad_norm": 0.3,
    }
)


def _spec(env_name: str) -> EnvSpec:
    env = gym.make(env_name)
    observation, action = env.observation_space, env.action_space
    assert isinstance(observation, spaces.Box)
    vector = spaces.Box(-np.inf, np.inf, observation.shape, np.float32)
    return EnvSpec("gym", 1, (0,), spaces.Dict({"vector": vector}), action, 30.0, None)


def _collect(model: Any) -> Any:
    """Fills the model's buffer with one real rollout, and makes the old log probabilities and values differ."""
    _, callback = model._setup_learn(STEPS * ROWS)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, STEPS)
    generator = np.random.default_rng(0)
    buffer = model.rollout_buffer
    buffer.log_probs += generator.normal(0.0, 0.1, buffer.log_probs.shape).astype(np.float32)
    buffer.values += generator.normal(0.0, 0.1, buffer.values.shape).astype(np.float32)
    return buffer


def _names(model: Any) -> dict[str, Tensor]:
    """Returns their feed-forward parameters under our names."""
    theirs = dict(model.policy.named_parameters())
    names = {"head.linear": "action_net", "value_head": "value_net"}
    for ours, other in (("actor", "policy_net"), ("critic", "value_net")):
        names |= {f"{ours}.layers.{i}": f"mlp_extractor.{other}.{2 * i}" for i in range(2)}
    found = {f"{our}.{part}": theirs[f"{their}.{part}"] for our, their in names.items() for part in ("weight", "bias")}
    return found | ({"head.log_std": theirs["log_std"]} if "log_std" in theirs else {})


def _fill(policy: Policy, theirs: Any) -> RolloutBuffer:
    buffer = RolloutBuffer(policy, STEPS, ROWS, CONFIG.sequence_length_for(has_memory=policy.has_memory))
    buffer.observations["vector"].copy_(torch.as_tensor(theirs.observations))
    actions = torch.as_tensor(theirs.actions)
    buffer.actions.copy_(actions if buffer.actions.dim() == 3 else actions.squeeze(-1))
    for name in ("rewards", "log_probs", "values", "advantages", "returns"):
        getattr(buffer, name).copy_(torch.as_tensor(getattr(theirs, name)))
    buffer.episode_starts.copy_(torch.as_tensor(theirs.episode_starts) > 0)
    return buffer


def _assert_same_update(
    model: Any, policy: Policy, buffer: RolloutBuffer, names: dict[str, Tensor], config: PpoConfig = CONFIG
) -> None:
    model.train()
    updater = Updater(policy, config)
    updater.update(buffer, 0.0, torch.Generator().manual_seed(0))
    logged, metrics = model.logger.name_to_value, updater.device_metrics().tolist()
    theirs = [logged[f"train/{name}"] for name in ("policy_gradient_loss", "value_loss", "approx_kl", "clip_fraction")]
    assert [metrics[0], metrics[1], metrics[3], metrics[4]] == pytest.approx(theirs, abs=1e-5)
    assert metrics[2] == pytest.approx(-logged["train/entropy_loss"], abs=1e-5)
    assert metrics[4] > 0.05  # the clip was at work
    parameters = dict(policy.named_parameters())
    for name, other in names.items():
        assert other.grad is not None
        assert parameters[name].grad is not None
        torch.testing.assert_close(parameters[name].grad, other.grad, atol=1e-5, rtol=1e-4, msg=name)
        torch.testing.assert_close(parameters[name].data, other.data, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("env_name", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize("normalize", [True, False])
def test_feed_forward(env_name: str, normalize: bool) -> None:
    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy", DummyVecEnv([lambda: gym.make(env_name)] * ROWS), normalize_advantage=normalize, **SETTINGS
    )
    theirs = _collect(model)
    policy = Policy(_spec(env_name), PolicyConfig())
    names, parameters = _names(model), dict(policy.named_parameters())
    assert set(names) == set(parameters)
    with torch.no_grad():
        for name, other in names.items():
            parameters[name].copy_(other)
    buffer = _fill(policy, theirs)
    _assert_same_update(model, policy, buffer, names, CONFIG.model_copy(update={"normalize_advantage": normalize}))


def test_advantages_and_returns() -> None:
    model = PPO("MlpPolicy", DummyVecEnv([lambda: gym.make("CartPole-v1")] * ROWS), **SETTINGS)
    theirs = _collect(model)
    last_values, dones = torch.randn(ROWS), np.array([True, False, False, True])
    theirs.compute_returns_and_advantage(last_values, dones)
    episode_starts = torch.as_tensor(theirs.episode_starts) > 0
    assert episode_starts[1:].any()
    ends = torch.cat((episode_starts[1:], torch.as_tensor(dones).unsqueeze(0)))
    rewards, values = torch.as_tensor(theirs.rewards), torch.as_tensor(theirs.values)
    advantages, returns = compute_gae(rewards, values, last_values, ends, 0.97, 0.9)
    torch.testing.assert_close(advantages, torch.as_tensor(theirs.advantages), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(returns, torch.as_tensor(theirs.returns), atol=1e-5, rtol=1e-5)


def _copy_lstm(ours: Lstm, theirs: Any) -> None:
    order = torch.cat([torch.arange(SIZE) + gate * SIZE for gate in (0, 1, 3, 2)])  # theirs: i, f, candidate, o
    ours.input_weight.copy_(theirs.weight_ih_l0[order])
    ours.hidden_weight.copy_(theirs.weight_hh_l0[order])
    ours.bias.copy_((theirs.bias_ih_l0 + theirs.bias_hh_l0)[order])


def test_recurrent(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    model = RecurrentPPO(
        "MlpLstmPolicy",
        DummyVecEnv([lambda: gym.make("CartPole-v1")] * ROWS),
        policy_kwargs={"lstm_hidden_size": SIZE},
        # Their cell has two biases that act as one and get the same gradient twice, which would count in its norm.
        **(SETTINGS | {"max_grad_norm": 1e3}),
    )
    theirs = _collect(model)
    assert theirs.episode_starts[1:].any()
    config = {"recurrent": {"size": SIZE, "critic": "separate"}, "net_arch": NetArch()}
    policy = Policy(_spec("CartPole-v1"), PolicyConfig.model_validate(config))
    names, parameters = _names(model), dict(policy.named_parameters())
    assert isinstance(policy.memory.recurrent, Lstm)
    assert isinstance(policy.memory.critic_recurrent, Lstm)
    with torch.no_grad():
        for name, other in names.items():
            parameters[name].copy_(other)
        _copy_lstm(policy.memory.recurrent, model.policy.lstm_actor)
        _copy_lstm(policy.memory.critic_recurrent, model.policy.lstm_critic)
    buffer = _fill(policy, theirs)
    for ours, side in (("recurrent", "pi"), ("critic_recurrent", "vf")):
        for part in ("hidden", "cell"):
            first = torch.as_tensor(getattr(theirs, f"{part}_states_{side}"))[0, 0]
            buffer.memory[f"{ours}.{part}"][0].copy_(first)
    # They rotate the rollout by a random number, which cuts one sequence's gradient in two: 0 keeps it whole.
    monkeypatch.setattr(np.random, "randint", lambda *_: 0)
    _assert_same_update(model, policy, buffer, names, CONFIG.model_copy(update={"max_grad_norm": 1e3}))
    pairs: list[tuple[Lstm, Any]] = [
        (policy.memory.recurrent, model.policy.lstm_actor),
        (policy.memory.critic_recurrent, model.policy.lstm_critic),
    ]
    order = torch.cat([torch.arange(SIZE) + gate * SIZE for gate in (0, 1, 3, 2)])
    for ours_lstm, their_lstm in pairs:
        torch.testing.assert_close(
            ours_lstm.hidden_weight.grad, their_lstm.weight_hh_l0.grad[order], atol=1e-5, rtol=1e-4
        )
        torch.testing.assert_close(
            ours_lstm.input_weight.grad, their_lstm.weight_ih_l0.grad[order], atol=1e-5, rtol=1e-4
        )
