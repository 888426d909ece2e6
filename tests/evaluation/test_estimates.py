"""Numbers with intervals: shares, means, quotients of totals and extremes, against values computed by hand."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.core.intervals import mean_interval, wilson_interval
from ludus.envs.behaviour import Behaviour
from ludus.evaluation.estimates import estimates, mean_estimate, quotient_estimate, share_estimate
from ludus.evaluation.tally import Matches, table_row


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
    estimate = quotient_estimate(numbers(2.0, 6.0, 4.0), numbers(1.0, 2.0, 3.0))
    assert estimate.value == 2.0
    assert estimate.deviation == pytest.approx(1.0)
    # Damage dealt and none taken: what is below the line counts 1.
    assert quotient_estimate(numbers(3.0, 4.0), numbers(0.0, 0.0)).value == 7.0


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    return {"dealt": sums["dealt"], "taken": sums["taken"], "seconds": lengths / rate_hz, "ratio": sums["dealt"]}


BEHAVIOUR = Behaviour(
    per_episode=per_episode,
    ratios=MappingProxyType({"ratio": ("dealt", "taken")}),
    extremes=MappingProxyType({"dealt_max": ("dealt", "max")}),
)


def test_all_numbers_equal_those_of_the_table_and_team_mates_count_as_one_match() -> None:
    matches = Matches(
        opponents=np.zeros(4, np.int64),
        leads=np.array([True, False, True, False]),
        lengths=np.array([10, 10, 30, 30]),
        teams=np.array([0, 0, 1, 1]),
        events={"wins": numbers(1, 1, 0, 0), "losses": numbers(0, 0, 1, 1), "reward": numbers(2, 2, -1, -1)},
        sums={"dealt": numbers(1, 3, 5, 7), "taken": numbers(1, 1, 1, 1)},
    )
    found = estimates(matches, BEHAVIOUR, 10.0)
    row = table_row("", matches, BEHAVIOUR, 10.0)
    for name, estimate in found.items():
        assert estimate.value == pytest.approx(row[name]), name
        assert estimate.matches == 2
    assert found["win_rate"].interval() == (row["win_rate_low"], row["win_rate_high"])
    assert found["dealt"].deviation == pytest.approx(math.sqrt(8.0))  # of the two matches' means, 2 and 6
    assert found["dealt_max"].value == 7.0
    assert found["dealt_max"].interval() == (-math.inf, math.inf)
