"""The last matches against each opponent, and how many of them were won."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ludus.core.labels import match_label
from ludus.training.callbacks import Episodes
from ludus.training.sinks.groups import group_opponents

WINDOW = 200  # matches an opponent whose share of wins is shown
_MOST_OPPONENTS = 64  # a long self-play run meets thousands of snapshots; those not met for longest are forgotten

_NO_CURVES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WinRate:
    """How it went against one opponent, or several taken together.

    Attributes:
        name: Who.
        matches: Matches in the window.
        wins: Those that the learner won; a draw is none.
    """

    name: str
    matches: int
    wins: int

    @property
    def share(self) -> float:
        """Wins of all matches, 0 to 1."""
        return self.wins / max(self.matches, 1)


class RecentMatches:
    """Counts the last matches by opponent, and by side where sides are not alike.

    Attributes:
        has_winners: Whether any match so far was won or lost; without one the world knows no winners.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.has_winners = False
        self._window = window
        self._outcomes: dict[str, deque[int]] = {}

    def add(self, episodes: Episodes, curves: Mapping[str, str] = _NO_CURVES) -> None:
        """Takes what ended in one iteration; episodes without an opponent are no matches.

        Args:
            episodes: What ended.
            curves: Under which name some opponents are counted together.
        """
        self.has_winners = self.has_winners or bool(episodes.outcomes.any())
        for opponent, side, outcomes in episodes.grouped():
            label = match_label(opponent, side)
            name = curves.get(label, label)
            seen = self._outcomes.pop(name, None) or deque(maxlen=self._window)
            seen.extend(outcomes[-self._window :].tolist())
            self._outcomes[name] = seen  # last in the mapping: met last
        while len(self._outcomes) > _MOST_OPPONENTS:
            del self._outcomes[next(iter(self._outcomes))]

    def rates(self, most: int) -> list[WinRate]:
        """Returns the groups met most often, by name; snapshots share an entry, and so does what is over `most`."""
        if not self.has_winners:
            return []
        groups: dict[str, list[deque[int]]] = {}
        for name, group in group_opponents(self._outcomes).items():
            groups.setdefault(group, []).append(self._outcomes[name])
        rates = [
            WinRate(group, sum(map(len, members)), sum(seen.count(1) for seen in members))
            for group, members in groups.items()
        ]
        rates.sort(key=lambda rate: (-rate.matches, rate.name))
        shown, rest = (rates, []) if len(rates) <= most else (rates[: most - 1], rates[most - 1 :])
        shown = sorted(shown, key=lambda rate: rate.name)  # so that no line of a view changes its place all the time
        if rest:
            matches, wins = sum(rate.matches for rate in rest), sum(rate.wins for rate in rest)
            shown.append(WinRate(f"{len(rest)} others", matches, wins))
        return shown

    def shares(self) -> dict[str, float]:
        """Returns the share of wins against everybody, one by one."""
        if not self.has_winners:
            return {}
        return {name: seen.count(1) / len(seen) for name, seen in self._outcomes.items()}
