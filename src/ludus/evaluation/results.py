"""Results of matches: sums per match kept on the device, table rows, estimates with intervals, and comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.intervals import mean_interval, t_quantile, wilson_interval
from ludus.envs.base import BatchedEnv, EnvSpec, StepResult
from ludus.envs.match_set import WON_MATCH
from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.step_info import StepInfo

Row: TypeAlias = dict[str, Any]
Sums: TypeAlias = dict[str, NDArray[np.float64]]
Kind: TypeAlias = Literal["share", "mean", "extreme"]
Verdict: TypeAlias = Literal["better", "worse", "no difference seen", "not compared"]

_COUNTED_EVENTS = ("wins", "losses", "reward")


@dataclass(frozen=True, slots=True)
class MatchResults:
    """Finished matches of an agent, one row per seat that it played in a match.

    Attributes:
        opponents: `(rows,)` index of the opponent.
        leads: `(rows,)` bool, whether the row is the first of its match.
        lengths: `(rows,)` steps.
        teams: `(rows,)` team of the agent.
        events: Sums of wins, losses and reward where the world has them, and in sets of the wins of each match,
            `(rows,)` each.
        sums: Sums of the quantities of the world's episode metrics, `(rows,)` each.
    """

    opponents: NDArray[np.int64]
    leads: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    teams: NDArray[np.int64]
    events: Sums
    sums: Sums

    def against(self, opponent: int) -> "MatchResults":
        """Return the matches against one opponent."""
        return self._select(self.opponents == opponent)

    def by_side(self, spec: EnvSpec) -> "dict[str, MatchResults]":
        """Return the matches by side of the agent; a single entry where teams are of equal size."""
        sides = np.array([spec.side(team) for team in self.teams.tolist()], dtype=np.str_)
        return {str(side): self._select(sides == side) for side in np.unique(sides)}

    def _select(self, mask: NDArray[np.bool_]) -> "MatchResults":
        return MatchResults(
            self.opponents[mask],
            self.leads[mask],
            self.lengths[mask],
            self.teams[mask],
            {name: values[mask] for name, values in self.events.items()},
            {name: values[mask] for name, values in self.sums.items()},
        )


def concatenate(parts: Sequence[MatchResults]) -> MatchResults:
    """Concatenate the matches of several batches."""
    first = parts[0]
    return MatchResults(
        np.concatenate([part.opponents for part in parts]),
        np.concatenate([part.leads for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.teams for part in parts]),
        {name: np.concatenate([part.events[name] for part in parts]) for name in first.events},
        {name: np.concatenate([part.sums[name] for part in parts]) for name in first.sums},
    )


class MatchStatistics:
    """Sums over the agent's seats during the matches of one batch; call it with every step."""

    def __init__(self, env: BatchedEnv, seats: Tensor, episode_metrics: EpisodeMetrics) -> None:
        """Start at zero.

        Args:
            env: The games.
            seats: `(games, seats)` bool, the agent's seats.
            episode_metrics: The world's episode metrics.
        """
        self._index = seats.flatten().nonzero().squeeze(1)
        self._teams = torch.tensor(env.spec.teams, device=env.device)[self._index % env.spec.seats]
        self._games = self._index.div(env.spec.seats, rounding_mode="floor")
        self._episode_metrics, self._step_s = episode_metrics, 1.0 / env.spec.rate_hz
        self._events = counted_events(env.spec)
        self._quantities: tuple[str, ...] | None = None  # known after the first step
        # float64: thousands of small numbers are added one by one.
        self._sums = torch.zeros((0, len(self._index)), dtype=torch.float64, device=env.device)

    def __call__(self, result: StepResult, playing: Tensor) -> None:
        """Add a step; `playing` `(games,)` are the games that count."""
        quantities = self._episode_metrics.per_step(StepInfo(result.events, result.state_metrics, self._step_s))
        tensors = [*(result.events[name] for name in self._events), *quantities.values()]
        if self._quantities is None:
            self._quantities = tuple(quantities)
            self._sums = self._sums.new_zeros((len(tensors), len(self._index)))
        if tensors:
            values = torch.stack(tensors).flatten(1).index_select(1, self._index)
            self._sums += torch.where(playing[self._games], values, 0.0)

    def results(self, opponents: Tensor, steps: Tensor) -> MatchResults:
        """Copy everything to the host.

        Args:
            opponents: `(games,)` index of each game's opponent.
            steps: `(games,)` length of each match.
        """
        sums, games = self._sums.cpu().numpy(), self._games.cpu().numpy()
        counted = len(self._events)
        return MatchResults(
            opponents.cpu().numpy()[games],
            np.diff(games, prepend=-1) > 0,
            steps.cpu().numpy()[games],
            self._teams.cpu().numpy(),
            dict(zip(self._events, sums[:counted], strict=True)),
            dict(zip(self._quantities or (), sums[counted:], strict=True)),
        )


def counted_events(spec: EnvSpec) -> tuple[str, ...]:
    """Return the events of a world that results count."""
    return tuple(name for name in spec.events if name in _COUNTED_EVENTS or name.startswith(WON_MATCH))


