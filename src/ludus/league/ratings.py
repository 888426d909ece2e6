"""Ratings: Bradley-Terry with intervals from the whole payoff matrix; Elo and openskill as live numbers.

All are in the order of Elo: 400 points more mean ten times the chance to win. The fit does not depend on the order of
the matches; the live numbers do, and cost nothing to keep.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from openskill.models import PlackettLuce

from ludus.core.errors import ConfigError, StateError
from ludus.core.intervals import Interval

ELO_START = 1000.0
ELO_STEP = 16.0  # points that one match can move a rating by
_POINTS = 400.0 / math.log(10.0)  # Elo points of one unit of log odds
_NEWTON_STEPS = 100
# openskill takes 0.1 ms a match: of a larger batch as many matches count as this, in the same proportion.
_MOST_RATED = 16


def bradley_terry(
    names: Sequence[str], points: NDArray[np.float64], *, prior_points: float = 800.0, confidence: float = 0.95
) -> dict[str, Interval]:
    """Fits ratings whose mean is 0 to a payoff matrix.

    The chance that i beats j is `1 / (1 + 10 ** ((r_j - r_i) / 400))`. A normal prior around 0 keeps the ratings of
    players that won or lost every match finite. Intervals come from the inverse of the Hessian, for each player's
    distance from the mean: where all of them stand together no match can tell.

    Args:
        names: The players.
        points: `(players, players)` points of the row against the column; a draw is half a point for both.
        prior_points: Standard deviation of the prior.
        confidence: Of the intervals.
    """
    players = len(names)
    if points.shape != (players, players) or not np.isfinite(points).all() or (points < 0.0).any():
        raise ConfigError(f"points of {players} players must be finite, from 0 on and {players} x {players} in shape")
    if players == 0:
        return {}
    precision = (_POINTS / prior_points) ** 2
    matches = points + points.T
    ratings, hessian = np.zeros(players), np.eye(players)
    for _ in range(_NEWTON_STEPS):
        expected = 1.0 / (1.0 + np.exp(ratings[None, :] - ratings[:, None]))
        gradient = (points - matches * expected).sum(1) - precision * ratings
        certainty = matches * expected * (1.0 - expected)
        hessian = np.diag(certainty.sum(1) + precision) - certainty
        step = np.linalg.solve(hessian, gradient)
        ratings = ratings + np.clip(step, -1.0, 1.0)  # far from the answer a whole Newton step may go too far
        if np.abs(step).max() < 1e-10:
            break
    centre = np.eye(players) - 1.0 / players
    spread = np.sqrt(np.diag(centre @ np.linalg.inv(hessian) @ centre).clip(min=0.0))
    margins = NormalDist().inv_cdf(0.5 + confidence / 2.0) * spread * _POINTS
    ratings = (ratings - ratings.mean()) * _POINTS
    return {
        name: Interval(float(rating), float(rating - margin), float(rating + margin))
        for name, rating, margin in zip(names, ratings, margins, strict=True)
    }


class LiveRatings:
    """Elo and openskill numbers that follow the matches, a batch at a time.

    A new era begins with the numbers of the one before it: it is the same learner. The snapshot of an era goes on with
    those that the era ended with.

    Attributes:
        elo: Elo rating of every player, from 1,000.
        skill: openskill's mean and deviation of every player, from 25 and 25 / 3.
        learner: The present era; empty before the first match.
    """

    def __init__(self) -> None:
        self._model = PlackettLuce()
        self.elo: dict[str, float] = {}
        self.skill: dict[str, tuple[float, float]] = {}
        self.learner = ""

    def record(self, era: str, opponent: str, wins: int, draws: int, losses: int) -> None:
        """Moves the numbers of both by a batch of matches, which count as one after the other."""
        matches = wins + draws + losses
        if matches == 0:
            return
        fresh = (self._model.mu, self._model.sigma)
        if era not in self.elo:
            self.elo[era] = self.elo.get(self.learner, ELO_START)
            self.skill[era] = self.skill.get(self.learner, fresh)
        self.learner = era
        self.elo.setdefault(opponent, ELO_START)
        self.skill.setdefault(opponent, fresh)
        score = (wins + 0.5 * draws) / matches
        ours, theirs = self.elo[era], self.elo[opponent]
        for _ in range(matches):
            step = ELO_STEP * (score - expected_score(ours - theirs))
            ours, theirs = ours + step, theirs - step
        self.elo[era], self.elo[opponent] = ours, theirs
        self._rate(era, opponent, _in_turns((wins, draws, losses), min(matches, _MOST_RATED)))

    def ordinal(self, name: str) -> float:
        """Returns openskill's careful number: mean less three deviations."""
        mean, deviation = self.skill[name]
        return mean - 3.0 * deviation

    def _rate(self, era: str, opponent: str, results: Iterable[int]) -> None:
        ours, theirs = (self._model.rating(*self.skill[name]) for name in (era, opponent))
        for result in results:
            # The lower rank is the better one; equal ranks are a draw.
            [[ours], [theirs]] = self._model.rate([[ours], [theirs]], ranks=[result, 1])
        self.skill[era], self.skill[opponent] = (ours.mu, ours.sigma), (theirs.mu, theirs.sigma)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Rebuilds the numbers from rows in the order in which they were played; see `Payoffs.from_rows`."""
        ratings = cls()
        for number, row in enumerate(rows, 1):
            try:
                counts = [int(row[name]) for name in ("wins", "draws", "losses")]
                ratings.record(str(row["learner"]), str(row["opponent"]), *counts)
            except (KeyError, ValueError, TypeError) as error:
                raise StateError(f"row {number} of the matches cannot be used: {dict(row)}") from error
        return ratings

    def state(self) -> dict[str, Any]:
        """Returns everything as JSON."""
        skill = {name: list(pair) for name, pair in self.skill.items()}
        return {"elo": dict(self.elo), "skill": skill, "learner": self.learner}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave in the place of everything.

        Raises:
            StateError: It is no such state.
        """
        try:
            elo = {str(name): float(value) for name, value in state["elo"].items()}
            skill = {str(name): (float(mean), float(spread)) for name, (mean, spread) in state["skill"].items()}
            learner = str(state["learner"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"this is no state of live ratings: {error}; use what `state` gave") from error
        self.elo, self.skill, self.learner = elo, skill, learner


def expected_score(difference: float) -> float:
    """Returns the chance to win of a player that is rated `difference` Elo points above the other."""
    return 1.0 / (1.0 + math.pow(10.0, -difference / 400.0))


def _in_turns(counts: tuple[int, int, int], total: int) -> list[int]:
    """Spreads results 0, 1 and 2 evenly over `total` matches in the proportion of their counts."""
    matches = sum(counts)
    owed, results = [0.0, 0.0, 0.0], []
    for _ in range(total):
        owed = [debt + count / matches for debt, count in zip(owed, counts, strict=True)]
        result = max(range(3), key=lambda i: (owed[i], -i))
        owed[result] -= 1.0
        results.append(result)
    return results
