"""Tables of a run folder, the one way to read them: whatever is missing or cut off is left out.

So is what a stranger's file has too much of: rows, columns, and the ends of long texts. 6,000 lines of JSON with ten
new names each, 0.9 MB, are a table of 60,000 columns that takes over 5 GiB. An array of texts gives each row the room
of the longest: 30,000 rows and one text of 130,000 letters take 14.5 GiB.
"""

import csv
import itertools
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.files import MAX_TABLE_BYTES, read_if_possible, read_json_lines

logger = logging.getLogger(__name__)

MOST_COLUMNS = 2000
_MOST_ROWS = 20_000_000
MOST_TEXT_BYTES = 256 << 20  # of an array of texts
_LEAST_LETTERS = 64  # of its texts, which all may have
_LETTER_BYTES = 4
Numbers: TypeAlias = NDArray[np.float64]
Texts: TypeAlias = NDArray[np.str_]


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
            self._texts[name] = as_texts(self._columns.get(name, [None] * len(self)))
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


def as_texts(values: Sequence[Any]) -> Texts:
    """Return `(rows,)` of values as texts, cut to what their number leaves room for."""
    longest = max(_LEAST_LETTERS, MOST_TEXT_BYTES // (_LETTER_BYTES * max(len(values), 1)))
    return np.array(["" if value is None else str(value)[:longest] for value in values], dtype=np.str_)


def read_table(path: Path) -> Table:
    """Read a CSV file with a header, before which there may be a line of `#`, as in `monitor.csv`.

    Rows of another width, a truncated last one and an unreadable file are left out.
    """
    whole = read_if_possible(path, limit=MAX_TABLE_BYTES) or b""
    text = whole[: whole.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    lines = text.splitlines()
    reader = csv.reader(lines[1:] if text.startswith("#") else lines)
    try:
        header = next(reader, [])
        rows = [row for row in itertools.islice(reader, _MOST_ROWS) if len(row) == len(header)]
    except csv.Error as error:
        logger.warning("[WARN] %s cannot be read: %s; it is left out", path, error)
        return Table({}, path.name)
    columns = zip(*rows, strict=True) if rows else (() for _ in header)
    return Table(dict(zip(header[:MOST_COLUMNS], columns, strict=False)), path.name)


def read_lines(path: Path) -> Table:
    """Read a file of JSON objects, one per line; malformed lines are left out."""
    records = read_json_lines(path)
    names = list(dict.fromkeys(name for record in records for name in record))[:MOST_COLUMNS]
    return Table({name: [record.get(name) for record in records] for name in names}, path.name)


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):  # not a number, or an integer of hundreds of digits
        return math.nan
