"""Printing for all commands: plain ASCII lines that survive any terminal and any file."""

import sys
import time
from collections.abc import Sequence

import typer


def print_ok(message: str) -> None:
    """Prints a result."""
    typer.echo(f"[OK] {_plain(message)}")


def print_verdict(word: str, message: str) -> None:
    """Prints a verdict, OK, WARN or FAIL, as a result; verdicts below each other line up."""
    typer.echo(f"{f'[{word}]':6} {_plain(message)}")


def print_warning(message: str) -> None:
    """Prints a warning on the error stream."""
    typer.echo(f"[WARN] {_plain(message)}", err=True)


def print_error(message: str) -> None:
    """Prints an error on the error stream."""
    typer.echo(f"[ERROR] {_plain(message)}", err=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints columns that line up; numbers stand at their right edge."""
    table = [tuple(_plain(cell) for cell in row) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    right = [
        bool(rows) and all(row[column].replace(".", "").replace(",", "").isdigit() for row in table[1:])
        for column in range(len(header))
    ]
    for row in table:
        cells = (
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        )
        typer.echo("  ".join(cells).rstrip())


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table for people on a terminal, and plain columns elsewhere."""
    if not sys.stdout.isatty():
        print_table(header, rows)
        return
    from rich.box import SIMPLE  # imported here: rich takes longer than all the rest of a quick command
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title) or None, title_justify="left", box=SIMPLE, pad_edge=False, collapse_padding=True)
    for column, name in enumerate(header):
        table.add_column(escape(name).replace(" ", "\n"), justify="left" if column == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


class ProgressLine:
    """One line that says how far a task is: rewritten on a terminal, printed at every quarter elsewhere."""

    def __init__(self, task: str, total: int) -> None:
        self._task, self._total = task, max(total, 1)
        self._terminal = sys.stderr.isatty()
        self._shown, self._started = 0, time.perf_counter()

    def __call__(self, done: int) -> None:
        """Shows that `done` of the total is done."""
        part = 100 if self._terminal else 4
        share = done * part // self._total
        if share > self._shown:
            self._shown = share
            end = "\r" if self._terminal and share < part else "\n"
            typer.echo(f"{self._task}: {self._text(done)}{end}", err=True, nl=False)

    def _text(self, done: int) -> str:
        rate = done / max(time.perf_counter() - self._started, 1e-9)
        return f"{done}/{self._total} ({rate:.0f}/s)"

    def close(self) -> None:
        """Ends the line if the task stopped before its total."""
        if self._terminal and 0 < self._shown < 100:
            typer.echo("", err=True)


class ShareLine(ProgressLine):
    """The same for a task that knows only which share of it is done."""

    def __init__(self, task: str) -> None:
        super().__init__(task, 100)

    def tell(self, share: float) -> None:
        """Shows that this share, 0 to 1, is done."""
        self(round(100 * share))

    def _text(self, done: int) -> str:
        left_s = (time.perf_counter() - self._started) * (100 / done - 1)
        return f"{done:3} % ({left_s:.0f} s left)"


def _plain(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
