"""Confidence intervals: published and hand-computed numbers, the ends, coverage."""

import math

import numpy as np
import pytest

from ludus.core.errors import ConfigError
from ludus.core.intervals import mean_interval, t_quantile, wilson_interval


def test_wilson_by_hand() -> None:
    # z = 1.959964, z^2 = 3.841459. For 5 of 10: centre 0.5, half width z * sqrt(0.025 + z^2/400) / (1 + z^2/10)
    # = 1.959964 * sqrt(0.0346036) / 1.3841459 = 0.263405
    interval = wilson_interval(5, 10)
    assert interval == pytest.approx((0.5, 0.236595, 0.763405), abs=2e-6)
    # For 0 of 10: the upper end is (z^2/10) / (1 + z^2/10) = 0.3841459 / 1.3841459
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.0, 0.277533), abs=2e-6)
    assert wilson_interval(10, 10) == pytest.approx((1.0, 0.722467, 1.0), abs=2e-6)


def test_wilson_ends_are_exact_and_nothing_tried_is_nothing_known() -> None:
    assert wilson_interval(0, 7).low == 0.0
    assert wilson_interval(7, 7).high == 1.0
    nothing = wilson_interval(0, 0)
    assert math.isnan(nothing.estimate)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_wilson_is_wider_with_more_confidence_and_narrower_with_more_trials() -> None:
    assert wilson_interval(30, 50, 0.99).low < wilson_interval(30, 50).low < wilson_interval(300, 500).low


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3)])
def test_wilson_refuses_impossible_counts(successes: int, trials: int) -> None:
    with pytest.raises(ConfigError, match=rf"{successes} successes.*{trials} trials"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.975, 1, 12.706205), (0.975, 2, 4.302653), (0.975, 3, 3.182446), (0.975, 4, 2.776445),
        (0.975, 9, 2.262157), (0.995, 5, 4.032143), (0.95, 30, 1.697261), (0.975, 120, 1.979930),
        (0.75, 1, 1.0), (0.75, 2, math.sqrt(2 / 3)),
    ],
)  # fmt: skip
def test_t_quantiles_of_the_tables(probability: float, freedom: int, expected: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(expected, abs=1e-6)


def test_t_series_and_expansion_meet() -> None:
    assert t_quantile(0.975, 1000) == pytest.approx(t_quantile(0.975, 1001), abs=3e-6)
    assert t_quantile(0.975, 1000) == pytest.approx(1.9623391, abs=1e-6)
    assert t_quantile(0.975, 10**9) == pytest.approx(1.959964, abs=1e-6)


def test_mean_interval_by_hand() -> None:
    # 1, 2, 3, 4, 5: mean 3, standard deviation sqrt(2.5), t(0.975, 4) = 2.776445
    margin = 2.776445 * math.sqrt(2.5 / 5)
    assert mean_interval([1, 2, 3, 4, 5]) == pytest.approx((3.0, 3.0 - margin, 3.0 + margin), abs=1e-6)
    assert mean_interval([7.0]) == (7.0, -math.inf, math.inf)
    assert mean_interval([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)


def test_mean_interval_covers_as_often_as_it_says() -> None:
    draws = np.random.default_rng(5).normal(3.0, 2.0, size=(2000, 4))
    covered = sum(low <= 3.0 <= high for _, low, high in (mean_interval(list(row), 0.9) for row in draws))
    assert abs(covered / 2000 - 0.9) < 4 * math.sqrt(0.9 * 0.1 / 2000)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ConfigError, match="confidence"):
        mean_interval([1.0, 2.0], confidence)
    with pytest.raises(ConfigError, match="confidence"):
        wilson_interval(1, 2, confidence)


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ConfigError, match="at least one value"):
        mean_interval([])
    with pytest.raises(ConfigError, match="degrees of freedom"):
        t_quantile(0.5, 0)
