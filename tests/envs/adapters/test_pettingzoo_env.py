"""Worlds as PettingZoo environments: PettingZoo's own tests, and what they do not look at."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from ludus.core.errors import ActionError
from ludus.envs.adapters.pettingzoo_env import LudusParallelEnv


@pytest.mark.parametrize("world", ["duel-v1", "point-v1"])
def test_pettingzoos_own_tests_pass(world: str) -> None:
    parallel_api_test(LudusParallelEnv(world), num_cycles=60)
    parallel_seed_test(lambda: LudusParallelEnv(world), num_cycles=30)


def test_every_seat_is_an_agent_with_its_own_view_and_reward() -> None:
    env = LudusParallelEnv("duel-v1", reward={"reward": 1.0, "wins": 5.0}, config={"rounds": 1})
    observations, _ = env.reset(seed=1)
    assert set(observations) == {"seat_0", "seat_1"} == set(env.agents)
    observations, rewards, terminated, truncated, infos = env.step({"seat_0": 1, "seat_1": 0})
    assert rewards == {"seat_0": 6.0, "seat_1": -1.0}
    assert terminated == {"seat_0": True, "seat_1": True}
    assert truncated == {"seat_0": False, "seat_1": False}
    assert env.agents == []
    assert infos["seat_1"]["events"]["losses"] == 1.0
    # The last observation, not the next episode's first: paper against rock, seen from both sides.
    assert observations["seat_0"].tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
    assert observations["seat_1"].tolist() == [0, -1, 1, 0, 0, 0, 1, 0]


def test_unseeded_games_differ() -> None:
    first, second = (LudusParallelEnv("point-v1").reset()[0]["seat_0"] for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_missing_or_late_action_is_refused() -> None:
    env = LudusParallelEnv("duel-v1", config={"rounds": 1})
    env.reset(seed=1)
    with pytest.raises(ActionError, match=r"\['seat_0'\].*agents"):
        env.step({"seat_0": 1})
    env.step({"seat_0": 1, "seat_1": 1})
    with pytest.raises(ActionError, match="over"):
        env.step({"seat_0": 1, "seat_1": 1})
