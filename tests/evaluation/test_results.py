"""Estimates with intervals and comparisons, against values computed by hand."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.core.errors import ConfigError
from ludus.core.intervals import mean_interval, t_quantile, wilson_interval
from ludus.envs.world_parts import EpisodeMetrics
from ludus.evaluation.results import (
    Estimate,
    MatchResults,
    compare,
    estimates,
    mean_estimate,
    mean_over_rows,
    ratio_estimate,
    result_row,
    share_estimate,
)


def numbers(*values: float) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def test_a_share_has_wilsons_interval() -> None:
    estimate = share_estimate(8, 10)
    assert (estimate.value, estimate.matches) == (0.8, 10)
    assert estimate.deviation == pytest.approx(0.4)
    assert estimate.interval() == wilson_interval(8, 10)[1:]


def test_a_mean_has_students_interval() -> None:
    values = [1.0, 2.0, 3.0, 6.0]
    estimate = mean_estimate(numbers(*values))
    assert estimate.value == 3.0
    assert estimate.deviation == pytest.approx(math.sqrt(14 / 3))
    assert estimate.interval() == pytest.approx(mean_interval(values)[1:])
    assert mean_estimate(numbers(5.0)).interval() == (-math.inf, math.inf)
    assert mean_estimate(numbers(5.0)).as_json() == {"value": 5.0, "low": None, "high": None}


def test_a_mean_of_noughts_and_ones_is_a_share() -> None:
    assert mean_estimate(numbers(1.0, 1.0, 1.0)).interval() == wilson_interval(3, 3)[1:]
    assert mean_estimate(numbers(1.0, 0.0, 2.0)).kind == "mean"


def test_a_quotient_is_that_of_the_totals_and_moves_as_its_linear_form() -> None:
    # 12 / 6 = 2; the residuals above - 2 * below are 0, 2, -2; divided by the mean below, 2, they are 0, 1, -1.
    estimate = ratio_estimate(numbers(2.0, 6.0, 4.0), numbers(1.0, 2.0, 3.0))
    assert estimate.value == 2.0
    assert estimate.deviation == pytest.approx(1.0)
    # Damage dealt and none taken: what is below the line counts 1.
    assert ratio_estimate(numbers(3.0, 4.0), numbers(0.0, 0.0)).value == 7.0


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    return {"dealt": sums["dealt"], "taken": sums["taken"], "seconds": lengths / rate_hz, "ratio": sums["dealt"]}


EPISODE_METRICS = EpisodeMetrics(
    per_episode=per_episode,
    ratios=MappingProxyType({"ratio": ("dealt", "taken")}),
    extremes=MappingProxyType({"dealt_max": ("dealt", "max")}),
)


def test_all_numbers_equal_those_of_the_table_and_team_mates_count_as_one_match() -> None:
    matches = MatchResults(
        opponents=np.zeros(4, np.int64),
        leads=np.array([True, False, True, False]),
        lengths=np.array([10, 10, 30, 30]),
        teams=np.array([0, 0, 1, 1]),
        events={"wins": numbers(1, 1, 0, 0), "losses": numbers(0, 0, 1, 1), "reward": numbers(2, 2, -1, -1)},
        sums={"dealt": numbers(1, 3, 5, 7), "taken": numbers(1, 1, 1, 1)},
    )
    found = estimates(matches, EPISODE_METRICS, 10.0)
    row = result_row("", matches, EPISODE_METRICS, 10.0)
    for name, estimate in found.items():
        assert estimate.value == pytest.approx(row[name]), name
        assert estimate.matches == 2
    assert found["win_rate"].interval() == (row["win_rate_low"], row["win_rate_high"])
    assert found["dealt"].deviation == pytest.approx(math.sqrt(8.0))  # of the two matches' means, 2 and 6
    assert found["dealt_max"].value == 7.0
    assert found["dealt_max"].interval() == (-math.inf, math.inf)


def test_newcombes_interval_of_two_shares() -> None:
    # 56 of 70 and 48 of 80, the example that is usually worked: 0.2, from 0.0524 to 0.3339.
    difference = compare(share_estimate(56, 70), share_estimate(48, 80))
    assert difference.value == pytest.approx(0.2)
    assert (difference.low, difference.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert difference.verdict == "better"
    assert difference.matches_needed is None
    turned = compare(share_estimate(48, 80), share_estimate(56, 70))
    assert (turned.low, turned.high) == pytest.approx((-0.3339, -0.0524), abs=5e-5)
    assert turned.verdict == "worse"


def test_shares_at_the_ends_keep_a_width() -> None:
    difference = compare(share_estimate(10, 10), share_estimate(10, 10))
    low = wilson_interval(10, 10).low
    assert (difference.low, difference.high) == pytest.approx((-(1.0 - low), 1.0 - low))
    assert difference.verdict == "no difference seen"
    assert difference.matches_needed is None  # no number of matches shows a difference of nothing


def test_matches_that_would_be_needed() -> None:
    difference = compare(share_estimate(60, 100), share_estimate(50, 100))
    assert difference.verdict == "no difference seen"
    # (1.959964 + 0.841621)^2 * (0.6 * 0.4 + 0.5 * 0.5) / 0.1^2 = 384.6
    assert difference.matches_needed == 385


def test_welchs_interval_of_two_means() -> None:
    first, second = mean_estimate(np.array([1.0, 2.0, 3.0])), mean_estimate(np.array([2.0, 4.0, 6.0, 8.0]))
    difference = compare(first, second)
    # Squared errors 1/3 and (20/3)/4 = 5/3; freedom 4 / (1/18 + 25/27) = 4.07, so 4.
    margin = t_quantile(0.975, 4) * math.sqrt(2.0)
    assert difference.value == -3.0
    assert (difference.low, difference.high) == pytest.approx((-3.0 - margin, -3.0 + margin))
    assert difference.verdict == "no difference seen"


def test_less_can_be_better() -> None:
    small, large = mean_estimate(np.array([1.0, 1.1, 0.9])), mean_estimate(np.array([5.0, 5.1, 4.9]))
    assert compare(small, large, more_is_better=False).verdict == "better"
    assert compare(small, large).verdict == "worse"
    same = mean_estimate(np.array([2.0, 2.0]))
    assert compare(same, mean_estimate(np.array([1.5, 1.5]))).verdict == "better"  # no spread at all
    assert compare(same, same).verdict == "no difference seen"


def test_what_cannot_be_compared() -> None:
    lowest = Estimate("extreme", 3.0, 20, math.nan)
    assert compare(lowest, lowest).verdict == "not compared"
    one = mean_estimate(np.array([1.5]))
    assert compare(one, one).verdict == "not compared"
    assert compare(one, one).as_json()["low"] is None
    with pytest.raises(ConfigError, match="extreme"):
        compare(lowest, one)


def test_a_number_that_is_0_or_1_for_one_agent_alone_is_compared_as_a_mean() -> None:
    # Knockouts: 0, 0, 1, 1 and 1, 2, 3, 2; squared errors 0.25 / 4 and (2/3) / 4, freedom 3.8 to 4.4.
    first, second = mean_estimate(np.array([0.0, 0.0, 1.0, 1.0])), mean_estimate(np.array([1.0, 2.0, 3.0, 2.0]))
    assert (first.kind, second.kind) == ("share", "mean")
    difference = compare(first, second)
    errors = 0.0625, 2 / 12
    freedom = sum(errors) ** 2 / (errors[0] ** 2 / 3 + errors[1] ** 2 / 3)
    margin = t_quantile(0.975, math.floor(freedom)) * math.sqrt(sum(errors))
    assert (difference.low, difference.high) == pytest.approx((-1.5 - margin, -1.5 + margin))


def test_a_mean_over_rows_counts_each_alike() -> None:
    mean = mean_over_rows([share_estimate(98, 98), share_estimate(4, 8)])
    assert mean.value == 0.75
    # Variances 0.99 * 0.01 / 98 and 0.5 * 0.5 / 8: one win and one loss are added to each.
    assert mean.standard_error == pytest.approx(math.sqrt(0.99 * 0.01 / 98 + 0.25 / 8) / 2)
    assert mean_over_rows([share_estimate(9, 9), share_estimate(8, 9)]).interval()[1] == 1.0  # never above it
    assert mean_over_rows([mean_estimate(np.array([1.0, 3.0]))]).interval()[1] > 3.0
