"""Printing for all commands: plain ASCII lines that survive any terminal and any file.

Names, paths and messages may come from untrusted files. Everything that a command prints passes through `echo`, and
everything that is logged through the formatter below, so that nothing in such a file can control the terminal.
"""

import json
import logging
import re
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Sequence

import typer

from ludus.core.text import LONGEST_NAME, plain_text

_LONGEST_MESSAGE = 20_000  # letters of an error, a warning or a traceback, whatever a file or a game put into it
_LONGEST_CELL = 5 * LONGEST_NAME  # letters of a table's cell: a description of three lines
_NARROWEST = 20  # letters of a column that is worth wrapping
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def echo(text: str = "", *, err: bool = False) -> None:
    """Print text as plain ASCII; control characters are escaped. What is too long for an error is cut."""
    typer.echo(plain_text(_cut(text) if err else text), err=err)


def print_json(document: object) -> None:
    """Print a document as JSON."""
    echo(json.dumps(document, indent=2))


def print_ok(message: str) -> None:
    """Print a result."""
    echo(f"[OK] {message}")


def print_verdict(word: str, message: str) -> None:
    """Print a verdict, OK, WARN or FAIL, as a result; verdicts below each other line up."""
    echo(f"{f'[{word}]':6} {message}")


def print_warning(message: str) -> None:
    """Print a warning on the error stream."""
    echo(f"[WARN] {message}", err=True)


def print_error(message: str) -> None:
    """Print an error on the error stream."""
    echo(f"[ERROR] {message}", err=True)


def set_up_logging() -> None:
    """Send log messages and Python's warnings to the error stream, one plain line each."""
    handler = _CurrentStderr()
    handler.setFormatter(_PlainFormatter())
    logging.basicConfig(handlers=[handler])
    # Gymnasium colours its warnings and begins each of them with WARN.
    warnings.showwarning = lambda message, *_: print_warning(_COLOUR.sub("", str(message)).removeprefix("WARN: "))


class _PlainFormatter(logging.Formatter):
    """Shows the message alone; its mark, such as [WARN], is part of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as plain ASCII."""
        return plain_text(_cut(super().format(record)))


class _CurrentStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the current sys.stderr, which a live view replaces while it is shown."""

    @property
    def stream(self) -> object:
        return sys.stderr

    @stream.setter
    def stream(self, _: object) -> None:
        pass


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns that line up; numbers stand at their right edge. A terminal wraps the last column."""
    table = [tuple(map(_cell, row)) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    right = [
        bool(rows) and all(row[column].replace(".", "").replace(",", "").isdigit() for row in table[1:])
        for column in range(len(header))
    ]
    indent = sum(widths[:-1]) + 2 * (len(header) - 1)
    room = shutil.get_terminal_size().columns - indent if sys.stdout.isatty() else 0
    for row in table:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ]
        line = "  ".join(cells).rstrip()
        if room >= _NARROWEST:
            line = line[:indent] + f"\n{' ' * indent}".join(textwrap.wrap(line[indent:], room) or [""])
        echo(line)


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print a table for people on a terminal, and plain columns elsewhere."""
    if not sys.stdout.isatty():
        print_table(header, rows)
        return
    from rich.box import SIMPLE  # imported here: rich takes longer than all the rest of a quick command
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    def shown(text: str) -> str:
        return escape(_cell(text))

    table = Table(title=shown(title) or None, title_justify="left", box=SIMPLE, pad_edge=False, collapse_padding=True)
    for column, name in enumerate(header):
        table.add_column(shown(name).replace(" ", "\n"), justify="left" if column == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(shown, row))
    Console().print(table)


class StatusLine:
    """A line on a terminal that says what is being done, and is gone afterwards; elsewhere nothing is shown."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, text: str) -> None:
        """Show a text in the place of the one before."""
        if sys.stderr.isatty():
            typer.echo(plain_text(text).ljust(self._width) + "\r", err=True, nl=False)
            self._width = len(text)

    def close(self) -> None:
        """Clear the line."""
        self.show("")


class ProgressLine:
    """One line that says how far a task is: rewritten on a terminal, printed at every quarter elsewhere."""

    def __init__(self, task: str, total: int) -> None:
        self._task, self._total = task, max(total, 1)
        self._terminal = sys.stderr.isatty()
        self._shown, self._started = 0, time.perf_counter()

    def __call__(self, done: int) -> None:
        """Show that `done` of the total is done."""
        part = 100 if self._terminal else 4
        share = done * part // self._total
        if share > self._shown:
            self._shown = share
            end = "\r" if self._terminal and share < part else "\n"
            typer.echo(plain_text(f"{self._task}: {self._text(done)}") + end, err=True, nl=False)

    def _text(self, done: int) -> str:
        rate = done / max(time.perf_counter() - self._started, 1e-9)
        return f"{done}/{self._total} ({rate:.0f}/s)"

    def close(self) -> None:
        """End the line if the task stopped before its total."""
        if self._terminal and 0 < self._shown < 100:
            echo(err=True)


class ShareLine(ProgressLine):
    """The same for a task that knows only which share of it is done."""

    def __init__(self, task: str) -> None:
        super().__init__(task, 100)

    def tell(self, share: float) -> None:
        """Show that this share, 0 to 1, is done."""
        self(round(100 * share))

    def _text(self, done: int) -> str:
        left_s = (time.perf_counter() - self._started) * (100 / done - 1)
        return f"{done:3} % ({left_s:.0f} s left)"


def _cell(text: str) -> str:
    """Return the text of a cell, in one line; spaces that line it up are kept."""
    return plain_text(text[:_LONGEST_CELL].replace("\n", " ")) + ("..." if len(text) > _LONGEST_CELL else "")


def _cut(message: str) -> str:
    more = len(message) - _LONGEST_MESSAGE
    return f"{message[:_LONGEST_MESSAGE]} ... ({more:,} more letters)" if more > 0 else message
