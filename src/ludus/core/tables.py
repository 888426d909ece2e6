"""Tables of a run folder, the one way to read them, at once or as they grow: what is missing or cut off is left out.

So is what a stranger's file has too much of: rows, columns, and the ends of long texts. 6,000 lines of JSON with ten
new names each, 0.9 MB, are a table of 60,000 columns that takes over 5 GiB. An array of texts gives each row the room
of the longest: 30,000 rows and one text of 130,000 letters take 14.5 GiB.
"""

import csv
import itertools
import json
import logging
import math
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.files import MAX_TABLE_BYTES, open_regular, read_at, read_if_possible
from ludus.core.text import row_label

logger = logging.getLogger(__name__)

_MOST_COLUMNS = 2000
_MOST_ROWS = 20_000_000  # of a table that is read at once
_MOST_RECORDS = 5_000_000  # of JSON lines, likewise; an empty one takes a place in every column
_MOST_GROWN_ROWS = 1_000_000  # of a growing table, of which each takes more memory than its bytes
_MOST_GROWN_BYTES = 128 << 20  # what a larger file gains is left out: `ludus report` reads it
_CHUNK_BYTES = 8 << 20  # per read
_KNOWN_BYTES = 96  # before the last position, to recognise the file
_MOST_TEXT_BYTES = 256 << 20  # of an array of texts
_LEAST_LETTERS = 64  # of its texts, which all may have
_LETTER_BYTES = 4
Numbers: TypeAlias = NDArray[np.float64]
Texts: TypeAlias = NDArray[np.str_]
Signature: TypeAlias = tuple[int, int, int]


class Table:
    """Columns of one file, as numbers or as texts; empty if the file is missing or has no rows."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], file: str = "") -> None:
        """Take columns of equal length, text or JSON values by name, and the name of their file."""
        self.file = file
        self._columns = columns
        self._numbers: dict[str, Numbers] = {}
        self._texts: dict[str, Texts] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the file's order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def numbers(self, name: str) -> Numbers:
        """Return `(rows,)` of a column; NaN where there is no number, or no such column."""
        if name not in self._numbers:
            values = self._columns.get(name, [None] * len(self))
            self._numbers[name] = np.array([_number(value) for value in values], dtype=np.float64)
        return self._numbers[name]

    def texts(self, name: str) -> Texts:
        """Return `(rows,)` of a column; empty texts if there is no such column."""
        if name not in self._texts:
            self._texts[name] = _as_texts(self._columns.get(name, [None] * len(self)))
        return self._texts[name]

    def last(self, name: str) -> float:
        """Return the last number of a column; NaN if there is none."""
        found = self.numbers(name)
        found = found[np.isfinite(found)]
        return float(found[-1]) if len(found) else math.nan

    def rows(self, chosen: NDArray[np.bool_]) -> "Table":
        """Return the rows selected by the mask `chosen` `(rows,)`; the table itself if all are."""
        if chosen.all():
            return self
        places = np.flatnonzero(chosen).tolist()
        return Table({name: [values[place] for place in places] for name, values in self._columns.items()}, self.file)


def _as_texts(values: Sequence[Any]) -> Texts:
    """Return `(rows,)` of values as texts, cut to what their number leaves room for."""
    longest = max(_LEAST_LETTERS, _MOST_TEXT_BYTES // (_LETTER_BYTES * max(len(values), 1)))
    return np.array(["" if value is None else str(value)[:longest] for value in values], dtype=np.str_)


def signature_of(path: Path) -> Signature | None:
    """Return what changes whenever a file does; None if there is no regular file, links included."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


