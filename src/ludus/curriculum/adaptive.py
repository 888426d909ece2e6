"""Adaptive curricula: when a run explores, and which goals and kinds of action it favours.

`Adaptive` explores while the games are stuck and builds while they grow. `Strategic` turns to what is furthest behind:
factors of goals, and the kinds of action that measurably help them, found by `Effects`.

A policy plays a kind where it expects good of it, so what follows on the kind is not what follows from it. The
probabilities of all kinds in every decision are known, though, and by them both sides of a comparison are weighed to
the same situations: with `a` the kind and `b` what it is compared with, a decision for `a` counts
`p(b) / (p(a) + p(b))` and one for `b` counts `p(a) / (p(a) + p(b))` (overlap weights: none is above 1, and situations
in which only one of both could happen do not count). The effect is the difference of the two weighted means of what a
number changed by.

Decisions of one game are not independent, so the interval is made of whole rollouts of games, *blocks*: with
`v = (S_a, W_a, S_b, W_b)` the weighted sums and the weights in a block, the effect `S_a / W_a - S_b / W_b` of the
totals has the gradient `g = (1, -m_a) / W_a, (-1, m_b) / W_b` and the variance `g' (sum over blocks of v v') g`.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ludus.core.errors import StateError
from ludus.core.state import Share, StateModel, check_names
from ludus.curriculum.config import AdaptiveConfig, StrategicConfig, goal_term

_SUMS, _PRODUCTS = 4, 16
_COUNTS = 3  # decisions for the kind, blocks with it, blocks with what it is compared with
_SIZE = _SUMS + _PRODUCTS + _COUNTS
_Sum: TypeAlias = Annotated[float, Field(ge=-1e100, le=1e100)]  # far from where sums of products overflow
_CONFIDENCE = 0.95  # of the intervals
FEWEST = 50  # blocks that each side of a comparison needs before it counts
_MOST = 4.0  # by which the reward of a goal grows or shrinks at most
_INERTIA = 0.9  # share of the old factors in the new ones, per iteration
# Shares of stuck games at which a run begins to explore, and below which it returns to building.
EXPLORE_ABOVE, BUILD_BELOW = 0.6, 0.4
_LOWEST, _HIGHEST, _STEP = 0.05, 0.5, 0.05  # of the exploration frequency, and its change per iteration


class Effect(NamedTuple):
    """The effect of a kind of action on a number."""

    mean: float  # by how much more the number changes after it than after what it is compared with
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    decisions: int  # for it
    is_sure: bool  # whether the interval excludes 0, though it is one of many that are looked at


class Effects:
    """Running estimates of the effects of all kinds on all numbers.

    Attributes:
        kinds: Names of the kinds of action.
        metrics: Names of the numbers.
        sure_z: Standard errors that a sure effect is away from 0.
        totals: Everything that was added, `(kinds, metrics, sums)`.
    """

    def __init__(self, kinds: Sequence[str], metrics: Sequence[str], against: int) -> None:
        """Begin with nothing; the kind of the number `against` is what all others are compared with."""
        self.kinds, self.metrics, self._against = tuple(kinds), tuple(metrics), against
        self._z = NormalDist().inv_cdf(0.5 + 0.5 * _CONFIDENCE)
        # Bonferroni: of all comparisons together, none is sure by chance with this confidence.
        comparisons = max((len(kinds) - 1) * len(metrics), 1)
        self.sure_z = NormalDist().inv_cdf(1.0 - 0.5 * (1.0 - _CONFIDENCE) / comparisons)
        self.totals: NDArray[np.float64] = np.zeros((len(kinds), len(metrics), _SIZE))

    def measure(
        self, chosen: NDArray[np.int64], shares: NDArray[np.float64], changes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what the decisions of a rollout add to the totals, `(kinds, metrics, sums)`.

        Args:
            chosen: `(steps, blocks)`, the kind that was played in each decision.
            shares: `(steps, blocks, kinds)`, how likely every kind was.
            changes: `(metrics, steps, blocks)`, what each number changed by from there on; NaN if that is not known.
        """
        known, against = np.isfinite(changes), self._against
        changes = np.where(known, changes, 0.0)
        is_played = chosen[..., None] == np.arange(len(self.kinds))
        both = shares + shares[..., against, None]
        weights = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0.0)
        treated = is_played * shares[..., against, None] * weights
        control = is_played[..., against, None] * shares * weights
        treated[..., against] = control[..., against] = 0.0  # it is not compared with itself
        sums = np.stack(
            [
                np.einsum("tbk,mtb->kmb", side, part, optimize=True)
                for side in (treated, control)
                for part in (changes, known.astype(np.float64))
            ],
            axis=-1,
        )
        products = np.einsum("kmbi,kmbj->kmij", sums, sums, optimize=True).reshape(*sums.shape[:2], _PRODUCTS)
        decisions = np.einsum("tbk,mtb->km", (treated > 0.0).astype(np.float64), known.astype(np.float64))
        blocks = (sums[..., (1, 3)] > 0.0).sum(axis=2)
        return np.concatenate((sums.sum(axis=2), products, decisions[..., None], blocks), axis=-1)

    def effect(self, kind: int, metric: int) -> Effect | None:
        """Return an effect, by the numbers of kind and metric; None while there is nothing to compare."""
        total = self.totals[kind, metric]
        sums, counts = total[:_SUMS], total[_SUMS + _PRODUCTS :]
        if sums[1] <= 0.0 or sums[3] <= 0.0:
            return None
        means = sums[0] / sums[1], sums[2] / sums[3]
        gradient = np.array([1.0, -means[0], -1.0, means[1]]) / np.repeat(sums[[1, 3]], 2)
        products = total[_SUMS : _SUMS + _PRODUCTS].reshape(_SUMS, _SUMS)
        blocks = float(counts[1:].min())
        mean, spread = float(means[0] - means[1]), float(max(gradient @ products @ gradient, 0.0))
        error = float(np.sqrt(spread * blocks / (blocks - 1.0))) if blocks > 1.0 else np.inf
        is_sure = blocks >= FEWEST and abs(mean) > self.sure_z * error
        return Effect(mean, mean - self._z * error, mean + self._z * error, round(float(counts[0])), bool(is_sure))

    def sure(self, metric: int) -> NDArray[np.float64]:
        """Return the effects of all kinds on a metric, `(kinds,)`, and 0 for those that are not sure."""
        found = [self.effect(kind, metric) for kind in range(len(self.kinds))]
        return np.array([effect.mean if effect is not None and effect.is_sure else 0.0 for effect in found])


