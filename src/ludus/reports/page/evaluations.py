"""Evaluations, training matches and strategy analysis: win rates with intervals, payoffs, ratings and latents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ludus.core.intervals import Interval, wilson_interval
from ludus.core.tables import Numbers, Table, row_labels
from ludus.league.payoffs import SELF_KIND, Record
from ludus.league.ratings import FIRST_MODE, bradley_terry, rate_by_results
from ludus.reports.page.runs import Group, Run
from ludus.reports.run_data import is_inside, read_agent_results, read_json

WIN_RATE = "win_rate"
_KEYS = ("iteration", "env_steps", "opponent", "trial", "mode", "side", "matches", "wins", "draws", "losses", "score")
_BOUNDS = ("_low", "_high")
_MOST_EVALUATIONS = 120  # more are thinned evenly, keeping the last
_MOST_LABELS = 40
_MOST_OPPONENTS = 100  # of the table of payoffs: those that were met most
_MOST_MODES = 12
BEST = "best agent"
_MOST_PERIODS = 16
_FEWEST_MATCHES = 20  # a period with fewer is not rated
FILE = Path("analysis") / "analysis.json"
_MOST_POINTS = 900
Point = tuple[float, float, int]


class Line(NamedTuple):
    """One number against one opponent or in one scenario, over evaluations."""

    env_steps: Numbers  # `(evaluations,)`
    value: Numbers  # `(evaluations,)`, pooled over the seeds' matches for a win rate, else their mean
    low: Numbers  # `(evaluations,)` lower bound of the 95 % interval, or the lowest seed; NaN where unknown
    high: Numbers  # upper bound, likewise


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The evaluations of one group."""

    kind: str  # `opponent` or `trial`; empty where there was neither
    labels: tuple[str, ...]  # scenarios, or opponents with their mode and side where there are several
    opponents: dict[str, str]  # the opponent or scenario of each label
    numbers: tuple[str, ...]  # names of the numbers, the most important first
    lines: dict[str, dict[str, Line]]  # by number and label
    score: Line  # mean of the seeds' scores


def read_evaluations(group: Group) -> Evaluations | None:
    """Return the evaluations of a group's seeds; None if there were none."""
    placed = [run.evaluations.rows(np.isfinite(run.evaluations.numbers("env_steps"))) for run in group.runs]
    tables = [table for table in placed if len(table)]
    if not tables:
        return None
    kind = "trial" if any("trial" in table for table in tables) else "opponent"
    labelled = [(table, row_labels(table)) for table in tables]
    named = {
        label: name for table, found in labelled for label, name in zip(found.tolist(), table.texts(kind), strict=True)
    }
    labels = tuple(named)[:_MOST_LABELS]
    numbers = _numbers(tables, group.runs[0])
    chosen = {label: [table.rows(found == label) for table, found in labelled] for label in labels}
    lines = {name: {label: _line(chosen[label], name) for label in labels} for name in numbers}
    score = _line([_first_of_each(table) for table in tables], "score")
    kind = kind if any(labels) else ""
    return Evaluations(kind, labels, {label: str(named[label]) for label in labels}, numbers, lines, score)


def _numbers(tables: Sequence[Table], run: Run) -> tuple[str, ...]:
    """Return the numbers of all rows: the win rate first, else the one that selects the best agent."""
    names = dict.fromkeys(name for table in tables for name in table.names)
    named = [name for name in names if name not in _KEYS and not name.endswith(_BOUNDS)]
    found = [name for name in named if any(np.isfinite(table.numbers(name)).any() for table in tables)]
    judged_by = str(run.setting("evaluation.score", ""))
    preferred = [name for name in found if name == WIN_RATE] or [name for name in found if name in judged_by]
    return (*preferred, *(name for name in found if name not in preferred))


def _first_of_each(table: Table) -> Table:
    """Return the first row of each evaluation: all of its rows have the same score."""
    steps = table.numbers("env_steps")
    return table.rows(np.append(True, steps[1:] != steps[:-1])) if len(steps) else table


def _line(tables: Sequence[Table], name: str) -> Line:
    """Pool the seeds' nth evaluations for every n."""
    count = max(len(table) for table in tables)
    shown = np.unique(np.linspace(0, count - 1, min(count, _MOST_EVALUATIONS)).round().astype(int)).tolist()
    points = [_point([table for table in tables if len(table) > place], place, name) for place in shown]
    return Line(*np.array(points, dtype=np.float64).reshape(-1, 4).T)


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


