"""The payoff table: totals by snapshot id, opponent and kind, the newest matches, the matrix, and ways back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.core.errors import ConfigError, StateError
from ludus.league.payoffs import COLUMNS, Payoffs, Record

counts = st.integers(0, 30)
batches = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["a", "b", "rock"]), counts, counts, counts),
    max_size=40,
)


def _table() -> Payoffs:
    payoffs = Payoffs(window=10)
    payoffs.record("s1", "rock", 6, 1, 3)
    payoffs.record("s2", "rock", 4, 0, 0)
    payoffs.record("s2", "s1", 2, 2, 1, kind="self")
    payoffs.record("s3", "s2", 1, 0, 4, kind="self")
    payoffs.record("s3", "s2", 0, 0, 0, kind="self")
    return payoffs


def test_totals_by_era_opponent_and_kind() -> None:
    payoffs = _table()
    assert payoffs.total() == Record(13, 3, 8)
    assert payoffs.total(opponent="rock") == Record(10, 1, 3)
    assert payoffs.total(snapshot_id="s2") == Record(6, 2, 1)
    assert payoffs.total(kind="self") == Record(3, 2, 5)
    assert payoffs.total(snapshot_id="s2", kind="rock") == Record(4, 0, 0)
    assert payoffs.snapshot_ids == ("s1", "s2", "s3")
    assert payoffs.opponents == {"rock": "rock", "s1": "self", "s2": "self"}
    assert Record(3, 2, 5).win_rate == 0.3
    assert Record(3, 2, 5).score == 0.4
    assert Record().win_rate is None
    assert Record().score is None


def test_the_newest_matches_are_those_of_the_last_batches() -> None:
    payoffs = Payoffs(window=10)
    for wins, losses in ((6, 0), (0, 5), (3, 2)):
        payoffs.record("s1", "rock", wins, 0, losses)
    assert payoffs.recent(opponent="rock") == Record(3, 0, 7)  # without the first batch 10 are left
    payoffs.record("s1", "rock", 1, 0, 0)
    assert payoffs.recent(opponent="rock") == Record(4, 0, 7)  # without the next one too only 6 would be
    payoffs.record("s1", "s0", 4, 0, 4, kind="self")
    payoffs.record("s1", "s9", 5, 0, 5, kind="self")
    assert payoffs.recent(kind="self") == Record(5, 0, 5)
    assert payoffs.recent(opponent="s0") == Record(4, 0, 4)
    assert payoffs.recent(opponent="nobody") == Record()
    with pytest.raises(ConfigError, match=r"opponent.*kind"):
        payoffs.recent()


def test_the_matrix_has_both_sides() -> None:
    names, points = _table().matrix()
    assert names == ("s1", "s2", "s3", "rock")
    assert points.tolist() == [
        [0.0, 2.0, 0.0, 6.5],  # s1: as an opponent of s2 it won 1 and drew 2; against rock 6 won, 1 drawn
        [3.0, 0.0, 4.0, 4.0],
        [0.0, 1.0, 0.0, 0.0],
        [3.5, 0.0, 0.0, 0.0],
    ]


@given(batches)
def test_rows_lead_back(matches: list[tuple[str, str, int, int, int]]) -> None:
    payoffs = Payoffs(window=25)
    for snapshot_id, opponent, wins, draws, losses in matches:
        payoffs.record(snapshot_id, opponent, wins, draws, losses, kind=None if opponent == "rock" else "self")
    assert payoffs.total().matches == sum(sum(match[2:]) for match in matches)
    again = Payoffs.from_rows([{name: str(value) for name, value in row.items()} for row in payoffs.rows()])
    assert again.rows() == payoffs.rows()
    for opponent in ("a", "b", "rock"):
        recent, total = payoffs.recent(opponent=opponent).matches, payoffs.total(opponent=opponent).matches
        assert min(total, 25) <= recent <= total


def test_wrong_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match="negative"):
        Payoffs().record("s1", "rock", -1, 0, 0)
    with pytest.raises(ConfigError, match="window"):
        Payoffs(0)
    row = dict(zip(COLUMNS, ("s1", "rock", "rock", 3, 1, 1, 1), strict=True))
    assert Payoffs.from_rows([row]).total() == Record(1, 1, 1)
    for wrong in ({"wins": 2}, {"losses": "many"}, {"wins": 3, "draws": -1}):
        with pytest.raises(StateError, match="row 1"):
            Payoffs.from_rows([row | wrong])
    with pytest.raises(StateError, match="needs learner"):
        Payoffs.from_rows([{"learner": "s1"}])
