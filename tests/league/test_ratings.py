"""Ratings: known answers, intervals, players that never lost, and the live numbers match by match."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openskill.models import PlackettLuce

from ludus.core.errors import ConfigError, StateError
from ludus.league.payoffs import Payoffs
from ludus.league.ratings import LiveRatings, RatingsTable, bradley_terry, expected_score, rate_match


def test_two_players_stand_apart_by_their_odds() -> None:
    ratings = bradley_terry(("a", "b"), np.array([[0.0, 75.0], [25.0, 0.0]]), prior_points=1e6)
    # Odds of 3 to 1 are 400 log10(3) = 190.85 points, half of it on either side of the mean.
    assert ratings["a"].estimate == pytest.approx(95.42, abs=0.01)
    assert ratings["b"].estimate == pytest.approx(-95.42, abs=0.01)
    # The odds' logarithm has deviation 1 / sqrt(100 * 0.75 * 0.25) = 0.2309, times 400 / ln 10 = 40.12 points.
    assert ratings["a"].high - ratings["a"].estimate == pytest.approx(1.96 * 40.12 / 2, abs=0.02)
    assert ratings["a"].estimate - ratings["a"].low == pytest.approx(1.96 * 40.12 / 2, abs=0.02)


def test_players_who_never_met_are_compared_through_others() -> None:
    points = np.array([[0.0, 1000.0, 0.0], [100.0, 0.0, 1000.0], [0.0, 100.0, 0.0]])
    ratings = bradley_terry(("a", "b", "c"), points, prior_points=1e6)
    assert ratings["b"].estimate == pytest.approx(0.0, abs=1e-6)
    assert ratings["a"].estimate == pytest.approx(400.0, abs=0.01)  # ten to one
    assert ratings["c"].estimate == pytest.approx(-400.0, abs=0.01)
    assert ratings["a"].high - ratings["a"].low > ratings["b"].high - ratings["b"].low


def test_a_player_who_never_lost_stays_finite_and_uncertain() -> None:
    few = bradley_terry(("a", "b"), np.array([[0.0, 3.0], [0.0, 0.0]]))
    many = bradley_terry(("a", "b"), np.array([[0.0, 300.0], [0.0, 0.0]]))
    assert 0.0 < few["a"].estimate < many["a"].estimate < 1000.0
    assert few["a"].low < 200.0 < few["a"].high
    assert bradley_terry((), np.zeros((0, 0))) == {}
    assert bradley_terry(("a",), np.zeros((1, 1)))["a"] == pytest.approx((0.0, 0.0, 0.0))


@given(st.lists(st.lists(st.integers(0, 500), min_size=4, max_size=4), min_size=4, max_size=4))
def test_the_fit_makes_points_meet_their_expectation(rows: list[list[int]]) -> None:
    points = np.array(rows, dtype=float)
    np.fill_diagonal(points, 0.0)
    names = ("a", "b", "c", "d")
    ratings = bradley_terry(names, points, prior_points=1000.0)
    assert sum(rating.estimate for rating in ratings.values()) == pytest.approx(0.0, abs=1e-6)
    values = [ratings[name].estimate for name in names]
    for i in range(4):
        expected = sum((points[i, j] + points[j, i]) * expected_score(values[i] - values[j]) for j in range(4))
        # At the best fit a player's points differ from what was expected by the pull of the prior alone.
        pull = values[i] * (400.0 / math.log(10.0)) / 1000.0**2
        assert points[i].sum() - expected == pytest.approx(pull, abs=1e-3 + 1e-9 * points.sum())
        assert ratings[names[i]].low <= values[i] <= ratings[names[i]].high


def test_wrong_points_are_refused() -> None:
    for wrong in (np.zeros((2, 3)), np.full((2, 2), np.nan), np.full((2, 2), -1.0)):
        with pytest.raises(ConfigError, match="2 x 2"):
            bradley_terry(("a", "b"), wrong)


def test_live_numbers_move_match_by_match() -> None:
    ratings = LiveRatings()
    ratings.record("s1", "rock", 1, 0, 0)
    assert (ratings.elo["s1"], ratings.elo["rock"]) == (1008.0, 992.0)
    # Weng and Lin: variance 25^2 / 9 + (25 / 300)^2 = 69.451, c = sqrt(2 (69.451 + (25 / 6)^2)) = 13.177, so the mean
    # moves by 69.451 / 13.177 / 2 = 2.635.
    assert ratings.skill["s1"][0] == pytest.approx(27.635, abs=1e-3)
    assert ratings.skill["rock"][0] == pytest.approx(22.365, abs=1e-3)
    assert ratings.skill["s1"][1] < 25.0 / 3.0
    assert ratings.ordinal("s1") == pytest.approx(ratings.skill["s1"][0] - 3 * ratings.skill["s1"][1])
    ratings.record("s1", "rock", 1, 0, 0)
    # Expected 1 / (1 + 10 ** (-16 / 400)) = 0.52301, so 16 * 0.47699 = 7.632 points more.
    assert ratings.elo["s1"] == pytest.approx(1015.632, abs=1e-3)
    before = dict(ratings.elo)
    ratings.record("s1", "rock", 0, 0, 0)
    assert ratings.elo == before


def test_a_new_era_goes_on_where_the_last_one_ended() -> None:
    ratings = LiveRatings()
    ratings.record("s1", "rock", 10, 0, 0)
    elo, skill = ratings.elo["s1"], ratings.skill["s1"]
    ratings.record("s2", "s1", 1, 0, 1)
    assert ratings.elo["s1"] == pytest.approx(elo, abs=0.5)
    assert ratings.elo["s2"] == pytest.approx(elo, abs=0.5)
    assert ratings.skill["s2"][0] == pytest.approx(skill[0], abs=1.0)
    assert ratings.learner == "s2"


def test_large_batches_settle_at_the_odds() -> None:
    ratings = LiveRatings()
    ratings.record("s1", "rock", 3000, 0, 1000)
    assert ratings.elo["s1"] - ratings.elo["rock"] == pytest.approx(400 * math.log10(3), abs=1.0)
    drawn = LiveRatings()
    drawn.record("s1", "rock", 0, 500, 0)
    assert drawn.elo["s1"] == 1000.0
    assert drawn.skill["s1"][0] == pytest.approx(25.0)


def test_live_numbers_are_rebuilt_from_rows() -> None:
    payoffs, ratings = Payoffs(), LiveRatings()
    for i in range(5):
        payoffs.record(f"s{i}", "rock", 3 + i, 1, 2)
        ratings.record(f"s{i}", "rock", 3 + i, 1, 2)
    rebuilt = LiveRatings.from_rows(payoffs.rows())
    assert (rebuilt.elo, rebuilt.skill, rebuilt.learner) == (ratings.elo, ratings.skill, ratings.learner)
    with pytest.raises(StateError, match="row 1"):
        LiveRatings.from_rows([{"learner": "s1"}])


MATCHES = [
    ("1v1", "self-0001", "keeper", (3, 1, 0)),
    ("2v2", "self-0002", "keeper", (0, 0, 4)),
    ("1v1", "self-0002", "keeper", (2, 0, 0)),
]


def _played() -> RatingsTable:
    ratings_table = RatingsTable()
    for mode, snapshot_id, opponent, counts in MATCHES:
        ratings_table.record(mode, snapshot_id, opponent, *counts)
    return ratings_table


def test_what_happens_in_one_mode_changes_no_other() -> None:
    ratings_table = _played()
    assert ratings_table.modes == ("1v1", "2v2")
    assert ratings_table.payoffs("1v1").total().wins == 5
    assert ratings_table.payoffs("2v2").total() == (0, 0, 4)
    alone, pairs = ratings_table.elo("1v1"), ratings_table.elo("2v2")
    assert alone is not None
    assert pairs is not None
    assert alone > 1000.0 > pairs
    # Four losses to a player that is rated the same: 16 * 0.5 for the first one.
    assert pairs == pytest.approx(1000.0 - 8.0 - 16.0 * (1.0 / (1.0 + 10 ** (16.0 / 400.0))) - 14.2, abs=0.5)


def test_a_mode_without_matches_has_neither() -> None:
    ratings_table = _played()
    assert ratings_table.elo("3v3") is None
    assert ratings_table.payoffs("3v3").total().matches == 0
    assert ratings_table.ratings("3v3").learner == ""
    assert ratings_table.modes == ("1v1", "2v2"), "asking makes none"


def test_a_table_gives_the_same_and_old_ones_are_of_one_against_one() -> None:
    rows = [
        {
            "learner": snapshot_id,
            "opponent": opponent,
            "kind": opponent,
            "matches": sum(counts),
            "mode": mode,
            "side": mode,
        }
        | dict(zip(("wins", "draws", "losses"), counts, strict=True))
        for mode, snapshot_id, opponent, counts in MATCHES
    ]
    rebuilt, played = RatingsTable.from_rows(rows), _played()
    for mode in ("1v1", "2v2"):
        assert rebuilt.payoffs(mode).rows() == played.payoffs(mode).rows()
        assert rebuilt.ratings(mode).elo == played.ratings(mode).elo
        assert rebuilt.ratings(mode).skill == played.ratings(mode).skill
    old = RatingsTable.from_rows(
        [{key: value for key, value in row.items() if key not in ("mode", "side")} for row in rows]
    )
    assert old.modes == ("1v1",)
    assert old.payoffs("1v1").rows() == Payoffs.from_rows(rows).rows()
    assert old.ratings("1v1").elo == LiveRatings.from_rows(rows).elo
    with pytest.raises(StateError, match="matches of 2v2: row 1"):
        RatingsTable.from_rows([*rows[:1], rows[1] | {"matches": 9}])


_SKILLS = st.tuples(st.floats(-20.0, 70.0), st.floats(0.01, 10.0))


@given(_SKILLS, _SKILLS, st.lists(st.integers(0, 2), min_size=1, max_size=10))
def test_skills_are_those_of_openskill_bit_by_bit(
    ours: tuple[float, float], theirs: tuple[float, float], results: list[int]
) -> None:
    model = PlackettLuce()
    one, other = model.rating(*ours), model.rating(*theirs)
    for result in results:
        [[one], [other]] = model.rate([[one], [other]], ranks=[result, 1])
        ours, theirs = rate_match(ours, theirs, result)
        assert (ours, theirs) == ((one.mu, one.sigma), (other.mu, other.sigma))


def test_a_new_player_begins_as_in_openskill() -> None:
    ratings, model = LiveRatings(), PlackettLuce()
    ratings.record("learner", "bot", 0, 1, 0)
    [[one], [other]] = model.rate([[model.rating()], [model.rating()]], ranks=[1, 1])
    assert ratings.skill == {"learner": (one.mu, one.sigma), "bot": (other.mu, other.sigma)}
