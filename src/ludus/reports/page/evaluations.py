"""Evaluations over time: every number of every opponent or trial, with intervals over matches and seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ludus.core.intervals import wilson_interval
from ludus.core.labels import row_label
from ludus.reports import run_data as files
from ludus.reports.page.runs import Group, Run
from ludus.reports.run_data import Numbers, Table

WIN_RATE = "win_rate"
_KEYS = ("iteration", "env_steps", "opponent", "trial", "mode", "side", "matches", "wins", "draws", "losses", "score")
_BOUNDS = ("_low", "_high")
_MOST_EVALUATIONS = 120  # of more, evenly spread ones are shown, the last one always
_MOST_LABELS = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One number against one opponent or in one trial, evaluation after evaluation.

    Attributes:
        env_steps: `(evaluations,)`.
        value: `(evaluations,)`, pooled over the seeds' matches where it is a win rate, else their mean.
        low: `(evaluations,)` of the 95 % interval, or the lowest seed; NaN where nothing is known of it.
        high: Likewise.
    """

    env_steps: Numbers
    value: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The evaluations of one group.

    Attributes:
        kind: `opponent` or `trial`.
        labels: Trials, or opponents with their mode and side where there are several.
        opponents: The opponent or trial of each label.
        numbers: What was measured, the one that matters most first.
        lines: By number and label.
        score: Mean of the seeds' scores, evaluation after evaluation.
    """

    kind: str
    labels: tuple[str, ...]
    opponents: dict[str, str]
    numbers: tuple[str, ...]
    lines: dict[str, dict[str, Line]]
    score: Line


def read_evaluations(group: Group) -> Evaluations | None:
    """Returns the evaluations of a group's seeds; None if there were none."""
    tables = [table for run in group.runs if len(table := _placed(run.tables[files.EVALUATIONS]))]
    if not tables:
        return None
    kind = "trial" if any("trial" in table for table in tables) else "opponent"
    named = {label: name for table in tables for label, name in zip(_labels(table), table.texts(kind), strict=True)}
    labels = tuple(named)[:_MOST_LABELS]
    numbers = _numbers(tables, group.runs[0])
    chosen = {label: [table.rows(np.array(_labels(table)) == label) for table in tables] for label in labels}
    lines = {name: {label: _line(chosen[label], name) for label in labels} for name in numbers}
    score = _line([_first_of_each(table) for table in tables], "score")
    return Evaluations(kind, labels, {label: str(named[label]) for label in labels}, numbers, lines, score)


def _labels(table: Table) -> list[str]:
    """Returns what each row is of."""
    columns = {name: table.texts(name).tolist() for name in ("trial", "opponent", "side", "mode")}
    return [row_label(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _numbers(tables: Sequence[Table], run: Run) -> tuple[str, ...]:
    """Returns the numbers that any row has: the win rate first, else the one that the best agent is kept by."""
    names = dict.fromkeys(name for table in tables for name in table.names)
    found = [
        name
        for name in names
        if name not in _KEYS
        and not name.endswith(_BOUNDS)
        and any(np.isfinite(table.numbers(name)).any() for table in tables)
    ]
    settings = run.config.get("evaluation")
    judged_by = str(settings.get("score", "")) if isinstance(settings, dict) else ""
    preferred = [name for name in found if name == WIN_RATE] or [name for name in found if name in judged_by]
    return (*preferred, *(name for name in found if name not in preferred))


def _placed(table: Table) -> Table:
    """Returns the rows that say when they were."""
    return table.rows(np.isfinite(table.numbers("env_steps")))


def _first_of_each(table: Table) -> Table:
    """Returns the first row of each evaluation: all of its rows have the same score."""
    steps = table.numbers("env_steps")
    return table.rows(np.append(True, steps[1:] != steps[:-1])) if len(steps) else table


def _line(tables: Sequence[Table], name: str) -> Line:
    """Pools the seeds' nth evaluations for every n."""
    count = max(len(table) for table in tables)
    shown = np.unique(np.linspace(0, count - 1, min(count, _MOST_EVALUATIONS)).round().astype(int)).tolist()
    points = [_point([table for table in tables if len(table) > place], place, name) for place in shown]
    columns = np.array(points, dtype=np.float64).reshape(-1, 4).T
    return Line(*columns)


def _point(tables: Sequence[Table], place: int, name: str) -> tuple[float, float, float, float]:
    steps = float(np.mean([table.numbers("env_steps")[place] for table in tables]))
    if name == WIN_RATE and all("wins" in table and "matches" in table for table in tables):
        wins, matches = (sum(table.numbers(column)[place] for table in tables) for column in ("wins", "matches"))
        if math.isfinite(wins) and math.isfinite(matches) and 0 <= wins <= matches and matches > 0:
            return (steps, *wilson_interval(int(wins), int(matches)))
    values = [value for table in tables if math.isfinite(value := float(table.numbers(name)[place]))]
    if not values:
        return steps, math.nan, math.nan, math.nan
    if len(values) > 1:
        return steps, float(np.mean(values)), min(values), max(values)
    low, high = (float(tables[0].numbers(f"{name}{bound}")[place]) for bound in _BOUNDS)
    return steps, values[0], low, high
