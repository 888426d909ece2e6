"""Every number of many matches with its interval: shares, means, quotients of totals, and extremes that have none."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.intervals import t_quantile, wilson_interval
from ludus.envs.behaviour import Behaviour
from ludus.evaluation.tally import Matches

Kind: TypeAlias = Literal["share", "mean", "extreme"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of many matches.

    Attributes:
        kind: A `share` of matches, such as those that were won; a `mean`, also a quotient of totals, whose spread is
            that of its linear form; an `extreme`, of which one value is all there is.
        value: The number.
        matches: How many it was made of.
        deviation: Standard deviation of what one match contributes; NaN where it is not known.
        limits: Between which the number must lie.
    """

    kind: Kind
    value: float
    matches: int
    deviation: float
    limits: tuple[float, float] = (-math.inf, math.inf)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Returns the ends of the interval: Wilson's of a share, Student's of a mean; endless if nothing is known."""
        if self.kind == "share":
            _, low, high = wilson_interval(round(self.value * self.matches), self.matches, confidence)
            return low, high
        if self.kind == "extreme" or self.matches < 2:
            return -math.inf, math.inf
        margin = t_quantile(0.5 + confidence / 2, self.matches - 1) * self.standard_error
        return max(self.value - margin, self.limits[0]), min(self.value + margin, self.limits[1])

    @property
    def standard_error(self) -> float:
        """How far the value is typically off."""
        return self.deviation / math.sqrt(self.matches)

    def as_json(self) -> dict[str, float | None]:
        """Returns value, low and high; None where an end is endless."""
        ends = [end if math.isfinite(end) else None for end in self.interval()]
        return {"value": self.value if math.isfinite(self.value) else None, "low": ends[0], "high": ends[1]}


def share_estimate(successes: int, trials: int) -> Estimate:
    """Returns the share of successes."""
    share = successes / trials
    return Estimate("share", share, trials, math.sqrt(share * (1.0 - share)))


def mean_estimate(values: NDArray[np.float64]) -> Estimate:
    """Returns the mean of independent values `(matches,)`.

    Where all of them are 0 or 1 it is a share, whose interval keeps a width even if all of them are alike.
    """
    if bool(np.isin(values, (0.0, 1.0)).all()):
        return share_estimate(int(values.sum()), len(values))
    return Estimate("mean", float(values.mean()), len(values), _deviation(values))


def quotient_estimate(above: NDArray[np.float64], below: NDArray[np.float64]) -> Estimate:
    """Returns the quotient of the totals of two numbers, `(matches,)` each; what is below the line counts at least 1.

    Its spread is that of `(above - quotient * below) / mean(below)`, which is how the quotient moves to first order.
    """
    total = max(float(below.sum()), 1.0)
    quotient = float(above.sum()) / total
    return Estimate("mean", quotient, len(above), _deviation((above - quotient * below) * (len(above) / total)))


def estimates(matches: Matches, behaviour: Behaviour, rate_hz: float) -> dict[str, Estimate]:
    """Returns every number that a table's row has, see `ludus.evaluation.tally.table_row`, by its name."""
    leads = matches.leads
    found: dict[str, Estimate] = {}
    if "wins" in matches.events:
        found["win_rate"] = share_estimate(int((matches.events["wins"][leads] > 0).sum()), int(leads.sum()))
    if "reward" in matches.events:
        found["mean_return"] = mean_estimate(matches.events["reward"][leads])
    found["mean_length"] = mean_estimate(matches.lengths[leads].astype(np.float64))
    episodes = behaviour.per_episode(matches.sums, matches.lengths, rate_hz)
    # Players of one team see the same match, so that a match, not a seat, is what is independent of others.
    first_rows = np.flatnonzero(leads)
    seats = np.diff(first_rows, append=len(leads))
    by_match = {name: np.add.reduceat(values, first_rows) / seats for name, values in episodes.items()}
    found |= {name: mean_estimate(values) for name, values in by_match.items()}
    for name, (above, below) in behaviour.ratios.items():
        found[name] = quotient_estimate(by_match[above], by_match[below])
    extremes = behaviour.summarise(episodes)
    for name in behaviour.extremes:
        found[name] = Estimate("extreme", extremes[name], len(first_rows), math.nan)
    return found


def power_quantile(confidence: float, power: float = 0.8) -> float:
    """Returns how many standard errors a difference must be to be seen with this power at this confidence."""
    normal = NormalDist()
    return normal.inv_cdf(0.5 + confidence / 2) + normal.inv_cdf(power)


def _deviation(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan
