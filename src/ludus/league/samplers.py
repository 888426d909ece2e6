"""Which snapshots play: the chance of each, from its age, the learner's win rate against it, and ratings.

Pure functions of whole columns: entry i of everything belongs to snapshot i, oldest first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError
from ludus.league.config import LeagueConfig

Chances = NDArray[np.float64]
_UNKNOWN = 0.5  # win rate against an opponent that was not met yet


def latest(count: int) -> Chances:
    """Gives everything to the newest of `count` snapshots."""
    return _normalised(np.eye(1, count, count - 1)[0])


def evenly(count: int) -> Chances:
    """Gives the same to all."""
    return _normalised(np.ones(count))


def mostly_recent(count: int, share: float, window: int) -> Chances:
    """Gives `share` to the newest `window` snapshots and the rest to the older ones; all where there are no older."""
    recent = min(window, count)
    weights = np.full(count, share / recent)
    if count > recent:
        weights[:-recent] = (1.0 - share) / (count - recent)
    return _normalised(weights)


def by_win_rate(win_rates: Sequence[float | None], weighting: str, power: float) -> Chances:
    """Prioritised fictitious self-play: weighs snapshots by the learner's win rate p against them.

    Args:
        win_rates: Of each snapshot, draws as half a win; None counts as 0.5.
        weighting: `hard` is `(1 - p) ** power`, `even` is `p (1 - p)`.
        power: Of `hard`.
    """
    rates = np.array([_UNKNOWN if rate is None else rate for rate in win_rates])
    return _normalised((1.0 - rates) ** power if weighting == "hard" else rates * (1.0 - rates))


def by_rating(ratings: Sequence[float | None], learner: float, width: float) -> Chances:
    """Weighs snapshots by a bell curve over their distance from the learner's rating.

    Args:
        ratings: Of each snapshot, in Elo points; None counts as the learner's own.
        learner: The learner's.
        width: Standard deviation of the curve.
    """
    distances = np.array([0.0 if rating is None else (rating - learner) / width for rating in ratings])
    # Relative to the nearest, so that a learner far above all of them does not round every weight to 0.
    exponents = -0.5 * distances**2
    return _normalised(np.exp(exponents - exponents.max(initial=-np.inf)))


def sample(
    config: LeagueConfig,
    win_rates: Sequence[float | None],
    ratings: Sequence[float | None],
    learner: float,
) -> Chances:
    """Returns the chance of each snapshot by the sampler that the config names; they add up to 1."""
    count = len(win_rates)
    if config.sampler == "latest":
        return latest(count)
    if config.sampler == "uniform":
        return evenly(count)
    if config.sampler == "recent":
        return mostly_recent(count, config.recent_share, config.recent_window)
    if config.sampler == "pfsp":
        return by_win_rate(win_rates, config.pfsp_weighting, config.pfsp_power)
    return by_rating(ratings, learner, config.rating_width)


def thin_out(chances: Chances, live: int, offset: float) -> Chances:
    """Leaves a chance to at most `live` snapshots; on average over offsets everyone keeps its own.

    Systematic resampling: `live` points, evenly spaced from `offset / live` on, fall on the snapshots laid end to end;
    the chance of each is its share of the points. So a snapshot above `1 / live` is never left out.

    Args:
        chances: Of each snapshot.
        live: Most that may have one.
        offset: From 0 to 1, drawn evenly.
    """
    if np.count_nonzero(chances) <= live:
        return chances
    ends = np.cumsum(chances)
    ends[np.flatnonzero(chances)[-1] :] = np.inf  # rounding must not let the last point fall off the end
    points = (np.arange(live) + offset) / live
    hits = np.bincount(np.searchsorted(ends, points, side="right"), minlength=len(chances))
    return hits / live


def _normalised(weights: Chances) -> Chances:
    """Makes weights add up to 1; where all are 0, because every snapshot is beaten always, all are alike."""
    if weights.size == 0:
        raise ConfigError("there is no snapshot to draw from; add one first")
    total = weights.sum()
    if not total > 0.0:
        return np.full(weights.size, 1.0 / weights.size)
    normalised: Chances = weights / total
    return normalised
