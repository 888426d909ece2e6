"""Which kind of action moves which number: effects with intervals, from decisions whose probabilities are known.

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

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import StateError

_SUMS, _PRODUCTS = 4, 16
_COUNTS = 3  # decisions for the kind, blocks with it, blocks with what it is compared with
_SIZE = _SUMS + _PRODUCTS + _COUNTS


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
        """Begins with nothing.

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
        """Returns what the decisions of a rollout add, `(kinds, metrics, sums)`, for `add`.

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
        """Adds what `measure` gave; what was there before counts `kept` times as much as it did."""
        totals = self._totals
        totals[..., _SUMS : _SUMS + _PRODUCTS] *= kept * kept  # squares of weights
        for part in (slice(0, _SUMS), slice(_SUMS + _PRODUCTS, _SIZE)):
            totals[..., part] *= kept
        totals += measured

    def effect(self, kind: int, metric: int) -> Effect | None:
        """Returns an effect, by the numbers of kind and metric; None while there is nothing to compare."""
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
        """Returns the effects of all kinds on a metric, `(kinds,)`, and 0 for those that are not sure."""
        found = [self.effect(kind, metric) for kind in range(len(self.kinds))]
        return np.array([effect.mean if effect is not None and effect.is_sure else 0.0 for effect in found])

    def state(self) -> dict[str, Any]:
        """Returns everything that was added, for JSON."""
        return {"kinds": list(self.kinds), "metrics": list(self.metrics), "totals": self._totals.tolist()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It is of other kinds or metrics.
        """
        if (tuple(state["kinds"]), tuple(state["metrics"])) != (self.kinds, self.metrics):
            raise StateError("the measured effects are of other kinds of action or metrics; use the same config")
        totals = np.asarray(state["totals"], np.float64)
        if totals.shape != self._totals.shape:
            raise StateError(f"the measured effects have shape {totals.shape}, expected {self._totals.shape}")
        self._totals = totals
