"""The fighter through every adapter: each ecosystem's own checker, and SB3 training on it."""

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO

import ludus  # noqa: F401 - registers the worlds
from ludus.envs.adapters.gymnasium_env import LudusVectorEnv
from ludus.envs.adapters.pettingzoo_env import LudusParallelEnv
from ludus.envs.adapters.sb3 import LudusVecEnv
from ludus.envs.base import BatchedEnv
from ludus.envs.check import CHECKS, CheckOptions, check_env
from ludus.envs.registry import make_env

SHORT = {"step_limit": 40}


def test_brawl_conforms() -> None:
    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        return make_env("brawl", num_envs, seed=seed, first_game=first_game, config=SHORT)

    report = check_env(make, CheckOptions(num_envs=3, steps=45, end_steps=120))
    assert set(report.passed) == set(CHECKS) - {"choices"}  # it has buttons


def test_gymnasiums_checker_passes_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make("ludus/Brawl-v1", opponent="based")
        gymnasium_check_env(env.unwrapped)
        env.close()


def test_a_gymnasium_match_is_played_to_its_end() -> None:
    env = gym.make("ludus/Brawl-v1", opponent="aggressive", config=SHORT)
    env.action_space.seed(1)
    env.reset(seed=1)
    for step in range(1, 41):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert terminated == (step == 40)
        assert not truncated
    assert sum(info["events"][name] for name in ("wins", "losses", "draws")) == 1.0


def test_a_picture_is_drawn() -> None:
    env = gym.make("ludus/Brawl-v1", render_mode="rgb_array")
    env.reset(seed=1)
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert picture.shape == (720, 1280, 3)
    env.close()


def test_the_reward_is_the_weighed_sum_of_the_events() -> None:
    weights = {"damage_dealt": 0.5, "damage_taken": -0.25, "attacks": 0.125, "losses": -8.0}
    envs: Any = LudusVectorEnv("brawl", 32, opponent="aggressive", reward=weights, config={"step_limit": 300})
    envs.reset(seed=1)
    seen = dict.fromkeys(weights, 0.0)
    light_attack = np.tile(np.eye(10, dtype=np.int8)[7], (32, 1))
    for _ in range(300):
        _, rewards, *_, infos = envs.step(light_attack)
        events = infos["events"]
        assert rewards == pytest.approx(sum(weight * events[name] for name, weight in weights.items()))
        seen = {name: total + float(events[name].sum()) for name, total in seen.items()}
    assert seen["attacks"] > 0
    assert seen["damage_taken"] > 0


def test_make_vec_is_native_by_default_and_works_in_sync_mode() -> None:
    native = gym.make_vec("ludus/Brawl-v1", num_envs=8)
    assert isinstance(native, LudusVectorEnv)
    sync = gym.make_vec("ludus/Brawl-v1", num_envs=2, vectorization_mode="sync", config=SHORT)
    for envs in (native, sync):
        observations, _ = envs.reset(seed=2)
        assert envs.observation_space.contains(observations)
        envs.action_space.seed(2)
        for _ in range(3):
            observations, *_ = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(observations)
        envs.close()


def test_the_learner_sees_the_match_from_its_own_seat() -> None:
    envs: Any = LudusVectorEnv("brawl", 16, opponent="constant")
    reference = make_env("brawl", 16)
    observations, infos = envs.reset(seed=4)
    whole = reference.reset(seed=4)["vector"]
    seats = torch.as_tensor(infos["seat"])
    assert set(seats.tolist()) == {0, 1}
    assert np.array_equal(observations, whole[torch.arange(16), seats].numpy())


def test_keys_can_be_multi_discrete() -> None:
    env = gym.make("ludus/Brawl-v1", actions="multi_discrete")
    assert env.action_space == spaces.MultiDiscrete([2] * 10)
    other = gym.make("ludus/Brawl-v1")
    assert other.action_space == spaces.MultiBinary(10)
    env.reset(seed=1)
    other.reset(seed=1)
    keys = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 0])
    for _ in range(5):
        assert np.array_equal(env.step(keys)[0], other.step(keys.astype(np.int8))[0])


def test_pettingzoos_own_tests_pass() -> None:
    parallel_api_test(LudusParallelEnv("brawl-v1", config=SHORT), num_cycles=100)
    parallel_seed_test(lambda: LudusParallelEnv("brawl-v1"), num_cycles=60)


def test_sb3_ppo_trains_on_it() -> None:
    envs = LudusVecEnv("brawl", 16, opponent="based", config={"step_limit": 100})
    envs.seed(1)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=512, n_epochs=2, seed=1, device="cpu")
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(3_000)
    assert model.num_timesteps >= 3_000
    assert model.ep_info_buffer
    assert {info["l"] for info in model.ep_info_buffer} == {100}
    after = model.policy.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(value).all() for value in after.values())


def test_sb3_contribs_recurrent_ppo_trains_on_it() -> None:
    envs = LudusVecEnv("brawl", 4, opponent="random", config=SHORT)
    envs.seed(1)
    assert envs.action_space == spaces.MultiDiscrete([2] * 10)
    keywords: dict[str, Any] = {"n_steps": 32, "batch_size": 64, "n_epochs": 1, "seed": 1, "device": "cpu"}
    model = RecurrentPPO("MlpLstmPolicy", envs, policy_kwargs={"lstm_hidden_size": 32}, **keywords)
    model.learn(256)
    assert model.num_timesteps == 256
