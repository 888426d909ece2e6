"""What an agent does differently against each style, and how much of that its features cause."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.analysis.actions import AS_IS, CONDITIONS, OTHER_STYLE, SAME_STYLE, ActionRecord
from ludus.core.intervals import Interval, mean_interval

Array = NDArray[np.float64]

_ERROR = 0.05  # of all intervals of a table together (Bonferroni)


@dataclass(frozen=True, slots=True)
class Effect:
    """How an agent's action distributions change with its features, on the same observations.

    Shifts are probabilities (or expected continuous actions) with its own features minus those with the others; their
    intervals hold jointly with 95 % (Bonferroni).
    """

    by_style: tuple[Interval, ...]  # share of decisions that differ, over matches; see `changed_decisions`
    mean: Interval  # the same over all matches
    shifts: tuple[tuple[Interval, ...], ...]  # by style and column


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What an agent does against each style, and what its features change in it."""

    names: tuple[str, ...]  # of the columns: keys, choices, or numbers of a continuous action
    are_shares: bool  # whether columns are shares of frames; else means of continuous actions
    rates: Array  # `(styles, columns)` of what it did
    mean: Array  # `(columns,)` mean over the styles with equal weight
    differences: tuple[tuple[Interval, ...], ...]  # rates minus that mean; the intervals hold jointly with 95 %
    effects: dict[str, Effect]  # by condition
    style_effect: tuple[Interval, ...]  # by style: decisions changed by another style's features beyond the control
    mean_style_effect: Interval  # the same over all matches

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "actions": list(self.names),
            "are_shares": self.are_shares,
            "rates": np.round(self.rates, 5).tolist(),
            "mean": np.round(self.mean, 5).tolist(),
            "differences": [[interval_json(each) for each in row] for row in self.differences],
            "effects": {
                name: {
                    "mean": interval_json(effect.mean),
                    "by_style": list(map(interval_json, effect.by_style)),
                    "shifts": [[interval_json(each) for each in row] for row in effect.shifts],
                }
                for name, effect in self.effects.items()
            },
            "style_effect": {
                "mean": interval_json(self.mean_style_effect),
                "by_style": list(map(interval_json, self.style_effect)),
            },
        }


def describe_behaviour(record: ActionRecord, labels: NDArray[np.int64], styles: int) -> Behaviour:
    """Compare what was done, and what would have been done, between styles.

    Args:
        record: What was recorded.
        labels: `(matches,)` style of each match; every style occurs.
        styles: Number of styles.
    """
    confidence = 1.0 - _ERROR / (styles * len(record.names))
    groups = [labels == style for style in range(styles)]
    rates = [[_mean(column, confidence) for column in record.rates[own].T] for own in groups]
    effects, changed = {}, {}
    for name in CONDITIONS:
        shift = record.expected[AS_IS].astype(np.float64) - record.expected[name]
        decided = changed_decisions(shift, record.factors, are_shares=record.are_shares)
        changed[name] = _by_match(decided, record.usable[name])
        shifts = _by_match(shift, record.usable[name])
        effects[name] = Effect(
            tuple(_mean(changed[name][own]) for own in groups),
            _mean(changed[name]),
            tuple(tuple(_mean(column, confidence) for column in shifts[own].T) for own in groups),
        )
    beyond = changed[OTHER_STYLE] - changed[SAME_STYLE]
    return Behaviour(
        names=record.names,
        are_shares=record.are_shares,
        rates=np.array([[each.estimate for each in row] for row in rates]),
        mean=np.array([[each.estimate for each in row] for row in rates]).mean(0),
        differences=tuple(zip(*(_from_mean(column) for column in zip(*rates, strict=True)), strict=True)),
        effects=effects,
        style_effect=tuple(_mean(beyond[own]) for own in groups),
        mean_style_effect=_mean(beyond),
    )


def changed_decisions(shift: Array, factors: Sequence[int], *, are_shares: bool) -> Array:
    """Return how much of an agent's decisions differ between two action distributions, `(...)`.

    For discrete actions it is the total variation distance, the least share of decisions that must differ: the mean
    over keys of |p - q|, or over choices half the sum of |p - q|. For continuous actions it is the mean absolute
    difference of the expected actions.

    Args:
        shift: `(..., columns)`, difference of probabilities or expected actions.
        factors: The decision that each column belongs to.
        are_shares: Whether the columns are probabilities.
    """
    gaps, of_factor = np.abs(shift), np.asarray(factors)
    parts = []
    for factor in np.unique(of_factor):
        columns = gaps[..., of_factor == factor]
        is_choice = are_shares and columns.shape[-1] > 1
        parts.append(columns.sum(-1) * (0.5 if is_choice else 1.0))
    mean: Array = np.mean(parts, axis=0)
    return mean


def interval_json(interval: Interval) -> dict[str, float | None]:
    """Return an interval as JSON values; None stands for what is unknown or infinite."""
    return {name: round(value, 6) if math.isfinite(value) else None for name, value in interval._asdict().items()}


def _by_match(values: Array, usable: NDArray[np.bool_]) -> Array:
    """Return means over the usable samples of values `(samples, matches, ...)`, NaN for matches without any."""
    mask = usable.reshape(*usable.shape, *(1,) * (values.ndim - 2))
    with np.errstate(invalid="ignore"):
        means: Array = np.where(mask, values, 0.0).sum(0) / np.where(mask.any(0), mask.sum(0), np.nan)
    return means


def _mean(values: NDArray[Any], confidence: float = 0.95) -> Interval:
    known = values[np.isfinite(values)]
    return mean_interval(known.tolist(), confidence) if len(known) else Interval(math.nan, math.nan, math.nan)


def _from_mean(rates: Sequence[Interval]) -> list[Interval]:
    """Return the difference of each rate to the mean of all, which it is a part of; margins add up in squares."""
    count = len(rates)
    mean = sum(each.estimate for each in rates) / count
    found = []
    for index, own in enumerate(rates):
        weights = [(count - 1) / count if place == index else -1.0 / count for place in range(count)]
        margins = [weight * (each.high - each.estimate) for weight, each in zip(weights, rates, strict=True)]
        value, margin = own.estimate - mean, math.hypot(*margins)
        found.append(Interval(value, value - margin, value + margin))
    return found
