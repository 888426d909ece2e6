"""A batch as a Gymnasium vector environment: native, restarting within the step, equal to single games."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import ludus  # noqa: F401 - registers the worlds
from ludus.envs.adapters.gymnasium_vector import LudusVectorEnv
from ludus.envs.registry import make_env


def test_make_vec_gives_the_native_batch() -> None:
    envs = gym.make_vec("ludus/Duel-v1", num_envs=5, opponent="cycle")
    assert isinstance(envs, LudusVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = envs.reset(seed=3)
    assert envs.observation_space.contains(observations)
    observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(observations)
    assert rewards.shape == terminated.shape == truncated.shape == (5,)
    assert infos["events"]["reward"].shape == (5,)
    envs.close()


def test_make_vec_also_works_in_sync_mode() -> None:
    envs = gym.make_vec("ludus/Duel-v1", num_envs=2, vectorization_mode="sync", opponent="cycle")
    assert isinstance(envs, SyncVectorEnv)
    envs.reset(seed=3)
    observations, *_ = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(observations)
    envs.close()


def test_ended_games_show_their_final_observation_and_start_anew() -> None:
    envs: Any = LudusVectorEnv("point-v1", 3, config={"step_limit": 2})
    reference = make_env("point-v1", 3, config={"step_limit": 2})
    envs.reset(seed=7)
    reference.reset(seed=7)
    actions = np.full((3, 2), 0.5, dtype=np.float32)
    *_, infos = envs.step(actions)
    assert "final_obs" not in infos
    observations, _, terminated, truncated, infos = envs.step(actions)
    reference.step(torch.full((3, 1, 2), 0.5))
    expected = reference.step(torch.full((3, 1, 2), 0.5))
    assert truncated.all()
    assert not terminated.any()
    assert np.array_equal(observations, expected.observations["vector"][:, 0].numpy())
    assert np.array_equal(np.stack(infos["final_obs"]), expected.final_observations["vector"][:, 0].numpy())
    assert infos["_final_obs"].all()
    assert np.array_equal(infos["final_info"]["events"]["reward"], expected.events["reward"][:, 0].numpy())


def test_what_was_returned_is_never_overwritten() -> None:
    envs: Any = LudusVectorEnv("point-v1", 2)
    first, _ = envs.reset(seed=1)
    kept = first.copy()
    actions = np.ones((2, 2), dtype=np.float32)
    second, rewards, *_ = envs.step(actions)
    kept_rewards = rewards.copy()
    envs.step(-actions)
    assert np.array_equal(first, kept)
    assert np.array_equal(rewards, kept_rewards)
    assert not np.array_equal(first, second)


def test_a_reset_mask_restarts_only_its_games() -> None:
    envs: Any = LudusVectorEnv("point-v1", 3)
    envs.reset(seed=1)
    before, *_ = envs.step(np.ones((3, 2), dtype=np.float32))
    after, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert (before == after).all(axis=1).tolist() == [True, False, True]


def test_unseeded_batches_differ() -> None:
    first, second = (np.asarray(LudusVectorEnv("point-v1", 2).reset()[0]) for _ in range(2))
    assert not np.array_equal(first, second)


def test_gymnasiums_vector_wrappers_take_the_infos() -> None:
    envs: gym.vector.VectorEnv = gym.wrappers.vector.RecordEpisodeStatistics(LudusVectorEnv("endless-v1", 2))
    wrapped = gym.wrappers.vector.DictInfoToList(envs)
    wrapped.reset(seed=0)
    for _ in range(10):
        *_, infos = wrapped.step(np.zeros(2, dtype=np.int64))
    assert infos[0]["final_info"]["events"]["reward"] == pytest.approx(1.0)
    assert infos[1]["episode"]["r"] == pytest.approx(10.0)
