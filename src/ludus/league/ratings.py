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

from ludus.core.errors import ConfigError, StateError
from ludus.core.intervals import Interval
from ludus.league.payoffs import Payoffs

ELO_START = 1000.0
ELO_STEP = 16.0  # points that one match can move a rating by
_POINTS = 400.0 / math.log(10.0)  # Elo points of one unit of log odds
_NEWTON_STEPS = 100
_MOST_RATED = 16  # of a larger batch as many matches count for openskill's numbers, in the same proportion
# openskill's Plackett-Luce model with its own defaults: mean and deviation of a new player, deviation of a performance
# around the skill, growth of a deviation before every match, and least factor of a variance after one.
_MEAN, _DEVIATION = 25.0, 25.0 / 3.0
_BETA, _TAU, _KAPPA = 25.0 / 6.0, 25.0 / 300.0, 0.0001
_WIN, _DRAW, _LOSS = 0, 1, 2

Skill = tuple[float, float]  # openskill's mean and deviation

FIRST_MODE = "1v1"  # of the matches of tables that name no mode


def bradley_terry(
    names: Sequence[str], points: NDArray[np.float64], *, prior_points: float = 800.0, confidence: float = 0.95
) -> dict[str, Interval]:
    """Fit ratings whose mean is 0 to a payoff matrix.

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


def rate_by_results(agent: str, results: Mapping[str, tuple[float, float]]) -> dict[str, Interval]:
    """Rate an agent and its opponents by the agent's own matches alone.

    Opponents that met no one else are as far from the agent as their matches say, so it is above those that it
    took more than half of the points, and below the others.

    Args:
        agent: Its name.
        results: By opponent, the points of the agent and of the opponent; a draw is half a point for both.
    """
    names = [agent, *results]
    points = np.zeros((len(names), len(names)))
    for place, (won, lost) in enumerate(results.values(), 1):
        points[0, place], points[place, 0] = won, lost
    return bradley_terry(names, points)


class LiveRatings:
    """Elo and openskill numbers that follow the matches, a batch at a time.

    A new snapshot id begins with the numbers of the one before it: it is the same learner. The snapshot itself
    continues with those that the learner had when it was taken.

    Attributes:
        elo: Elo rating of every player, from 1,000.
        skill: openskill's mean and deviation of every player, from 25 and 25 / 3.
        learner: The present snapshot id; empty before the first match.
    """

    def __init__(self) -> None:
        self.elo: dict[str, float] = {}
        self.skill: dict[str, Skill] = {}
        self.learner = ""

    def record(self, snapshot_id: str, opponent: str, wins: int, draws: int, losses: int) -> None:
        """Move the numbers of both by a batch of matches, which count as one after the other."""
        matches = wins + draws + losses
        if matches == 0:
            return
        fresh = (_MEAN, _DEVIATION)
        if snapshot_id not in self.elo:
            self.elo[snapshot_id] = self.elo.get(self.learner, ELO_START)
            self.skill[snapshot_id] = self.skill.get(self.learner, fresh)
        self.learner = snapshot_id
        self.elo.setdefault(opponent, ELO_START)
        self.skill.setdefault(opponent, fresh)
        score = (wins + 0.5 * draws) / matches
        ours, theirs = self.elo[snapshot_id], self.elo[opponent]
        for _ in range(matches):
            step = ELO_STEP * (score - expected_score(ours - theirs))
            ours, theirs = ours + step, theirs - step
        self.elo[snapshot_id], self.elo[opponent] = ours, theirs
        self._rate(snapshot_id, opponent, _in_turns((wins, draws, losses), min(matches, _MOST_RATED)))

    def ordinal(self, name: str) -> float:
        """Return openskill's careful number: mean less three deviations."""
        mean, deviation = self.skill[name]
        return mean - 3.0 * deviation

    def _rate(self, snapshot_id: str, opponent: str, results: Iterable[int]) -> None:
        ours, theirs = self.skill[snapshot_id], self.skill[opponent]
        for result in results:
            ours, theirs = rate_match(ours, theirs, result)
        self.skill[snapshot_id], self.skill[opponent] = ours, theirs

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Rebuild the numbers from rows in the order in which they were played; see `Payoffs.from_rows`."""
        ratings = cls()
        for number, row in enumerate(rows, 1):
            try:
                counts = [int(row[name]) for name in ("wins", "draws", "losses")]
                ratings.record(str(row["learner"]), str(row["opponent"]), *counts)
            except (KeyError, ValueError, TypeError) as error:
                raise StateError(f"row {number} of the matches cannot be used: {dict(row)}") from error
        return ratings


def expected_score(difference: float) -> float:
    """Return the chance to win of a player that is rated `difference` Elo points above the other."""
    return 1.0 / (1.0 + math.pow(10.0, -difference / 400.0))


def rate_match(ours: Skill, theirs: Skill, result: int) -> tuple[Skill, Skill]:
    """Return openskill's numbers of two players after a match that the first one won (0), drew (1) or lost (2).

    The numbers are those of `openskill.models.PlackettLuce` bit by bit. Its `rate` is made for teams and copies every
    player, which takes nine times as long: with a dozen opponents, a large part of what the host does per iteration.
    """
    (mean, deviation), (other_mean, other_deviation) = ours, theirs
    deviation = math.sqrt(deviation * deviation + _TAU * _TAU)
    other_deviation = math.sqrt(other_deviation * other_deviation + _TAU * _TAU)
    variance, other_variance = deviation**2, other_deviation**2
    scale = math.sqrt(variance + _BETA**2 + (other_variance + _BETA**2))
    weight, other_weight = math.exp(mean / scale), math.exp(other_mean / scale)
    chance, other_chance = weight / (weight + other_weight), other_weight / (weight + other_weight)
    return (
        _moved(mean, deviation, chance, scale, result),
        _moved(other_mean, other_deviation, other_chance, scale, _LOSS - result),
    )


def _moved(mean: float, deviation: float, chance: float, scale: float, result: int) -> Skill:
    """Return the numbers of a player that had a chance to win a match, after it."""
    if result == _WIN:
        surprise = 1.0 - chance
    elif result == _DRAW:
        surprise = (1.0 - chance) / 2.0 - chance / 2.0
    else:
        surprise = -chance
    variance = deviation**2
    certainty = chance * (1.0 - chance) * (variance / scale**2) * (math.sqrt(variance) / scale)
    return mean + surprise * (variance / scale), deviation * math.sqrt(max(1.0 - certainty, _KAPPA))


def _in_turns(counts: tuple[int, int, int], total: int) -> list[int]:
    """Spread results 0, 1 and 2 evenly over `total` matches in the proportion of their counts."""
    matches = sum(counts)
    owed, results = [0.0, 0.0, 0.0], []
    for _ in range(total):
        owed = [debt + count / matches for debt, count in zip(owed, counts, strict=True)]
        result = max(range(3), key=lambda i: (owed[i], -i))
        owed[result] -= 1.0
        results.append(result)
    return results


class RatingsTable:
    """A payoff table and live ratings for every mode, such as `1v1` or `2v2`."""

    def __init__(self) -> None:
        self._payoffs: dict[str, Payoffs] = {}
        self._ratings: dict[str, LiveRatings] = {}

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes in which there were matches, in the order of the first ones."""
        return tuple(self._payoffs)

    def payoffs(self, mode: str) -> Payoffs:
        """Return the payoff table of a mode; an empty one before its first match."""
        return self._payoffs.get(mode) or Payoffs()

    def ratings(self, mode: str) -> LiveRatings:
        """Return the live ratings of a mode; empty ones before its first match."""
        return self._ratings.get(mode) or LiveRatings()

    def elo(self, mode: str) -> float | None:
        """Return the learner's Elo rating in a mode; None before its first match there."""
        ratings = self.ratings(mode)
        return ratings.elo[ratings.learner] if ratings.learner else None

    def record(
        self, mode: str, snapshot_id: str, opponent: str, wins: int, draws: int, losses: int, *, kind: str | None = None
    ) -> None:
        """Add matches; see `Payoffs.record`."""
        self._payoffs.setdefault(mode, Payoffs()).record(snapshot_id, opponent, wins, draws, losses, kind=kind)
        self._ratings.setdefault(mode, LiveRatings()).record(snapshot_id, opponent, wins, draws, losses)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Rebuild all tables from rows in the order in which they were played, such as those of `opponents.csv`.

        Rows without a mode, as older tables have them, are of 1v1.

        Raises:
            StateError: A row lacks a column, or has numbers that do not add up.
        """
        by_mode: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_mode.setdefault(str(row.get("mode") or FIRST_MODE), []).append(row)
        ratings_table = cls()
        for mode, played in by_mode.items():
            try:
                ratings_table._payoffs[mode] = Payoffs.from_rows(played)
                ratings_table._ratings[mode] = LiveRatings.from_rows(played)
            except StateError as error:
                raise StateError(f"matches of {mode}: {error}") from error
        return ratings_table
