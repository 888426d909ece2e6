"""Worker processes: starting them, asking them, and finding out why one no longer answers."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from ludus.core.errors import UnsupportedError
from ludus.envs import worker_program
from ludus.envs.worker_program import Code, Fields, block_bytes, receive, send

_STANDARD_ERROR = 2
_EXIT_WAIT_S = 2.0
_REPORT_WAIT_S = 1.0
_REPORT_BYTES = 1 << 16
_SEND_WAIT_S = 60.0  # for a worker to take a message
_LEAST_WAIT_S = 0.01  # for an answer that lies there already


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a worker gave no answer.

    Attributes:
        kind: It died (the process is gone), raised (an exception) or hung (no answer in time).
        reason: In a few words.
        game: The game that it was busy with, if it could say so.
        traceback: Where it was, if that is known.
    """

    kind: Literal["died", "raised", "hung"]
    reason: str
    game: int | None = None
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Hosting:
    """What the workers of a batch host.

    Attributes:
        file: File with the function `host`; see `ludus.envs.worker_program.Host`.
        plan: What it is told, as JSON values.
        fields: Shapes and types of the arrays that all share.
        memory_file: Where those lie.
        environment: Variables of the workers beside our own.
    """

    file: Path
    plan: Mapping[str, Any]
    fields: Fields
    memory_file: int
    environment: Mapping[str, str]


class Request(NamedTuple):
    """A message to a worker: what it means is up to the file that is hosted."""

    code: int
    slot: int = 0
    payload: bytes = b""


class WorkerProcess:
    """A process that hosts games `first ... last - 1`; it can be started anew after it was stopped.

    Attributes:
        first: Its first game.
        last: The game behind its last one.
        answer: What came with the last answer.
    """

    def __init__(self, hosting: Hosting, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.answer = b""
        self._hosting = hosting
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._report: IO[bytes] | None = None
        self._awaiting = False

    @property
    def pid(self) -> int | None:
        """Process id, or None if it is not running."""
        return None if self._process is None else self._process.pid

    def start(self) -> Failure | None:
        """Starts the process and tells it what to host; `wait` then waits until the games are made."""
        self._connection, theirs = socket.socketpair()
        self._report = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        hosting = self._hosting
        files = (theirs.fileno(), hosting.memory_file, self._report.fileno())
        # -P keeps this folder out of the worker's module path; its standard output must not mix with ours.
        command = [sys.executable, "-P", worker_program.__file__, *map(str, files), str(os.getpid())]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
            command,
            stdin=subprocess.DEVNULL,
            stdout=_STANDARD_ERROR,
            pass_fds=files,
            env={**os.environ, **hosting.environment},
        )
        theirs.close()
        job = {
            "file": str(hosting.file),
            "plan": hosting.plan,
            "fields": {name: (shape, dtype.str) for name, (shape, dtype) in hosting.fields.items()},
            "first": self.first,
            "last": self.last,
            "path": sys.path,
        }
        return self.ask(Request(Code.PLAN, payload=json.dumps(job).encode()))

    def ask(self, request: Request) -> Failure | None:
        """Sends a request; the answer comes through `wait`."""
        if self._connection is None:
            return Failure("died", "it is not running")
        self._connection.settimeout(_SEND_WAIT_S)
        try:
            send(self._connection, *request)
        except OSError:
            return self._post_mortem()
        self._awaiting = True
        return None

    def wait(self, timeout_s: float) -> Failure | None:
        """Waits for the answer to the last request; returns at once if none is due."""
        if not self._awaiting or self._connection is None:
            return None
        self._connection.settimeout(timeout_s)
        try:
            code, _, self.answer = receive(self._connection)
        except TimeoutError:
            return Failure("hung", f"no answer within {timeout_s:.3g} s", None, self._where_it_hangs())
        except (EOFError, OSError):
            return self._post_mortem()
        self._awaiting = False
        if code == Code.ERROR:
            report = json.loads(self.answer)
            text = str(report["traceback"])
            return Failure("raised", text.strip().rpartition("\n")[2], report["game"], text)
        return None

    def stop(self) -> None:
        """Ends the process at once and for certain."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def begin_close(self) -> None:
        """Asks the process to end; `stop_politely` then waits for it."""
        if self._connection is not None and not self._awaiting:
            self.ask(Request(Code.CLOSE))

    def stop_politely(self) -> None:
        """Ends the process, giving it a moment to do so by itself."""
        if self._process is not None and self._connection is not None:
            self._connection.close()  # it leaves on the end of the connection, too
            try:
                self._process.wait(_EXIT_WAIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._release()

    def _release(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._report is not None:
            self._report.close()
        self._process = self._connection = self._report = None
        self._awaiting = False

    def _post_mortem(self) -> Failure:
        """Says how a process that closed its connection ended."""
        if self._process is None:
            return Failure("died", "it is not running")
        try:
            code = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return Failure("died", "it closed the connection without ending", None, self._read_report())
        reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Failure("died", reason, None, self._read_report())

    def _where_it_hangs(self) -> str:
        """Asks the process for its stack, which the fault handler writes even in the middle of a call."""
        if self._process is None:
            return ""
        self._process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + _REPORT_WAIT_S
        while time.monotonic() < deadline and not self._read_report():
            time.sleep(0.01)
        time.sleep(0.05)  # the rest of the stack
        return self._read_report()

    def _read_report(self) -> str:
        if self._report is None:
            return ""
        return os.pread(self._report.fileno(), _REPORT_BYTES, 0).decode(errors="backslashreplace")


def make_workers(hosting: Hosting, num_games: int, workers: int) -> list[WorkerProcess]:
    """Returns processes, not yet started, that share games about equally."""
    bounds = [num_games * number // workers for number in range(workers + 1)]
    return [WorkerProcess(hosting, first, last) for first, last in itertools.pairwise(bounds)]


def ask_workers(
    workers: Sequence[WorkerProcess], requests: Mapping[int, Request], timeout_s: float
) -> dict[int, Failure]:
    """Sends requests to workers, by number, and waits for all answers; returns which of them failed."""
    failures: dict[int, Failure] = {}
    for number, request in requests.items():
        # An answer is still due if the last request was interrupted, say by Ctrl-C.
        failure = workers[number].wait(timeout_s) or workers[number].ask(request)
        if failure is not None:
            failures[number] = failure
    deadline_s = time.monotonic() + timeout_s
    for number in requests:
        if number in failures:
            continue
        failure = workers[number].wait(max(deadline_s - time.monotonic(), _LEAST_WAIT_S))
        if failure is not None:
            failures[number] = failure
    return failures


def make_memory_file(fields: Fields) -> int:
    """Returns an unnamed file for arrays of these shapes; it is gone with the last process that has it open.

    Raises:
        UnsupportedError: This system cannot hand files to a worker.
    """
    if os.name != "posix":
        raise UnsupportedError("worker processes need Linux or macOS; use config={'workers': 0}")
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("ludus-games")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, block_bytes(fields))
    return file


def close_workers(workers: Sequence[WorkerProcess], memory_file: int) -> None:
    """Ends all workers; none is left when this returns."""
    for worker in workers:
        worker.begin_close()
    for worker in workers:
        worker.stop_politely()
    os.close(memory_file)
