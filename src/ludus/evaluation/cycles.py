"""Cycles in a table of matches: A beats B, B beats C, C beats A, where none of the wins is chance."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from ludus.core.intervals import wilson_interval
from ludus.league.payoffs import Record

Beats: TypeAlias = Mapping[str, frozenset[str]]
Cycle: TypeAlias = tuple[str, ...]


def sure_wins(names: Sequence[str], records: Mapping[tuple[str, str], Record], confidence: float = 0.95) -> Beats:
    """Returns whom each player beats for sure: more than half of the matches that have a winner.

    With many pairs some would look decided by chance; so each one is judged more strictly (Bonferroni), until all of
    them together are wrong as seldom as a single one would be.

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
    """Returns all cycles of three, and for each win that is in none of them a shortest cycle that it is in.

    Each cycle is given once, each player before the one it beats and the earliest name of `beats` first; short ones
    come first. Longer cycles that are made of shorter ones are not listed: their number grows beyond all measure.
    """
    places = {name: place for place, name in enumerate(beats)}
    found = dict.fromkeys(cycle for trio in combinations(beats, 3) for cycle in _of_three(beats, trio))
    covered = {win for cycle in found for win in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
    for first, others in beats.items():
        for second in sorted(others, key=places.__getitem__):
            way_back = None if (first, second) in covered else _shortest_way(beats, second, first)
            if way_back is not None:
                found[_turned((first, *way_back[:-1]), places)] = None
    return sorted(found, key=lambda cycle: (len(cycle), [places[name] for name in cycle]))


def _of_three(beats: Beats, trio: tuple[str, str, str]) -> list[Cycle]:
    one, two, three = trio
    return [
        (one, middle, last)
        for middle, last in ((two, three), (three, two))
        if middle in beats[one] and last in beats[middle] and one in beats[last]
    ]


def _shortest_way(beats: Beats, start: str, goal: str) -> Cycle | None:
    """Returns players from `start` to `goal`, each of whom beats the next; None if no such chain leads there."""
    came_from: dict[str, str | None] = {start: None}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        if name == goal:
            way = [name]
            while (before := came_from[way[-1]]) is not None:
                way.append(before)
            return tuple(reversed(way))
        for other in sorted(beats[name] - came_from.keys()):
            came_from[other] = name
            queue.append(other)
    return None


def _turned(cycle: Cycle, places: Mapping[str, int]) -> Cycle:
    first = min(range(len(cycle)), key=lambda place: places[cycle[place]])
    return cycle[first:] + cycle[:first]
