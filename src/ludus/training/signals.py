"""SIGTERM and SIGINT: the first one ends a run in good order, the second one at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ludus.training.loop import Trainer

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Received:
    """Which signal came.

    Attributes:
        number: Of the signal; 0 if none came.
    """

    def __init__(self) -> None:
        self.number = 0

    @property
    def exit_code(self) -> int:
        """What a process that a signal ended returns: 128 and the signal's number; 0 without a signal."""
        return 128 + self.number if self.number else 0


@contextmanager
def ended_by_signals(trainer: Trainer) -> Iterator[Received]:
    """Lets the first signal save `interrupted` and end the run, and the second one end the process at once.

    For the main thread. The handlers that were there before come back afterwards.
    """
    received = Received()

    def handle(number: int, _: FrameType | None) -> None:
        if received.number:
            os._exit(128 + number)
        received.number = number
        trainer.interrupt(f"{signal.Signals(number).name} came")

    before = {each: signal.signal(each, handle) for each in SIGNALS}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
