"""The command line in processes of its own: `commands` starts them, watches what they say, and ends what is left."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

SERVER = Path(__file__).parent / "promises" / "command_server.py"
NOBODY = {"XDG_CONFIG_HOME": os.devnull, "LUDUS_CONFIG": ""}  # the defaults of who runs the tests stay out
LIMIT_S = 60.0


class Command:
    """One running `ludus` command.

    Attributes:
        pid: Its process and process group.
    """

    def __init__(self, commands: "Commands", pid: int, output: Path) -> None:
        self._commands, self.pid, self._output = commands, pid, output
        self.exit_code: int | None = None

    @property
    def said(self) -> str:
        """Everything it has written so far, to either stream."""
        return self._output.read_text(encoding="utf-8")

    def wait_until_it_says(self, pattern: str, count: int = 1) -> None:
        """Returns as soon as a pattern was written so many times, or the command has ended."""
        self.wait_until(lambda: len(re.findall(pattern, self.said)) >= count, f"{pattern!r} was never said")

    def wait_until(self, is_done: Callable[[], bool], complaint: str) -> None:
        """Returns as soon as something is done, or the command has ended."""
        limit_s = time.monotonic() + LIMIT_S
        while not is_done() and self.is_running:
            assert time.monotonic() < limit_s, f"{complaint}:\n{self.said}"
            time.sleep(0.005)

    @property
    def is_running(self) -> bool:
        return psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Returns the exit code, or minus the signal that ended it."""
        if self.exit_code is None:
            self.exit_code = self._commands.wait(self, limit_s)
        return self.exit_code


class Commands:
    """Starts commands."""

    def __init__(self, folder: Path, address: Path) -> None:
        """Connect to the server at a socket, and start it if there is none; `folder` takes what commands write."""
        self._folder, self._count = folder, 0
        self._running: list[Command] = []
        self._server: subprocess.Popen[bytes] | None = None
        with FileLock(f"{address}.lock"):
            try:
                self._connect(address)
            except OSError:  # there is none yet, or the worker of pytest-xdist that started it has ended
                address.unlink(missing_ok=True)
                self._server = subprocess.Popen(
                    [sys.executable, str(SERVER), str(address)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    env=os.environ | NOBODY | {"OMP_NUM_THREADS": "1"},
                )  # fmt: skip
                assert self._server.stdout is not None
                assert self._server.stdout.readline() == b"ready\n"
                self._connect(address)

    def start(
        self, *arguments: object, folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Command:
        """Starts `ludus ARGUMENTS`, or a Python file if they begin with one; it writes both streams to one file."""
        self._count += 1
        output = self._folder / f"{self._count}.txt"
        output.touch()
        order = {"arguments": list(map(str, arguments)), "output": str(output), "folder": str(folder or self._folder),
                 "environment": dict(environment or {})}  # fmt: skip
        self._order(order)
        command = Command(self, self._answer(LIMIT_S), output)
        self._running.append(command)
        return command

    def run(
        self, *arguments: object, folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Runs `ludus ARGUMENTS` to its end; returns the exit code and what it said."""
        command = self.start(*arguments, folder=folder, environment=environment)
        return command.wait(), command.said

    @staticmethod
    def equal_files(run: Path) -> dict[str, bytes]:
        """Returns what equal runs have equal: their tables, snapshots, and the checkpoints `best` and `final`.

        Manifests are left out: they count the saves of a run, and their hashes are those of files that are here. So is
        the table of times and memory, which no two runs have equal.
        """
        kinds = ("*.jsonl", "*.csv", "checkpoints/best/*", "checkpoints/final/*", "snapshots/*/*")
        left_out = {"manifest.json", "resources.csv"}
        paths = sorted(path for kind in kinds for path in run.glob(kind) if path.name not in left_out)
        return {str(path.relative_to(run)): path.read_bytes() for path in paths}

    def wait(self, command: Command, limit_s: float) -> int:
        self._running.remove(command)
        self._order({"wait": command.pid})
        try:
            return self._answer(limit_s)
        except TimeoutError:
            os.kill(command.pid, signal.SIGKILL)
            self._answer(LIMIT_S)
            pytest.fail(f"still running after {limit_s:.0f} s; it said:\n{command.said}")

    def end_all(self) -> None:
        """Kills the commands that a test left behind."""
        for command in list(self._running):
            os.kill(command.pid, signal.SIGKILL)
            command.wait()

    def close(self) -> None:
        self.end_all()
        self._answers.close()
        self._connection.close()
        if self._server is not None:
            self._server.communicate(timeout=LIMIT_S)

    def _connect(self, address: Path) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(address))
        self._answers = self._connection.makefile("rb", buffering=0)
        self._answer(LIMIT_S)

    def _order(self, order: Mapping[str, object]) -> None:
        self._connection.sendall(json.dumps(order).encode() + b"\n")

    def _answer(self, limit_s: float) -> int:
        if not select.select([self._answers], [], [], limit_s)[0]:
            raise TimeoutError
        if not (line := self._answers.readline()):
            raise ConnectionError("the server of commands has ended")
        return int(line)


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # by all workers of this test run
    with tempfile.TemporaryDirectory() as folder:
        commands = Commands(Path(folder), shared / "commands")
        yield commands
        commands.close()


@pytest.fixture
def commands(command_server: Commands) -> Iterator[Commands]:
    """Starts `ludus` commands; those that a test leaves behind are ended."""
    yield command_server
    command_server.end_all()
