"""One worker process: starting it, asking it, and finding out why it no longer answers."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Literal

from ludus.envs.adapters import gymnasium_worker
from ludus.envs.adapters.gymnasium_worker import Kind, Plan, receive, send

_STANDARD_ERROR = 2
_EXIT_WAIT_S = 2.0
_REPORT_WAIT_S = 1.0
_REPORT_BYTES = 1 << 16


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


class WorkerProcess:
    """A process that hosts games `first ... last - 1`; it can be started anew after it was stopped."""

    def __init__(self, plan: Plan, memory_file: int, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.steps_since_fault = 0
        self.faults_in_row = 0
        self._plan = plan
        self._memory_file = memory_file
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
        files = (theirs.fileno(), self._memory_file, self._report.fileno())
        # -P keeps this folder out of the worker's module path; its standard output must not mix with ours.
        command = [sys.executable, "-P", gymnasium_worker.__file__, *map(str, files), str(os.getpid())]
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
            command, stdin=subprocess.DEVNULL, stdout=_STANDARD_ERROR, pass_fds=files
        )
        theirs.close()
        job = {"plan": self._plan.to_json(), "first": self.first, "last": self.last, "path": sys.path}
        return self.ask(Kind.PLAN, payload=json.dumps(job).encode())

    def ask(self, kind: Kind, slot: int = 0, payload: bytes = b"") -> Failure | None:
        """Sends a request; the answer comes through `wait`."""
        if self._connection is None:
            return Failure("died", "it is not running")
        try:
            send(self._connection, kind, slot, payload)
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
            kind, _, payload = receive(self._connection)
        except TimeoutError:
            return Failure("hung", f"no answer within {timeout_s:.3g} s", None, self._where_it_hangs())
        except (EOFError, OSError):
            return self._post_mortem()
        self._awaiting = False
        if kind is Kind.ERROR:
            report = json.loads(payload)
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
            self.ask(Kind.CLOSE)

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