@dataclass(frozen=True, slots=True)
class Payoffs:
    """Results of the learner by period of training.

    A period is an equal share of training. A snapshot counts as the learner of the period in which it was stored. The
    ratings of the agent are from the evaluation of the best agent only: its own under `BEST`, then those of its
    opponents; there are none where it was not evaluated in this mode.
    """

    mode: str  # of the matches, such as `1v1`; empty where the runs have only one
    ends: Numbers  # `(periods,)` env steps at the end of each period
    opponents: tuple[str, ...]  # rows of the tables: bots, then snapshots by period
    score: Numbers  # `(opponents, periods)` share of points, draws as half; NaN where there was no match
    matches: Numbers  # `(opponents, periods)`
    learner: tuple[Interval | None, ...]  # Bradley-Terry rating by period, None where it played too little
    rated: dict[str, Interval]  # rating of every bot
    agent: dict[str, Interval]


def read_payoffs(group: Group) -> list[Payoffs]:
    """Return the matches of all seeds of a group, one entry per mode; nothing if there were none."""
    tables = [_valid(run.opponents) for run in group.runs]
    modes = list(dict.fromkeys(mode for table in tables for mode in _modes(table)))
    results = [read_agent_results(run.folder, run.evaluations) for run in group.runs]
    found = []
    for mode in modes[:_MOST_MODES]:
        chosen = [table.rows(np.array([each == mode for each in _modes(table)], np.bool_)) for table in tables]
        name = mode if len(modes) > 1 else ""
        agent = _rate_agent([each.records[mode] for each in results if each is not None and mode in each.records])
        found.append(_payoffs_of([table for table in chosen if len(table)], name, agent))
    return found


def _modes(table: Table) -> list[str]:
    """Return the mode of every row; tables without modes are 1v1."""
    return [mode or FIRST_MODE for mode in table.texts("mode").tolist()]


def _rate_agent(results: Sequence[Mapping[str, Record]]) -> dict[str, Interval]:
    """Rate the best agents of all seeds as one player by their evaluations."""
    pooled: dict[str, Record] = {}
    for opponent, record in (each for records in results for each in records.items()):
        pooled[opponent] = pooled.get(opponent, Record()).plus(record)
    return rate_by_results(BEST, {name: record.points for name, record in pooled.items()}) if pooled else {}


def _payoffs_of(tables: Sequence[Table], mode: str, agent: dict[str, Interval]) -> Payoffs:
    last = max(float(table.numbers("env_steps").max()) for table in tables)
    played = sum(float(table.numbers(name).sum()) for table in tables for name in ("wins", "draws", "losses"))
    times = max(len(np.unique(table.numbers("env_steps"))) for table in tables)
    periods = max(1, min(_MOST_PERIODS, times, int(played / (2 * _FEWEST_MATCHES))))
    ends = np.linspace(0.0, last, periods + 1)[1:]
    counts: dict[tuple[str, int], Numbers] = {}
    for table in tables:
        for opponent, period, record in _entries(table, ends):
            counts[opponent, period] = counts.get((opponent, period), np.zeros(3)) + record
    met: dict[str, float] = {}
    for (name, _), record in counts.items():
        if not name.startswith("\0"):
            met[name] = met.get(name, 0.0) + float(record.sum())
    most = set(sorted(met, key=lambda name: -met[name])[:_MOST_OPPONENTS])
    bots = [name for name in met if name in most]
    selves = sorted({name for name, _ in counts if name.startswith("\0")})
    rows = bots + selves
    record = np.zeros((len(rows), periods, 3))
    places = {name: place for place, name in enumerate(rows)}
    for (name, period), wins_draws_losses in counts.items():
        if name in places:
            record[places[name], period] += wins_draws_losses
    matches = record.sum(2)
    points = record[..., 0] + 0.5 * record[..., 1]
    score = np.where(matches > 0, points / np.maximum(matches, 1.0), np.nan)
    learner, rated = _rate(bots, selves, points, matches)
    names = (*bots, *(f"self at {float(ends[int(name[1:])]):,.0f}" for name in selves))
    return Payoffs(mode, ends, names, score, matches, learner, rated, agent)


def _valid(table: Table) -> Table:
    columns = [table.numbers(name) for name in ("env_steps", "wins", "draws", "losses")]
    return table.rows(np.all([np.isfinite(column) & (column >= 0.0) for column in columns], axis=0))


