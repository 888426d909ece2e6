"""Worlds as Gymnasium environments: Gymnasium's own checker, and what the checker does not look at."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import ludus  # noqa: F401 - registers the worlds
from ludus.core.errors import ActionError, ConfigError, UnknownNameError
from ludus.envs.adapters import register_gymnasium
from ludus.envs.adapters.gymnasium_env import LudusEnv, LudusVectorEnv
from ludus.envs.registry import make_env

pytestmark = pytest.mark.train

WORLDS = ["Dig-v1", "Duel-v1", "Endless-v1", "Identity-v1", "Point-v1", "Recall-v1", "Rps-v1"]


@pytest.mark.parametrize("name", WORLDS)
def test_gymnasiums_checker_passes_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(f"ludus/{name}")
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize(
    "lines",
    [
        ("import gymnasium, ludus", "gymnasium.register_envs(ludus)"),
        ("import ludus, gymnasium", "ludus.register_gymnasium()"),
        ("import ludus, gymnasium", "ludus.registered_envs()"),  # any use of a name
    ],
)
def test_the_worlds_are_registered_without_torch(lines: tuple[str, str]) -> None:
    code = "\n".join(
        (
            "import sys",
            *lines,
            "spec = gymnasium.spec('ludus/Identity-v1')",
            "print('torch' in sys.modules, spec.id, spec.entry_point, spec.vector_entry_point)",
        )
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    spec = gym.spec("ludus/Identity-v1")  # of a process with torch, in which the other tests make environments
    assert done.stdout.split() == ["False", spec.id, str(spec.entry_point), str(spec.vector_entry_point)]


def test_the_module_in_the_name_registers_the_worlds() -> None:
    register_gymnasium()  # again is fine
    env = gym.make("ludus:ludus/Identity-v1")
    assert env.spec is not None
    assert env.spec.id == "ludus/Identity-v1"
    code = (
        "import gymnasium",
        "print(gymnasium.make('ludus:ludus/Identity-v1').spec.id, gymnasium.make_vec('ludus/Identity-v1', 2).num_envs)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ludus/Identity-v1 2"


def test_a_step_gives_the_weighed_events() -> None:
    env = gym.make("ludus/Duel-v1", opponent="rock", seat=1, reward={"reward": 2.0, "wins": 10.0}, config={"rounds": 2})
    env.reset(seed=1)
    _, reward, terminated, _, info = env.step(1)  # paper beats rock
    assert reward == 2.0
    assert not terminated
    assert info["events"] == {"reward": 1.0, "wins": 0.0, "losses": 0.0, "draws": 0.0}
    assert info["state_metrics"] == {"lead": 1.0}
    assert info["seat"] == 1
    seen, reward, terminated, truncated, _ = env.step(0)
    assert reward == 10.0  # a tie, and the match is won
    assert terminated
    assert not truncated
    assert seen.tolist() == [0.0, 0.5, 1, 0, 0, 1, 0, 0]  # the last observation, not the next episode's first


def test_truncation_is_not_termination() -> None:
    env = gym.make("ludus/Endless-v1", config={"step_limit": 2})
    env.reset(seed=0)
    env.step(0)
    _, _, terminated, truncated, _ = env.step(0)
    assert (terminated, truncated) == (False, True)


def test_episodes_follow_each_other_with_and_without_an_end() -> None:
    env = gym.make("ludus/Point-v1", config={"step_limit": 3})
    reference = make_env("point-v1", config={"step_limit": 3})
    first = reference.reset(seed=5)["vector"][0, 0].numpy().copy()
    second = reference.reset()["vector"][0, 0].numpy().copy()
    third = reference.reset()["vector"][0, 0].numpy().copy()
    assert np.array_equal(env.reset(seed=5)[0], first)
    for _ in range(3):
        env.step(np.zeros(2, dtype=np.float32))
    assert np.array_equal(env.reset()[0], second)  # after an end: the episode that the world has begun already
    env.step(np.zeros(2, dtype=np.float32))
    assert np.array_equal(env.reset()[0], third)  # in the middle of an episode


def test_unseeded_environments_differ_and_seeded_ones_agree() -> None:
    def first(seed: int | None) -> list[float]:
        observation = gym.make("ludus/Point-v1").reset(seed=seed)[0]
        return [float(value) for value in observation]

    assert first(None) != first(None)
    assert first(4) == first(4)


def test_the_learners_seat_is_random_by_episode_and_repeatable() -> None:
    def seats(seed: int) -> list[int]:
        env = gym.make("ludus/Duel-v1")
        return [env.reset(seed=seed)[1]["seat"], *(env.reset()[1]["seat"] for _ in range(19))]

    assert seats(1) == seats(1)
    assert 4 <= sum(seats(1)) <= 16
    assert seats(1) != seats(2)


def test_keys_can_be_presented_as_multi_discrete() -> None:
    env = LudusEnv("identity-v1", actions="multi_discrete")  # no keys in this world: nothing changes
    assert env.action_space == spaces.Discrete(4)
    with pytest.raises(UnknownNameError, match="did you mean 'multi_discrete'"):
        LudusEnv("identity-v1", actions="multidiscrete")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("world", "options", "error", "fragment"),
    [
        ("duel-v1", {}, ConfigError, "name an opponent; valid: rock, cycle, random"),
        ("duel-v1", {"opponent": "rok"}, UnknownNameError, "did you mean 'rock'"),
        ("duel-v1", {"opponent": "rock", "seat": 2}, ConfigError, "seat 2 is not in duel-v1; valid: 0, 1"),
        ("duel-v1", {"opponent": "rock", "reward": {"win": 1.0}}, UnknownNameError, "did you mean 'wins'"),
        ("duel-v1", {"opponent": "rock", "reward": {}}, ConfigError, "needs reward weights"),
        (
            "duel-v1",
            {"opponent": "rock", "reward": print},
            ConfigError,
            "valid names: reward, wins, losses, draws.*reward_term",
        ),
        (
            "duel-v1",
            {"opponent": "rock", "reward": {"wins": "5"}},
            ConfigError,
            "'wins': '5'; valid names: reward, wins",
        ),
        ("duel-v1", {"opponent": "rock", "reward": {"wins": np.nan}}, ConfigError, "'wins': nan"),
        ("duel-v1", {"opponent": "rock", "reward": {5: 1.0}}, ConfigError, "got 5: 1.0"),
        ("duel-v1", {"opponent": 5}, ConfigError, "rock, cycle, random.*register_bot.*got 5"),
        ("duel-v1", {"opponent": ["rock"]}, ConfigError, r"rock, cycle, random.*got \['rock'\]"),
        (5, {}, ConfigError, "a world is named by text such as 'brawl', got 5"),
        ("point-v1", {"opponent": "rock"}, ConfigError, "one seat"),
        ("point-v1", {"render_mode": "rgb_array"}, ConfigError, "valid: only None"),
    ],
)
def test_wrong_options_are_named(world: Any, options: dict[str, Any], error: type[Exception], fragment: str) -> None:
    with pytest.raises(error, match=fragment):
        LudusEnv(world, **options)


def test_an_action_of_wrong_shape_is_refused() -> None:
    env = LudusEnv("point-v1")
    env.reset(seed=0)
    with pytest.raises(ActionError, match=r"\(1, 2\).*\(1, 3\)"):
        env.step(np.zeros(3))


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
