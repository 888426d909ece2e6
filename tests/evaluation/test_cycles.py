"""Cycles: only wins that are no chance count, every cycle is named once, and long ones only where no short one is."""

import pytest

from ludus.evaluation.cycles import Beats, find_cycles, sure_wins
from ludus.league.payoffs import Record


def beats(*wins: str) -> Beats:
    names = sorted({letter for win in wins for letter in win})
    return {name: frozenset(win[1] for win in wins if win[0] == name) for name in names}


def test_a_win_is_sure_only_with_enough_matches() -> None:
    # One pair at 95 %: 5 of 5 has a Wilson interval from 0.566, 3 of 3 from 0.439.
    assert sure_wins("ab", {("a", "b"): Record(5, 0, 0)}) == {"a": frozenset("b"), "b": frozenset()}
    assert sure_wins("ab", {("a", "b"): Record(3, 0, 0)}) == {"a": frozenset(), "b": frozenset()}
    assert sure_wins("ab", {("a", "b"): Record(0, 0, 5)})["b"] == {"a"}
    # Draws say nothing; without a decided match nothing is known.
    assert sure_wins("ab", {("a", "b"): Record(5, 90, 0)})["a"] == {"b"}
    assert sure_wins("ab", {("a", "b"): Record(0, 9, 0)}) == {"a": frozenset(), "b": frozenset()}


def test_many_pairs_are_judged_more_strictly() -> None:
    # Three pairs at 98.3 % each: z = 2.394, z^2 = 5.731, and 5 of 5 reaches down to 5 / (5 + 5.731) = 0.466.
    records = {("a", "b"): Record(5, 0, 0), ("a", "c"): Record(6, 0, 0), ("b", "c"): Record(0, 0, 0)}
    assert sure_wins("abc", records)["a"] == {"c"}  # 6 / 11.731 = 0.511


def test_cycles_of_three_are_named_once_in_the_direction_of_the_wins() -> None:
    assert find_cycles(beats("ab", "bc", "ca")) == [("a", "b", "c")]
    assert find_cycles(beats("ac", "cb", "ba")) == [("a", "c", "b")]
    assert find_cycles(beats("ab", "bc", "ac")) == []


def test_two_cycles_that_share_a_win() -> None:
    assert find_cycles(beats("ab", "bc", "ca", "bd", "da")) == [("a", "b", "c"), ("a", "b", "d")]


def test_a_long_cycle_is_named_if_no_short_one_has_its_wins() -> None:
    assert find_cycles(beats("ab", "bc", "cd", "da")) == [("a", "b", "c", "d")]
    # With the diagonal there are two of three, and the long one is made of them.
    assert find_cycles(beats("ab", "bc", "ca", "cd", "da", "ac")) == [("a", "b", "c"), ("a", "c", "d")]
    assert find_cycles(beats("ab", "bc", "cd", "de", "ea", "ac")) == [("a", "c", "d", "e"), ("a", "b", "c", "d", "e")]


@pytest.mark.parametrize("wins", [(), ("ab",), ("ab", "cb")])
def test_no_cycles(wins: tuple[str, ...]) -> None:
    assert find_cycles(beats(*wins)) == []
