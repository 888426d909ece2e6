"""Whether one agent is really better than another: the difference of two numbers, its interval, and a plain verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ludus.core.errors import ConfigError
from ludus.core.intervals import t_quantile
from ludus.evaluation.estimates import Estimate, power_quantile

Verdict: TypeAlias = Literal["better", "worse", "no difference seen", "not compared"]


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the first of two agents is above the second.

    Attributes:
        value: The first one's number less the second one's.
        low: Lower end of its interval.
        high: Upper end.
        verdict: Of the first one: `better` or `worse` only where the interval leaves out 0.
        matches_needed: Matches of each agent that would show a difference of this size four times out of five; None
            where it is seen already, where there is none, or where the spread is not known.
    """

    value: float
    low: float
    high: float
    verdict: Verdict
    matches_needed: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values; None where an end is endless."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return {
            "difference": self.value if math.isfinite(self.value) else None,
            "low": low,
            "high": high,
            "verdict": self.verdict,
            "matches_needed": self.matches_needed,
        }


def compare(first: Estimate, second: Estimate, *, confidence: float = 0.95, more_is_better: bool = True) -> Difference:
    """Compares two numbers of the same kind that come from different matches.

    The interval of two shares is Newcombe's (from Wilson's of each), that of other means is Welch's. Where both agents
    played from the same seeds, their matches begin alike, which makes the true interval narrower if anything.

    Raises:
        ConfigError: One number is an extreme and the other is not.
    """
    if (first.kind == "extreme") != (second.kind == "extreme"):
        kinds = "an extreme cannot be compared with a mean"
        raise ConfigError(f"{kinds} ({first.kind}, {second.kind}); compare the same number of both")
    value = first.value - second.value
    low, high = _interval(first, second, confidence)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Difference(value, -math.inf, math.inf, "not compared")
    if low <= 0.0 <= high:
        return Difference(value, low, high, "no difference seen", _matches_needed(first, second, confidence))
    return Difference(value, low, high, "better" if (value > 0.0) == more_is_better else "worse")


def mean_over_rows(rows: Sequence[Estimate]) -> Estimate:
    """Returns the mean of several numbers, each counted alike, such as the mean win rate over all opponents.

    A share of 0 or 1 has no spread of its own; to be careful, one win and one loss are added to each share for it.
    """
    variances = []
    for row in rows:
        share = (row.value * row.matches + 1.0) / (row.matches + 2.0)
        spread = share * (1.0 - share) if row.kind == "share" else row.deviation**2
        variances.append(spread / row.matches)
    count, matches = len(rows), sum(row.matches for row in rows)
    error = math.sqrt(sum(variances)) / count
    limits = (0.0, 1.0) if all(row.kind == "share" for row in rows) else (-math.inf, math.inf)
    return Estimate("mean", sum(row.value for row in rows) / count, matches, error * math.sqrt(matches), limits)


def _interval(first: Estimate, second: Estimate, confidence: float) -> tuple[float, float]:
    value = first.value - second.value
    if first.kind == second.kind == "share":
        (low_1, high_1), (low_2, high_2) = first.interval(confidence), second.interval(confidence)
        below = math.hypot(first.value - low_1, high_2 - second.value)
        above = math.hypot(high_1 - first.value, second.value - low_2)
        return value - below, value + above
    if first.kind == "extreme" or min(first.matches, second.matches) < 2:
        return -math.inf, math.inf
    errors = (first.standard_error**2, second.standard_error**2)
    total = sum(errors)
    if total == 0.0:
        return value, value
    # Welch and Satterthwaite's degrees of freedom, rounded down to be careful.
    freedom = total**2 / (errors[0] ** 2 / (first.matches - 1) + errors[1] ** 2 / (second.matches - 1))
    margin = t_quantile(0.5 + confidence / 2, max(1, math.floor(freedom))) * math.sqrt(total)
    return value - margin, value + margin


def _matches_needed(first: Estimate, second: Estimate, confidence: float) -> int | None:
    """Returns the matches of each agent that would show the difference that was found, if it is the true one."""
    difference = first.value - second.value
    spread = first.deviation**2 + second.deviation**2
    if difference == 0.0 or not math.isfinite(spread):
        return None
    needed = math.ceil(spread * (power_quantile(confidence) / difference) ** 2)
    return max(needed, first.matches + 1, second.matches + 1)
