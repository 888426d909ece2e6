"""A private virtual screen (Xvfb), and one game on it: process, windows, capture and input.

Nothing is left behind when a screen closes.
"""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from signal import Signals
from typing import Any

import psutil

from ludus.core.errors import GameLostError, GameNotFoundError, UnsupportedError
from ludus.core.files import wrap_disk_errors
from ludus.worlds.city.screen import supervisor
from ludus.worlds.city.screen.xserver import (
    GuardedInput,
    ScreenCapture,
    Window,
    Windows,
    open_display,
    screen_errors,
    wait_until,
)


def sleeps(pid: int) -> int | None:
    """Return how often a process has gone to sleep, if it sleeps now; None if it runs, is about to, or has ended.

    Two equal answers mean that it did nothing in between: whatever wakes a process makes it runnable at once, however
    long it then has to wait for a processor.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return int(fields["voluntary_ctxt_switches"]) if fields["State"].split()[0] == "S" else None


def end_of_log(file: Path) -> str:
    """Return the end of a log file, for error messages."""
    try:
        text = file.read_text("utf-8", errors="replace")
    except OSError:
        return "nothing"
    return text[-_SHOWN_LOG:].strip() or "nothing"


_START_S = 60.0
_ANSWER_S = 30.0
_END_S = 30.0
_SUPERVISOR_LOG = "supervisor.log"
_SHOWN_LOG = 500


class VirtualScreen(AbstractContextManager["VirtualScreen"]):
    """A private screen: every instance has its own number, folder and processes.

    Attributes:
        display: Its name, such as `:7`.
        folder: A temporary folder for what the programs write; gone with the screen.
    """

    def __init__(self, width: int, height: int) -> None:
        """Start a screen; raise GameNotFoundError if Xvfb is not installed, GameLostError if it does not start."""
        if os.name != "posix":
            raise UnsupportedError("a virtual screen needs Linux with Xvfb; the embedded city game runs everywhere")
        if shutil.which("Xvfb") is None:
            raise GameNotFoundError("a virtual screen needs Xvfb; install it with: apt-get install xvfb")
        with wrap_disk_errors("the folder of a virtual screen"):
            self.folder = Path(tempfile.mkdtemp(prefix="ludus-screen-"))
            log = (self.folder / _SUPERVISOR_LOG).open("wb")  # who reads our output must not wait for the supervisor
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", supervisor.__file__, str(theirs.fileno())]
        with theirs, log:
            self._supervisor = subprocess.Popen(  # noqa: S603 - the command is ours
                [*command, str(self.folder), f"{width}x{height}"],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is ours to handle: the supervisor goes when we go
            )
        try:
            started = self._receive(_START_S)
        except BaseException:
            self.close()
            raise
        self.display = f":{started['display']}"
        self.pid = int(started["pid"])

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | None = None,
        terminal: int | None = None,
    ) -> int:
        """Start a program on this screen and return its process id; it runs in the screen's folder by default.

        `environment` is added to a bare one: `PATH`, the screen's `DISPLAY`, and `HOME` and `TMPDIR` in the screen's
        folder, so that a game neither reads nor writes what belongs to the user. The descriptor `terminal` becomes its
        input, output and errors; without one they go to `program.log`.

        Raises:
            GameNotFoundError: There is no such program.
            GameLostError: It could not be started.
        """
        home = self.folder / "home"
        with wrap_disk_errors(home):
            home.mkdir(exist_ok=True)
            log = (self.folder / "program.log").open("ab")
        bare = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        bare |= {"DISPLAY": self.display, "HOME": str(home), "TMPDIR": str(self.folder), **environment}
        wish = {"run": list(command), "environment": bare, "folder": folder or str(self.folder)}
        with log, Path(os.devnull).open("rb") as nothing:
            streams = [nothing.fileno(), log.fileno(), log.fileno()] if terminal is None else [terminal] * 3
            answer = self._ask(wish, streams)
        if answer.get("errno") in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
            raise GameNotFoundError(f"{command[0]} cannot be run in {wish['folder']}: {answer['error']}")
        if "pid" not in answer:
            raise GameLostError(f"{command[0]} could not be started: {answer.get('error')}")
        return int(answer["pid"])

    def end(self, pid: int) -> None:
        """End a program that `run` started, with everything below it."""
        self._ask({"end": pid}, [])

    @property
    def is_alive(self) -> bool:
        """Whether the screen is there."""
        return self._supervisor.poll() is None and supervisor.status(self.pid)[0] != ""

    def close(self) -> None:
        """End the screen and everything on it, and remove its folder; may be called twice."""
        self._control.close()
        try:
            self._supervisor.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()  # the kernel then ends what it had started
            self._supervisor.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, wish: Mapping[str, object], descriptors: Sequence[int]) -> dict[str, Any]:
        try:
            socket.send_fds(self._control, [json.dumps(wish).encode()], list(descriptors))
        except OSError as error:
            raise GameLostError(f"the screen {self.display} is gone: {error.strerror}") from error
        return self._receive(_ANSWER_S)

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        self._control.settimeout(timeout_s)
        try:
            answer = self._control.recv(supervisor.MESSAGE_BYTES)
        except OSError as error:
            raise GameLostError(f"the supervisor of a screen did not answer within {timeout_s:g} s") from error
        if not answer:
            raise GameLostError(
                f"the supervisor of a screen ended; out of memory? Its log: {end_of_log(self.folder / _SUPERVISOR_LOG)}"
            )
        content: dict[str, Any] = json.loads(answer)
        if set(content) == {"error"}:
            raise GameLostError(str(content["error"]))
        return content


_POLL_S = 0.02
_IDLE_POLL_S = 0.001


class ScreenSession:
    """A screen and the game that runs on it, whose process is `pid`; 0 before it was started."""

    def __init__(self, width: int, height: int) -> None:
        """Start a screen of this size, without a game."""
        self.screen = VirtualScreen(width, height)
        try:
            self._connection = open_display(self.screen.display)
            self.windows = Windows(self._connection, self.screen.display)
            self.input = GuardedInput(self._connection, self.screen.display, self.owns)
            self.capture = ScreenCapture(self.screen.display)
        except BaseException:
            self.screen.close()
            raise
        self.pid = 0
        self._is_game: dict[int, bool] = {}

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str | None, terminal: int | None
    ) -> None:
        """Start the game."""
        self.pid = self.screen.run(command, environment, folder, terminal)

    def end(self) -> None:
        """End the game and everything that it started."""
        if self.pid and self.screen.is_alive:
            self.screen.end(self.pid)
        self.pid = 0
        self._is_game.clear()

    @property
    def is_running(self) -> bool:
        """Whether the game's process is there."""
        return self.pid != 0 and supervisor.status(self.pid)[0] != ""

    @property
    def is_stopped(self) -> bool:
        """Whether the game's process was stopped, so that it can neither draw nor listen."""
        return supervisor.status(self.pid)[0] in ("T", "t")

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until the game has taken in all that was done, and sleeps; return whether it did in time.

        Between two looks the server is asked twice. What it had for the game is delivered by then, also if the game
        was waiting for an answer of the server; so a game that slept all the while had nothing left to do but to wait
        for its clock.
        """

        def is_idle() -> bool:
            before = sleeps(self.pid)
            with screen_errors(self.screen.display):
                self._connection.sync()
                self._connection.sync()
            return before is not None and sleeps(self.pid) == before

        return wait_until(is_idle, timeout_s, _IDLE_POLL_S)

    def owns(self, window_id: int) -> bool:
        """Return whether a window belongs to the game, by the process that the server knows it from."""
        return self._is_ours(self.windows.owner(window_id))

    def shown(self) -> list[Window]:
        """Return the game's visible windows, the lowest first."""
        return [window for window in self.windows.shown() if self._is_ours(window.pid)]

    def wait_for(self, found: Callable[[Window], bool], what: str, timeout_s: float) -> Window:
        """Wait for a window of the game; raise GameLostError, with what the game said last, if it does not come."""
        give_up = time.monotonic() + timeout_s
        while True:
            shown = self.shown()
            if (window := next(filter(found, shown), None)) is not None:
                return window
            if not self.is_running:
                raise GameLostError(f"the game ended before {what} was there; it said: {self.said()}")
            if time.monotonic() >= give_up:
                seen = [f"{window.title!r} ({window.box.width}x{window.box.height})" for window in shown] or ["none"]
                raise GameLostError(f"{what} was not there after {timeout_s:g} s; its windows: {', '.join(seen)}")
            time.sleep(_POLL_S)

    def said(self) -> str:
        """Return the end of the game's log."""
        return end_of_log(self.screen.folder / "program.log")

    def close(self) -> None:
        """End the game and the screen; may be called twice."""
        self.pid = 0
        self.capture.close()
        self.screen.close()

    def signal(self, number: Signals) -> None:
        """Send a signal to the game's processes, such as SIGSTOP to stop them where they are."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError as error:
            raise GameLostError("the game ended; restart it") from error

    def _is_ours(self, pid: int) -> bool:
        """Return whether a process is the game, below it, or left behind by it."""
        if pid not in self._is_game:
            try:
                self._is_game[pid] = bool(self.pid and pid) and (
                    os.getsid(pid) == self.pid  # the supervisor started the game in its own session
                    or self.pid in [parent.pid for parent in psutil.Process(pid).parents()]
                )
            except (ProcessLookupError, psutil.NoSuchProcess):
                self._is_game[pid] = False
        return self._is_game[pid]
