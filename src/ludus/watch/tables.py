"""Read files that a run appends to: only what is new since the last look, and never through a link.

A run is cut back to a checkpoint when it resumes, so a file may shrink, or shrink and grow past its old size between
two looks. The bytes before the last position are compared with those that were read: if they differ, reading starts
over.
"""

import csv
import itertools
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ludus.core.files import open_regular, read_at
from ludus.core.tables import MOST_COLUMNS, MOST_TEXT_BYTES, Numbers, Table, Texts, as_texts

MOST_BYTES = 128 << 20  # of one table; what a larger one gains is left out: `ludus report` reads it
_CHUNK_BYTES = 8 << 20  # per read
_MOST_ROWS = 1_000_000  # of one table, of which each takes more memory than its bytes
_KNOWN_BYTES = 96  # before the last position, to recognise the file
Signature: TypeAlias = tuple[int, int, int]


def signature_of(path: Path) -> Signature | None:
    """Return what changes whenever a file does; None if there is no regular file, links included."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def read_small(path: Path, limit: int) -> bytes | None:
    """Return the content of a file; None if it is missing, a link, too large or unreadable."""
    try:
        descriptor = open_regular(path, follow_links=False)
    except (OSError, ValueError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            content = file.read(limit + 1)
        except OSError:
            return None
    return content if len(content) <= limit else None


def read_end(path: Path, size: int) -> list[str]:
    """Return the complete lines in the last bytes of a file; nothing if there is no such file."""
    try:
        descriptor = open_regular(path, follow_links=False)
    except OSError:
        return []
    try:
        start = max(os.fstat(descriptor).st_size - size, 0)
        text = read_at(descriptor, size, start)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    if start:
        text = text[text.find(b"\n") + 1 :]
    return text[: text.rfind(b"\n") + 1].decode("utf-8", errors="replace").splitlines()


class TailedFile:
    """Yields the lines that a file gained; the last one counts once it is complete."""

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
        if os.fstat(descriptor).st_size > MOST_BYTES:
            return lines
        while len(lines) <= _MOST_ROWS and (chunk := read_at(descriptor, _CHUNK_BYTES, self._offset + len(rest))):
            whole, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                self._offset += len(whole) + 1
                self._known = (self._known + whole + end)[-_KNOWN_BYTES:]
                lines += whole.decode("utf-8", errors="replace").split("\n")
        return lines


class GrowingTable(Table):
    """A table that follows a CSV file or a file of JSON lines; numbers are converted once."""

    def __init__(self, path: Path) -> None:
        super().__init__({}, path.name)
        self._grown: dict[str, list[Any]] = {}
        self._columns = self._grown
        self._width = 0  # columns of the file
        self._is_csv = path.suffix == ".csv"
        self._tail = TailedFile(path)

    def refresh(self) -> bool:
        """Read what is new; return whether anything changed."""
        restarted, lines = self._tail.read()
        if restarted:
            for cache in (self._grown, self._numbers, self._texts):
                cache.clear()
        if lines:
            (self._add_rows if self._is_csv else self._add_records)(lines)
        return restarted or bool(lines)

    def _add_rows(self, lines: Sequence[str]) -> None:
        lines = [line for line in lines if not line.startswith("#")]
        try:
            rows = list(itertools.islice(csv.reader(lines), _MOST_ROWS))
        except csv.Error:  # a field beyond the reader's limit: no file of ours
            return
        if not self._grown and rows:
            header = rows.pop(0)
            self._width = len(header)
            self._grown.update((name, []) for name in header[:MOST_COLUMNS])
        valid = [row for row in rows if len(row) == self._width][: _MOST_ROWS - len(self)]
        for column, values in zip(self._grown.values(), zip(*valid, strict=True), strict=False):
            column.extend(values)

    def _add_records(self, lines: Sequence[str]) -> None:
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            count = len(self)
            if not isinstance(record, dict) or count >= _MOST_ROWS:
                continue
            for name in record:
                if name not in self._grown and len(self._grown) < MOST_COLUMNS:
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
            new = as_texts(self._grown[name][len(known) :])
            room = max(known.dtype.itemsize, new.dtype.itemsize) * len(self)
            fits = room <= MOST_TEXT_BYTES  # else all are cut anew: their number decides how long they may be
            known = self._texts[name] = np.concatenate([known, new]) if fits else as_texts(self._grown[name])
        return known
