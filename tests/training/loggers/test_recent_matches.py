"""The last matches by opponent."""

from collections.abc import Callable

from ludus.training.callbacks import Iteration
from ludus.training.loggers.progress import RecentMatches, WinRate


def test_only_the_last_matches_of_each_opponent_count(make_iteration: Callable[..., Iteration]) -> None:
    recent = RecentMatches(window=3)
    recent.add(make_iteration(1, (1, -1, 1, 1), (0, 1, 0, 0)).episodes)
    assert recent.rates(5) == [WinRate("based", 3, 3), WinRate("random", 1, 0)]
    recent.add(make_iteration(2, (-1, 0, 1, 0), (0, 0, 1, 0)).episodes)  # based: lost, drawn, drawn
    assert recent.rates(5) == [WinRate("based", 3, 0), WinRate("random", 2, 1)]
    assert recent.shares() == {"based": 0.0, "random": 0.5}


def test_a_world_without_winners_or_opponents_has_no_rates(make_iteration: Callable[..., Iteration]) -> None:
    recent = RecentMatches()
    recent.add(make_iteration(1, (0, 0), (0, 1)).episodes)
    assert recent.rates(5) == []
    assert recent.shares() == {}
    recent.add(make_iteration(2, (1, 1), (-1, -1)).episodes)
    assert [rate.matches for rate in recent.rates(5)] == [1, 1]


def test_the_least_met_are_taken_together(make_iteration: Callable[..., Iteration]) -> None:
    recent = RecentMatches()
    opponents = (0, 0, 0, 1, 2, 2, 3)
    recent.add(make_iteration(1, (1, 1, -1, 1, 1, -1, -1), opponents, names=("d", "c", "b", "a")).episodes)
    assert recent.rates(3) == [WinRate("b", 2, 1), WinRate("d", 3, 2), WinRate("2 others", 2, 1)]
    assert [rate.name for rate in recent.rates(4)] == ["a", "b", "c", "d"]


def test_opponents_not_met_for_longest_are_forgotten(make_iteration: Callable[..., Iteration]) -> None:
    recent = RecentMatches()
    names = tuple(f"snapshot-{step}" for step in range(100))
    recent.add(make_iteration(1, [1] * 100, list(range(100)), names=names).episodes)
    recent.add(make_iteration(2, [-1], [0], names=("based",)).episodes)
    assert recent.rates(5) == [WinRate("based", 1, 0), WinRate("snapshot (63)", 63, 63)]
    assert "snapshot-36" not in recent.shares()
    assert "snapshot-37" in recent.shares()
