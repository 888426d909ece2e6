"""Differences between two agents: Newcombe's and Welch's intervals by hand, plain verdicts, matches that are needed."""

import math

import numpy as np
import pytest

from ludus.core.errors import ConfigError
from ludus.core.intervals import t_quantile, wilson_interval
from ludus.evaluation.comparison import compare, mean_over_rows
from ludus.evaluation.estimates import Estimate, mean_estimate, share_estimate


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
    with pytest.raises(ConfigError, match="an extreme cannot be compared with a mean"):
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
