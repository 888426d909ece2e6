"""Tournaments: a round robin with ratings and cycles, and a double-elimination bracket on request."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.intervals import Interval, wilson_interval
from ludus.evaluation.bracket import Bracket, Score, double_elimination
from ludus.evaluation.entries import Entries, Entry
from ludus.evaluation.matches import MatchSchedule, Progress
from ludus.league.payoffs import Record
from ludus.league.ratings import bradley_terry

Beats: TypeAlias = Mapping[str, frozenset[str]]
Cycle: TypeAlias = tuple[str, ...]

_REPLAYS = 2  # times that a drawn meeting of a bracket is played again


@dataclass(frozen=True, slots=True)
class Tournament:
    """Results.

    Attributes:
        entries: Accepted and rejected entries.
        records: Matches of each pair, once, from the side of the first.
        ratings: Bradley-Terry ratings with 95 % intervals; their mean is 0.
        cycles: Players that each significantly beat the next, and the last one the first.
        bracket: The double elimination; None if there was none.
        seconds: Wall time.
        faults: Why agents lost matches other than by the rules: too slow, or NaN.
    """

    entries: Entries
    records: Mapping[tuple[str, str], Record]
    ratings: Mapping[str, Interval]
    cycles: tuple[Cycle, ...]
    bracket: Bracket | None
    seconds: float
    faults: tuple[str, ...] = ()

    @property
    def ranking(self) -> tuple[Entry, ...]:
        """Accepted entries, the highest rating first."""
        return tuple(sorted(self.entries.accepted, key=lambda entry: -self.ratings[entry.name].estimate))

    def record(self, first: str, second: str) -> Record:
        """Return the matches of two players from the side of the first."""
        if (first, second) in self.records:
            return self.records[first, second]
        wins, draws, losses = self.records[second, first]
        return Record(losses, draws, wins)

    def total(self, name: str) -> Record:
        """Return the sum of a player's matches in the round robin."""
        total = Record()
        for other in self.entries.accepted:
            if other.name != name:
                total = total.plus(self.record(name, other.name))
        return total

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "world": self.entries.world,
            "players": [self._player(entry) for entry in self.ranking],
            "refused": [rejection._asdict() for rejection in self.entries.rejected],
            "pairs": [
                {"first": first, "second": second, "matches": record.matches, **record._asdict()}
                for (first, second), record in self.records.items()
            ],
            "cycles": [list(cycle) for cycle in self.cycles],
            "bracket": None if self.bracket is None else self.bracket.as_json(),
            "seconds": self.seconds,
            "faults": list(self.faults),
        }

    def _player(self, entry: Entry) -> dict[str, Any]:
        rating, total = self.ratings[entry.name], self.total(entry.name)
        return {
            "name": entry.name,
            "source": entry.source,
            "rating": rating.estimate,
            "rating_low": rating.low,
            "rating_high": rating.high,
            **total._asdict(),
            "score": total.score,
            "reaction": None if entry.reaction is None else entry.reaction.as_json(),
        }


def run_tournament(
    entries: Entries,
    schedule: MatchSchedule,
    *,
    matches: int,
    best_of: int | None = None,
    seeded_by_rating: bool = True,
    progress: Progress = lambda _: None,
    bracket_progress: Progress = lambda _: None,
) -> Tournament:
    """Play a round robin, and then a bracket on request; equal seeds give equal results on the CPU.

    Args:
        entries: See `ludus.evaluation.entries.load_entries`.
        schedule: Plays the matches; its players are those of the accepted entries, in order.
        matches: Matches per pair.
        best_of: Games per meeting of a double elimination; None for no bracket.
        seeded_by_rating: Whether the bracket is seeded by the ratings of the round robin, else in the order given.
        progress: Called with the fraction of the round robin that is done.
        bracket_progress: Called with the fraction of the bracket that is done.
    """
    started_s = time.perf_counter()
    names = [entry.name for entry in entries.accepted]
    pairs = list(combinations(range(len(names)), 2))
    played = schedule.play(pairs, matches, progress=progress)
    records = {(names[one], names[two]): record for (one, two), record in zip(pairs, played, strict=True)}
    ratings = bradley_terry(names, _points(names, records))
    strongest = sorted(names, key=lambda name: -ratings[name].estimate)
    beats = significant_wins(strongest, records)
    bracket = None
    if best_of is not None:
        seeds = strongest if seeded_by_rating else names
        bracket = _play_bracket(schedule, names, seeds, best_of, bracket_progress)
    seconds = time.perf_counter() - started_s
    return Tournament(entries, records, ratings, tuple(find_cycles(beats)), bracket, seconds, tuple(schedule.faults))


