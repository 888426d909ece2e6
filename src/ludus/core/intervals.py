"""Confidence intervals: Wilson's for a share of successes, Student's for a mean, Newcombe's for paired shares."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ludus.core.errors import ConfigError


class Interval(NamedTuple):
    """A confidence interval and the estimate it belongs to."""

    estimate: float
    low: float
    high: float


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return the share of successes with Wilson's score interval, which is sound also near 0 and 1.

    Without any trial nothing is known: the estimate is NaN and the interval 0..1.
    """
    _check_confidence(confidence)
    if not 0 <= successes <= trials:
        raise ConfigError(f"{successes} successes in {trials} trials; valid: 0 <= successes <= trials")
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    center = share + z * z / (2 * trials)
    margin = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # The formula gives exactly 0 and 1 at the ends; rounding would leave 1e-17.
    low = 0.0 if successes == 0 else (center - margin) / scale
    high = 1.0 if successes == trials else (center + margin) / scale
    return Interval(share, low, high)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean of independent values with Student's t interval, which is infinite for one value."""
    _check_confidence(confidence)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ConfigError(f"a mean needs a list of at least one value; got shape {array.shape}")
    mean = float(array.mean())
    if array.size == 1:
        return Interval(mean, -math.inf, math.inf)
    margin = t_quantile(0.5 + confidence / 2, array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Interval(mean, mean - margin, mean + margin)


def mean_of_intervals(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of independent estimates, with an interval made of theirs (MOVER, Zou and Donner 2008).

    The distances from estimates to their bounds add up like standard errors: in squares, below and above apart.
    """
    if not intervals:
        raise ConfigError("a mean needs at least one interval, got none")
    count = len(intervals)
    value = sum(each.estimate for each in intervals) / count
    below = math.hypot(*(each.estimate - each.low for each in intervals)) / count
    above = math.hypot(*(each.high - each.estimate for each in intervals)) / count
    return Interval(value, value - below, value + above)


@lru_cache(maxsize=1024)  # tables of intervals ask for the same few again and again
def t_quantile(probability: float, freedom: int) -> float:
    """Return the value below which Student's t lies with `probability` (0.5 < p < 1), for whole degrees of freedom."""
    if not 0.5 < probability < 1 or freedom < 1:
        raise ConfigError(f"t quantile of {probability} with {freedom} degrees of freedom; valid: 0.5..1, at least 1")
    z = NormalDist().inv_cdf(probability)
    if freedom > 1000:  # the expansion around the normal quantile is off by less than 1e-8 here
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, 1.0
    while _t_within(high, freedom) < 2 * probability - 1:
        low, high = high, 2 * high
    for _ in range(80):  # halving 80 times is exact to the last bit
        middle = 0.5 * (low + high)
        if _t_within(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return high


def _t_within(t: float, freedom: int) -> float:
    """Return the probability that |T| <= t, by the finite series for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2 == 1
    # Terms: cos + 2/3 cos^3 + (2*4)/(3*5) cos^5 ... for odd, 1 + 1/2 cos^2 + (1*3)/(2*4) cos^4 ... for even freedom.
    term, power = (cosine, 1) if odd else (1.0, 0)
    total = 0.0
    while power <= freedom - 2:
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
        power += 2
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence is {confidence}; valid: between 0 and 1, such as 0.95")
