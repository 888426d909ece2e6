"""Gymnasium environments as batched ones: all kinds of spaces, ends and cuts, the same games wherever they run."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import (
    ActionError,
    ConfigError,
    DeviceError,
    MissingDependencyError,
    SnapshotError,
    UnsupportedError,
)
from ludus.envs.adapters import game_batch
from ludus.envs.adapters.gymnasium_factory import naming_faults
from ludus.envs.adapters.worker_batch import WorkerBatch
from ludus.envs.base import BatchedEnv
from ludus.envs.check import CheckOptions, EnvMaker, check_env
from ludus.envs.registry import make_env

pytestmark = pytest.mark.train

ECHO = "gym:echo_games:Echo-v2"


def echo(num_envs: int = 2, workers: int = 0, **env_kwargs: Any) -> BatchedEnv:
    return make_env(ECHO, num_envs, config={"workers": workers, "env_kwargs": env_kwargs})


def maker(name: str, workers: int = 0) -> EnvMaker:
    def make(num_envs: int, seed: int, first_game: int, /) -> BatchedEnv:
        config = {"workers": min(workers, num_envs)}
        return make_env(name, num_envs, seed=seed, first_game=first_game, config=config)

    return make


@pytest.mark.parametrize("name", ["gym:CartPole-v1", "gym:Pendulum-v1", "gym:FrozenLake-v1"])
def test_gymnasiums_own_environments_conform(name: str) -> None:
    report = check_env(maker(name), CheckOptions(num_envs=3, steps=15, end_steps=250))
    assert {"restart", "partial_reset", "batch", "equal_seeds"} <= set(report.passed)


def test_environments_in_workers_conform() -> None:
    check_env(maker("gym:CartPole-v1", workers=2), CheckOptions(num_envs=2, steps=15, end_steps=250))


def test_the_spec_says_what_the_environment_is() -> None:
    spec = make_env("gym:CartPole-v1", 2).spec
    assert spec.id == "gym:CartPole-v1"
    assert spec.step_limit == 500
    assert spec.rate_hz == 50.0
    assert spec.teams == (0,)
    assert spec.observation_space["vector"].shape == (4,)
    assert spec.action_space == spaces.Discrete(2)
    assert spec.snapshots
    assert spec.device_types == ("cpu",)


def test_observations_of_all_kinds_arrive() -> None:
    env = echo()
    space = env.spec.observation_space
    assert space["numbers"].dtype == np.float32
    assert space["choice"].shape == (3,)
    assert space["picture"].dtype == np.uint8
    first = env.reset()
    assert first["choice"][0, 0].tolist() == [1, 0, 0]
    env.step(torch.zeros(2, 1, dtype=torch.int64))
    seen = env.step(torch.zeros(2, 1, dtype=torch.int64)).observations
    assert seen["numbers"][0, 0, 0] == 2.0
    assert seen["choice"][1, 0].tolist() == [0, 0, 1]
    assert seen["picture"][1, 0].flatten().tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("kind", "actions", "expected"),
    [
        ("discrete", torch.tensor([[0], [2]]), [[5, 5], [7, 7]]),  # the environment counts from 5
        ("multi_discrete", torch.tensor([[[1, 2]], [[0, 1]]]), [[1, 2], [0, 1]]),
        ("multi_binary", torch.tensor([[[1, 0]], [[0, 1]]], dtype=torch.int8), [[1, 0], [0, 1]]),
        ("multi_binary", torch.tensor([[[True, False]], [[False, True]]]), [[1, 0], [0, 1]]),
        ("box", torch.tensor([[[0.5, -9.0]], [[1.5, 2.5]]]), [[0.5, -2.0], [1.5, 2.0]]),  # clipped to the space
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_actions_of_all_kinds_arrive(kind: str, actions: Tensor, expected: list[list[float]], workers: int) -> None:
    with echo(2, workers, action=kind) as env:
        env.reset()
        assert env.step(actions).observations["numbers"][:, 0, 2:].tolist() == expected


@pytest.mark.parametrize("workers", [0, 1])
def test_an_end_and_a_cut_are_told_apart_and_show_the_last_observation(workers: int) -> None:
    zeros = torch.zeros(1, 1, dtype=torch.int64)
    with echo(1, workers, ends_after=2) as env:
        first_seed = float(env.reset()["numbers"][0, 0, 1])
        env.step(zeros)
        result = env.step(zeros)
        assert (result.terminated.tolist(), result.truncated.tolist()) == ([True], [False])
        assert result.events["reward"].tolist() == [[1.0]]
        assert result.final_observations["numbers"][0, 0].tolist() == [2.0, first_seed, 5.0, 5.0]
        assert result.final_observations["choice"][0, 0].tolist() == [0, 0, 1]
        assert result.observations["numbers"][0, 0, 0] == 0.0
        assert result.observations["numbers"][0, 0, 1] != first_seed  # another episode, another seed
        assert not bool(env.step(zeros).ended.any())
    with echo(1, workers, cut_after=1) as env:
        env.reset()
        result = env.step(zeros)
        assert (result.terminated.tolist(), result.truncated.tolist()) == ([False], [True])
    with echo(1, workers, ends_after=1, cut_after=1) as env:
        env.reset()
        result = env.step(zeros)  # both at once: over by its own rules
        assert (result.terminated.tolist(), result.truncated.tolist()) == ([True], [False])


def trace(env: BatchedEnv, steps: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(1)
    yield env.reset()["vector"].clone()
    for _ in range(steps):
        result = env.step(torch.randint(0, 2, (env.num_envs, 1), generator=generator))
        for tensor in (result.observations["vector"], result.events["reward"], result.terminated, result.truncated):
            yield tensor.clone()
        yield result.final_observations["vector"][result.ended].clone()


def test_games_are_the_same_in_process_and_in_workers() -> None:
    here = list(trace(make_env("gym:CartPole-v1", 5, seed=3), 80))
    with make_env("gym:CartPole-v1", 5, seed=3, config={"workers": 2}) as env:
        there = list(trace(env, 80))
    assert all(torch.equal(left, right) for left, right in zip(here, there, strict=True))
    assert sum(int(tensor.sum()) for tensor in here if tensor.dtype == torch.bool) > 5  # games did end


def test_stepping_before_the_first_reset_starts_the_games() -> None:
    env = make_env("gym:CartPole-v1", 2, seed=3)
    other = make_env("gym:CartPole-v1", 2, seed=3)
    other.reset()
    actions = torch.ones(2, 1, dtype=torch.int64)
    assert torch.equal(env.step(actions).observations["vector"], other.step(actions).observations["vector"])


def test_a_game_can_be_drawn_if_asked_for() -> None:
    env = make_env("gym:CartPole-v1", 1, config={"env_kwargs": {"render_mode": "rgb_array"}})
    env.reset()
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape == (400, 600, 3)
    env.close()
    with pytest.raises(UnsupportedError, match="render_mode None"):
        make_env("gym:FrozenLake-v1", 1).render()


@pytest.mark.parametrize(
    ("name", "config", "error", "fragment"),
    [
        ("gym:CartPol-v1", {}, ConfigError, "Did you mean: `CartPole`"),
        ("gym:CartPole-v1", {"worker": 2}, ConfigError, "did you mean 'workers'"),
        ("gym:CartPole-v1", {"timeout_s": 0}, ConfigError, "timeout_s"),
        ("gym:CartPole-v1", {"env_kwargs": {"gravity": 3}}, ConfigError, "unexpected keyword argument 'gravity'"),
        ("gym:echo_games:Echo-v2", {"env_kwargs": {"action": "text"}}, UnsupportedError, "action space Text"),
        ("gym:echo_games:Tuple-v0", {}, UnsupportedError, "FlattenObservation"),
        (ECHO, {"workers": 1, "env_kwargs": {"ends_after": 2 + 1j}}, ConfigError, "JSON"),
    ],
)
def test_what_cannot_be_made_is_named(name: str, config: dict[str, Any], error: type[Exception], fragment: str) -> None:
    with pytest.raises(error, match=fragment):
        make_env(name, 2, config=config)


def test_a_library_that_an_extra_installs_is_named_with_it() -> None:
    with pytest.raises(MissingDependencyError, match=r"Hopper.*gymnasium-mujoco"), naming_faults("gym:Hopper-v5"):
        raise ModuleNotFoundError("No module named 'imageio'", name="imageio")


def test_wrong_devices_masks_and_actions_are_refused() -> None:
    with pytest.raises(DeviceError, match="lives on cpu"):
        make_env("gym:CartPole-v1", 2, games_device="cuda")
    env = make_env("gym:CartPole-v1", 2)
    env.reset()
    with pytest.raises(ActionError, match=r"bool.*\(2,\)"):
        env.reset(torch.tensor([1, 0]))
    with pytest.raises(ActionError, match="seed"):
        env.reset(torch.tensor([True, False]), seed=1)
    with pytest.raises(ActionError, match="must have shape"):
        env.step(torch.zeros(2, dtype=torch.int64))


def test_the_probe_and_the_games_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, closed = [], []
    original = gym.make

    def counted(*arguments: Any, **keywords: Any) -> Any:
        env = original(*arguments, **keywords)
        made.append(env)
        monkeypatch.setattr(env.unwrapped, "close", lambda: closed.append(env), raising=False)
        return env

    monkeypatch.setattr(gym, "make", counted)
    make_env("gym:CartPole-v1", 3).close()
    assert len(made) == len(closed) == 4


def test_there_are_no_more_workers_than_games() -> None:
    with make_env("gym:CartPole-v1", 2, config={"workers": 3}) as env:
        assert isinstance(env, WorkerBatch)
        assert len(env.worker_pids) == 2
        assert env.reset()["vector"].shape == (2, 1, 4)


def played(env: BatchedEnv, steps: int) -> BatchedEnv:
    env.reset()
    for _ in range(steps):
        env.step(torch.zeros((env.num_envs, 1), dtype=torch.int64))
    return env


@pytest.mark.parametrize("workers", [0, 1])
def test_a_game_that_cannot_be_restored_is_cut_off_and_said(workers: int, caplog: pytest.LogCaptureFixture) -> None:
    with make_env("gym:echo_games:Drift-v0", 2, config={"workers": workers}) as env:
        played(env, 3)
        snapshot = env.snapshot()
        assert snapshot["gym:Drift-v0/steps"].tolist() == [3, 3]
        assert env.restore(snapshot)["vector"].tolist() == [[[6.0]], [[6.0]]]  # three more steps, and a new episode
        assert "2 of 2 games do not go the same way again" in caplog.text
        result = env.step(torch.zeros((2, 1), dtype=torch.int64))
        assert (result.truncated.tolist(), result.events["reward"].tolist()) == ([True, True], [[0.0], [0.0]])
        assert result.final_observations["vector"].tolist() == [[[3.0]], [[3.0]]]
        assert not bool(env.step(torch.zeros((2, 1), dtype=torch.int64)).truncated.any())


def test_an_episode_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_batch, "MOST_REPLAYED", 5)
    with played(echo(2), 4) as env:
        env.reset(torch.tensor([True, False]))
        for _ in range(2):
            env.step(torch.zeros((2, 1), dtype=torch.int64))
        snapshot = env.snapshot()
        assert snapshot[f"{env.spec.id}/steps"].tolist() == [2, -1]
        env.restore(snapshot)
        assert env.step(torch.zeros((2, 1), dtype=torch.int64)).truncated.tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 99), ("steps", -2), ("episodes", -1), ("actions", 3), ("actions", -1), ("seed", -1)]
)
def test_snapshots_that_cannot_be_are_refused(name: str, value: int) -> None:
    with played(echo(2), 3) as env:
        snapshot = env.snapshot()
        snapshot[f"{env.spec.id}/{name}"].fill_(value)
        with pytest.raises(SnapshotError):
            env.restore(snapshot)
