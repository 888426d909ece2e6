"""Promise 9: of two processes on one run folder the second is refused; a lock that was left behind is taken over."""

import errno
import fcntl
import json
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ludus.core.errors import RunLockedError
from ludus.training.run_folder import RunLock

if TYPE_CHECKING:
    from tests.commands import Command, Commands

PLUGIN = Path(__file__).with_name("slow_plugin.py")
SETTINGS: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 4},
    "total_env_steps": 4 * 32,
    "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1},
    "opponents": "random",
    "checkpoints": {"every_iterations": 1},
    "monitoring": {"console": "plain", "tensorboard": False, "curves": False},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "duel.yaml"
    path.write_text(json.dumps(SETTINGS))
    return path


@pytest.fixture
def holder(commands: "Commands", tmp_path: Path, file: Path) -> "Command":
    """A command that is training in `run`, in the middle of its third iteration, with a checkpoint of the second."""
    words = ("train", "duel", "--config", file, "--run-dir", tmp_path / "run", "--plugin", PLUGIN)
    command = commands.start(*words, environment={"FAULT": "iteration"})
    command.wait_until_it_says("asleep")
    # The checkpoint is written while the third iteration runs.
    checkpoint = tmp_path / "run" / "checkpoints" / "step-000000000064"
    command.wait_until(checkpoint.is_dir, f"{checkpoint} was never there")
    return command


def test_the_second_process_is_refused_and_told_who_is_first(
    commands: "Commands", tmp_path: Path, file: Path, holder: "Command"
) -> None:
    run = tmp_path / "run"
    before = commands.equal_files(run)
    source = tmp_path / "other"
    assert commands.run("train", "duel", "--config", file, "--run-dir", source)[0] == 0
    attempts = (
        ("resume", run),
        ("train", "duel", "--config", file, "--run-dir", run),
        ("resume", source, "--fork", run),
    )
    who = f"another process (pid {holder.pid} on {socket.gethostname()}) is training in {run}"
    for words in attempts:
        code, said = commands.run(*words)
        assert code == 2
        assert said.splitlines()[-1] == f"[ERROR] {who}; wait for it, stop it, or use another folder"
    assert commands.equal_files(run) == before
    holder.send(signal.SIGTERM)
    assert holder.wait() == 143


def test_the_lock_of_a_killed_process_is_taken_over(commands: "Commands", tmp_path: Path, holder: "Command") -> None:
    run = tmp_path / "run"
    holder.send(signal.SIGKILL)
    assert holder.wait() == -signal.SIGKILL
    assert json.loads((run / "run.lock").read_text())["pid"] == holder.pid
    again = commands.start("resume", run)
    assert again.wait() == 0
    assert "resumed at 64 of 128 steps" in again.said
    assert json.loads((run / "run.lock").read_text())["pid"] == again.pid


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    with RunLock(tmp_path), pytest.raises(RunLockedError, match="another process"):
        RunLock(tmp_path)
    RunLock(tmp_path).release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "\\u001b[2J", "host": 3}'])
def test_a_damaged_note_does_not_matter(tmp_path: Path, text: str) -> None:
    with RunLock(tmp_path):
        (tmp_path / "run.lock").write_text(text)
        with pytest.raises(RunLockedError) as refused:
            RunLock(tmp_path)
        assert str(refused.value).startswith(f"another process is training in {tmp_path}; wait")
    RunLock(tmp_path).release()


def test_a_file_system_without_locks_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)  # which `filelock` calls here
    RunLock(tmp_path).release()
    assert f"[WARN] {tmp_path} cannot be locked (No locks available): keep other processes out of it" in caplog.text
