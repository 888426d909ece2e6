"""Standings: every mode has payoffs and ratings of its own, also when they are rebuilt from a table."""

import pytest

from ludus.core.errors import StateError
from ludus.league.payoffs import Payoffs
from ludus.league.ratings import LiveRatings
from ludus.league.standings import Standings

MATCHES = [
    ("1v1", "self-0001", "keeper", (3, 1, 0)),
    ("2v2", "self-0002", "keeper", (0, 0, 4)),
    ("1v1", "self-0002", "keeper", (2, 0, 0)),
]


def _played() -> Standings:
    standings = Standings()
    for mode, era, opponent, counts in MATCHES:
        standings.record(mode, era, opponent, *counts)
    return standings


def test_what_happens_in_one_mode_changes_no_other() -> None:
    standings = _played()
    assert standings.modes == ("1v1", "2v2")
    assert standings.payoffs("1v1").total().wins == 5
    assert standings.payoffs("2v2").total() == (0, 0, 4)
    alone, pairs = standings.elo("1v1"), standings.elo("2v2")
    assert alone is not None
    assert pairs is not None
    assert alone > 1000.0 > pairs
    # Four losses to a player that is rated the same: 16 * 0.5 for the first one.
    assert pairs == pytest.approx(1000.0 - 8.0 - 16.0 * (1.0 / (1.0 + 10 ** (16.0 / 400.0))) - 14.2, abs=0.5)


def test_a_mode_without_matches_has_neither() -> None:
    standings = _played()
    assert standings.elo("3v3") is None
    assert standings.payoffs("3v3").total().matches == 0
    assert standings.ratings("3v3").learner == ""
    assert standings.modes == ("1v1", "2v2"), "asking makes none"


def test_a_table_gives_the_same_and_old_ones_are_of_one_against_one() -> None:
    rows = [
        {"learner": era, "opponent": opponent, "kind": opponent, "matches": sum(counts), "mode": mode, "side": mode}
        | dict(zip(("wins", "draws", "losses"), counts, strict=True))
        for mode, era, opponent, counts in MATCHES
    ]
    rebuilt, played = Standings.from_rows(rows), _played()
    for mode in ("1v1", "2v2"):
        assert rebuilt.payoffs(mode).state() == played.payoffs(mode).state()
        assert rebuilt.ratings(mode).state() == played.ratings(mode).state()
    old = Standings.from_rows(
        [{key: value for key, value in row.items() if key not in ("mode", "side")} for row in rows]
    )
    assert old.modes == ("1v1",)
    assert old.payoffs("1v1").state() == Payoffs.from_rows(rows).state()
    assert old.ratings("1v1").state() == LiveRatings.from_rows(rows).state()
    with pytest.raises(StateError, match="matches of 2v2: row 1"):
        Standings.from_rows([*rows[:1], rows[1] | {"matches": 9}])
