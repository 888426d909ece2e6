"""Worker processes: starting them, asking them, and finding out why one no longer answers."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from ludus.core.files import read_at, temporary_file, wrap_disk_errors
from ludus.envs import worker_program
from ludus.envs.worker_program import Code, Fields, block_bytes, receive, send

_STANDARD_ERROR = 2
_EXIT_WAIT_S = 2.0
_REPORT_WAIT_S = 1.0
_REPORT_BYTES = 1 << 14
_SEND_WAIT_S = 60.0  # for a worker to take a message
_LEAST_WAIT_S = 0.01  # for an answer that lies there already


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a worker gave no answer."""

    # It died (the process is gone), raised (an exception) or hung (no answer in time).
    kind: Literal["died", "raised", "hung"]
    reason: str  # in a few words
    game: int | None = None  # the game that it was busy with, if it could say so
    traceback: str = ""  # where it was, if that is known


@dataclass(frozen=True, slots=True)
class Hosting:
    """What the workers of a batch host."""

    file: Path  # file with the function `host`; see `ludus.envs.worker_program.Host`
    plan: Mapping[str, Any]  # what it is to do, as JSON values
    fields: Fields  # shapes and types of the arrays that all share
    memory_file: int  # where those lie
    environment: Mapping[str, str]  # variables of the workers beside our own
    # Files and modules of the user's own that the workers load first; see `ludus.rewards.plugins`.
    plugins: Sequence[str] = ()


class Request(NamedTuple):
    """A message to a worker: what it means is up to the file that is hosted."""

    code: int
    slot: int = 0
    payload: bytes = b""


class WorkerProcess:
    """A process that hosts games `first ... last - 1`; it can be restarted after it was stopped."""

    def __init__(self, hosting: Hosting, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.answer = b""  # what came with the last answer
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
        """Start the process and tell it what to host; `wait` then waits until the games are made."""
        self._connection, theirs = socket.socketpair()
        self._report = temporary_file()
        hosting = self._hosting
        passed, options = _pass_on(theirs, (hosting.memory_file, self._report.fileno()))
        # -P keeps this folder out of the worker's module path; its standard output must not mix with ours.
        command = [sys.executable, "-P", worker_program.__file__, *map(str, passed), str(os.getpid())]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
            command,
            stdin=subprocess.DEVNULL,
            stdout=_STANDARD_ERROR,
            env={**os.environ, **hosting.environment},
            **options,
        )
        theirs.close()
        job = {
            "file": str(hosting.file),
            "plan": hosting.plan,
            "fields": {name: (shape, dtype.str) for name, (shape, dtype) in hosting.fields.items()},
            "first": self.first,
            "last": self.last,
            "path": sys.path,
            "plugins": list(hosting.plugins),
        }
        return self.ask(Request(Code.PLAN, payload=json.dumps(job).encode()))

    def ask(self, request: Request) -> Failure | None:
        """Send a request; the answer comes through `wait`."""
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
        """Wait for the answer to the last request; return at once if none is due."""
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
            return Failure("raised", report["reason"], report["game"], report["traceback"])
        return None

    def stop(self) -> None:
        """End the process at once and for certain."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def begin_close(self) -> None:
        """Ask the process to end; `stop_politely` then waits for it."""
        if self._connection is not None and not self._awaiting:
            self.ask(Request(Code.CLOSE))

    def stop_politely(self) -> None:
        """End the process, giving it a moment to do so by itself."""
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
        """Return how a process that closed its connection ended."""
        if self._process is None:
            return Failure("died", "it is not running")
        try:
            code = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return Failure("died", "it closed the connection without ending", None, self._read_report())
        reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Failure("died", reason, None, self._read_report())

    def _where_it_hangs(self) -> str:
        """Ask the process for its stack, which the fault handler writes even in the middle of a call."""
        if self._process is None or not hasattr(signal, "SIGUSR1"):  # which Windows lacks
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
        return read_at(self._report.fileno(), _REPORT_BYTES, 0).decode(errors="backslashreplace")


def _pass_on(connection: socket.socket, files: Sequence[int]) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Return how a child process calls our socket and files, and the options of `Popen` that let it have them.

    Windows has no `pass_fds`: a child inherits handles, which `worker_program` turns into descriptors of its own.
    """
    if sys.platform == "win32":
        import msvcrt

        handles = (connection.fileno(), *(msvcrt.get_osfhandle(file) for file in files))
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": list(handles)})
        return handles, {"startupinfo": startup, "close_fds": True}
    passed = (connection.fileno(), *files)
    return passed, {"pass_fds": passed}


def make_workers(hosting: Hosting, num_envs: int, workers: int) -> list[WorkerProcess]:
    """Return processes, not yet started, that share games about equally."""
    bounds = [num_envs * number // workers for number in range(workers + 1)]
    return [WorkerProcess(hosting, first, last) for first, last in itertools.pairwise(bounds)]


def ask_workers(
    workers: Sequence[WorkerProcess], requests: Mapping[int, Request], timeout_s: float
) -> dict[int, Failure]:
    """Send requests to workers, by number, and wait for all answers; return which of them failed."""
    failures: dict[int, Failure] = {}
    for number, request in requests.items():
        # An answer is still due if the last request was interrupted, say by Ctrl-C.
        if failure := workers[number].wait(timeout_s) or workers[number].ask(request):
            failures[number] = failure
    deadline_s = time.monotonic() + timeout_s
    for number in [number for number in requests if number not in failures]:
        if failure := workers[number].wait(max(deadline_s - time.monotonic(), _LEAST_WAIT_S)):
            failures[number] = failure
    return failures


def make_memory_file(fields: Fields) -> int:
    """Return an unnamed file, gone with the last process that has it open."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("ludus-games")
    else:
        with temporary_file() as temporary:
            file = os.dup(temporary.fileno())
    with wrap_disk_errors("the memory that is shared with workers"):
        os.ftruncate(file, block_bytes(fields))
    return file


def close_workers(workers: Sequence[WorkerProcess], memory_file: int) -> None:
    """End all workers; none is left when this returns."""
    for worker in workers:
        worker.begin_close()
    for worker in workers:
        worker.stop_politely()
    os.close(memory_file)
