"""The payoff table: how the learner fared against each opponent, by snapshot id, in total and recently."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, StateError

SELF_KIND = "self"  # snapshots
MIRROR_KIND = "mirror"  # the learner as it is now, in all seats; no opponent, and no match for any table
MOST_MATCHES = 1_000_000  # of one row: one iteration's against one opponent
COLUMNS = ("learner", "opponent", "kind", "matches", "wins", "draws", "losses")


class Record(NamedTuple):
    """Matches from the learner's side."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def matches(self) -> int:
        """How many there were."""
        return self.wins + self.draws + self.losses

    @property
    def win_rate(self) -> float | None:
        """Share that was won; None before the first match."""
        return self.wins / self.matches if self.matches else None

    @property
    def score(self) -> float | None:
        """The same with draws as half a win."""
        return (self.wins + 0.5 * self.draws) / self.matches if self.matches else None

    @property
    def points(self) -> tuple[float, float]:
        """Points of the learner and of the opponent; a draw is half a point for both."""
        return self.wins + 0.5 * self.draws, self.losses + 0.5 * self.draws

    def plus(self, other: "Record") -> "Record":
        """Return both together."""
        return Record(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)


class _Recent:
    """The newest batches that hold at least `window` matches between them."""

    def __init__(self, window: int) -> None:
        self._window, self._batches, self.record = window, deque[Record](), Record()

    def add(self, batch: Record) -> None:
        self._batches.append(batch)
        self.record = self.record.plus(batch)
        while self.record.matches - self._batches[0].matches >= self._window:
            old = self._batches.popleft()
            self.record = self.record.plus(Record(-old.wins, -old.draws, -old.losses))


class Payoffs:
    """Wins, draws and losses of the learner by snapshot id and opponent.

    The learner plays under the id of the snapshot that it becomes next: as `s3` until it is stored as snapshot `s3`.
    So an id names one player, first learning and then frozen.
    Recent matches are the newest ones, at least `window` of them where there were as many.
    """

    def __init__(self, window: int = 200) -> None:
        """Begin empty; `window` is how many of the newest matches count as recent."""
        if window < 1:
            raise ConfigError(f"the window of recent matches is {window}; use 1 or more")
        self._window = window
        self._table: dict[tuple[str, str], Record] = {}
        self._kinds: dict[str, str] = {}
        self._recent: dict[str, _Recent] = {}
        self._recent_kinds: dict[str, _Recent] = {}

    def record(
        self, snapshot_id: str, opponent: str, wins: int, draws: int, losses: int, *, kind: str | None = None
    ) -> None:
        """Add matches.

        Args:
            snapshot_id: Name of the snapshot that the learner becomes next.
            opponent: Name of a bot or a snapshot.
            wins: Of the learner.
            draws: Matches without a winner.
            losses: Of the learner.
            kind: `self` for a snapshot; None for a bot, whose kind is its name.
        """
        batch = Record(wins, draws, losses)
        if min(batch) < 0:
            raise ConfigError(f"matches of {snapshot_id!r} against {opponent!r} cannot be negative, got {tuple(batch)}")
        if batch.matches == 0:
            return
        kind = kind or opponent
        self._kinds[opponent] = kind
        self._table[snapshot_id, opponent] = self._table.get((snapshot_id, opponent), Record()).plus(batch)
        self._recent.setdefault(opponent, _Recent(self._window)).add(batch)
        self._recent_kinds.setdefault(kind, _Recent(self._window)).add(batch)

    @property
    def snapshot_ids(self) -> tuple[str, ...]:
        """Ids under which the learner played, oldest first."""
        return tuple(dict.fromkeys(snapshot_id for snapshot_id, _ in self._table))

    @property
    def opponents(self) -> Mapping[str, str]:
        """Kind of every opponent that was met."""
        return dict(self._kinds)

    def total(self, *, snapshot_id: str | None = None, opponent: str | None = None, kind: str | None = None) -> Record:
        """Return all matches, or those under one snapshot id, against one opponent, or against one kind of opponent."""
        total = Record()
        for (then, name), record in self._table.items():
            if snapshot_id in (None, then) and opponent in (None, name) and kind in (None, self._kinds[name]):
                total = total.plus(record)
        return total

    def recent(self, *, opponent: str | None = None, kind: str | None = None) -> Record:
        """Return the newest matches against one opponent, or against one kind of opponent."""
        if (opponent is None) == (kind is None):
            raise ConfigError(f"recent matches are asked for by opponent or by kind, got {opponent!r} and {kind!r}")
        found = self._recent.get(opponent) if opponent is not None else self._recent_kinds.get(kind or "")
        return found.record if found else Record()

    def matrix(self) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return all players (ids and opponents) and `(players, players)` points of the row against the column.

        A win is a point, a draw half a point for both.
        """
        names = tuple(dict.fromkeys((*self.snapshot_ids, *self._kinds)))
        places = {name: place for place, name in enumerate(names)}
        points = np.zeros((len(names), len(names)))
        for (snapshot_id, opponent), record in self._table.items():
            points[places[snapshot_id], places[opponent]] += record.wins + 0.5 * record.draws
            points[places[opponent], places[snapshot_id]] += record.losses + 0.5 * record.draws
        return names, points

    def rows(self) -> list[dict[str, str | int]]:
        """Return one row per snapshot id and opponent, with the columns `COLUMNS`."""
        return [
            {
                "learner": snapshot_id,
                "opponent": opponent,
                "kind": self._kinds[opponent],
                "matches": record.matches,
                **record._asdict(),
            }
            for (snapshot_id, opponent), record in self._table.items()
        ]

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], window: int = 200) -> Self:
        """Rebuild the table from rows in the order in which they were played, such as those of `opponents.csv`.

        Raises:
            StateError: A row has not the columns `COLUMNS`, or numbers that do not add up.
        """
        payoffs = cls(window)
        payoffs.add_rows(rows)
        return payoffs

    def add_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the matches of rows; see `from_rows`."""
        for number, row in enumerate(rows, 1):
            try:
                counts = [int(row[name]) for name in ("wins", "draws", "losses")]
                names = [str(row[name]) for name in ("learner", "opponent", "kind")]
                matches = int(row["matches"])
            except (KeyError, ValueError, TypeError) as error:
                raise StateError(
                    f"row {number} of the payoffs is {dict(row)}; it needs {', '.join(COLUMNS)}"
                ) from error
            if matches > MOST_MATCHES:
                raise StateError(f"row {number} of the payoffs has {matches} matches; valid: at most {MOST_MATCHES}")
            if sum(counts) != matches or min(counts) < 0:
                raise StateError(f"row {number} of the payoffs has {matches} matches, but {counts} won, drawn and lost")
            self.record(names[0], names[1], *counts, kind=names[2])
