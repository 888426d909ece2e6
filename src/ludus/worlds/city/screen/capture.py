"""Screen captures through memory shared with the X server (mss with XShm), and waiting for changes."""

import contextlib
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import GameLostError, MissingDependencyError
from ludus.worlds.city.drivers.driver import Box, Frame
from ludus.worlds.city.perception.opencv import opencv


class ScreenCapture:
    """Takes pictures of one screen; to be used by one thread at a time."""

    def __init__(self, display: str) -> None:
        """Connect to a screen such as `:7`; raise GameLostError if there is no such screen."""
        cv2 = opencv("seeing a game")
        try:
            import mss
        except ImportError as error:
            raise MissingDependencyError("mss", "city", "seeing a game") from error
        self.display = display
        self._convert, self._code = cv2.cvtColor, cv2.COLOR_BGRA2RGB
        # mss asserts that there is an answer; there is none from a screen that is gone.
        self._failures = (mss.ScreenShotError, OSError, AssertionError)
        try:
            self._eye = mss.MSS(display=display)
        except mss.ScreenShotError as error:
            raise GameLostError(f"the screen {display} cannot be seen: {error}") from error
        self._frames: dict[tuple[int, int], Frame] = {}

    def grab(self, box: Box) -> Frame:
        """Return what is in a box, RGB; the next call for a box of the same size overwrites it."""
        raw = self.raw(box)
        size = raw.shape[:2]
        if size not in self._frames:
            self._frames[size] = np.empty((*size, 3), np.uint8)
        self._convert(raw, self._code, self._frames[size])
        return self._frames[size]

    def raw(self, box: Box) -> NDArray[np.uint8]:
        """Return what is in a box as `(height, width, 4)`, blue first: quicker than `grab`, to compare pictures."""
        try:
            shot = self._eye.grab(box._asdict())
        except self._failures as error:
            raise GameLostError(f"the screen {self.display} cannot be seen at {box}: {error!s:.200}") from error
        return np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)

    def close(self) -> None:
        """End the connection; may be called twice."""
        with contextlib.suppress(*self._failures):
            self._eye.close()


Look: TypeAlias = Callable[[], NDArray[np.uint8]]


def wait_until(is_met: Callable[[], bool], timeout_s: float, poll_s: float) -> bool:
    """Wait until a condition is met; return whether it was in time."""
    give_up = time.monotonic() + timeout_s
    while not is_met():
        if time.monotonic() >= give_up:
            return False
        time.sleep(poll_s)
    return True


def wait_for_change(look: Look, before: NDArray[np.uint8], timeout_s: float, poll_s: float) -> bool:
    """Wait until a picture differs from an earlier one; return whether it did in time."""
    return wait_until(lambda: not np.array_equal(look(), before), timeout_s, poll_s)


def wait_until_still(look: Look, captures: int, timeout_s: float, poll_s: float) -> bool:
    """Wait until a number of consecutive captures are equal; return whether they were in time."""
    give_up = time.monotonic() + timeout_s
    last, equal = look(), 1
    while equal < captures:
        if time.monotonic() >= give_up:
            return False
        time.sleep(poll_s)
        now = look()
        equal = equal + 1 if np.array_equal(now, last) else 1
        last = now
    return True
