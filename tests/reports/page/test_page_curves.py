"""Curves: means and bands of seeds, seeds of different length, thinning, and nothing at all."""

import math

import numpy as np

from ludus.core.tables import Table
from ludus.reports.page.curves import MOST_POINTS, curve_of, merge_lines


def _table(steps: list[float], values: list[object]) -> Table:
    return Table({"env_steps": steps, "value": values})


def test_seeds_give_a_mean_and_a_band() -> None:
    curve = curve_of([_table([10, 20, 30], [1, 2, 3]), _table([10, 20, 30], [3, 2, 9])], "value")
    assert curve is not None
    assert (curve.x.tolist(), curve.y.tolist()) == ([10, 20, 30], [2, 2, 6])
    assert (curve.low.tolist(), curve.high.tolist(), curve.seeds, curve.has_band) == ([1, 2, 3], [3, 2, 9], 2, True)


def test_one_seed_has_no_band() -> None:
    curve = curve_of([_table([10, 20], [1, 2])], "value")
    assert curve is not None
    assert not curve.has_band


def test_a_seed_that_ended_sooner_counts_as_far_as_it_goes_and_other_steps_are_interpolated() -> None:
    curve = curve_of([_table([0, 10, 20, 30], [0, 0, 0, 0]), _table([0, 20], [0, 4])], "value")
    assert curve is not None
    assert (curve.x.tolist(), curve.y.tolist(), curve.high.tolist()) == ([0, 10, 20, 30], [0, 1, 2, 0], [0, 2, 4, 0])


def test_what_is_no_number_is_left_out() -> None:
    curve = curve_of([_table([10, 20, 30, 40], [None, "x", math.nan, 7]), Table({})], "value")
    assert curve is not None
    assert (curve.x.tolist(), curve.y.tolist()) == ([40], [7])
    assert curve_of([_table([1, 2], [None, None])], "value") is None
    assert curve_of([], "value") is None


def test_points_of_a_long_curve_are_merged_and_the_band_keeps_the_spikes() -> None:
    x, y = np.arange(10.0), np.array([0, 2, 0, 2, 0, 8, 0, 2, 0, 2.0])
    curve = merge_lines([(x, y)], 5)
    assert curve is not None
    # Five bins of width 1.8 from 0 to 9: {0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}.
    assert curve.y.tolist() == [1, 1, 4, 1, 1]
    assert (curve.low.tolist(), curve.high.tolist()) == ([0] * 5, [2, 2, 8, 2, 2])
    np.testing.assert_allclose(curve.x, [0.9, 2.7, 4.5, 6.3, 8.1])


def test_no_curve_has_more_points_than_a_page_can_show() -> None:
    steps = [float(step) for step in range(50_000)]
    curve = curve_of([_table(steps, [step % 7 for step in steps])] * 2, "value")
    assert curve is not None
    assert 0.9 * MOST_POINTS < len(curve.x) <= MOST_POINTS
    assert (curve.low.min(), curve.high.max()) == (0.0, 6.0)
