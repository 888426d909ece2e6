"""Tournaments: everybody against everybody, ratings, cycles, and a bracket if one is wanted."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.intervals import Interval
from ludus.evaluation.brackets import Bracket, Score, double_elimination
from ludus.evaluation.cycles import Cycle, find_cycles, sure_wins
from ludus.evaluation.entrants import Entrant, Entries
from ludus.evaluation.first_matches import ShareDone
from ludus.evaluation.pairings import Table
from ludus.league.payoffs import Record
from ludus.league.ratings import bradley_terry

_REPLAYS = 2  # times that a meeting of a bracket without a winner is played again


@dataclass(frozen=True, slots=True)
class Tournament:
    """Results.

    Attributes:
        entries: Who took part where, and who was refused.
        records: Matches of each pair, once, from the side of the first.
        ratings: Bradley-Terry ratings with 95 % intervals; their mean is 0.
        cycles: Players each of whom beats the next for sure, and the last one the first.
        bracket: Of the double elimination; None if there was none.
        seconds: Time that it took.
    """

    entries: Entries
    records: Mapping[tuple[str, str], Record]
    ratings: Mapping[str, Interval]
    cycles: tuple[Cycle, ...]
    bracket: Bracket | None
    seconds: float

    @property
    def ranking(self) -> tuple[Entrant, ...]:
        """Everybody who took part, the highest rating first."""
        return tuple(sorted(self.entries.entrants, key=lambda entrant: -self.ratings[entrant.name].estimate))

    def record(self, first: str, second: str) -> Record:
        """Returns the matches of two players from the side of the first."""
        if (first, second) in self.records:
            return self.records[first, second]
        wins, draws, losses = self.records[second, first]
        return Record(losses, draws, wins)

    def total(self, name: str) -> Record:
        """Returns all matches of a player in the round robin."""
        total = Record()
        for other in self.entries.entrants:
            if other.name != name:
                total = total.plus(self.record(name, other.name))
        return total

    def as_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "world": self.entries.world,
            "players": [self._player(entrant) for entrant in self.ranking],
            "refused": [refusal._asdict() for refusal in self.entries.refusals],
            "pairs": [
                {"first": first, "second": second, "matches": record.matches, **record._asdict()}
                for (first, second), record in self.records.items()
            ],
            "cycles": [list(cycle) for cycle in self.cycles],
            "bracket": None if self.bracket is None else self.bracket.as_json(),
            "seconds": self.seconds,
        }

    def _player(self, entrant: Entrant) -> dict[str, Any]:
        rating, total = self.ratings[entrant.name], self.total(entrant.name)
        return {
            "name": entrant.name,
            "source": entrant.source,
            "rating": rating.estimate,
            "rating_low": rating.low,
            "rating_high": rating.high,
            **total._asdict(),
            "score": total.score,
            "reaction": None if entrant.reaction is None else entrant.reaction.as_json(),
        }


def run_tournament(
    entries: Entries,
    table: Table,
    *,
    matches: int,
    best_of: int | None = None,
    seeded_by_rating: bool = True,
    progress: ShareDone = lambda _: None,
    bracket_progress: ShareDone = lambda _: None,
) -> Tournament:
    """Plays everybody against everybody, and a bracket after it; equal seeds give equal results on the CPU.

    Args:
        entries: See `ludus.evaluation.entrants.admit`.
        table: Where they meet, with the entrants as its players in their order.
        matches: Of each pair.
        best_of: Games of each meeting of a double elimination; None for no bracket.
        seeded_by_rating: Whether the bracket is seeded by the ratings of the round robin, else in the order given.
        progress: Is told the share of the round robin that is done.
        bracket_progress: Is told the share of the bracket that is done.
    """
    started_s = time.perf_counter()
    names = [entrant.name for entrant in entries.entrants]
    pairs = list(combinations(range(len(names)), 2))
    played = table.play(pairs, matches, progress=progress)
    records = {(names[one], names[two]): record for (one, two), record in zip(pairs, played, strict=True)}
    ratings = bradley_terry(names, _points(names, records))
    strongest = sorted(names, key=lambda name: -ratings[name].estimate)
    beats = sure_wins(strongest, records)
    bracket = None
    if best_of is not None:
        seeds = strongest if seeded_by_rating else names
        bracket = _play_bracket(table, names, seeds, best_of, bracket_progress)
    seconds = time.perf_counter() - started_s
    return Tournament(entries, records, ratings, tuple(find_cycles(beats)), bracket, seconds)


def _points(names: Sequence[str], records: Mapping[tuple[str, str], Record]) -> NDArray[np.float64]:
    places = {name: place for place, name in enumerate(names)}
    points = np.zeros((len(names), len(names)))
    for (first, second), record in records.items():
        points[places[first], places[second]] = record.wins + 0.5 * record.draws
        points[places[second], places[first]] = record.losses + 0.5 * record.draws
    return points


def _play_bracket(
    table: Table, names: Sequence[str], seeds: Sequence[str], best_of: int, progress: ShareDone
) -> Bracket:
    occasion, decided = 0, 0

    def decide(pairs: Sequence[tuple[str, str]]) -> list[Score]:
        """Plays meetings; those without a winner again, and in the end the better seed goes on."""
        nonlocal occasion, decided
        records = [Record()] * len(pairs)
        for _ in range(1 + _REPLAYS):
            open_ones = [place for place, record in enumerate(records) if record.wins == record.losses]
            occasion += 1
            chosen = [(names.index(pairs[place][0]), names.index(pairs[place][1])) for place in open_ones]
            for place, more in zip(open_ones, table.play(chosen, best_of, occasion=occasion), strict=True):
                records[place] = records[place].plus(more)
        decided += len(pairs)
        progress(min(1.0, decided / (2 * len(seeds) - 2)))  # everybody but the winner loses twice
        return [
            Score(
                *record, record.wins > record.losses if record.wins != record.losses else _is_seeded_first(seeds, pair)
            )
            for pair, record in zip(pairs, records, strict=True)
        ]

    return double_elimination(seeds, decide)


def _is_seeded_first(seeds: Sequence[str], pair: tuple[str, str]) -> bool:
    return seeds.index(pair[0]) < seeds.index(pair[1])
