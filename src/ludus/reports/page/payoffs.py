"""Training matches over time: ratings of the learner and its opponents, and how it fared against each of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ludus.core.intervals import Interval
from ludus.league.payoffs import SELF_KIND
from ludus.league.ratings import bradley_terry
from ludus.league.standings import FIRST_MODE
from ludus.reports import run_data as files
from ludus.reports.page.runs import Group
from ludus.reports.run_data import Numbers, Table

_MOST_PHASES = 16
_FEWEST_MATCHES = 20  # a phase with fewer says nothing


@dataclass(frozen=True, slots=True)
class Payoffs:
    """How the learner of each phase fared.

    A phase is an equal share of training. Past selves count as the learner of the phase that they were stored in.

    Attributes:
        mode: In which the matches were, such as `1v1`; empty where the runs know but one.
        ends: `(phases,)` env steps at which each phase ends.
        opponents: Rows of the tables: bots, then past selves by phase.
        score: `(opponents, phases)` share of points, draws as half; NaN where there was no match.
        matches: `(opponents, phases)`.
        learner: Bradley-Terry rating of the learner by phase, None where it played too little.
        rated: Rating of every bot.
    """

    mode: str
    ends: Numbers
    opponents: tuple[str, ...]
    score: Numbers
    matches: Numbers
    learner: tuple[Interval | None, ...]
    rated: dict[str, Interval]


def read_payoffs(group: Group) -> list[Payoffs]:
    """Returns the matches of all seeds of a group together, each mode apart; nothing if there were none."""
    tables = [_valid(run.tables[files.OPPONENTS]) for run in group.runs]
    modes = list(dict.fromkeys(mode for table in tables for mode in _modes(table)))
    found = []
    for mode in modes:
        chosen = [table.rows(np.array([each == mode for each in _modes(table)], np.bool_)) for table in tables]
        name = mode if len(modes) > 1 else ""
        found.append(_payoffs_of([table for table in chosen if len(table)], name))
    return found


def _modes(table: Table) -> list[str]:
    """Returns the mode of every row; tables that name none are of 1v1."""
    return [mode or FIRST_MODE for mode in table.texts("mode").tolist()]


def _payoffs_of(tables: Sequence[Table], mode: str) -> Payoffs:
    last = max(float(table.numbers("env_steps").max()) for table in tables)
    played = sum(float(table.numbers(name).sum()) for table in tables for name in ("wins", "draws", "losses"))
    times = max(len(np.unique(table.numbers("env_steps"))) for table in tables)
    phases = max(1, min(_MOST_PHASES, times, int(played / (2 * _FEWEST_MATCHES))))
    ends = np.linspace(0.0, last, phases + 1)[1:]
    counts: dict[tuple[str, int], Numbers] = {}
    for table in tables:
        for opponent, phase, record in _entries(table, ends):
            counts[opponent, phase] = counts.get((opponent, phase), np.zeros(3)) + record
    bots = list(dict.fromkeys(name for name, _ in counts if not name.startswith("\0")))
    selves = sorted({name for name, _ in counts if name.startswith("\0")})
    rows = bots + selves
    record = np.zeros((len(rows), phases, 3))
    for (name, phase), wins_draws_losses in counts.items():
        record[rows.index(name), phase] += wins_draws_losses
    matches = record.sum(2)
    points = record[..., 0] + 0.5 * record[..., 1]
    score = np.where(matches > 0, points / np.maximum(matches, 1.0), np.nan)
    learner, rated = _rate(bots, selves, points, matches)
    names = (*bots, *(f"self at {float(ends[int(name[1:])]):,.0f}" for name in selves))
    return Payoffs(mode, ends, names, score, matches, learner, rated)


def _valid(table: Table) -> Table:
    columns = [table.numbers(name) for name in ("env_steps", "wins", "draws", "losses")]
    return table.rows(np.all([np.isfinite(column) & (column >= 0.0) for column in columns], axis=0))


def _entries(table: Table, ends: Numbers) -> Sequence[tuple[str, int, Numbers]]:
    """Returns opponent, phase and result of every row; a past self is a mark and the number of its phase."""
    steps, learners = table.numbers("env_steps"), table.texts("learner").tolist()
    opponents, kinds = table.texts("opponent").tolist(), table.texts("kind").tolist()
    places = np.minimum(np.searchsorted(ends, steps), len(ends) - 1).tolist()
    stored = dict(zip(learners, places, strict=True))  # the last row of an era is when it was stored
    results = np.stack([table.numbers(name) for name in ("wins", "draws", "losses")], axis=1)
    return [
        (f"\0{stored.get(opponent, 0):02d}" if kind == SELF_KIND else opponent, place, result)
        for opponent, kind, place, result in zip(opponents, kinds, places, results, strict=True)
    ]


def _rate(
    bots: Sequence[str], selves: Sequence[str], points: Numbers, matches: Numbers
) -> tuple[tuple[Interval | None, ...], dict[str, Interval]]:
    """Fits ratings of the learner by phase and of the bots; a past self is the learner of its phase."""
    phases = points.shape[1]
    names = [*(f"\0{phase:02d}" for phase in range(phases)), *bots]
    places = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for row, name in enumerate((*bots, *selves)):
        for phase in range(phases):
            if places[name] != phase:  # against itself it learns nothing of its strength
                table[phase, places[name]] += points[row, phase]
                table[places[name], phase] += matches[row, phase] - points[row, phase]
    fitted = bradley_terry(names, table)
    played = table.sum(0) + table.sum(1)
    learner = tuple(fitted[names[phase]] if played[phase] >= _FEWEST_MATCHES else None for phase in range(phases))
    return learner, {name: fitted[name] for name in bots}
