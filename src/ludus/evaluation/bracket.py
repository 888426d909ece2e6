"""Double-elimination brackets: two losses eliminate a player; the losers' bracket winner plays the final."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ludus.core.errors import ConfigError


class Score(NamedTuple):
    """Result of a meeting.

    Attributes:
        wins: Games won by the first.
        draws: Games without a winner.
        losses: Games won by the second.
        first_advances: Whether the first player advances; after equal wins the caller decides.
    """

    wins: int
    draws: int
    losses: int
    first_advances: bool


Pairing: TypeAlias = tuple[str | None, str | None]
Decide: TypeAlias = Callable[[Sequence[tuple[str, str]]], Sequence[Score]]
"""Plays meetings side by side and returns their scores."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two slots of a round.

    Attributes:
        first: Player of the upper slot; None if it stays empty.
        second: Player of the lower slot.
        score: The result; None for a bye.
    """

    first: str | None
    second: str | None
    score: Score | None = None

    @property
    def winner(self) -> str | None:
        """Who advances: after a bye whoever is there."""
        if self.score is None:
            return self.first if self.first is not None else self.second
        return self.first if self.score.first_advances else self.second

    @property
    def loser(self) -> str | None:
        """Who lost; None after a bye."""
        if self.score is None:
            return None
        return self.second if self.score.first_advances else self.first


@dataclass(frozen=True, slots=True)
class Round:
    """Meetings of one round; `name` is for example `winners 1`, `losers 2` or `final`."""

    name: str
    meetings: tuple[Meeting, ...]


class Standing(NamedTuple):
    """Final place of a player; players eliminated in the same round share one."""

    place: int
    name: str


@dataclass(frozen=True, slots=True)
class Bracket:
    """A finished bracket.

    Attributes:
        rounds: In the order of play.
        standings: The best first.
    """

    rounds: tuple[Round, ...]
    standings: tuple[Standing, ...]

    @property
    def played(self) -> int:
        """Number of meetings played, without byes."""
        return sum(meeting.score is not None for each in self.rounds for meeting in each.meetings)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "standings": [standing._asdict() for standing in self.standings],
            "rounds": [{"round": each.name, "meetings": list(_meetings_as_json(each))} for each in self.rounds],
        }


def double_elimination(seeds: Sequence[str], decide: Decide) -> Bracket:
    """Play a double-elimination bracket.

    If the number of players is not a power of two, the best seeds get byes in the first round. The best two can meet
    in the winners' final at the earliest. Losers drop to the losers' bracket in reversed order, which avoids an
    immediate rematch. If the undefeated player loses the final, it is played again.

    Args:
        seeds: The players, the best first.
        decide: Plays meetings; called once for all that can be played at the same time.

    Raises:
        ConfigError: There are fewer than two players, or one is listed twice.
    """
    if len(seeds) < 2 or len(set(seeds)) < len(seeds):
        raise ConfigError(f"a bracket needs two or more different players, got {', '.join(seeds) or 'none'}")
    played = _Play(decide)
    places = [seeds[place] if place < len(seeds) else None for place in _order(len(seeds))]
    (last,) = played.together(("winners 1", _neighbours(places)))
    below = [meeting.loser for meeting in last.meetings]
    number = 1
    while len(last.meetings) > 1:
        above = [meeting.winner for meeting in last.meetings]
        last, minor = played.together(
            (f"winners {number + 1}", _neighbours(above)), (f"losers {2 * number - 1}", _neighbours(below))
        )
        dropped = [meeting.loser for meeting in reversed(last.meetings)]
        survivors = [meeting.winner for meeting in minor.meetings]
        (major,) = played.together((f"losers {2 * number}", list(zip(survivors, dropped, strict=True))))
        below = [meeting.winner for meeting in major.meetings]
        number += 1
    finalists = (last.meetings[0].winner, below[0])
    (final,) = played.together(("final", [finalists]))
    if final.meetings[0].winner == finalists[1]:
        (final,) = played.together(("final, again", [finalists]))
    return Bracket(tuple(played.rounds), _standings(seeds, played.rounds))


class _Play:
    """Plays and records rounds."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.rounds: list[Round] = []

    def together(self, *rounds: tuple[str, Sequence[Pairing]]) -> list[Round]:
        """Play rounds at the same time."""
        real = [
            (first, second)
            for _, slots in rounds
            for first, second in slots
            if first is not None and second is not None
        ]
        scores = iter(self._decide(real) if real else ())
        done = []
        for name, slots in rounds:
            meetings = tuple(
                Meeting(first, second, next(scores) if first is not None and second is not None else None)
                for first, second in slots
            )
            done.append(Round(name, meetings))
        self.rounds += done
        return done


def _order(players: int) -> list[int]:
    """Return the seeds, from 0, in slot order: the best meet the weakest first, and each other last."""
    order = [0]
    while len(order) < players:
        size = 2 * len(order)
        order = [seed for better in order for seed in (better, size - 1 - better)]
    return order


def _neighbours(places: Sequence[str | None]) -> list[Pairing]:
    return list(zip(places[::2], places[1::2], strict=True))


def _standings(seeds: Sequence[str], rounds: Sequence[Round]) -> tuple[Standing, ...]:
    """Rank players by the round of their last defeat; the winner of the last final is first."""
    left: dict[str, int] = {}
    for number, each in enumerate(rounds):
        for meeting in each.meetings:
            if meeting.loser is not None:
                left[meeting.loser] = number
    champion = rounds[-1].meetings[0].winner
    others = sorted((name for name in seeds if name != champion), key=lambda name: -left[name])
    standings = [Standing(1, str(champion))]
    for place, name in enumerate(others, 2):
        shared = place > 2 and left[name] == left[standings[-1].name]
        standings.append(Standing(standings[-1].place if shared else place, name))
    return tuple(standings)


def _meetings_as_json(each: Round) -> Iterator[dict[str, Any]]:
    for meeting in each.meetings:
        if meeting.winner is None:
            continue
        score = meeting.score
        numbers = {} if score is None else {"wins": score.wins, "draws": score.draws, "losses": score.losses}
        players = {"first": meeting.first, "second": meeting.second}
        yield {**players, "bye": score is None, **numbers, "winner": meeting.winner}