def result_row(opponent: str, results: MatchResults, episode_metrics: EpisodeMetrics, rate_hz: float) -> Row:
    """Return a table row: the opponent, the number of matches, and every metric, with its interval where it has one.

    A draw is not a win: `win_rate` is the fraction of matches that were won. Where episodes are sets of matches, it is
    that of sets, and `win_rate_match_1` and so on are those of their matches.
    """
    leads = results.leads
    count = int(leads.sum())
    row: Row = {"opponent": opponent, "matches": count}
    if "wins" in results.events:
        wins = int((results.events["wins"][leads] > 0).sum())
        losses = int((results.events["losses"][leads] > 0).sum()) if "losses" in results.events else count - wins
        row |= {"wins": wins, "draws": count - wins - losses, "losses": losses}
        row |= _with_interval("win_rate", wilson_interval(wins, count))
    for name, won in results.events.items():
        if name.startswith(WON_MATCH):
            number = name.removeprefix(WON_MATCH)
            row |= _with_interval(f"win_rate_match_{number}", wilson_interval(int((won[leads] > 0).sum()), count))
    if "reward" in results.events:
        row |= _with_interval("mean_return", mean_interval(results.events["reward"][leads].tolist()))
    row |= _with_interval("mean_length", mean_interval(results.lengths[leads].tolist()))
    return row | episode_metrics.summarise(episode_metrics.per_episode(results.sums, results.lengths, rate_hz))


def metric_names(spec: EnvSpec, episode_metrics: EpisodeMetrics) -> tuple[str, ...]:
    """Return the metrics in a world's rows, found from an empty match of one step."""
    events, state_metrics = ({name: torch.zeros(1) for name in names} for names in (spec.events, spec.state_metrics))
    quantities = episode_metrics.per_step(StepInfo(events, state_metrics, 1.0 / spec.rate_hz))
    nothing = np.zeros(1)
    results = MatchResults(
        np.zeros(1, np.int64),
        np.ones(1, np.bool_),
        np.ones(1, np.int64),
        np.zeros(1, np.int64),
        dict.fromkeys(counted_events(spec), nothing),
        dict.fromkeys(quantities, nothing),
    )
    with np.errstate(all="ignore"):  # 0 / 0
        row = result_row("", results, episode_metrics, spec.rate_hz)
    return tuple(name for name, value in row.items() if not isinstance(value, str))


def _with_interval(name: str, interval: tuple[float, float, float]) -> Mapping[str, float]:
    estimate, low, high = interval
    return {name: estimate, f"{name}_low": low, f"{name}_high": high}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number estimated from many matches.

    Attributes:
        kind: A `share` of matches, such as the win rate; a `mean`, also a ratio of totals, whose deviation is that of
            its linearization; an `extreme`, for which there is no interval.
        value: The number.
        matches: How many matches it was computed from.
        deviation: Standard deviation of one match's contribution; NaN where it is unknown.
        limits: Range of possible values.
    """

    kind: Kind
    value: float
    matches: int
    deviation: float
    limits: tuple[float, float] = (-math.inf, math.inf)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval: Wilson's for a share, Student's for a mean, infinite if nothing is known."""
        if self.kind == "share":
            _, low, high = wilson_interval(round(self.value * self.matches), self.matches, confidence)
            return low, high
        if self.kind == "extreme" or self.matches < 2:
            return -math.inf, math.inf
        margin = t_quantile(0.5 + confidence / 2, self.matches - 1) * self.standard_error
        return max(self.value - margin, self.limits[0]), min(self.value + margin, self.limits[1])

    @property
    def standard_error(self) -> float:
        """Standard error of `value`."""
        return self.deviation / math.sqrt(self.matches)

    def as_json(self) -> dict[str, float | None]:
        """Return value, low and high; None where a bound is infinite."""
        ends = [end if math.isfinite(end) else None for end in self.interval()]
        return {"value": self.value if math.isfinite(self.value) else None, "low": ends[0], "high": ends[1]}


def share_estimate(successes: int, trials: int) -> Estimate:
    """Return the share of successes."""
    share = successes / trials
    return Estimate("share", share, trials, math.sqrt(share * (1.0 - share)))


def mean_estimate(values: NDArray[np.float64]) -> Estimate:
    """Return the mean of independent values `(matches,)`.

    If all of them are 0 or 1 it is a share, whose interval has a width even if all values are equal.
    """
    if bool(np.isin(values, (0.0, 1.0)).all()):
        return share_estimate(int(values.sum()), len(values))
    return Estimate("mean", float(values.mean()), len(values), _deviation(values))


