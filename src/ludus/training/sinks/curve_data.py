"""Reads a run's tables for drawing: whatever is missing, short or cut off in the middle of a line is left out."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.json_lines import read_json_lines

Numbers: TypeAlias = NDArray[np.float64]

_OUTCOMES = {"won": 1.0, "win": 1.0, "drawn": 0.0, "draw": 0.0, "lost": -1.0, "loss": -1.0}


class Table:
    """The columns of a CSV file as text; empty if the file is not there or has no rows."""

    def __init__(self, columns: Mapping[str, list[str]]) -> None:
        self._columns = columns

    @property
    def names(self) -> tuple[str, ...]:
        """Columns in the file's order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))

    def texts(self, name: str) -> NDArray[np.str_]:
        """`(rows,)` of a column; empty texts if there is no such column."""
        return np.array(self._columns.get(name, [""] * len(self)), dtype=np.str_)

    def numbers(self, name: str) -> Numbers:
        """`(rows,)` of a column; NaN where there is no number."""
        return np.array([_number(text) for text in self._columns.get(name, [""] * len(self))], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class CurveData:
    """Everything that is drawn.

    Attributes:
        metrics: `metrics.jsonl`: for each name `(iterations,)`, NaN where there is none.
        episodes: `monitor.csv`.
        terms: `reward_breakdown.csv`.
        evaluations: `evaluation_results.csv`.
        opponents: `opponents.csv`.
    """

    metrics: Mapping[str, Numbers]
    episodes: Table
    terms: Table
    evaluations: Table
    opponents: Table


def read_run(folder: Path) -> CurveData:
    """Reads the files of a run folder."""
    return CurveData(
        metrics=read_metrics(folder / "metrics.jsonl"),
        episodes=read_table(folder / "monitor.csv"),
        terms=read_table(folder / "reward_breakdown.csv"),
        evaluations=read_table(folder / "evaluation_results.csv"),
        opponents=read_table(folder / "opponents.csv"),
    )


def read_table(path: Path) -> Table:
    """Reads a CSV file with a header; rows of another width than the header are left out."""
    if not path.is_file():
        return Table({})
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        rows = [row for row in reader if len(row) == len(header)]
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    return Table({name: list(column) for name, column in zip(header, columns, strict=True)})


def read_metrics(path: Path) -> dict[str, Numbers]:
    """Reads a file of JSON objects, one a line; lines that are none are left out."""
    records = read_json_lines(path)
    names = dict.fromkeys(name for record in records for name in record)
    return {name: np.array([_number(record.get(name)) for record in records], dtype=np.float64) for name in names}


def _number(value: object) -> float:
    if isinstance(value, str) and value in _OUTCOMES:
        return _OUTCOMES[value]
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        return math.nan
