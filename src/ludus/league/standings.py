"""Payoffs and live ratings of a run, each mode apart: who is strong alone may be weak in a pair."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from ludus.core.errors import StateError
from ludus.league.payoffs import Payoffs
from ludus.league.ratings import LiveRatings

FIRST_MODE = "1v1"  # of the matches of tables that name no mode


class Standings:
    """A payoff table and live ratings for every mode, such as `1v1` or `2v2`."""

    def __init__(self) -> None:
        self._payoffs: dict[str, Payoffs] = {}
        self._ratings: dict[str, LiveRatings] = {}

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes in which there were matches, in the order of the first ones."""
        return tuple(self._payoffs)

    def payoffs(self, mode: str) -> Payoffs:
        """Returns the payoff table of a mode; an empty one before its first match."""
        return self._payoffs.get(mode) or Payoffs()

    def ratings(self, mode: str) -> LiveRatings:
        """Returns the live ratings of a mode; empty ones before its first match."""
        return self._ratings.get(mode) or LiveRatings()

    def elo(self, mode: str) -> float | None:
        """Returns the learner's Elo rating in a mode; None before its first match there."""
        ratings = self.ratings(mode)
        return ratings.elo[ratings.learner] if ratings.learner else None

    def record(
        self, mode: str, era: str, opponent: str, wins: int, draws: int, losses: int, *, kind: str | None = None
    ) -> None:
        """Adds matches; see `Payoffs.record`."""
        self._payoffs.setdefault(mode, Payoffs()).record(era, opponent, wins, draws, losses, kind=kind)
        self._ratings.setdefault(mode, LiveRatings()).record(era, opponent, wins, draws, losses)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Rebuilds all tables from rows in the order in which they were played, such as those of `opponents.csv`.

        Rows without a mode, as older tables have them, are of 1v1.

        Raises:
            StateError: A row lacks a column, or has numbers that do not add up.
        """
        by_mode: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_mode.setdefault(str(row.get("mode") or FIRST_MODE), []).append(row)
        standings = cls()
        for mode, played in by_mode.items():
            try:
                standings._payoffs[mode] = Payoffs.from_rows(played)
                standings._ratings[mode] = LiveRatings.from_rows(played)
            except StateError as error:
                raise StateError(f"matches of {mode}: {error}") from error
        return standings
