"""Promise 10: a worker that dies, raises or hangs is found in time, restarted, counted and logged with its
traceback and seed; several in a row stop the run with a readable reason. No child is ever left behind."""

import gc
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from torch import Tensor

from ludus.core.errors import WorkerError
from ludus.envs.adapters.worker_batch import WorkerBatch, WorkerFault
from ludus.envs.registry import make_env
from ludus.envs.worker_process import Failure, WorkerProcess

pytestmark = pytest.mark.fault

FINE, EXIT, RAISE, HANG, CRASH = range(5)
TIMEOUT_S = 2.0


def make(num_envs: int = 4, workers: int = 2, **settings: Any) -> WorkerBatch:
    config = {"workers": workers, "timeout_s": TIMEOUT_S, **settings}
    env = make_env("gym:faulty_games:Faulty-v0", num_envs, seed=11, first_game=20, config=config)
    assert isinstance(env, WorkerBatch)
    return env


def actions(*values: int) -> Tensor:
    return torch.tensor(values).unsqueeze(1)


def is_running(pid: int | None) -> bool:
    """Says whether a process is there and more than a zombie."""
    assert pid is not None
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def env() -> Iterator[WorkerBatch]:
    with make() as batch:
        batch.reset()
        yield batch


def first_step(env: WorkerBatch) -> Tensor:
    """Plays a step without a fault and returns what was seen."""
    return env.step(actions(0, 0, 0, 0)).observations["vector"].clone()


def check_recovery(env: WorkerBatch, before: Tensor, result: Any, fault: WorkerFault) -> None:
    """Checks what must hold when the second of two workers has failed in the second step."""
    assert result.truncated.tolist() == [False, False, True, True]
    assert not result.terminated.any()
    assert result.events["reward"].flatten().tolist() == [1.0, 1.0, 0.0, 0.0]
    assert torch.equal(result.final_observations["vector"][2:], before[2:])  # the last thing they saw
    assert result.observations["vector"][:, 0, 0].tolist() == [2.0, 2.0, 0.0, 0.0]  # new episodes for the others
    assert torch.equal(result.observations["vector"][:2, 0, 1], before[:2, 0, 1])
    assert (result.observations["vector"][2:, 0, 1] != before[2:, 0, 1]).all()
    assert env.faults == [fault]
    assert (fault.worker, fault.games, fault.seed) == (1, (22, 23), 11)
    assert [seed % 100_000 for seed in fault.episode_seeds] == before[2:, 0, 1].tolist()
    after = env.step(actions(0, 0, 0, 0))  # and on it goes
    assert after.observations["vector"][:, 0, 0].tolist() == [3.0, 3.0, 1.0, 1.0]
    assert not after.ended.any()


def test_a_worker_that_exits_is_replaced(env: WorkerBatch, caplog: pytest.LogCaptureFixture) -> None:
    before = first_step(env)
    old_pid = env.worker_pids[1]
    with caplog.at_level(logging.WARNING):
        result = env.step(actions(0, 0, 0, EXIT))
    fault = env.faults[0]
    check_recovery(env, before, result, fault)
    assert (fault.kind, fault.reason) == ("died", "exit code 3")
    assert not is_running(old_pid)
    assert env.worker_pids[1] != old_pid
    assert "worker 1 died: exit code 3 (games 22 to 23; seed 11, episode seeds" in caplog.text
    assert "[WARN] gym:Faulty-v0" in caplog.text


def test_a_worker_that_is_killed_from_outside_is_replaced(env: WorkerBatch) -> None:
    before = first_step(env)
    pid = env.worker_pids[1]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    result = env.step(actions(0, 0, 0, 0))
    check_recovery(env, before, result, env.faults[0])
    assert (env.faults[0].kind, env.faults[0].reason) == ("died", "signal SIGKILL")


def test_a_worker_that_raises_is_replaced_and_quoted(env: WorkerBatch, caplog: pytest.LogCaptureFixture) -> None:
    before = first_step(env)
    with caplog.at_level(logging.WARNING):
        result = env.step(actions(0, 0, 0, RAISE))
    fault = env.faults[0]
    check_recovery(env, before, result, fault)
    assert fault.kind == "raised"
    assert fault.reason.startswith("ValueError: the pole has snapped")
    assert fault.game == 23
    assert 'raise ValueError("the pole has snapped' in fault.traceback
    assert "faulty_games.py" in caplog.text
    assert caplog.text.isascii()


def test_a_worker_that_hangs_is_found_in_time_and_shows_where(env: WorkerBatch) -> None:
    before = first_step(env)
    started = time.monotonic()
    result = env.step(actions(0, 0, HANG, 0))
    assert TIMEOUT_S <= time.monotonic() - started < TIMEOUT_S + 5.0
    check_recovery(env, before, result, env.faults[0])
    assert (env.faults[0].kind, env.faults[0].reason) == ("hung", "no answer within 2 s")
    assert "fall_asleep_for_ever" in env.faults[0].traceback


def test_a_worker_that_crashes_in_native_code_shows_where(env: WorkerBatch) -> None:
    env.step(actions(CRASH, 0, 0, 0))
    assert (env.faults[0].kind, env.faults[0].reason) == ("died", "signal SIGSEGV")
    assert "string_at" in env.faults[0].traceback


def test_all_workers_failing_at_once_are_all_replaced(env: WorkerBatch) -> None:
    result = env.step(actions(EXIT, 0, RAISE, 0))
    assert sorted(fault.kind for fault in env.faults) == ["died", "raised"]
    assert result.truncated.all()
    assert env.step(actions(0, 0, 0, 0)).observations["vector"][:, 0, 0].tolist() == [1.0] * 4


