"""Worlds as Gymnasium environments: Gymnasium's own checker, and what the checker does not look at."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from ludus.core.errors import ActionError, ConfigError, UnknownNameError
from ludus.envs.adapters.gymnasium_env import LudusEnv
from ludus.envs.adapters.registration import register_gymnasium
from ludus.envs.registry import make_env

WORLDS = ["Dig-v1", "Duel-v1", "Endless-v1", "Identity-v1", "Point-v1", "Recall-v1", "Rps-v1"]


@pytest.mark.parametrize("name", WORLDS)
def test_gymnasiums_checker_passes_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(f"ludus/{name}")
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize("order", ["ludus, gymnasium", "gymnasium, ludus"])
def test_importing_ludus_registers_the_worlds_without_torch(order: str) -> None:
    code = (
        "import sys\n"
        f"import {order}\n"
        "assert 'torch' not in sys.modules\n"
        "print(gymnasium.make('ludus/Identity-v1').spec.id)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ludus/Identity-v1"


def test_the_module_in_the_name_registers_the_worlds() -> None:
    register_gymnasium()  # again is fine
    env = gym.make("ludus:ludus/Identity-v1")
    assert env.spec is not None
    assert env.spec.id == "ludus/Identity-v1"


def test_a_step_gives_the_weighed_events() -> None:
    env = gym.make("ludus/Duel-v1", opponent="rock", seat=1, reward={"reward": 2.0, "wins": 10.0}, config={"rounds": 2})
    env.reset(seed=1)
    _, reward, terminated, _, info = env.step(1)  # paper beats rock
    assert reward == 2.0
    assert not terminated
    assert info["events"] == {"reward": 1.0, "wins": 0.0, "losses": 0.0, "draws": 0.0}
    assert info["measures"] == {"lead": 1.0}
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
        ("point-v1", {"opponent": "rock"}, ConfigError, "one seat"),
        ("point-v1", {"render_mode": "rgb_array"}, ConfigError, "valid: only None"),
    ],
)
def test_wrong_options_are_named(world: str, options: dict[str, Any], error: type[Exception], fragment: str) -> None:
    with pytest.raises(error, match=fragment):
        LudusEnv(world, **options)


def test_an_action_of_wrong_shape_is_refused() -> None:
    env = LudusEnv("point-v1")
    env.reset(seed=0)
    with pytest.raises(ActionError, match=r"must have shape \(1, 2\), got \(1, 3\)"):
        env.step(np.zeros(3))