class StrategicState(StateModel):
    """What `Strategic` saves as JSON: its attributes, and the totals of the effects."""

    totals: list[list[list[_Sum]]]
    progress: dict[str, float]
    factors: dict[str, float]


class Strategic:
    """Follows goals and effects.

    Attributes:
        effects: What was measured; the goals are its first metrics.
        progress: How far each goal was reached in the last iteration, 0 to 1.
        factors: Factor of each goal's reward, 1 at first.
    """

    def __init__(self, config: StrategicConfig, kinds: Sequence[str]) -> None:
        self.effects = Effects(kinds, config.state_metrics(), list(kinds).index(config.against))
        self.progress = dict.fromkeys(config.goals, 0.0)
        self.factors = dict.fromkeys(map(goal_term, config.goals), 1.0)

    def record(self, measured: NDArray[np.float64], progress: Sequence[float]) -> None:
        """Take an iteration: what `Effects.measure` gave, and how far each goal is reached, 0 to 1, in their order."""
        self.effects.totals += measured
        self.progress = dict(zip(self.progress, map(float, progress), strict=True))
        for name, factor in zip(self.factors, goal_factors(progress), strict=True):
            self.factors[name] = _INERTIA * self.factors[name] + (1.0 - _INERTIA) * factor

    def favour(self) -> list[float]:
        """Return the weight of each kind in exploring: how much it brings goals on that are behind; 0 if unsure."""
        gains = np.zeros(len(self.effects.kinds))
        for metric, progress in enumerate(self.progress.values()):
            gains += max(1.0 - progress, 0.0) * self.effects.sure(metric)
        helpful: list[float] = np.maximum(gains, 0.0).tolist()
        return helpful

    def state(self) -> dict[str, Any]:
        """Return where it stands, for JSON."""
        totals = self.effects.totals.tolist()
        return {"totals": totals, "progress": dict(self.progress), "factors": dict(self.factors)}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`; raise StateError if it is of other goals, kinds or metrics."""
        saved, shape = StrategicState.read(state, "course.steering"), self.effects.totals.shape
        check_names(saved.progress, self.progress, "course.steering.progress")
        check_names(saved.factors, self.factors, "course.steering.factors")
        sizes = {(len(row), len(sums)) for row in saved.totals for sums in row}
        if len(saved.totals) != shape[0] or sizes != {shape[1:]}:
            raise StateError(f"course.steering.totals must have the shape {shape}; use the same config")
        self.effects.totals = np.array(saved.totals, np.float64)
        self.progress = {name: saved.progress[name] for name in self.progress}
        self.factors = {name: saved.factors[name] for name in self.factors}


def goal_factors(progress: Sequence[float]) -> list[float]:
    """Return a factor for each goal: how far it is behind, over the mean of all; between 1 / `_MOST` and `_MOST`."""
    behind = [min(max(1.0 - share, 0.0), 1.0) for share in progress]
    mean = sum(behind) / len(behind)
    return [min(max(share / mean, 1.0 / _MOST), _MOST) if mean > 0.0 else 1.0 for share in behind]


class AdaptiveState(StateModel):
    """What `Adaptive` saves as JSON; its attributes say what they are."""

    is_exploring: bool
    frequency: Share
    stuck: Share | None


class Adaptive:
    """Follows how many games are stuck.

    Attributes:
        is_exploring: Whether the run explores at present; else it builds.
        frequency: Exploration frequency of the next iteration.
        stuck: Share of stuck games in the last iteration that said anything; None before.
    """

    def __init__(self, config: AdaptiveConfig) -> None:
        self._config, self.is_exploring, self.frequency = config, False, _LOWEST
        self.stuck: float | None = None

    def record(self, stuck: float, windows: float) -> str | None:
        """Take an iteration and return why the run switches, in words; None if it does not.

        Args:
            stuck: Windows of `patience` decisions in which nothing grew.
            windows: All windows; an iteration without any changes nothing.
        """
        if windows <= 0.0:
            return None
        config, before = self._config, self.is_exploring
        self.stuck = stuck / windows
        if self.stuck >= EXPLORE_ABOVE:
            self.is_exploring = True
        elif self.stuck < BUILD_BELOW:
            self.is_exploring = False
        moved = self.frequency + (_STEP if self.is_exploring else -_STEP)
        self.frequency = round(min(max(moved, _LOWEST), _HIGHEST), 9)
        if self.is_exploring == before:
            return None
        share, mode = f"{self.stuck:.0%} of the games", "exploring" if self.is_exploring else "building"
        return f"{mode}: {config.measure} had not grown for {config.patience} decisions in {share}"

    def state(self) -> dict[str, Any]:
        """Return where it stands, for JSON."""
        return {name: getattr(self, name) for name in AdaptiveState.model_fields}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`; raise StateError if a part is missing or out of range."""
        saved = AdaptiveState.read(state, "course.steering")
        self.is_exploring, self.frequency, self.stuck = saved.is_exploring, saved.frequency, saved.stuck


def count_stuck(values: NDArray[np.float64], ends: NDArray[np.bool_], patience: int) -> tuple[int, int]:
    """Return how many windows of `patience` decisions of a rollout show no growth, and how many windows there are.

    `values` is what has to grow after each step, `ends` the steps in which an episode ended, `(steps, rows)` each.
    """
    inside = ~broken_windows(ends, patience)
    grown = values[patience:] > values[:-patience]
    return int((inside & ~grown).sum()), int(inside.sum())


def broken_windows(ends: NDArray[np.bool_], decisions: int) -> NDArray[np.bool_]:
    """Return which windows have an episode's end before their last decision, `(steps - decisions, rows)`.

    Window `t` goes from what was seen after step `t` to what was seen `decisions` steps later.
    """
    counted = np.concatenate((np.zeros((1, ends.shape[1]), np.int64), ends.cumsum(axis=0)))
    return counted[decisions:-1] > counted[: -1 - decisions]
