"""Waiting for a change of what a screen shows, for stillness, and the suspicion that it is frozen."""

import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Look: TypeAlias = Callable[[], NDArray[np.uint8]]


def wait_for_change(look: Look, before: NDArray[np.uint8], timeout_s: float, poll_s: float) -> bool:
    """Waits until a picture differs from an earlier one; returns whether it did in time."""
    give_up = time.monotonic() + timeout_s
    while np.array_equal(look(), before):
        if time.monotonic() >= give_up:
            return False
        time.sleep(poll_s)
    return True


def wait_until_still(look: Look, captures: int, timeout_s: float, poll_s: float) -> bool:
    """Waits until so many captures in a row are equal; returns whether they were in time."""
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


class FreezeWatch:
    """Suspects a frozen screen: changes that were due did not come, several times in a row.

    A paused game shows the same picture for as long as it is paused. So stillness alone says nothing; only after the
    game ran, or was clicked where a click shows, is a change due.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.missed = 0

    def due(self, *, came: bool) -> None:
        """Notes that a change was due, and whether it came."""
        self.missed = 0 if came else self.missed + 1

    @property
    def is_suspicious(self) -> bool:
        """Whether so many due changes in a row are missing that somebody should try."""
        return self.missed >= self.patience
