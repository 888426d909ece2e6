"""Curves over env steps: the mean of several seeds with a band, thinned to as many points as a page can show."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ludus.reports.run_data import Numbers, Table

MOST_POINTS = 1000


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart.

    Attributes:
        x: `(points,)` env steps.
        y: `(points,)` mean over seeds.
        low: `(points,)` lowest of the seeds, and of all that was merged into a point.
        high: `(points,)` highest likewise.
        seeds: How many runs it is of.
    """

    x: Numbers
    y: Numbers
    low: Numbers
    high: Numbers
    seeds: int

    @property
    def has_band(self) -> bool:
        """Whether lowest and highest differ anywhere."""
        return bool((self.low < self.high).any())


def curve_of(tables: Sequence[Table], column: str, most_points: int = MOST_POINTS) -> Curve | None:
    """Returns the curve of a column over `env_steps`, of one table a seed; None where there is no number.

    Seeds that ended sooner count as far as they go.
    """
    lines = [_finite(table.numbers("env_steps"), table.numbers(column)) for table in tables if len(table)]
    return merge_lines([line for line in lines if len(line[0])], most_points)


def merge_lines(lines: Sequence[tuple[Numbers, Numbers]], most_points: int = MOST_POINTS) -> Curve | None:
    """Returns the curve of lines, each `(points,)` of x in order and of y; see `curve_of`."""
    if not lines:
        return None
    longest = max(lines, key=lambda line: (len(line[0]), line[0][-1]))
    if len(longest[0]) > most_points:
        return _binned(lines, most_points)
    first, last = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    grid = np.unique(np.concatenate(([first], longest[0], [last])))
    rows = np.stack([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in lines])
    mean, low, high = _over_seeds(rows, rows, rows)
    return Curve(grid, mean, low, high, len(lines))


def _binned(lines: Sequence[tuple[Numbers, Numbers]], bins: int) -> Curve:
    first, last = min(x[0] for x, _ in lines), max(x[-1] for x, _ in lines)
    edges = np.linspace(first, last, bins + 1)
    means, lows, highs = [], [], []
    for x, y in lines:
        place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, bins - 1)
        count = np.bincount(place, minlength=bins)
        low, high = np.full(bins, np.inf), np.full(bins, -np.inf)
        np.minimum.at(low, place, y)
        np.maximum.at(high, place, y)
        empty = count == 0
        means.append(np.where(empty, np.nan, np.bincount(place, y, bins) / np.maximum(count, 1)))
        lows.append(np.where(empty, np.nan, low))
        highs.append(np.where(empty, np.nan, high))
    mean, low, high = _over_seeds(np.stack(means), np.stack(lows), np.stack(highs))
    middle, known = (edges[:-1] + edges[1:]) / 2.0, np.isfinite(mean)
    return Curve(middle[known], mean[known], low[known], high[known], len(lines))


def _over_seeds(means: Numbers, lows: Numbers, highs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Reduces `(seeds, points)` each to mean, lowest and highest, of the seeds that have the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a bin that no seed has anything in stays NaN
        return np.nanmean(means, 0), np.nanmin(lows, 0), np.nanmax(highs, 0)


def _finite(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    known = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[known], kind="stable")
    return x[known][order], y[known][order]
