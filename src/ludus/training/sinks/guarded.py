"""Keeps a sink's faults away from the run: one that raises is switched off with a warning."""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from ludus.training.callbacks import Callback, Counters, Evaluated, Iteration
from ludus.training.sinks.text import plain

logger = logging.getLogger(__name__)


class Guarded:
    """Passes everything on to a sink until that raises; what asks the run itself to stop still does.

    Attributes:
        sink: Who is told.
        is_on: Whether it still is.
    """

    def __init__(self, sink: Callback) -> None:
        self.sink = sink
        self.is_on = True

    def on_start(self, counters: Counters) -> None:
        """See `Callback`."""
        self._tell(lambda: self.sink.on_start(counters), counters)

    def on_iteration(self, iteration: Iteration) -> None:
        """See `Callback`."""
        self._tell(lambda: self.sink.on_iteration(iteration), iteration.counters)

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """See `Callback`."""
        self._tell(lambda: self.sink.on_evaluation(evaluated), evaluated.counters)

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """See `Callback`."""
        self._tell(lambda: self.sink.on_checkpoint(folder, counters), counters)

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """See `Callback`."""
        self._tell(lambda: self.sink.on_message(level, text, counters), counters)

    def on_end(self, counters: Counters) -> None:
        """See `Callback`."""
        self._tell(lambda: self.sink.on_end(counters), counters, ends=True)

    def _tell(self, what: Callable[[], None], counters: Counters, *, ends: bool = False) -> None:
        if not self.is_on:
            return
        try:
            what()
        except Exception as error:  # whatever a sink or its library raises, the run goes on
            self.is_on = False
            fault = plain(f"{type(error).__name__}: {error}")
            logger.warning("[WARN] %s is switched off, training goes on: %s", type(self.sink).__name__, fault)
            if not ends:
                with contextlib.suppress(Exception):  # a chance to close files and to give the terminal back
                    self.sink.on_end(counters)


def guarded(sink: Callback) -> Callback:
    """Returns the sink behind a guard."""
    return Guarded(sink)
