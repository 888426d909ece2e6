"""Car soccer through every adapter: each ecosystem's own checker, and SB3 training on it."""

import warnings
from typing import Any

import gymnasium as gym
import pytest
import torch
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test
from stable_baselines3 import PPO

import ludus  # noqa: F401 - registers the worlds
from ludus.envs.adapters.gymnasium_env import LudusVectorEnv
from ludus.envs.adapters.pettingzoo_env import LudusParallelEnv
from ludus.envs.adapters.sb3 import LudusVecEnv

SHORT = {"episode_s": 2.0, "threads": 1}


@pytest.mark.parametrize("config", [{}, {"mode": "2v2"}, {"mode": "1v2", "actions": "continuous"}])
def test_gymnasiums_checker_passes_without_a_warning(config: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make("ludus/Rocket-v2", opponent="idle", config=SHORT | config)
        gymnasium_check_env(env.unwrapped)
        env.close()


def test_a_gymnasium_episode_is_cut_off_at_its_end() -> None:
    env = gym.make("ludus/Rocket-v2", opponent="idle", config=SHORT)
    assert env.action_space == spaces.Discrete(90)
    env.reset(seed=1)
    for step in range(1, 31):
        _, _, terminated, truncated, info = env.step(0)
        assert truncated == (step == 30)
        assert not terminated
    assert info["events"]["draws"] == 1.0
    env.close()


def test_a_vector_of_games_from_random_seats() -> None:
    envs: Any = LudusVectorEnv("rocket", 16, opponent="chaser", config=SHORT | {"mode": "2v2"})
    observations, infos = envs.reset(seed=4)
    assert set(infos["seat"].tolist()) == {0, 1, 2, 3}
    assert observations.shape == (16, 136)
    envs.action_space.seed(1)
    for _ in range(35):
        observations, rewards, *_ = envs.step(envs.action_space.sample())
    assert rewards.shape == (16,)
    assert envs.observation_space.contains(observations)
    envs.close()


def test_pettingzoos_own_tests_pass() -> None:
    parallel_api_test(LudusParallelEnv("rocket-v2", config=SHORT | {"mode": "1v2"}), num_cycles=60)
    parallel_seed_test(lambda: LudusParallelEnv("rocket-v2", config=SHORT), num_cycles=40)


@pytest.mark.parametrize("actions", ["table", "continuous"])
def test_sb3_ppo_trains_on_it(actions: str) -> None:
    envs = LudusVecEnv("rocket", 8, opponent="chaser", config=SHORT | {"actions": actions})
    envs.seed(1)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=512, n_epochs=1, seed=1, device="cpu")
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(1_000)
    assert model.num_timesteps >= 1_000
    assert model.ep_info_buffer
    assert {info["l"] for info in model.ep_info_buffer} <= set(range(1, 31))
    after = model.policy.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(value).all() for value in after.values())
    envs.close()