def _points(names: Sequence[str], records: Mapping[tuple[str, str], Record]) -> NDArray[np.float64]:
    index = {name: number for number, name in enumerate(names)}
    points = np.zeros((len(names), len(names)))
    for (first, second), record in records.items():
        points[index[first], index[second]] = record.wins + 0.5 * record.draws
        points[index[second], index[first]] = record.losses + 0.5 * record.draws
    return points


def _play_bracket(
    schedule: MatchSchedule, names: Sequence[str], seeds: Sequence[str], best_of: int, progress: Progress
) -> Bracket:
    round_number, decided = 0, 0

    def decide(pairs: Sequence[tuple[str, str]]) -> list[Score]:
        """Play meetings, and drawn ones again; if they stay drawn, the better seed advances."""
        nonlocal round_number, decided
        records = [Record()] * len(pairs)
        for _ in range(1 + _REPLAYS):
            drawn = [number for number, record in enumerate(records) if record.wins == record.losses]
            round_number += 1
            chosen = [(names.index(pairs[number][0]), names.index(pairs[number][1])) for number in drawn]
            more = schedule.play(chosen, best_of, round_number=round_number)
            for number, record in zip(drawn, more, strict=True):
                records[number] = records[number].plus(record)
        decided += len(pairs)
        progress(min(1.0, decided / (2 * len(seeds) - 2)))  # all but the winner lose twice
        return [
            Score(*record, _first_advances(seeds, pair, record)) for pair, record in zip(pairs, records, strict=True)
        ]

    return double_elimination(seeds, decide)


def _first_advances(seeds: Sequence[str], pair: tuple[str, str], record: Record) -> bool:
    if record.wins != record.losses:
        return record.wins > record.losses
    return seeds.index(pair[0]) < seeds.index(pair[1])


def significant_wins(
    names: Sequence[str], records: Mapping[tuple[str, str], Record], confidence: float = 0.95
) -> Beats:
    """Return the players that each player beats significantly: in more than half of the matches that have a winner.

    With many pairs some look decided by chance, so each is tested at a stricter level (Bonferroni): the chance of any
    error is that of a single test.

    Args:
        names: The players.
        records: Matches of each pair, once, from the side of the first.
        confidence: Of all wins together.
    """
    beaten: dict[str, set[str]] = {name: set() for name in names}
    strict = 1.0 - (1.0 - confidence) / max(len(records), 1)
    for (first, second), record in records.items():
        share = wilson_interval(record.wins, record.wins + record.losses, strict)
        if share.low > 0.5:
            beaten[first].add(second)
        elif share.high < 0.5:
            beaten[second].add(first)
    return {name: frozenset(others) for name, others in beaten.items()}


def find_cycles(beats: Beats) -> list[Cycle]:
    """Return all cycles of three, and for each win that is in none of them a shortest cycle that contains it.

    Each cycle is listed once, each player before the one it beats, starting with the earliest name of `beats`; short
    cycles come first. Longer cycles composed of shorter ones are not listed: their number grows exponentially.
    """
    order = {name: number for number, name in enumerate(beats)}
    found = dict.fromkeys(cycle for trio in combinations(beats, 3) for cycle in _cycles_of_three(beats, trio))
    covered = {win for cycle in found for win in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
    for first, others in beats.items():
        for second in sorted(others, key=order.__getitem__):
            way_back = None if (first, second) in covered else _shortest_path(beats, second, first)
            if way_back is not None:
                found[_rotated((first, *way_back[:-1]), order)] = None
    return sorted(found, key=lambda cycle: (len(cycle), [order[name] for name in cycle]))


def _cycles_of_three(beats: Beats, trio: tuple[str, str, str]) -> list[Cycle]:
    one, two, three = trio
    return [
        (one, middle, last)
        for middle, last in ((two, three), (three, two))
        if middle in beats[one] and last in beats[middle] and one in beats[last]
    ]


def _shortest_path(beats: Beats, start: str, goal: str) -> Cycle | None:
    """Return players from `start` to `goal`, each of which beats the next; None if there is no such path."""
    came_from: dict[str, str | None] = {start: None}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        if name == goal:
            path = [name]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return tuple(reversed(path))
        for other in sorted(beats[name] - came_from.keys()):
            came_from[other] = name
            queue.append(other)
    return None


def _rotated(cycle: Cycle, order: Mapping[str, int]) -> Cycle:
    first = min(range(len(cycle)), key=lambda number: order[cycle[number]])
    return cycle[first:] + cycle[:first]