def test_the_reported_seed_brings_the_episode_back(env: WorkerBatch) -> None:
    first = env.reset()["vector"][2, 0].clone()
    env.step(actions(0, 0, RAISE, 0))
    game = gym.make("faulty_games:Faulty-v0")
    assert game.reset(seed=env.faults[0].episode_seeds[0])[0].tolist() == first.tolist()


def test_an_interrupted_step_does_not_confuse_the_next(env: WorkerBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def interrupted(worker: WorkerProcess, timeout_s: float) -> Failure | None:
        waited.append(worker)
        if len(waited) == 3:  # after both were asked, before the first has answered
            raise KeyboardInterrupt
        return original(worker, timeout_s)

    original = WorkerProcess.wait
    monkeypatch.setattr(WorkerProcess, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step(actions(0, 0, 0, 0))
    result = env.step(actions(0, 0, 0, 0))
    assert result.observations["vector"][:, 0, 0].tolist() == [2.0] * 4
    assert env.faults == []


def test_several_faults_in_a_row_stop_the_run_with_a_reason() -> None:
    env = make(max_faults_in_row=3)
    env.reset()
    env.step(actions(0, 0, 0, RAISE))
    env.step(actions(0, 0, 0, 0))
    env.step(actions(0, 0, 0, RAISE))
    pids = env.worker_pids
    with pytest.raises(WorkerError) as caught:
        env.step(actions(0, 0, 0, RAISE))
    message = str(caught.value)
    assert "gym:Faulty-v0 stops: worker 1 failed 3 times in a row, with fewer than 100 steps in between" in message
    assert "the pole has snapped" in message
    assert f"seed 11, episode seeds {env.faults[2].episode_seeds[0]}" in message
    assert len(env.faults) == 3
    assert not any(is_running(pid) for pid in pids)
    with pytest.raises(WorkerError, match="closed"):
        env.step(actions(0, 0, 0, 0))


def test_faults_with_progress_in_between_do_not_stop_the_run() -> None:
    with make(max_faults_in_row=2, progress_steps=5) as env:
        env.reset()
        for _ in range(3):
            env.step(actions(0, 0, 0, EXIT))
            for _ in range(5):
                env.step(actions(0, 0, 0, 0))
        assert len(env.faults) == 3


def test_faults_of_different_workers_are_not_in_a_row() -> None:
    with make(max_faults_in_row=2) as env:
        env.reset()
        env.step(actions(EXIT, 0, 0, 0))
        env.step(actions(0, 0, 0, EXIT))
        assert [fault.worker for fault in env.faults] == [0, 1]


def test_a_worker_that_cannot_be_started_again_stops_the_run(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    env = make(env_kwargs={"broken_if": str(broken)})
    env.reset()
    broken.touch()
    pids = env.worker_pids
    with pytest.raises(WorkerError, match="OSError: the licence server is gone"):
        env.step(actions(0, 0, 0, EXIT))
    assert [fault.kind for fault in env.faults] == ["died", "raised", "raised"]
    assert not any(is_running(pid) for pid in pids)


def test_a_fault_in_a_reset_is_survived_and_lost_games_are_reported(tmp_path: Path) -> None:
    deadly = tmp_path / "deadly"
    with make(num_envs=2, workers=1, max_faults_in_row=9, env_kwargs={"dies_on_reset_if": str(deadly)}) as env:
        env.reset()
        before = env.step(actions(0, 0)).observations["vector"].clone()
        pid = env.worker_pids[0]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        after = env.reset(torch.tensor([True, False]))["vector"].clone()
        assert len(env.faults) == 1
        assert after[:, 0, 0].tolist() == [0.0, 0.0]  # both had to start anew
        result = env.step(actions(0, 0))
        # Game 0 was asked to start anew; game 1 was not, so it is reported as cut off after what it saw last.
        assert result.truncated.tolist() == [False, True]
        assert torch.equal(result.final_observations["vector"][1], before[1])
        assert result.events["reward"].flatten().tolist() == [1.0, 0.0]
        assert not env.step(actions(0, 0)).ended.any()
        deadly.touch()
        with pytest.raises(WorkerError, match="exit code 7"):
            env.reset()
        assert len({fault.episode_seeds for fault in env.faults[-8:]}) == 8  # no seed is tried twice


def test_no_child_survives_close_or_the_end_of_its_batch() -> None:
    env = make()
    env.reset()
    pids = env.worker_pids
    assert all(is_running(pid) for pid in pids)
    env.close()
    assert not any(is_running(pid) for pid in pids)
    env.close()
    forgotten = make()
    pids = forgotten.worker_pids
    del forgotten
    gc.collect()
    assert not any(is_running(pid) for pid in pids)


@pytest.mark.parametrize("ending", ["kill", "exit"])
def test_no_child_survives_its_parent(ending: str) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import threading, torch
from ludus.envs.registry import make_env
env = make_env("gym:faulty_games:Faulty-v0", 2, config={{"workers": 2, "timeout_s": 600}})
env.reset()
print(*env.worker_pids, flush=True)
if {ending!r} == "kill":
    env.step(torch.tensor([[0], [{HANG}]]))  # one worker waits, one hangs in its step
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent:
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        if ending == "kill":
            time.sleep(0.3)
            assert all(is_running(pid) for pid in pids)
            parent.kill()
    deadline = time.monotonic() + 5.0
    while any(is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_running(pid) for pid in pids)
