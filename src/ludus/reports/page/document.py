"""Everything that a page shows as one JSON document, small and with nothing but numbers, text and lists."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from ludus.core.files import JSON
from ludus.core.intervals import Interval
from ludus.reports import run_data as files
from ludus.reports.page.curves import MOST_POINTS, Curve, curve_of
from ludus.reports.page.evaluations import Evaluations, Line, read_evaluations
from ludus.reports.page.latents import read_latents
from ludus.reports.page.notices import notices_of
from ludus.reports.page.panels import make_panels, stage_starts
from ludus.reports.page.payoffs import Payoffs, read_payoffs
from ludus.reports.page.runs import Group, Run
from ludus.reports.page.settings import settings_by_part
from ludus.reports.page.times import read_times
from ludus.reports.run_data import Table

if TYPE_CHECKING:
    from ludus.reports.run_data import Numbers

_STACK_POINTS = 160
_PER_STEPS = 1000.0  # reward terms are shown for so many env steps


def make_document(groups: Sequence[Group], replays: Sequence[Mapping[str, JSON]] = ()) -> dict[str, JSON]:
    """Returns what the page shows.

    Args:
        groups: The runs.
        replays: Matches as `ludus.evaluation.strips` gives them.
    """
    runs = [run for group in groups for run in group.runs]
    evaluated = [read_evaluations(group) for group in groups]
    return {
        "made": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "groups": [
            {"label": group.label, "runs": [run.name for run in group.runs], "stages": _pairs(stage_starts(group))}
            for group in groups
        ],
        "runs": [describe_run(run, group.label) for group in groups for run in group.runs],
        "notices": [asdict(notice) for run in runs for notice in notices_of(run)],
        "settings": {
            part: [[setting.path, list(setting.values), setting.differs] for setting in settings]
            for part, settings in settings_by_part([[run.config for run in group.runs] for group in groups]).items()
        },
        "panels": [
            {
                "name": panel.name,
                "section": panel.section,
                "title": panel.title,
                "note": panel.note,
                "unit": panel.unit,
                "curves": [_curve(curve) for curve in panel.curves],
            }
            for panel in make_panels(groups)
        ],
        "evaluations": [None if each is None else _evaluations(each) for each in evaluated],
        "rewards": [_rewards(group) for group in groups],
        "payoffs": [[_payoffs(found) for found in read_payoffs(group)] or None for group in groups],
        "times": [_times(group) for group in groups],
        "latents": [_latents(group) for group in groups],
        "replays": [dict(replay) for replay in replays],
    }


def describe_run(run: Run, group: str) -> dict[str, JSON]:
    """Returns the few numbers and words that a run is told by."""
    session = run.sessions[-1] if run.sessions else {}
    git, versions, machine = (session.get(name) for name in ("git", "versions", "machine"))
    commit = git.get("commit") if isinstance(git, dict) else None
    return {
        "name": run.name,
        "group": group,
        "world": run.world,
        "seed": run.seed,
        "state": run.state,
        "env_steps": run.env_steps,
        "total_env_steps": run.total_env_steps,
        "training_s": run.training_s,
        "steps_per_s": _rounded(run.steps_per_s),
        "best_score": _rounded(run.best_score),
        "last_score": _rounded(run.last_score),
        "started": _text(run.sessions[0].get("started")) if run.sessions else None,
        "command": " ".join(map(str, command)) if isinstance(command := session.get("command"), list) else None,
        "commit": _text(commit),
        "versions": _words(versions),
        "machine": _words(machine),
        "missing": list(run.missing),
    }


def _curve(curve: Curve | None) -> JSON:
    if curve is None:
        return None
    band: dict[str, JSON] = {}
    if curve.has_band:
        band = {"low": _numbers(curve.low), "high": _numbers(curve.high)}
    return {"x": _steps(curve.x), "y": _numbers(curve.y), "seeds": curve.seeds, **band}


def _line(line: Line) -> JSON:
    return [_steps(line.env_steps), _numbers(line.value), _numbers(line.low), _numbers(line.high)]


def _evaluations(found: Evaluations) -> JSON:
    return {
        "kind": found.kind,
        "labels": list(found.labels),
        "numbers": list(found.numbers),
        "lines": {
            name: {label: _line(line) for label, line in lines.items()} for name, lines in found.lines.items()
        },
        "score": _line(found.score),
    }  # fmt: skip


def _rewards(group: Group) -> JSON:
    """Returns each term's part of the reward for a thousand env steps, mean over seeds."""
    tables = [_per_step(run.tables[files.REWARDS]) for run in group.runs if len(run.tables[files.REWARDS])]
    names = dict.fromkeys(name for table in tables for name in table.names if name != "env_steps")
    curves = {name: curve_of(tables, name, _STACK_POINTS) for name in names}
    known = {name: curve for name, curve in curves.items() if curve is not None}
    if not known:
        return None
    grid = max(known.values(), key=lambda curve: len(curve.x)).x
    return {
        "x": _steps(grid),
        "terms": {name: _numbers(np.interp(grid, curve.x, curve.y)) for name, curve in known.items()},
    }


def _per_step(table: Table) -> Table:
    steps = table.numbers("env_steps")
    taken = np.diff(steps, prepend=0.0)
    taken = np.where(taken > 0.0, taken, np.nan) / _PER_STEPS
    terms = [name for name in table.names if name not in ("iteration", "env_steps", "total")]
    return Table({"env_steps": steps.tolist()} | {name: (table.numbers(name) / taken).tolist() for name in terms})


def _payoffs(found: Payoffs) -> JSON:
    return {
        "mode": found.mode,
        "ends": _steps(found.ends),
        "opponents": list(found.opponents),
        "score": [_numbers(row) for row in found.score],
        "matches": [_steps(row) for row in found.matches],
        "learner": [None if rating is None else _interval(rating) for rating in found.learner],
        "rated": {name: _interval(rating) for name, rating in found.rated.items()},
    }


def _times(group: Group) -> JSON:
    found = read_times(group, MOST_POINTS // 2)
    if found is None:
        return None
    return {
        "speed": _curve(found.speed),
        "shares": {name: _rounded(share) for name, share in found.shares.items()},
        "memory": {title: _curve(curve) for title, curve in found.memory.items()},
    }


def _latents(group: Group) -> JSON:
    found = read_latents(group)
    if found is None:
        return None
    return {
        "run": found.run,
        "styles": list(found.styles),
        "planes": {
            name: [[_rounded(x), _rounded(y), style] for x, y, style in points] for name, points in found.planes.items()
        },
        "times_s": [_rounded(time_s) for time_s in found.times_s],
        "accuracy": [[_rounded(value) for value in interval] for interval in found.accuracy],
        "chance": _rounded(found.chance),
    }


def _interval(interval: Interval) -> JSON:
    return [round(value) for value in interval]


def _pairs(pairs: Iterable[tuple[int, str]]) -> JSON:
    return [list(pair) for pair in pairs]


def _words(mapping: object) -> JSON:
    return {str(name): str(value) for name, value in mapping.items()} if isinstance(mapping, dict) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _steps(values: "Numbers") -> list[JSON]:
    return [int(value) for value in values]


def _numbers(values: "Numbers") -> list[JSON]:
    return [_rounded(float(value)) for value in values]


def _rounded(value: float | None) -> float | int | None:
    """Returns a number of five digits, which is more than a chart shows; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
