"""Speed, memory and where the time went: from `resources.csv`, or from an older run's curves for TensorBoard."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ludus.reports import run_data as files
from ludus.reports.page.curves import Curve, curve_of, merge_lines
from ludus.reports.page.events import read_speeds
from ludus.reports.page.runs import Group
from ludus.reports.run_data import Table

_TRAINING = ("simulation_s", "inference_s", "opponents_s", "update_s", "other_s")
_NO_PART = "elapsed_s"
_MEMORY = {
    "resident_mib": "Memory of the process, MiB",
    "gpu_mib": "Memory of the GPU, MiB",
    "gpu_use": "Use of the GPU",
}


@dataclass(frozen=True, slots=True)
class Times:
    """How fast a group was, and what it took.

    Attributes:
        speed: Env steps a second over env steps, while training.
        shares: Share of the time by what it was spent on; the largest first.
        memory: Memory and use of the GPU over env steps, by title.
    """

    speed: Curve | None
    shares: dict[str, float]
    memory: dict[str, Curve]


def read_times(group: Group, most_points: int) -> Times | None:
    """Returns the times of a group's seeds; None if no run kept them."""
    tables = [run.tables[files.RESOURCES] for run in group.runs if len(run.tables[files.RESOURCES])]
    if tables:
        return _of_resources(tables, most_points)
    found = [read_speeds(run.folder) for run in group.runs]
    lines = [(speeds.env_steps, speeds.steps_per_s) for speeds in found if len(speeds.env_steps)]
    kept = [speeds.shares for speeds in found if speeds.shares]
    if not lines and not kept:
        return None
    names = dict.fromkeys(name for shares in kept for name in shares)
    means = {name: float(np.mean([shares.get(name, 0.0) for shares in kept])) for name in names}
    return Times(merge_lines(lines, most_points), _largest_first(means), {})


def _of_resources(tables: Sequence[Table], most_points: int) -> Times:
    parts = [name for name in tables[0].names if name.endswith("_s") and name != _NO_PART]
    sums = {name: float(sum(np.nansum(table.numbers(name)) for table in tables)) for name in parts}
    total = sum(sums.values())
    shares = {name.removesuffix("_s"): taken / total for name, taken in sums.items() if taken > 0.0}
    memory = {title: curve_of(tables, name, most_points) for name, title in _MEMORY.items()}
    return Times(
        curve_of([_with_speed(table) for table in tables], "speed", most_points),
        _largest_first(shares),
        {title: curve for title, curve in memory.items() if curve is not None},
    )


def _with_speed(table: Table) -> Table:
    """Returns env steps a second from row to row; a session that went back begins anew."""
    steps = table.numbers("env_steps")
    taken_s = np.nansum([table.numbers(name) for name in _TRAINING], axis=0)
    made = np.diff(steps, prepend=0.0)
    first = np.append(True, np.diff(table.numbers(_NO_PART)) < 0.0)  # where a session begins is not known
    known = (made > 0.0) & (taken_s > 0.0) & ~first
    speed = np.where(known, made / np.where(known, taken_s, 1.0), np.nan)
    return Table({"env_steps": steps.tolist(), "speed": speed.tolist()})


def _largest_first(shares: dict[str, float]) -> dict[str, float]:
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
