"""Matchmaking of a league: who plays whom by one payoff table. Pure functions of the table and the members; no I/O."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ludus.league.mix import by_win_rate, normalised, thin_out
from ludus.league.payoffs import Record
from ludus.league.ratings import bradley_terry
from ludus.scale.population import PopulationConfig, Role

_MOST_RATED = 2_000  # the time grows with the third power: of more, the oldest are not rated
# The numbers of AlphaStar (Vinyals et al. 2019, "Methods"), but for the window.
_WINDOW = 200  # newest matches of a learner against a member by which its win rate is estimated
_PFSP_POWER = 2.0  # members are weighted by (1 - win rate) ** power
_FORGOTTEN_SHARE = 0.23  # of a main agent's games, against former main agents that it loses to and main exploiters
_WON = 0.7  # win rate against everyone that it plays from which on an exploiter joins the league and begins again
_LOSES = 0.3  # a former main agent against which a main agent scores less is forgotten
_UNKNOWN = 0.5  # win rate against a member that was not met yet
_HOPELESS = 0.1  # below this score against the newest main agent, a main exploiter plays its predecessors


@dataclass(frozen=True, slots=True)
class Member:
    """A snapshot that is part of the league.

    Attributes:
        name: Its name, such as `main-1-g1-0003`.
        learner: The learner that it is a snapshot of.
        role: That learner's role.
        env_steps: Env steps that it has learned from, since the learner began last.
    """

    name: str
    learner: str
    role: Role
    env_steps: int


def snapshot_name(learner: str, generation: int, number: int) -> str:
    """Return the name of a learner's snapshot; until it is taken, the learner plays under this name."""
    return f"{learner}-g{generation}-{number:04}"


class PayoffTable:
    """All matches of a league by pair of players.

    Attributes:
        matches: Number of all matches.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self._records: dict[str, dict[str, Record]] = {}  # of each player against each opponent
        self.matches = 0

    def add(self, first: str, second: str, record: Record) -> None:
        """Add matches from the side of the first player."""
        self.matches += record.matches
        for one, two, each in ((first, second, record), (second, first, _swapped(record))):
            own = self._records.setdefault(one, {})
            own[two] = own.get(two, Record()).plus(each)

    def record(self, first: str, second: str) -> Record:
        """Return all matches of two players from the side of the first."""
        return self._records.get(first, {}).get(second, Record())

    def rows(self) -> list[tuple[str, str, int, int, int]]:
        """Return every pair once, with wins, draws and losses of the first, in the order of the players' names."""
        return [
            (first, second, *record)
            for first, others in sorted(self._records.items())
            for second, record in sorted(others.items())
            if first < second
        ]

    def recent(self, names: Sequence[str], window: int) -> dict[str, Record]:
        """Return a learner's newest matches against everyone, at least `window` each where there were as many.

        Only those that it met are looked at, so that the time does not depend on the size of the league.

        Args:
            names: Names under which the learner played, the newest first.
            window: How many matches are wanted.
        """
        found: dict[str, Record] = {}
        for name in names:
            for opponent, record in self._records.get(name, {}).items():
                before = found.get(opponent, Record())
                if before.matches < window:
                    found[opponent] = before.plus(record)
        return found

    def ratings(self, names: Sequence[str]) -> dict[str, float]:
        """Return the Bradley-Terry ratings of the newest players by their matches among each other; their mean is 0."""
        names = names[-_MOST_RATED:]
        if len(names) < 2:
            return dict.fromkeys(names, 0.0)
        places, points = {name: place for place, name in enumerate(names)}, np.zeros((len(names), len(names)))
        for one, place in places.items():
            for two, record in self._records.get(one, {}).items():
                if two in places:
                    points[place, places[two]] = record.points[0]
        return {name: interval.estimate for name, interval in bradley_terry(names, points).items()}


def _swapped(record: Record) -> Record:
    return Record(record.losses, record.draws, record.wins)


@dataclass(frozen=True, slots=True)
class Learner:
    """A learner as matchmaking sees it.

    Attributes:
        name: Its name.
        role: Its role.
        played_as: Names under which it has played since it began last, the newest first.
    """

    name: str
    role: Role
    played_as: Sequence[str]


def assign(
    learner: Learner, members: Sequence[Member], table: PayoffTable, config: PopulationConfig, offset: float
) -> dict[str, float]:
    """Return the chance of each member to be a learner's opponent; empty if it has no opponents yet.

    Args:
        learner: The learner.
        members: The league, oldest first.
        table: All matches.
        config: Of the league.
        offset: From 0 to 1, drawn evenly; it decides which of many members are live.
    """
    recent = table.recent(learner.played_as, _WINDOW)
    scores = {each.name: recent[each.name].score if each.name in recent else None for each in members}
    if learner.role == "main_exploiter":
        chances = _against_mains(members, scores)
    elif learner.role == "main":
        chances = _weighted(members, scores)
        forgotten = [each for each in members if _is_forgotten(each, scores[each.name])]
        if forgotten:
            share, extra = _FORGOTTEN_SHARE, _weighted(forgotten, scores)
            chances = {name: (1.0 - share) * chance + share * extra.get(name, 0.0) for name, chance in chances.items()}
    else:
        chances = _weighted(members, scores)
    if not chances:
        return {}
    live = thin_out(np.array(list(chances.values())), config.live, offset)
    return {name: float(chance) for name, chance in zip(chances, live, strict=True) if chance > 0.0}


def _weighted(members: Sequence[Member], scores: Mapping[str, float | None]) -> dict[str, float]:
    if not members:
        return {}
    weights = by_win_rate([scores[each.name] for each in members], _PFSP_POWER)
    return {each.name: float(weight) for each, weight in zip(members, weights, strict=True)}


def _is_forgotten(member: Member, score: float | None) -> bool:
    is_lost_to = member.role == "main" and score is not None and score < _LOSES
    return is_lost_to or member.role == "main_exploiter"


def _against_mains(members: Sequence[Member], scores: Mapping[str, float | None]) -> dict[str, float]:
    """Play the newest snapshot of every main agent alike; where that is hopeless, its predecessors near one's level."""
    mains = [each for each in members if each.role == "main"]
    newest = {each.learner: each for each in mains}
    chances: dict[str, float] = {}
    for name, member in newest.items():
        score = scores[member.name]
        own = [each for each in mains if each.learner == name]
        is_hopeless = score is not None and score < _HOPELESS and len(own) > 1
        rates = np.array([_UNKNOWN if (rate := scores[each.name]) is None else rate for each in own])
        found = normalised(rates * (1.0 - rates)) if is_hopeless else np.eye(1, len(own), len(own) - 1)[0]
        chances |= {each.name: float(chance) / len(newest) for each, chance in zip(own, found, strict=True)}
    return chances


def has_won(record: Mapping[str, Record], asked: Collection[str]) -> bool:
    """Return whether an exploiter beats everyone whom it is asked to, by its matches since it was judged last."""
    rates = [record.get(name, Record()).score for name in asked]
    return bool(rates) and all(rate is not None and rate >= _WON for rate in rates)


def missing_pairs(
    members: Sequence[Member], done: Collection[tuple[str, str]], config: PopulationConfig
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of members that are yet to be evaluated, those of the newest members first.

    Args:
        members: The league, oldest first.
        done: Pairs that were evaluated or are being evaluated, the newer member first.
        config: Of the league.
    """
    for place in range(len(members) - 1, 0, -1):
        newer = members[place].name
        for other in reversed(members[max(0, place - config.newest) : place]):
            if (newer, other.name) not in done:
                yield newer, other.name
