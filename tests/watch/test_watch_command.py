"""`ludus watch` and `ludus train --watch` as processes: addresses, ports, signals, and that no run depends on them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from tests.commands import Command, Commands

TINY = ("world.num_envs=4", "ppo.n_steps=8", "ppo.sequence_length=4", "ppo.batch_size=16", "ppo.n_epochs=1",
        "evaluation=null", "monitoring.console=plain", "monitoring.curves=false",
        "monitoring.tensorboard=false")  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "metrics.jsonl").write_text('{"iteration": 1, "env_steps": 100, "episode_return": 1}\n')
    return folder


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Processes to end after the test."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


def address_of(command: "Command") -> str:
    command.wait_until_it_says(r"http://\S+\s")
    return str(re.findall(r"http://\S+", command.said)[0])


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310
        return str(answer.read().decode())


def test_neither_torch_nor_worlds_are_imported() -> None:
    script = (
        "import sys; import ludus.watch.server; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'warp', 'gymnasium', 'matplotlib'}),"
        " [name for name in sys.modules if name.startswith(('ludus.training', 'ludus.evaluation', 'ludus.worlds'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[] []\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_ends_it_at_once(commands: "Commands", runs: Path, number: int) -> None:
    command = commands.start("watch", runs, "--port", 0, "--no-browser")
    address = address_of(command)
    assert f"[OK] watching {runs} at {address}" in command.said
    assert "watch.js" in page(address)
    with urllib.request.urlopen(f"{address}events", timeout=20) as stream:  # noqa: S310
        assert stream.readline() == b"retry: 1000\n"  # an open page holds it up no longer
        started_s = time.monotonic()
        command.send(number)
        assert command.wait(10.0) == 0
    assert time.monotonic() - started_s < 5.0
    assert "Traceback" not in command.said
    assert "stopped watching" in command.said


def test_a_folder_that_is_not_there_and_a_port_that_is_taken(commands: "Commands", runs: Path, tmp_path: Path) -> None:
    code, said = commands.run("watch", tmp_path / "nowhere", "--no-browser")
    assert code == 2
    assert "there is no folder" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = commands.run("watch", runs, "--port", port, "--no-browser")
    assert code == 2
    assert f"port {port}" in said
    assert "--port" in said


def test_runs_is_the_default_and_another_interface_prints_a_token(commands: "Commands", runs: Path) -> None:
    command = commands.start("watch", "--host", "0.0.0.0", "--port", 0, "--no-browser", folder=runs.parent)  # noqa: S104
    address = address_of(command)
    assert str(runs) in command.said
    assert re.search(r"\?token=[\w-]{32}", address)
    command.wait_until_it_says("not encrypted")  # it comes after the address
    assert "not encrypted" in command.said


def test_training_opens_a_page_that_it_does_not_depend_on(
    commands: "Commands", tmp_path: Path, ended: list[int]
) -> None:
    training = commands.start(
        "train", "duel", "--watch", "--run-dir", tmp_path / "mine", "total_env_steps=100_000_000", *TINY
    )
    address = address_of(training)
    assert "watch.js" in page(address)
    [page_process] = [child for child in training.children() if "watch" in child.cmdline()]
    ended.append(page_process.pid)
    assert os.getsid(page_process.pid) != os.getsid(training.pid)  # Ctrl-C in the terminal ends the training alone
    training.wait_until_it_says(r"\d steps \|")
    page_process.kill()
    metrics = tmp_path / "mine" / "metrics.jsonl"
    size = metrics.stat().st_size
    limit_s = time.monotonic() + 30.0
    while metrics.stat().st_size <= size:
        assert time.monotonic() < limit_s
        time.sleep(0.05)
    training.send(signal.SIGINT)
    assert training.wait() == 130
    session = json.loads((tmp_path / "mine" / "run.json").read_text())["sessions"][-1]
    assert session["end_reason"] == "SIGINT came"


def test_a_page_that_cannot_start_is_only_warned_of(commands: "Commands", tmp_path: Path) -> None:
    # The page is another Python: without a way to find this package it ends at once.
    broken = {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    (tmp_path / "ludus.py").write_text("raise SystemExit('broken')\n")
    code, said = commands.run(
        "train", "duel", "--watch", "--run-dir", tmp_path / "mine", "total_env_steps=64", *TINY, environment=broken
    )
    assert code == 0
    assert "[WARN] the page did not start; training continues without it" in said
