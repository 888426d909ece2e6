"""Curves out of noisy rows: moving averages, and bands over pieces of equal size."""

import numpy as np

from ludus.training.sinks.curve_data import Numbers

_MOST_POINTS = 400  # a curve in a picture shows no more
_MOST_PIECES = 80
_ROWS_A_PIECE = 10  # at least, where there are enough: quantiles of fewer say little


def moving_average(steps: Numbers, values: Numbers, window: int) -> tuple[Numbers, Numbers]:
    """Returns steps and the mean of the `window` finite values around each; thinned out to what a picture shows.

    Args:
        steps: `(rows,)`, rising; of rows with the same step one point is made.
        values: `(rows,)`; NaN is left out.
        window: Rows, half of them on either side; at the ends there are fewer.
    """
    steps, values = _known(steps, values)
    count = len(values)
    if count == 0:
        return steps, values
    sums = np.concatenate([[0.0], np.cumsum(values)])
    rows = np.arange(count)
    starts, ends = np.maximum(rows - window // 2, 0), np.minimum(rows + (window + 1) // 2, count)
    means = (sums[ends] - sums[starts]) / (ends - starts)
    distinct, place, rows_a_step = np.unique(steps, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=means) / rows_a_step
    shown = np.unique(np.linspace(0, len(distinct) - 1, min(len(distinct), _MOST_POINTS)).round().astype(np.int64))
    return distinct[shown], means[shown]


def band(steps: Numbers, values: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Cuts rows into pieces; returns each one's mean step, mean, 10 % and 90 % quantile.

    Args:
        steps: `(rows,)`, rising; rows with the same step stay together.
        values: `(rows,)`; NaN is left out.
    """
    steps, values = _known(steps, values)
    firsts = np.unique(steps, return_index=True)[1]
    count = min(len(firsts), _MOST_PIECES, max(len(values) // _ROWS_A_PIECE, 5))
    if count == 0:
        return steps, values, values, values
    cuts = [int(piece[0]) for piece in np.array_split(firsts, count)][1:]
    step_pieces, value_pieces = np.split(steps, cuts), np.split(values, cuts)
    return (
        np.array([piece.mean() for piece in step_pieces]),
        np.array([piece.mean() for piece in value_pieces]),
        np.array([np.quantile(piece, 0.1) for piece in value_pieces]),
        np.array([np.quantile(piece, 0.9) for piece in value_pieces]),
    )


def _known(steps: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    known = np.isfinite(values) & np.isfinite(steps)
    return steps[known], values[known]
