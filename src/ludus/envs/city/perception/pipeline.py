"""Perception beside the policy: the newest picture of every game is read in a thread; older ones are dropped."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ludus.envs.city.drivers.driver import Frame
from ludus.envs.city.perception.reader import ScreenReader
from ludus.envs.city.perception.reading import Reading


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read off a picture.

    Attributes:
        number: Of the picture, counted by game from 1.
        readings: By field.
    """

    number: int
    readings: dict[str, Reading]


class PerceptionPipeline:
    """Reads the pictures of several games at once; each game has a reader of its own.

    Attributes:
        dropped: Pictures that were replaced by a newer one before they were read.
    """

    def __init__(self, readers: Sequence[ScreenReader], threads: int = 2) -> None:
        """Starts threads; the readers are used by nobody else from now on."""
        self.dropped = 0
        self._readers = tuple(readers)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ludus-perception")
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, Frame] | None] = [None] * len(readers)
        self._is_busy = [False] * len(readers)
        self._numbers = [0] * len(readers)
        self._seen = [Seen(0, {}) for _ in readers]
        self._error: BaseException | None = None

    def submit(self, game: int, frame: Frame) -> int:
        """Hands over a copy of the next picture of a game and returns its number at once."""
        with self._changed:
            self._numbers[game] += 1
            self.dropped += self._waiting[game] is not None
            self._waiting[game] = (self._numbers[game], frame.copy())
            if not self._is_busy[game]:
                self._is_busy[game] = True
                self._pool.submit(self._work, game)
            return self._numbers[game]

    def latest(self, game: int) -> Seen:
        """Returns what was read last, of whatever picture; number 0 before the first."""
        with self._changed:
            self._check()
            return self._seen[game]

    def wait(self, game: int, number: int, timeout_s: float) -> Seen:
        """Waits for a picture, or a newer one, to be read, and returns what was read last."""
        with self._changed:
            self._changed.wait_for(lambda: self._seen[game].number >= number or self._error is not None, timeout_s)
            self._check()
            return self._seen[game]

    def close(self) -> None:
        """Ends the threads; may be called twice."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _work(self, game: int) -> None:
        while True:
            with self._changed:
                waiting = self._waiting[game]
                self._waiting[game] = None
                if waiting is None:
                    self._is_busy[game] = False
                    return
            try:
                readings = self._readers[game].read(waiting[1])
            except BaseException as error:
                with self._changed:
                    self._error, self._is_busy[game] = error, False
                    self._changed.notify_all()
                raise
            with self._changed:
                self._seen[game] = Seen(waiting[0], readings)
                self._changed.notify_all()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
