"""Adaptive curricula: which goals and kinds of action a run favours, and what a limit costs.

`Strategic` turns to what is furthest behind: factors of goals, and the kinds of action that measurably help them, found
by `Effects`. `Constraint` is the multiplier of a reward term that holds a limit.

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
from ludus.core.schedules import MAX_FACTOR
from ludus.core.state import Share, StateModel, check_names
from ludus.curriculum.config import ConstraintConfig, StrategicConfig, goal_term

_SUMS, _PRODUCTS = 4, 16
_COUNTS = 3  # decisions for the kind, blocks with it, blocks with what it is compared with
_SIZE = _SUMS + _PRODUCTS + _COUNTS
_Sum: TypeAlias = Annotated[float, Field(ge=-1e100, le=1e100)]  # far from where sums of products overflow

OTHERS = "others"  # compares a kind with all others


class Effect(NamedTuple):
    """The effect of a kind of action on a number.

    Attributes:
        mean: By how much more the number changes after it than after what it is compared with.
        low: Lower end of the interval.
        high: Upper end of the interval.
        decisions: For it.
        is_sure: Whether the interval excludes 0, though it is one of many that are looked at.
    """

    mean: float
    low: float
    high: float
    decisions: int
    is_sure: bool


class EffectsState(StateModel):
    """What `Effects` saves as JSON.

    Attributes:
        kinds: Names of the kinds of action.
        metrics: Names of the numbers.
        totals: Everything that was added, `(kinds, metrics, sums)`.
    """

    kinds: list[str]
    metrics: list[str]
    totals: list[list[list[_Sum]]]


class Effects:
    """Running estimates of the effects of all kinds on all numbers.

    Attributes:
        kinds: Names of the kinds of action.
        metrics: Names of the numbers.
        against: The kind that others are compared with; None for all others.
        sure_z: Standard errors that a sure effect is away from 0.
    """

    def __init__(
        self, kinds: Sequence[str], metrics: Sequence[str], against: int | None, confidence: float, fewest: int
    ) -> None:
        """Begin with nothing.

        Args:
            kinds: Names of the kinds of action.
            metrics: Names of the numbers.
            against: The kind that others are compared with; None compares each with all others.
            confidence: Of the intervals.
            fewest: Blocks that each side of a comparison needs before it counts.
        """
        self.kinds, self.metrics, self.against = tuple(kinds), tuple(metrics), against
        self._fewest = fewest
        self._z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
        # Bonferroni: of all comparisons together, none is sure by chance with this confidence.
        comparisons = max((len(kinds) - (against is not None)) * len(metrics), 1)
        self.sure_z = NormalDist().inv_cdf(1.0 - 0.5 * (1.0 - confidence) / comparisons)
        self._totals: NDArray[np.float64] = np.zeros((len(kinds), len(metrics), _SIZE))

    def measure(
        self, chosen: NDArray[np.int64], shares: NDArray[np.float64], changes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what the decisions of a rollout add, `(kinds, metrics, sums)`, for `add`.

        Args:
            chosen: `(steps, blocks)`, the kind that was played in each decision.
            shares: `(steps, blocks, kinds)`, how likely every kind was.
            changes: `(metrics, steps, blocks)`, what each number changed by from there on; NaN if that is not known.
        """
        known = np.isfinite(changes)
        changes = np.where(known, changes, 0.0)
        is_played = chosen[..., None] == np.arange(len(self.kinds))
        if self.against is None:
            treated, control = is_played * (1.0 - shares), ~is_played * shares
        else:
            both = shares + shares[..., self.against, None]
            weights = np.divide(1.0, both, out=np.zeros_like(both), where=both > 0.0)
            treated = is_played * shares[..., self.against, None] * weights
            control = is_played[..., self.against, None] * shares * weights
            treated[..., self.against] = control[..., self.against] = 0.0  # it is not compared with itself
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

    def add(self, measured: NDArray[np.float64], kept: float = 1.0) -> None:
        """Add what `measure` gave; what was there before counts `kept` times as much as it did."""
        totals = self._totals
        totals[..., _SUMS : _SUMS + _PRODUCTS] *= kept * kept  # squares of weights
        for part in (slice(0, _SUMS), slice(_SUMS + _PRODUCTS, _SIZE)):
            totals[..., part] *= kept
        totals += measured

    def effect(self, kind: int, metric: int) -> Effect | None:
        """Return an effect, by the numbers of kind and metric; None while there is nothing to compare."""
        total = self._totals[kind, metric]
        sums, counts = total[:_SUMS], total[_SUMS + _PRODUCTS :]
        if sums[1] <= 0.0 or sums[3] <= 0.0:
            return None
        means = sums[0] / sums[1], sums[2] / sums[3]
        gradient = np.array([1.0, -means[0], -1.0, means[1]]) / np.repeat(sums[[1, 3]], 2)
        products = total[_SUMS : _SUMS + _PRODUCTS].reshape(_SUMS, _SUMS)
        blocks = float(counts[1:].min())
        mean, spread = float(means[0] - means[1]), float(max(gradient @ products @ gradient, 0.0))
        error = float(np.sqrt(spread * blocks / (blocks - 1.0))) if blocks > 1.0 else np.inf
        is_sure = blocks >= self._fewest and abs(mean) > self.sure_z * error
        return Effect(mean, mean - self._z * error, mean + self._z * error, round(float(counts[0])), bool(is_sure))

    def sure(self, metric: int) -> NDArray[np.float64]:
        """Return the effects of all kinds on a metric, `(kinds,)`, and 0 for those that are not sure."""
        found = [self.effect(kind, metric) for kind in range(len(self.kinds))]
        return np.array([effect.mean if effect is not None and effect.is_sure else 0.0 for effect in found])

    def state(self) -> dict[str, Any]:
        """Return everything that was added, for JSON."""
        return {"kinds": list(self.kinds), "metrics": list(self.metrics), "totals": self._totals.tolist()}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is of other kinds or metrics.
        """
        saved = EffectsState.read(state, "course.steering.effects")
        if (tuple(saved.kinds), tuple(saved.metrics)) != (self.kinds, self.metrics):
            raise StateError("the measured effects are of other kinds of action or metrics; use the same config")
        kinds, metrics, size = self._totals.shape
        fits = all(len(row) == metrics and all(len(sums) == size for sums in row) for row in saved.totals)
        if len(saved.totals) != kinds or not fits:
            raise StateError(f"course.steering.effects.totals must have the shape {self._totals.shape}")
        self._totals = np.array(saved.totals, np.float64)


class StrategicState(StateModel):
    """What `Strategic` saves as JSON; its attributes say what they are."""

    effects: EffectsState
    progress: dict[str, float]
    factors: dict[str, float]


class Strategic:
    """Follows goals and effects.

    Attributes:
        effects: What was measured; the goals are its first metrics.
        progress: How far each goal was reached in the last iteration, 0 to 1.
        factors: Factor of each goal's reward.
    """

    def __init__(self, config: StrategicConfig, kinds: Sequence[str]) -> None:
        """Begin with nothing measured and all factors 1.

        Args:
            config: Its settings; what kinds are compared with is among them.
            kinds: Names of the kinds of action.
        """
        self._config = config
        against = None if config.against == OTHERS else list(kinds).index(config.against)
        self.effects = Effects(kinds, config.state_metrics(), against, config.confidence, config.fewest)
        self.progress = dict.fromkeys(config.goals, 0.0)
        self.factors = dict.fromkeys(map(goal_term, config.goals), 1.0)

    def record(self, measured: NDArray[np.float64], progress: Sequence[float], env_steps: int) -> None:
        """Take an iteration.

        Args:
            measured: What `Effects.measure` gave.
            progress: How far each goal is reached, 0 to 1, by the order of the goals.
            env_steps: Steps that the iteration took.
        """
        half_life = self._config.half_life_env_steps
        self.effects.add(measured, 1.0 if half_life is None else 0.5 ** (env_steps / half_life))
        self.progress = dict(zip(self._config.goals, map(float, progress), strict=True))
        wanted, inertia = goal_factors(progress, self._config.most), self._config.inertia
        for name, factor in zip(self.factors, wanted, strict=True):
            self.factors[name] = inertia * self.factors[name] + (1.0 - inertia) * factor

    def favour(self) -> list[float]:
        """Return the weight of each kind in exploring: how much it brings goals on that are behind; 0 if unsure."""
        gains = np.zeros(len(self.effects.kinds))
        for metric, progress in enumerate(self.progress.values()):
            gains += max(1.0 - progress, 0.0) * self.effects.sure(metric)
        helpful: list[float] = np.maximum(gains, 0.0).tolist()
        return helpful

    def state(self) -> dict[str, Any]:
        """Return where it stands, for JSON."""
        return {"effects": self.effects.state(), "progress": dict(self.progress), "factors": dict(self.factors)}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`.

        Raises:
            StateError: It is of other goals, kinds or metrics.
        """
        saved = StrategicState.read(state, "course.steering")
        check_names(saved.progress, self.progress, "course.steering.progress")
        check_names(saved.factors, self.factors, "course.steering.factors")
        self.effects.load_state(saved.effects)
        self.progress = {name: saved.progress[name] for name in self.progress}
        self.factors = {name: saved.factors[name] for name in self.factors}


