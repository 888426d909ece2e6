"""Reads a run folder, the one way for everything that reports on runs: whatever is missing or cut off is left out.

A run that is still going is read as it stands: a line of which only a part is written does not count yet.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.config import read_document
from ludus.core.errors import ConfigError
from ludus.core.json_lines import read_json_lines

Numbers: TypeAlias = NDArray[np.float64]
Texts: TypeAlias = NDArray[np.str_]

METRICS = "metrics.jsonl"
EPISODES = "monitor.csv"
BEHAVIOUR = "behavior_metrics.csv"
REWARDS = "reward_breakdown.csv"
EVALUATIONS = "evaluation_results.csv"
OPPONENTS = "opponents.csv"
STRATEGY = "strategy_analysis.csv"
RESOURCES = "resources.csv"  # times and memory; unlike all others, equal runs do not write equal bytes
CONFIG = "config.yaml"
RUN = "run.json"


class Table:
    """The columns of one file, read as numbers or as texts; empty if the file is not there or has no rows."""

    def __init__(self, columns: Mapping[str, Sequence[Any]], file: str = "") -> None:
        """Takes columns of equal length.

        Args:
            columns: Values by name, as text or as what JSON holds.
            file: Name of the file that they come from.
        """
        self.file = file
        self._columns = columns
        self._numbers: dict[str, Numbers] = {}
        self._texts: dict[str, Texts] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Columns in the file's order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def numbers(self, name: str) -> Numbers:
        """Returns `(rows,)` of a column; NaN where there is no number, or no such column."""
        if name not in self._numbers:
            values = self._columns.get(name)
            numbers = [math.nan] * len(self) if values is None else [_number(value) for value in values]
            self._numbers[name] = np.array(numbers, dtype=np.float64)
        return self._numbers[name]

    def texts(self, name: str) -> Texts:
        """Returns `(rows,)` of a column; empty texts if there is no such column."""
        if name not in self._texts:
            values = self._columns.get(name)
            texts = [""] * len(self) if values is None else [_text(value) for value in values]
            self._texts[name] = np.array(texts, dtype=np.str_)
        return self._texts[name]

    def last(self, name: str) -> float:
        """Returns the last number of a column; NaN if there is none."""
        found = self.numbers(name)
        found = found[np.isfinite(found)]
        return float(found[-1]) if len(found) else math.nan

    def rows(self, chosen: NDArray[np.bool_]) -> "Table":
        """Returns the rows in which `chosen`, `(rows,)`, is set; the table itself if it is set in all."""
        if chosen.all():
            return self
        places = np.flatnonzero(chosen).tolist()
        return Table({name: [values[place] for place in places] for name, values in self._columns.items()}, self.file)


_NO_TABLE = Table({})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything that the files of a run folder say.

    Attributes:
        folder: Where they are.
        config: `config.yaml` as plain data.
        run: `run.json` likewise.
        metrics: `metrics.jsonl`, a row an iteration: losses, entropy, KL and so on.
        episodes: `monitor.csv`, a row an episode: `reward`, `length`, `outcome` (won, drawn, lost), `opponent`.
        behaviour: `behavior_metrics.csv`, a row an iteration in which episodes ended.
        rewards: `reward_breakdown.csv`, a row an iteration: `total`, then the terms.
        evaluations: `evaluation_results.csv`, a row an opponent or trial and evaluation.
        opponents: `opponents.csv`, a row an iteration and opponent: `learner`, `opponent`, `kind`, `wins`...
        strategy: `strategy_analysis.csv`, a row every few iterations.
        resources: `resources.csv`, a row every now and then: memory, and where the time went since the row before.
    """

    folder: Path
    config: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    run: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    metrics: Table = _NO_TABLE
    episodes: Table = _NO_TABLE
    behaviour: Table = _NO_TABLE
    rewards: Table = _NO_TABLE
    evaluations: Table = _NO_TABLE
    opponents: Table = _NO_TABLE
    strategy: Table = _NO_TABLE
    resources: Table = _NO_TABLE

    def setting(self, path: str, default: Any = None) -> Any:  # noqa: ANN401 - as the setting
        """Returns a setting by its path, such as `ppo.entropy`; the default if the run has none."""
        found: Any = self.config
        for part in path.split("."):
            if not isinstance(found, Mapping) or part not in found:
                return default
            found = found[part]
        return found


def read_run(folder: Path) -> RunData:
    """Reads a run folder.

    Raises:
        ConfigError: It holds neither settings nor metrics, so it is no run folder.
    """
    if not (folder / CONFIG).is_file() and not (folder / METRICS).is_file():
        raise ConfigError(
            f"{folder} is no run folder: it has neither {CONFIG} nor {METRICS}; pass the folder that `ludus train` "
            "named, such as runs/latest"
        )
    return RunData(
        folder,
        config=read_settings(folder / CONFIG),
        run=_read_json(folder / RUN),
        metrics=read_lines(folder / METRICS),
        episodes=read_table(folder / EPISODES),
        behaviour=read_table(folder / BEHAVIOUR),
        rewards=read_table(folder / REWARDS),
        evaluations=read_table(folder / EVALUATIONS),
        opponents=read_table(folder / OPPONENTS),
        strategy=read_table(folder / STRATEGY),
        resources=read_table(folder / RESOURCES),
    )


def read_table(path: Path) -> Table:
    """Reads a CSV file with a header; rows of another width than the header, and a last one cut off, are left out."""
    if not path.is_file():
        return Table({}, path.name)
    whole = path.read_bytes()
    text = whole[: whole.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    reader = csv.reader(text.splitlines())
    header = next(reader, [])
    rows = [row for row in reader if len(row) == len(header)]
    columns = zip(*rows, strict=True) if rows else (() for _ in header)
    return Table(dict(zip(header, columns, strict=True)), path.name)


def read_lines(path: Path) -> Table:
    """Reads a file of JSON objects, one a line; lines that are none are left out."""
    records = read_json_lines(path)
    names = dict.fromkeys(name for record in records for name in record)
    return Table({name: [record.get(name) for record in records] for name in names}, path.name)


def read_settings(path: Path) -> dict[str, Any]:
    """Reads a YAML file as plain data; empty if it is not there or damaged."""
    if not path.is_file():
        return {}
    document = read_document(path)
    plain = document.root.plain() if document.readable else {}
    return plain if isinstance(plain, dict) else {}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _number(value: object) -> float:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and value:
        try:
            return float(value)
        except ValueError:
            return math.nan
    return math.nan


def _text(value: object) -> str:
    return "" if value is None else str(value)
