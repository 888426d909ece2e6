"""Reads raw data of docs/data and writes rows as a table in Markdown."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from ludus.core.intervals import mean_interval

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DATA = DOCS / "data"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table."""
    lines = [_line(header), "|" + "---|" * len(header), *map(_line, rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def read_json(name: str) -> Any:  # noqa: ANN401 - as the file
    """Returns the content of a file of docs/data."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def read_all(pattern: str) -> list[Any]:
    """Returns the content of all files of docs/data of a pattern; that of a CPU comes first."""
    names = sorted((file.name for file in DATA.glob(pattern)), key=lambda name: ("_cpu." not in name, name))
    return [read_json(name) for name in names]


def read_csv(name: str) -> list[dict[str, str]]:
    """Returns the rows of a file of docs/data."""
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def percent(share: float) -> str:
    """Returns a share in whole per cent."""
    return f"{rounded(100.0 * share, 0)}%"


def rounded(value: float, digits: int) -> Decimal:
    """Returns a number with so many digits after the point, halves rounded up as by hand: 0.725 is 73 %."""
    return Decimal(repr(round(value, 9))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def over_seeds(values: Sequence[float], show: Callable[[float], str], *, most: float = math.inf) -> str:
    """Returns the mean over seeds with Student's 95 % interval; a number from 0 to `most` never leaves that range."""
    mean, low, high = mean_interval(values)
    if len(values) < 2:
        return show(mean)
    low = max(low, 0.0) if min(values) >= 0.0 else low
    return f"{show(mean)} ({show(low)} - {show(min(high, most))})"
