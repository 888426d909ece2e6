"""Embedded games in worker processes: the same games whatever their number, and nothing left behind when one fails."""

import gc
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.commands import Commands
from torch import Tensor

from ludus.core.errors import ConfigError, SnapshotError, WorkerError
from ludus.envs.registry import make_env
from ludus.worlds.city import worker_backend
from ludus.worlds.city.bots import STRATEGY_BOTS
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.embedded_backend import EmbeddedBackend
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.worker_backend import LEAST_GAMES, WorkerBackend, worker_count

pytestmark = pytest.mark.screen

GAMES = 5  # two workers have two and three of them
# Short episodes, so that there are many restarts, and everything that can be seen.
CONFIG = {"steps": 20, "observe": ["map", "frame", "readings", "menu"]}


def make(workers: int, **settings: Any) -> CityEnv:
    config = {**CONFIG, "workers": workers, **settings}
    env = make_env("city-v1", GAMES, seed=5, first_game=3, config=config)
    assert isinstance(env, CityEnv)
    assert isinstance(env.backend, WorkerBackend if workers else EmbeddedBackend)
    return env


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[CityEnv, CityEnv]]:
    """The same games, in this process and in two workers."""
    with make(0) as alone, make(2) as shared:
        yield alone, shared


def make_quickly(workers: int) -> CityEnv:
    return make(workers, metrics="truth", observe=["readings"])


def check_same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def pids_of(env: CityEnv) -> list[int]:
    assert isinstance(env.backend, WorkerBackend)
    return [pid for pid in env.backend.worker_pids if pid is not None]


