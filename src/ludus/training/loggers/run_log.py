"""run.log: what a person wants to know of a run afterwards: warnings, alarms, promotions, and why each session ended.

Nothing is cut back when a run resumes: what happened after the checkpoint that it resumes from stays in the log. Times
make it differ between equal runs, as `resources.csv` does.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ludus.training.callbacks import BaseCallback, Counters, Iteration
from ludus.training.loggers.csv_logger import AppendLog
from ludus.training.loggers.progress import message_line, plain

FILE = "run.log"
_PACKAGE = "ludus"


class RunLog(BaseCallback):
    """Appends a line with time and env steps per message of the loop, and per warning that the package logs.

    Inside `with`, warnings of all modules are written, also those before the first and after the last hook.
    """

    def __init__(self, run_folder: Path) -> None:
        """Open the file; a line that a kill cut off is dropped.

        Raises:
            StoreError: It is not a regular file, or cannot be written.
        """
        self._log = AppendLog(run_folder / FILE)
        self._log.drop_torn_line()
        self._env_steps: int | None = None  # not known before the run is loaded
        self._handler = _Forward(self.write)

    def write(self, line: str) -> None:
        """Append one line of plain ASCII, whatever the text holds."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        reached = "-" if self._env_steps is None else self._env_steps
        self._log.append(f"{stamp} env_steps={reached} {plain(line)}\n")

    def on_training_start(self, counters: Counters) -> None:
        """Write where the session starts."""
        self._env_steps = counters.env_steps
        self.write("[OK] training resumes" if counters.env_steps else "[OK] training starts")

    def on_iteration(self, iteration: Iteration) -> None:
        """Take how far the run is."""
        self._env_steps = iteration.counters.env_steps

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Write a message: a promotion, a warning or an alarm."""
        self._env_steps = counters.env_steps
        self.write(message_line(level, text))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out the warnings of other runs of this process while it is their turn."""
        self._handler.is_paused = True
        try:
            yield
        finally:
            self._handler.is_paused = False

    def end(self, reason: str, *, is_finished: bool) -> None:
        """Write why the session ended; it is a warning unless the run is finished."""
        self.write(f"{'[OK]' if is_finished else '[WARN]'} training ended: {reason}")

    def __enter__(self) -> Self:
        logging.getLogger(_PACKAGE).addHandler(self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(_PACKAGE).removeHandler(self._handler)
        self._log.close()


@contextmanager
def held_warnings() -> Iterator[list[str]]:
    """Return a list that gets the warnings of all modules, for a log that is opened later: `run_training` writes it."""
    lines: list[str] = []
    handler = _Forward(lines.append)
    logging.getLogger(_PACKAGE).addHandler(handler)
    try:
        yield lines
    finally:
        logging.getLogger(_PACKAGE).removeHandler(handler)


class _Forward(logging.Handler):
    """Passes the messages of warnings and errors on."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._write, self.is_paused = write, False

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the message of a record, which begins with its own mark."""
        if self.is_paused:
            return
        try:
            self._write(record.getMessage())
        except Exception:  # as every handler of logging: what cannot be logged must not end a run
            self.handleError(record)