def _entries(table: Table, ends: Numbers) -> Sequence[tuple[str, int, Numbers]]:
    """Return opponent, period and result of every row; a snapshot is named by a NUL and its period."""
    steps, learners = table.numbers("env_steps"), table.texts("learner").tolist()
    opponents, kinds = table.texts("opponent").tolist(), table.texts("kind").tolist()
    places = np.minimum(np.searchsorted(ends, steps), len(ends) - 1).tolist()
    stored = dict(zip(learners, places, strict=True))  # a snapshot is stored after its last row as the learner
    results = np.stack([table.numbers(name) for name in ("wins", "draws", "losses")], axis=1)
    return [
        (f"\0{stored.get(opponent, 0):02d}" if kind == SELF_KIND else opponent, place, result)
        for opponent, kind, place, result in zip(opponents, kinds, places, results, strict=True)
    ]


def _rate(
    bots: Sequence[str], selves: Sequence[str], points: Numbers, matches: Numbers
) -> tuple[tuple[Interval | None, ...], dict[str, Interval]]:
    """Fit ratings of the learner by period and of the bots; a snapshot is the learner of its period."""
    periods = points.shape[1]
    names = [*(f"\0{period:02d}" for period in range(periods)), *bots]
    places = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for row, name in enumerate((*bots, *selves)):
        for period in range(periods):
            if places[name] != period:  # matches against itself do not inform the rating
                table[period, places[name]] += points[row, period]
                table[places[name], period] += matches[row, period] - points[row, period]
    fitted = bradley_terry(names, table)
    played = table.sum(0) + table.sum(1)
    learner = tuple(fitted[names[period]] if played[period] >= _FEWEST_MATCHES else None for period in range(periods))
    return learner, {name: fitted[name] for name in bots}


@dataclass(frozen=True, slots=True)
class Latents:
    """The strategy analysis of one run."""

    run: str
    styles: tuple[str, ...]
    planes: dict[str, tuple[Point, ...]]  # by the name of the map: two coordinates and the index of the style
    times_s: tuple[float, ...]  # observed
    accuracy: tuple[tuple[float, float, float], ...]  # of the probe on all frames so far: estimate, low and high
    chance: float | None  # accuracy by chance


def read_latents(group: Group) -> Latents | None:
    """Return the analysis of the first run of a group that has a usable one; None if there is none."""
    for run in group.runs:
        document = read_json(run.folder / FILE) if is_inside(run.folder, FILE) else {}
        if document:
            try:
                return _latents(run.name, document)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # a foreign file
                continue
    return None


def _latents(run: str, document: dict[str, Any]) -> Latents:
    styles = tuple(str(style) for style in document["styles"])
    maps = document["maps"]
    found = {
        "PCA of frames": _points(maps["frames"], maps["frame_labels"], len(styles)),
        "t-SNE of frames": _points(maps.get("neighbours") or (), maps["frame_labels"], len(styles)),
        "PCA of whole matches": _points(maps["matches"], maps["labels"], len(styles)),
    }
    rows = document["probes"]["trained"]["so_far"]
    timed = zip(document["times_s"], rows, strict=False)
    pairs = [(float(time_s), _interval(row)) for time_s, row in timed if row.get("estimate") is not None]
    times_s, accuracy = tuple(time_s for time_s, _ in pairs), tuple(interval for _, interval in pairs)
    chance = float(document["chance"]) if isinstance(document.get("chance"), int | float) else None
    planes = {name: points for name, points in found.items() if points}
    return Latents(run, styles, planes, times_s, accuracy, chance)


def _interval(row: dict[str, Any]) -> tuple[float, float, float]:
    estimate = float(row["estimate"])
    low, high = (estimate if row.get(name) is None else float(row[name]) for name in ("low", "high"))
    return estimate, low, high


def _points(rows: Sequence[Sequence[float]], labels: Sequence[int], styles: int) -> tuple[Point, ...]:
    """Return finite points with a valid label, evenly thinned."""
    found = [
        (float(row[0]), float(row[1]), int(label))
        for row, label in zip(rows, labels, strict=False)
        if 0 <= int(label) < styles and math.isfinite(row[0]) and math.isfinite(row[1])
    ]
    every = max(1, -(-len(found) // _MOST_POINTS))
    return tuple(found[::every])
