"""Gymnasium vector environments as batches: the same games as single environments, in every autoreset mode."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from torch import Tensor

from ludus.core.errors import ConfigError, EnvFaultError, UnsupportedError
from ludus.envs import BatchedEnv, env_name, make_env, register_env
from ludus.envs import world as world_module
from ludus.envs.check import CheckOptions, check_env


@pytest.fixture(autouse=True)
def _own_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_module, "_WORLDS", dict(world_module.known_worlds()))


def cart_poles(num_envs: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * num_envs, autoreset_mode=mode)


def trace(env: BatchedEnv, steps: int = 50) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(1)
    yield env.reset()["vector"].clone()
    for _ in range(steps):
        result = env.step(torch.randint(0, 2, (env.num_envs, 1), generator=generator))
        for tensor in (result.observations["vector"], result.events["reward"], result.terminated, result.truncated):
            yield tensor.clone()
        yield result.final_observations["vector"][result.ended].clone()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_plays_the_games_of_single_ones(mode: AutoresetMode) -> None:
    register_env("carts-v1", lambda num_envs: cart_poles(num_envs, mode))
    single = list(trace(make_env("gym:CartPole-v1", 4, seed=3)))
    with make_env("carts-v1", 4, seed=3) as env:
        vector = list(trace(env))
    assert all(torch.equal(left, right) for left, right in zip(single, vector, strict=True))
    assert sum(int(tensor.sum()) for tensor in single if tensor.dtype == torch.bool) > 4  # games did end


def test_a_vector_environment_conforms() -> None:
    register_env("carts-v1", cart_poles)
    options = CheckOptions(num_envs=2, steps=10, end_steps=60)
    check_env(lambda games, seed, first: make_env("carts-v1", games, seed=seed, first_game=first), options)


class Counter(VectorEnv[Any, Any, Any]):
    """Counts the steps of two games, which end after 2 and 3 steps; knows nothing of masks."""

    def __init__(self, mode: AutoresetMode, fault: str = "") -> None:
        self.num_envs, self.metadata, self.fault = 2, {"autoreset_mode": mode}, fault
        self.single_observation_space = spaces.Box(0.0, 9.0, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2, start=3)
        self.counts, self.done, self.got = np.zeros(2), np.zeros(2, np.bool_), np.zeros(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        assert isinstance(seed, int)
        self.counts, self.done = np.zeros(2), np.zeros(2, np.bool_)
        return self.counts[:, None].astype(np.float32), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.got = actions
        if self.fault == "raises":
            raise RuntimeError("broken")
        is_next = self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        restarts = self.done if is_next else np.zeros(2, np.bool_)
        self.counts = np.where(restarts, 0, self.counts + 1)
        terminated, truncated = (self.counts == 2) & [True, False], (self.counts == 3) & [False, True]
        self.done = terminated | truncated
        infos: dict[str, Any] = {}
        rewards = np.where(restarts, 0.0, np.nan if self.fault == "nan" else 1.0)
        seen = self.counts
        if not is_next and self.done.any():
            if not self.fault:
                infos["final_obs"] = [np.array([count], np.float32) for count in self.counts]
            seen = self.counts = np.where(self.done, 0, self.counts)
        return seen[:, None].astype(np.float32), rewards, terminated, truncated, infos


def play(env: BatchedEnv, steps: int) -> list[list[float]]:
    """Returns what game 0 and game 1 saw in each step, and their final observations where they ended."""
    env.reset()
    rows = []
    for _ in range(steps):
        result = env.step(torch.zeros(2, 1, dtype=torch.int64))
        final = torch.where(result.ended, result.final_observations["vector"][:, 0, 0], -1.0)
        parts = (result.observations["vector"].flatten(), final, result.events["reward"].flatten())
        rows.append([value for part in parts for value in part.tolist()])
    return rows


def test_an_environment_that_restarts_in_the_same_step_gives_its_final_observations() -> None:
    counter = Counter(AutoresetMode.SAME_STEP)
    env = make_env(env_name(counter, "counter"), 2)
    assert play(env, 3) == [[1, 1, -1, -1, 1, 1], [0, 2, 2, -1, 1, 1], [1, 0, -1, 3, 1, 1]]
    assert counter.got.tolist() == [3, 3]
    env.reset()
    env.step(torch.zeros(2, 1, dtype=torch.int64))
    result = env.step(torch.zeros(2, 1, dtype=torch.int64))
    assert (result.terminated.tolist(), result.truncated.tolist()) == ([True, False], [False, False])
    with pytest.raises(UnsupportedError, match="cannot restart some"):
        env.reset(torch.tensor([True, False]))


def test_an_environment_that_restarts_in_the_next_step_begins_with_an_idle_one() -> None:
    env = make_env(env_name(Counter(AutoresetMode.NEXT_STEP), "counter"), 2)
    # Game 0 ends in step 2 and sees its last observation again; step 3 only restarts it, for no reward.
    assert play(env, 4) == [
        [1, 1, -1, -1, 1, 1],
        [2, 2, 2, -1, 1, 1],
        [0, 3, -1, 3, 0, 1],
        [1, 0, -1, -1, 1, 0],
    ]


def test_one_object_is_lent_to_one_batch_at_a_time_and_stays_open() -> None:
    counter = Counter(AutoresetMode.SAME_STEP)
    name = env_name(counter, "counter")
    assert env_name(counter) == name == "counter-v1"
    with make_env(name, 1) as env:
        assert env.spec.max_envs == 2
        assert "evaluation=null" in env.warnings[0]
        assert env.reset()["vector"].shape == (1, 1, 1)
        with pytest.raises(ConfigError, match="function of num_envs"):
            make_env(name, 2)
    make_env(name, 2).close()
    assert not counter.closed
    with pytest.raises(ConfigError, match=r"of 2 games, 3 were asked for; use world.num_envs=2"):
        make_env(name, 3)
    with pytest.raises(ConfigError, match="its own processes"):
        make_env(name, 2, config={"workers": 1})


def test_objects_of_gymnasiums_own_are_made_again_in_any_number() -> None:
    vector = cart_poles(2, AutoresetMode.SAME_STEP)
    assert env_name(vector) == "cart-pole-v1"
    with make_env("cart-pole-v1", 3) as env, make_env("cart-pole-v1", 1) as other:
        assert env.reset()["vector"].shape == (3, 1, 4)
        assert env.spec.max_envs is None
        assert torch.equal(other.reset()["vector"][0], env.reset(seed=0)["vector"][0])


def test_games_in_processes_of_gymnasiums_own_are_the_same() -> None:
    register_env("carts-v1", lambda num_envs: AsyncVectorEnv([lambda: gym.make("CartPole-v1")] * num_envs))
    single = list(trace(make_env("gym:CartPole-v1", 2, seed=3), 30))
    with make_env("carts-v1", 2, seed=3) as env:
        assert all(torch.equal(left, right) for left, right in zip(single, trace(env, 30), strict=True))


@pytest.mark.parametrize(
    ("fault", "said"),
    [("raises", r"step\(\) raised RuntimeError: broken"), ("nan", "NaN or Inf as a reward"), ("silent", "final_obs")],
)
def test_faults_are_typed_and_name_the_line(fault: str, said: str) -> None:
    env = make_env(env_name(Counter(AutoresetMode.SAME_STEP, fault), "counter"), 2)
    with pytest.raises(EnvFaultError, match=rf"counter-v1: .*{said}.*{__file__}:\d+"):
        play(env, 3)
