"""One game on one screen of its own: its process, its windows, its picture and its input."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from ludus.core.errors import GameLostError
from ludus.envs.city.screen.capture import ScreenCapture
from ludus.envs.city.screen.connection import open_display, screen_errors
from ludus.envs.city.screen.input import GuardedInput
from ludus.envs.city.screen.resources import process_state, sleeps
from ludus.envs.city.screen.virtual_screen import VirtualScreen
from ludus.envs.city.screen.windows import Window, Windows

_POLL_S = 0.02
_IDLE_POLL_S = 0.001
_SHOWN_LOG = 500  # characters of what a game said last


class ScreenSession:
    """A screen and the game that runs on it.

    Attributes:
        screen: The virtual screen.
        windows: Everything on it.
        capture: What is seen of it.
        input: Mouse and keys, for the game alone.
        pid: The game's process; 0 before it was started.
    """

    def __init__(self, width: int, height: int) -> None:
        """Starts a screen of this size, without a game."""
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
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path | str | None, terminal: int | None
    ) -> None:
        """Starts the game; one that still runs is ended first."""
        self.end()
        self.pid = self.screen.run(command, environment, folder, terminal)

    def end(self) -> None:
        """Ends the game and everything that it started."""
        if self.pid and self.screen.is_alive:
            self.screen.end(self.pid)
        self.pid = 0
        self._is_game.clear()

    @property
    def is_running(self) -> bool:
        """Whether the game's process is there."""
        return bool(self.pid) and bool(process_state(self.pid))

    @property
    def is_stopped(self) -> bool:
        """Whether the game's process was stopped, so that it can neither draw nor listen."""
        return process_state(self.pid) in ("T", "t")

    def stop_process(self) -> None:
        """Stops the game's processes where they are."""
        self._signal(signal.SIGSTOP)

    def continue_process(self) -> None:
        """Lets stopped processes go on."""
        self._signal(signal.SIGCONT)

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Waits until the game has taken in all that was done, and sleeps; returns whether it did in time.

        Between two looks the server is asked twice. What it had for the game is delivered by then, also if the game
        was waiting for an answer of the server; so a game that slept all the while had nothing left to do but to wait
        for its clock.
        """
        give_up = time.monotonic() + timeout_s
        while True:
            before = sleeps(self.pid)
            with screen_errors(self.screen.display):
                self._connection.sync()
                self._connection.sync()
            if before is not None and sleeps(self.pid) == before:
                return True
            if time.monotonic() >= give_up:
                return False
            time.sleep(_IDLE_POLL_S)

    def owns(self, window_id: int) -> bool:
        """Returns whether a window belongs to the game, by the process that the server knows it from."""
        return self._is_ours(self.windows.owner(window_id))

    def shown(self) -> list[Window]:
        """Returns the game's visible windows, the lowest first."""
        return [window for window in self.windows.shown() if self._is_ours(window.pid)]

    def wait_for(self, found: Callable[[Window], bool], what: str, timeout_s: float) -> Window:
        """Waits for a window of the game.

        Raises:
            GameLostError: It did not come, or the game ended; says what it said last.
        """
        give_up = time.monotonic() + timeout_s
        while True:
            shown = self.shown()
            for window in shown:
                if found(window):
                    return window
            if not self.is_running:
                raise GameLostError(f"the game ended before {what} was there; it said: {self.said()}")
            if time.monotonic() >= give_up:
                seen = ", ".join(f"{window.title!r} ({window.width}x{window.height})" for window in shown) or "none"
                raise GameLostError(f"{what} was not there after {timeout_s:g} s; its windows: {seen}")
            time.sleep(_POLL_S)

    def said(self) -> str:
        """Returns the last that the game wrote where nobody else reads it."""
        try:
            text = (self.screen.folder / "program.log").read_text("utf-8", errors="replace")
        except OSError:
            text = ""
        return text[-_SHOWN_LOG:].strip() or "nothing"

    def close(self) -> None:
        """Ends the game and the screen; may be called twice."""
        self.pid = 0
        self.capture.close()
        self.screen.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError as error:
            raise GameLostError("the game ended; start it anew") from error

    def _is_ours(self, pid: int) -> bool:
        """Returns whether a process is the game, below it, or left behind by it."""
        if pid not in self._is_game:
            self._is_game[pid] = bool(self.pid and pid) and self._descends(pid)
        return self._is_game[pid]

    def _descends(self, pid: int) -> bool:
        try:
            if os.getsid(pid) == self.pid:  # the keeper gave the game a session of its own
                return True
            return self.pid in [parent.pid for parent in psutil.Process(pid).parents()]
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False
