"""SIGTERM and SIGINT: the first one ends a run in good order, the second one at once."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ludus.training.loop import Trainer

logger = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_CURSOR = b"\x1b[?25h\n"


class Received:
    """Which signal came, and whom it concerns.

    Attributes:
        number: Of the signal; 0 if none came.
    """

    def __init__(self) -> None:
        self.number = 0
        self._trainer: Trainer | None = None

    @property
    def exit_code(self) -> int:
        """What a process that a signal ended returns: 128 and the signal's number; 0 without a signal."""
        return 128 + self.number if self.number else 0

    def concern(self, trainer: Trainer) -> None:
        """From now on a signal ends this trainer's run; before, there was nothing to save, and it ended the process."""
        self._trainer = trainer
        if self.number:  # whoever was working when it came has kept it from ending the process
            trainer.stop(self.reason)

    def handle(self, number: int, _: FrameType | None) -> None:
        """Answers a signal."""
        if self.number:
            _end_at_once(128 + number)
        self.number = number
        if self._trainer is None:
            sys.exit(self.exit_code)
        self._trainer.interrupt(self.reason)

    @property
    def reason(self) -> str:
        """Which signal came, in words."""
        return f"{signal.Signals(self.number).name} came"


@contextmanager
def ended_by_signals() -> Iterator[Received]:
    """Lets the first signal save `interrupted` and end the run, and the second one end the process at once.

    For the main thread. The handlers that were there before come back afterwards.
    """
    received = Received()
    before = {each: signal.signal(each, received.handle) for each in SIGNALS}
    try:
        yield received
    except SystemExit:
        if received.number:
            logger.warning("[WARN] %s before the run began", received.reason)
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_at_once(code: int) -> None:
    """Ends the process without any clean-up; only the cursor, which a live view hides, comes back."""
    for descriptor in (1, 2):
        if os.isatty(descriptor):
            os.write(descriptor, _SHOW_CURSOR)
            break
    os._exit(code)