def goal_factors(progress: Sequence[float], most: float) -> list[float]:
    """Return a factor for each goal: how far it is behind, over the mean of all; between 1 / `most` and `most`."""
    behind = [min(max(1.0 - share, 0.0), 1.0) for share in progress]
    mean = sum(behind) / len(behind)
    if mean <= 0.0:
        return [1.0] * len(behind)
    return [min(max(share / mean, 1.0 / most), most) for share in behind]


class ConstraintState(StateModel):
    """What `Constraint` saves as JSON; its attributes say what they are."""

    multiplier: Annotated[float, Field(ge=0.0, le=MAX_FACTOR)]
    share: Share | None


class Constraint:
    """A Lagrange multiplier.

    Attributes:
        multiplier: Factor of the reward term in the next rollout.
        share: Share of the decisions of the last rollout that violate the bound; None before.
    """

    def __init__(self, config: ConstraintConfig) -> None:
        self._config, self.multiplier = config, config.lowest
        self.share: float | None = None

    def record(self, violations: float, decisions: float) -> None:
        """Take a rollout: one step of dual ascent, within the bounds of the multiplier."""
        config, self.share = self._config, violations / decisions
        moved = self.multiplier + config.rate * (self.share - config.limit)
        self.multiplier = min(max(moved, config.lowest), config.highest)

    def state(self) -> dict[str, Any]:
        """Return where it stands, for JSON."""
        return {"multiplier": self.multiplier, "share": self.share}

    def load_state(self, state: object) -> None:
        """Restore the state returned by `state()`; raise StateError if a part is missing or out of range."""
        saved = ConstraintState.read(state, "course.steering")
        self.multiplier, self.share = saved.multiplier, saved.share


def broken_windows(ends: NDArray[np.bool_], decisions: int) -> NDArray[np.bool_]:
    """Return which windows have an episode's end before their last decision, `(steps - decisions, rows)`.

    Window `t` goes from what was seen after step `t` to what was seen `decisions` steps later.
    """
    counted = np.concatenate((np.zeros((1, ends.shape[1]), np.int64), ends.cumsum(axis=0)))
    return counted[decisions:-1] > counted[: -1 - decisions]
