"""Promise 6: SIGTERM and SIGINT save `interrupted` in time and end the process with 143 or 130 and without children.

A second signal ends it at once; an error saves `interrupted` too. What goes on from there ends with the same bytes as
a run that nobody disturbed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from ludus.store import verify_checkpoint

if TYPE_CHECKING:
    from tests.commands import Command, Commands

pytestmark = pytest.mark.fault

GRACE_S = 10.0  # less than any service manager waits before it kills
LUDUS = Path(sys.executable).with_name("ludus")
PLUGIN = Path(__file__).with_name("slow_plugin.py")
CODES = {signal.SIGTERM: 143, signal.SIGINT: 130}
QUIET = {"console": "plain", "tensorboard": False, "curves": False}
PPO = {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1}
BRAWL: dict[str, Any] = {
    "world": {"name": "brawl", "num_envs": 4, "settings": {"threads": 1, "step_limit": 60}},
    "total_env_steps": 40 * 32,
    "policy": {"recurrent": {"size": 8}, "normalize": {"observations": True, "returns": True}},
    "ppo": PPO,
    "curriculum": [
        {"name": "first", "opponents": {"random": 1.0}, "promotion": {"after_env_steps": 300}},
        {"name": "second", "opponents": {"based": 1.0, "self": 2.0}},
    ],
    "league": {"snapshot_every_env_steps": 300},
    "evaluation": {"every_env_steps": 400, "opponents": ["random"], "matches": 4},
    "checkpoints": {"every_iterations": 7, "keep": 2},
    "monitoring": QUIET,
}
DUEL: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 4},
    "total_env_steps": 6 * 32,
    "ppo": PPO,
    "opponents": {"random": 1.0, "self": 1.0},
    "league": {"snapshot_every_env_steps": 32},
    "evaluation": {"every_env_steps": 64, "matches": 4},
    "checkpoints": {"every_iterations": 1, "keep": 2},
    "monitoring": QUIET,
}
CART_POLE: dict[str, Any] = {
    "world": {"name": "gym:CartPole-v1", "num_envs": 4, "settings": {"workers": 2}},
    "total_env_steps": 1_000_000,
    "ppo": PPO,
    "monitoring": QUIET,
}


def write(folder: Path, name: str, settings: dict[str, Any]) -> Path:
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(settings))
    return file


def newest(run: Path) -> str:
    """Returns the name of the checkpoint that was saved last, after verifying it."""
    folders = [path for path in (run / "checkpoints").iterdir() if (path / "manifest.json").exists()]
    last = max(folders, key=lambda path: int(json.loads((path / "manifest.json").read_text())["sequence"]))
    verify_checkpoint(last)
    return last.name


def interrupt(command: "Command", number: signal.Signals, run: Path) -> bool:
    """Sends a signal and checks how the run ends; False if it was over before."""
    command.send(number)
    code = command.wait(GRACE_S)
    assert command.said.isascii()
    assert "Traceback" not in command.said
    if "the agent is in" in command.said:
        assert newest(run) == "final"
        return False
    assert code == CODES[number], command.said
    assert newest(run) == "interrupted"
    assert f"{number.name} came" in command.said
    assert f"resume it with: ludus resume {run}" in command.said
    return True


def test_signals_at_random_moments_change_nothing(commands: "Commands", root: Path) -> None:
    file, run = write(root, "brawl", BRAWL), root / "broken"
    code, said = commands.run("train", "brawl", "--config", file, "--run-dir", root / "straight")
    assert code == 0, said
    words = ("train", "brawl", "--config", file, "--run-dir", run)
    assert _interrupt_often(commands, words, run) >= 3, "too few signals hit the run to prove anything"
    expected, got = commands.equal_files(root / "straight"), commands.equal_files(run)
    assert {"metrics.jsonl", "opponents.csv", "evaluation_results.csv"} <= set(expected)
    assert any(name.startswith("snapshots/self-") for name in expected)
    assert set(expected) == set(got)
    assert [name for name in expected if expected[name] != got[name]] == []


def _interrupt_often(commands: "Commands", words: tuple[object, ...], run: Path) -> int:
    """Interrupt a run at random moments and resume it until it is finished; return how often it was hit."""
    chance = random.Random(6)  # noqa: S311 - draws moments, guards nothing
    done = 0
    for life in range(30):
        command = commands.start(*words)
        command.wait_until_it_says("checkpoint init saved|resumed at")
        # After some of its 40 iterations, and then within one: three hits at least, however fast the machine is.
        began_s, first, wanted = time.monotonic(), done, done + chance.randint(4, 9)
        while (done := _iterations(run)) < wanted and command.is_running:
            time.sleep(0.002)
        time.sleep(chance.random() * (time.monotonic() - began_s) / max(done - first, 1))
        if not interrupt(command, (signal.SIGTERM, signal.SIGINT)[life % 2], run):
            return life
        done, words = _iterations(run), ("resume", run)
    return 30


def _iterations(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


@pytest.fixture(scope="module")
def straight(command_server: "Commands", root: Path) -> Path:
    """A duel that nobody disturbs."""
    run = root / "duel"
    code, said = command_server.run("train", "duel", "--config", write(root, "duel", DUEL), "--run-dir", run)
    assert code == 0, said
    return run


def start_faulty(commands: "Commands", straight: Path, run: Path, fault: str) -> "Command":
    return commands.start(
        *("train", "duel", "--config", straight.with_suffix(".yaml"), "--run-dir", run, "--plugin", PLUGIN),
        environment={"FAULT": fault},
    )


def check_going_on(commands: "Commands", straight: Path, run: Path) -> None:
    code, said = commands.run("resume", run)
    assert code == 0, said
    expected, got = commands.equal_files(straight), commands.equal_files(run)
    assert set(expected) == set(got)
    assert [name for name in expected if expected[name] != got[name]] == []


@pytest.mark.parametrize(("fault", "number"), [("iteration", signal.SIGTERM), ("evaluation", signal.SIGINT)])
def test_a_signal_breaks_off_what_would_take_too_long(
    commands: "Commands", straight: Path, tmp_path: Path, fault: str, number: signal.Signals
) -> None:
    command = start_faulty(commands, straight, tmp_path / "run", fault)
    command.wait_until_it_says("asleep")
    assert interrupt(command, number, tmp_path / "run")
    check_going_on(commands, straight, tmp_path / "run")


def test_a_second_signal_ends_the_process_at_once(commands: "Commands", straight: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = start_faulty(commands, straight, run, "save")
    command.wait_until_it_says("checkpoint step-")
    command.send(signal.SIGTERM)
    command.wait_until_it_says("asleep")
    sent_s = time.monotonic()
    command.send(signal.SIGINT)
    assert command.wait(GRACE_S) == 130
    assert time.monotonic() - sent_s < 2.0
    assert newest(run) != "interrupted"
    check_going_on(commands, straight, run)


def test_a_signal_before_the_run_is_up_ends_the_process(commands: "Commands", straight: Path, tmp_path: Path) -> None:
    command = start_faulty(commands, straight, tmp_path / "run", "start")
    command.wait_until_it_says("asleep")
    command.send(signal.SIGTERM)
    assert command.wait(GRACE_S) == 143
    assert command.said.endswith("[WARN] SIGTERM came before the run began\n")
    assert "Traceback" not in command.said
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("fault", ["error", "error in evaluation"])
def test_an_error_saves_what_is_left(commands: "Commands", straight: Path, tmp_path: Path, fault: str) -> None:
    run = tmp_path / "run"
    command = start_faulty(commands, straight, run, fault)
    assert command.wait() == 1
    assert "alarm: the run ends: RuntimeError: the floor gave way" in command.said
    assert newest(run) == "interrupted"
    check_going_on(commands, straight, run)


def wait_until_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=GRACE_S)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("is_second", [False, True])
def test_no_worker_process_is_left(commands: "Commands", tmp_path: Path, is_second: bool) -> None:
    file, run = write(tmp_path, "pole", CART_POLE), tmp_path / "run"
    command = commands.start(
        *("train", "gym:CartPole-v1", "--config", file, "--run-dir", run, "--plugin", PLUGIN),
        environment={"FAULT": "save" if is_second else ""},
    )
    command.wait_until_it_says("checkpoint init saved")
    time.sleep(0.2)
    workers = command.children()
    assert len(workers) == 2
    if is_second:
        command.send(signal.SIGTERM)
        command.wait_until_it_says("asleep")
        command.send(signal.SIGTERM)
        assert command.wait(GRACE_S) == 143
    else:
        assert interrupt(command, signal.SIGTERM, run)
    wait_until_gone(workers)


def test_control_c_reaches_all_processes_of_a_fresh_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    file = write(tmp_path, "pole", CART_POLE)
    words: list[str | Path] = [LUDUS, "train", "gym:CartPole-v1", "--config", file, "--run-dir", run]
    with (tmp_path / "said.txt").open("w") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    limit_s = time.monotonic() + 180.0  # a start on a busy machine
    while not (run / "metrics.jsonl").exists():
        assert process.poll() is None, (tmp_path / "said.txt").read_text()
        assert time.monotonic() < limit_s
        time.sleep(0.05)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(GRACE_S) == 130
    said = (tmp_path / "said.txt").read_text()
    assert "SIGINT came" in said
    assert "worker" not in said, "they leave Ctrl-C to their parent"
    wait_until_gone(workers)
    assert newest(run) == "interrupted"
    done = len((run / "metrics.jsonl").read_text().splitlines())
    saved = json.loads((run / "checkpoints" / "interrupted" / "training.json").read_text())
    assert saved["counters"]["iterations"] == done