def ratio_estimate(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> Estimate:
    """Return the ratio r of the totals of two numbers, `(matches,)` each; the denominator counts at least 1.

    Delta method: to first order r varies like `(numerator - r * denominator) / mean(denominator)`.
    """
    total = max(float(denominator.sum()), 1.0)
    ratio = float(numerator.sum()) / total
    residuals = (numerator - ratio * denominator) * (len(numerator) / total)
    return Estimate("mean", ratio, len(numerator), _deviation(residuals))


def estimates(results: MatchResults, episode_metrics: EpisodeMetrics, rate_hz: float) -> dict[str, Estimate]:
    """Return an estimate for every metric of `result_row`, by name."""
    leads = results.leads
    found: dict[str, Estimate] = {}
    if "wins" in results.events:
        found["win_rate"] = share_estimate(int((results.events["wins"][leads] > 0).sum()), int(leads.sum()))
    if "reward" in results.events:
        found["mean_return"] = mean_estimate(results.events["reward"][leads])
    found["mean_length"] = mean_estimate(results.lengths[leads].astype(np.float64))
    episodes = episode_metrics.per_episode(results.sums, results.lengths, rate_hz)
    # Seats of one team share their match, so the independent samples are matches, not seats.
    first_rows = np.flatnonzero(leads)
    seats = np.diff(first_rows, append=len(leads))
    by_match = {name: np.add.reduceat(values, first_rows) / seats for name, values in episodes.items()}
    found |= {name: mean_estimate(values) for name, values in by_match.items()}
    for name, (above, below) in episode_metrics.ratios_of(by_match).items():
        found[name] = ratio_estimate(by_match[above], by_match[below])
    extremes = episode_metrics.summarise(episodes)
    for name in episode_metrics.extremes:
        found[name] = Estimate("extreme", extremes[name], len(first_rows), math.nan)
    return found


def mean_over_rows(rows: Sequence[Estimate]) -> Estimate:
    """Return the mean of several numbers with equal weight, such as the mean win rate over all opponents.

    A share of 0 or 1 has no sample variance; one win and one loss are added to each share to estimate it.
    """
    variances = []
    for row in rows:
        share = (row.value * row.matches + 1.0) / (row.matches + 2.0)
        variance = share * (1.0 - share) if row.kind == "share" else row.deviation**2
        variances.append(variance / row.matches)
    count, matches = len(rows), sum(row.matches for row in rows)
    error = math.sqrt(sum(variances)) / count
    limits = (0.0, 1.0) if all(row.kind == "share" for row in rows) else (-math.inf, math.inf)
    return Estimate("mean", sum(row.value for row in rows) / count, matches, error * math.sqrt(matches), limits)


def _deviation(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of a number between two agents.

    Attributes:
        value: The first agent's number minus the second's.
        low: Lower bound of its interval.
        high: Upper bound.
        verdict: On the first agent; `better` or `worse` only if the interval excludes 0.
        matches_needed: Matches per agent that would show a difference of this size with 80 % power; None if it is
            significant already, if there is none, or if the deviation is unknown.
    """

    value: float
    low: float
    high: float
    verdict: Verdict
    matches_needed: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values; None where a bound is infinite."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return {
            "difference": self.value if math.isfinite(self.value) else None,
            "low": low,
            "high": high,
            "verdict": self.verdict,
            "matches_needed": self.matches_needed,
        }


def compare(first: Estimate, second: Estimate, *, confidence: float = 0.95, more_is_better: bool = True) -> Difference:
    """Compare two numbers of the same kind that come from different matches.

    The interval is Newcombe's for two shares (from Wilson's of each) and Welch's for other means. Agents that played
    from the same seeds start their matches alike, which makes the true interval narrower if anything.

    Raises:
        ConfigError: One number is an extreme and the other is not.
    """
    if (first.kind == "extreme") != (second.kind == "extreme"):
        kinds = "an extreme cannot be compared with a mean"
        raise ConfigError(f"{kinds} ({first.kind}, {second.kind}); compare the same number of both")
    value = first.value - second.value
    low, high = _difference_interval(first, second, confidence)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Difference(value, -math.inf, math.inf, "not compared")
    if low <= 0.0 <= high:
        return Difference(value, low, high, "no difference seen", _matches_needed(first, second, confidence))
    return Difference(value, low, high, "better" if (value > 0.0) == more_is_better else "worse")


def _difference_interval(first: Estimate, second: Estimate, confidence: float) -> tuple[float, float]:
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
    # Welch-Satterthwaite degrees of freedom, rounded down to be conservative.
    freedom = total**2 / (errors[0] ** 2 / (first.matches - 1) + errors[1] ** 2 / (second.matches - 1))
    margin = t_quantile(0.5 + confidence / 2, max(1, math.floor(freedom))) * math.sqrt(total)
    return value - margin, value + margin


def _matches_needed(first: Estimate, second: Estimate, confidence: float, power: float = 0.8) -> int | None:
    """Return the matches per agent that would show the measured difference, if it is the true one, with this power."""
    difference = first.value - second.value
    variance = first.deviation**2 + second.deviation**2
    if difference == 0.0 or not math.isfinite(variance):
        return None
    normal = NormalDist()
    quantile = normal.inv_cdf(0.5 + confidence / 2) + normal.inv_cdf(power)
    needed = math.ceil(variance * (quantile / difference) ** 2)
    return max(needed, first.matches + 1, second.matches + 1)