def is_running(pid: int) -> bool:
    """Says whether a process is there and more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 60.0
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_running(pid) for pid in pids)


# --- the same games ---


def play(envs: tuple[CityEnv, CityEnv], decisions: int, generator: np.random.Generator) -> int:
    """Plays the same decisions in both, some at random and some of builders; returns how many episodes ended."""
    actions = torch.zeros((GAMES, 1, 2), dtype=torch.int64)
    bots = [env.bots(["random", "balanced"]) for env in envs]
    ended = 0
    for _ in range(decisions):
        assignment = torch.from_numpy(generator.integers(2, size=(GAMES, 1)).astype(np.int32))
        chosen = []
        for players in bots:
            players.act(assignment, actions)
            chosen.append(actions.clone())
        assert torch.equal(chosen[0], chosen[1])
        alone, shared = (env.step(actions) for env in envs)
        check_same(alone.observations, shared.observations)
        check_same(alone.final_observations, shared.final_observations)
        check_same(dict(alone.events), dict(shared.events))
        check_same(dict(alone.state_metrics), dict(shared.state_metrics))
        assert torch.equal(alone.terminated, shared.terminated)
        assert torch.equal(alone.truncated, shared.truncated)
        ended += int(alone.ended.sum())
    return ended


def test_games_are_the_same_whatever_the_workers(pair: tuple[CityEnv, CityEnv]) -> None:
    generator = np.random.default_rng(1)
    alone, shared = pair
    check_same(alone.reset(), shared.reset())
    assert alone.spec == shared.spec
    assert play(pair, 30, generator) >= GAMES
    some = torch.tensor([False, True, False, True, False])
    check_same(alone.reset(some), shared.reset(some))
    play(pair, 12, generator)
    kept, kept_too = alone.snapshot(), shared.snapshot()
    check_same(kept, kept_too)
    play(pair, 12, generator)
    check_same(alone.restore(kept_too), shared.restore(kept))  # a snapshot does not tell where it was taken
    play(pair, 12, generator)
    large = 2**63 + 7  # does not fit a signed number
    check_same(alone.reset(seed=large), shared.reset(seed=large))
    assert play(pair, 25, generator) >= GAMES
    check_same(alone.snapshot(), shared.snapshot())
    for game in (0, GAMES - 1):
        assert np.array_equal(alone.render(game), shared.render(game))


def test_every_strategy_advises_the_same(pair: tuple[CityEnv, CityEnv]) -> None:
    check_same(pair[0].reset(seed=3), pair[1].reset(seed=3))
    names = list(STRATEGY_BOTS)
    assignment = torch.tensor([[number] for number in range(GAMES)], dtype=torch.int32)
    seen = set()
    for shift in range(6):
        actions = [torch.zeros((GAMES, 1, 2), dtype=torch.int64) for _ in pair]
        for env, chosen in zip(pair, actions, strict=True):
            env.bots(names).act((assignment + shift) % len(names), chosen)
            env.step(chosen)
        assert torch.equal(*actions)
        seen |= {tuple(choice) for choice in actions[0][:, 0].tolist()}
    assert len(seen) > 10  # they do not all wait


def test_a_snapshot_that_does_not_fit_changes_nothing(pair: tuple[CityEnv, CityEnv]) -> None:
    shared = pair[1]
    kept = shared.snapshot()
    wrong = {name: tensor.clone() for name, tensor in kept.items()}
    wrong["city-v1/table/kind"][-1] = 1_000  # a game of the second worker; the first one would take its part
    wrong["city-v1/table/amount"][0] += 1
    with pytest.raises(SnapshotError, match="kind"):
        shared.restore(wrong)
    check_same(shared.snapshot(), kept)
    with pytest.raises(SnapshotError, match="seed"):
        shared.backend.restore(
            {name: torch.cat((tensor, tensor)) for name, tensor in shared.backend.snapshot().items() if tensor.dim()}
        )


def test_a_picture_of_a_game_that_does_not_exist_is_refused(pair: tuple[CityEnv, CityEnv]) -> None:
    for env in pair:
        with pytest.raises(ConfigError, match=r"game 5 .*0 to 4"):
            env.render(GAMES)


def test_no_worker_survives_close(pair: tuple[CityEnv, CityEnv]) -> None:
    """The last test of the pair: every worker of a city takes seconds to start."""
    pids = pids_of(pair[1])
    assert len(pids) == 2
    assert all(is_running(pid) for pid in pids)
    pair[1].close()
    assert not any(is_running(pid) for pid in pids)
    pair[1].close()


# --- failures ---


def test_a_worker_that_dies_ends_all_with_a_reason() -> None:
    env, nothing = make_quickly(2), torch.zeros((GAMES, 1, 2), dtype=torch.int64)
    pids = pids_of(env)
    env.step(nothing)
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"worker 1 \(games 2 to 4\).*SIGKILL"):
        env.step(nothing)
    assert not any(is_running(pid) for pid in pids)
    with pytest.raises(WorkerError, match="closed"):
        env.step(nothing)
    env.close()


def test_a_worker_that_raises_is_quoted() -> None:
    env = make_quickly(1)
    pids = pids_of(env)
    wrong = np.full((GAMES, 2), 10**6)  # the environment itself would never let this through
    with pytest.raises(WorkerError, match=r"worker 0 \(games 0 to 4\).*IndexError") as caught:
        env.backend.play(wrong)
    assert "embedded_backend.py" in str(caught.value)
    assert not any(is_running(pid) for pid in pids)


def test_workers_that_do_not_come_up_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text('raise OSError("the city is closed")\n')
    monkeypatch.setattr(worker_backend, "__file__", str(broken))
    with pytest.raises(WorkerError, match="OSError: the city is closed"):
        make(2)


def test_no_worker_survives_a_forgotten_batch() -> None:
    forgotten = make_quickly(1)
    pids = pids_of(forgotten)
    del forgotten
    gc.collect()
    wait_for_end(pids)


def test_no_worker_survives_a_parent_that_is_killed(tmp_path: Path, commands: Commands) -> None:
    program = tmp_path / "parent.py"
    program.write_text("""
import time
from ludus.envs.registry import make_env
config = {"workers": 2, "metrics": "truth", "observe": ["readings"]}
env = make_env("city-v1", 2, config=config)
print(*env.backend.worker_pids, flush=True)
time.sleep(600)
""")
    parent = commands.start(program)
    parent.wait_until_it_says(r"\d+ \d+\n")
    pids = [int(word) for word in parent.said.split()]
    assert len(pids) == 2
    assert all(is_running(pid) for pid in pids)
    parent.send(signal.SIGKILL)
    parent.wait()
    wait_for_end(pids)


# --- how many ---


def test_workers_are_as_many_as_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    automatic = CityConfig()
    assert [worker_count(automatic, LEAST_GAMES * slices) for slices in (1, 2, 3, 4, 100)] == [0, 2, 3, 4, 4]
    assert worker_count(CityConfig(workers=0), 1_000) == 0
    assert worker_count(CityConfig(workers=7), 1_000) == 7
    assert worker_count(CityConfig(workers=7), 3) == 3  # small batches are made with the settings of large ones
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert worker_count(automatic, 1_000) == 0


def test_real_games_have_no_workers() -> None:
    with pytest.raises(ConfigError, match=r"workers.*embedded"):
        make_env("city-v1", 1, config={"game": "micropolis", "workers": 2})
