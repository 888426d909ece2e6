"""Batches as SB3 vector environments: infos as SB3 reads them, and SB3 learning from them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.adapters.sb3 import LudusVecEnv
from ludus.envs.registry import make_env


def test_ended_games_carry_their_last_observation_and_totals() -> None:
    envs = LudusVecEnv("point-v1", 3, config={"step_limit": 2})
    reference = make_env("point-v1", 3, config={"step_limit": 2})
    envs.seed(7)
    envs.reset()
    reference.reset(seed=7)
    actions = np.full((3, 2), 0.5, dtype=np.float32)
    _, first_rewards, dones, infos = envs.step(actions)
    assert not dones.any()
    assert infos == [{}, {}, {}]
    observations, rewards, dones, infos = envs.step(actions)
    reference.step(torch.full((3, 1, 2), 0.5))
    expected = reference.step(torch.full((3, 1, 2), 0.5))
    assert dones.all()
    assert np.array_equal(np.asarray(observations), expected.observations["vector"][:, 0].numpy())
    final = expected.final_observations["vector"][:, 0].numpy()
    for game, info in enumerate(infos):
        assert np.array_equal(info["terminal_observation"], final[game])
        assert info["TimeLimit.truncated"] is True
        assert info["episode"]["r"] == pytest.approx(float(first_rewards[game] + rewards[game]))
        assert info["episode"]["l"] == 2
    assert np.array_equal(envs.events["reward"], expected.events["reward"][:, 0].numpy())
    _, _, _, infos = envs.step(actions)
    assert infos == [{}, {}, {}]  # totals start anew


def test_termination_is_not_reported_as_a_time_limit() -> None:
    envs = LudusVecEnv("identity-v1", 2, config={"steps": 1})
    envs.reset()
    _, _, dones, infos = envs.step(np.zeros(2, dtype=np.int64))
    assert dones.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]


def test_seeds_repeat_and_unseeded_batches_differ() -> None:
    def first(seed: int | None) -> Any:
        envs = LudusVecEnv("point-v1", 2)
        if seed is not None:
            envs.seed(seed)
        return envs.reset()

    assert np.array_equal(first(3), first(3))
    assert not np.array_equal(first(None), first(None))


def test_what_a_batch_cannot_do_is_said() -> None:
    envs = LudusVecEnv("point-v1", 2)
    assert envs.get_attr("render_mode") == [None, None]
    assert not envs.has_attr("no_such_thing")
    with pytest.raises(UnsupportedError, match="one batch"):
        envs.set_attr("gravity", 3)
    with pytest.raises(UnsupportedError, match="one batch"):
        envs.env_method("render")
    with pytest.raises(ConfigError, match="step_async"):
        envs.step_wait()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny networks are slowed down by threads that wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_sb3_ppo_learns_identity() -> None:
    envs = LudusVecEnv("identity-v1", 16)
    envs.seed(1)
    torch.manual_seed(0)
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=256, learning_rate=1e-2, seed=1, device="cpu")
    model.learn(4_000)
    mean, _ = evaluate_policy(model, envs, n_eval_episodes=50, warn=False)
    assert isinstance(mean, float)
    assert mean > 3.5  # the best return is 4, blind play gets 1
    assert len(model.ep_info_buffer or ()) > 0  # SB3 reads returns without a Monitor