class TailedFile:
    """Yields the lines that a file gained; the last one counts once it is complete. Links are not followed.

    A run is cut back to a checkpoint when it resumes, so a file may shrink, or shrink and grow past its old size
    between two looks. The bytes before the last position are compared with those that were read: if they differ,
    reading starts over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._known = b""  # bytes before the offset
        self._seen: Signature | None = None

    def read(self) -> tuple[bool, list[str]]:
        """Return whether reading started over, so that earlier lines no longer count, and the new lines."""
        seen = signature_of(self._path)
        if seen == self._seen:
            return False, []
        self._seen = seen
        try:
            descriptor = open_regular(self._path, follow_links=False)
        except OSError:
            return self._start_over(), []
        try:
            restarted = not self._is_same(descriptor) and self._start_over()
            return restarted, self._new_lines(descriptor)
        except OSError:
            return self._start_over(), []
        finally:
            os.close(descriptor)

    def _start_over(self) -> bool:
        had_lines = self._offset > 0
        self._offset, self._known = 0, b""
        return had_lines

    def _is_same(self, descriptor: int) -> bool:
        return read_at(descriptor, len(self._known), self._offset - len(self._known)) == self._known

    def _new_lines(self, descriptor: int) -> list[str]:
        lines: list[str] = []
        rest = b""
        if os.fstat(descriptor).st_size > _MOST_GROWN_BYTES:
            return lines
        while len(lines) <= _MOST_GROWN_ROWS and (chunk := read_at(descriptor, _CHUNK_BYTES, self._offset + len(rest))):
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                self._offset += len(whole) + 1
                self._known = (self._known + whole + end)[-_KNOWN_BYTES:]
                lines += whole.decode("utf-8", errors="replace").split("\n")
        return lines


class GrowingTable(Table):
    """A table that follows a CSV file or one of JSON lines (`.jsonl`); numbers are converted once.

    A CSV file has a header, before which there may be a line of `#`, as in `monitor.csv`. Rows of another width and
    lines that are no JSON object are left out.
    """

    def __init__(self, path: Path, most_rows: int = _MOST_GROWN_ROWS) -> None:
        super().__init__({}, path.name)
        self._path, self._most_rows = path, most_rows
        self._grown: dict[str, list[Any]] = {}
        self._columns = self._grown
        self._width = 0  # columns of the file
        self._tail = TailedFile(path)

    def refresh(self) -> bool:
        """Read what is new; return whether anything changed."""
        restarted, lines = self._tail.read()
        if restarted:
            for cache in (self._grown, self._numbers, self._texts):
                cache.clear()
        if lines:
            self.append(lines)
        return restarted or bool(lines)

    def append(self, lines: Sequence[str]) -> None:
        """Add complete lines of the file."""
        (self._add_records if self._path.suffix == ".jsonl" else self._add_rows)(lines)

    def _add_rows(self, lines: Sequence[str]) -> None:
        lines = [line for line in lines if not line.startswith("#")]
        try:
            rows = list(itertools.islice(csv.reader(lines), self._most_rows + 1 - len(self)))
        except csv.Error as error:  # a field beyond the reader's limit: no file of ours
            logger.warning("[WARN] %s cannot be read: %s; it is left out", self._path, error)
            return
        if not self._grown and rows:
            header = rows.pop(0)
            self._width = len(header)
            self._grown.update((name, []) for name in header[:_MOST_COLUMNS])
        valid = [row for row in rows if len(row) == self._width][: self._most_rows - len(self)]
        for column, values in zip(self._grown.values(), zip(*valid, strict=True), strict=False):
            column.extend(values)

    def _add_records(self, lines: Sequence[str]) -> None:
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            count = len(self)
            if not isinstance(record, dict) or count >= self._most_rows:
                continue
            for name in record:
                if name not in self._grown and len(self._grown) < _MOST_COLUMNS:
                    self._grown[name] = [None] * count
            for name, column in self._grown.items():
                column.append(record.get(name))

    def numbers(self, name: str) -> Numbers:
        """Return `(rows,)` of a column; only new rows are converted."""
        known = self._numbers.get(name, np.zeros(0))
        if name not in self._grown:
            return np.full(len(self), np.nan)
        if len(known) < len(self):
            new = Table({name: self._grown[name][len(known) :]}).numbers(name)
            known = self._numbers[name] = np.concatenate([known, new])
        return known

    def texts(self, name: str) -> Texts:
        """Return `(rows,)` of a column; only new rows are converted."""
        known = self._texts.get(name, np.zeros(0, np.str_))
        if name not in self._grown:
            return np.full(len(self), "", np.str_)
        if len(known) < len(self):
            new = _as_texts(self._grown[name][len(known) :])
            room = max(known.dtype.itemsize, new.dtype.itemsize) * len(self)
            fits = room <= _MOST_TEXT_BYTES  # else all are cut anew: their number decides how long they may be
            known = self._texts[name] = np.concatenate([known, new]) if fits else _as_texts(self._grown[name])
        return known


def read_table(path: Path) -> Table:
    """Read a whole file as a `GrowingTable` does; links are followed, and a file that is unreadable is warned of."""
    table = GrowingTable(path, _MOST_RECORDS if path.suffix == ".jsonl" else _MOST_ROWS)
    whole = read_if_possible(path, limit=MAX_TABLE_BYTES) or b""
    table.append(whole[: whole.rfind(b"\n") + 1].decode("utf-8", errors="replace").split("\n")[:-1])
    return table


def phase_starts(table: Table) -> list[tuple[int, str]]:
    """Return where each phase of the curriculum began: env steps and name; nothing where there are no phases."""
    phases, steps = table.texts("stage"), table.numbers("env_steps")
    changes = np.flatnonzero(np.append(True, phases[1:] != phases[:-1])) if len(phases) else ()
    return [(int(steps[row]), str(phases[row])) for row in changes if phases[row] and steps[row] >= 0]


def row_labels(table: Table) -> Texts:
    """Return `(rows,)` of what each row of an evaluation is of; see `row_label`."""
    columns = {name: table.texts(name).tolist() for name in ("trial", "opponent", "side", "mode")}
    labels = [row_label(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]
    return np.array(labels, dtype=np.str_)


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):  # not a number, or an integer of hundreds of digits
        return math.nan
