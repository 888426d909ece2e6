"""Double elimination: seeding, byes, rounds worked out by hand, a final that is played again, and the standings."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.core.errors import ConfigError
from ludus.evaluation.bracket import Bracket, Score, double_elimination


def stronger(first: str, second: str) -> bool:
    """Says that the earlier letter wins."""
    return first < second


def play(seeds: Sequence[str], wins: Callable[[str, str], bool] = stronger) -> tuple[Bracket, list[list[str]]]:
    """Plays a bracket; returns it and what was played at once."""
    calls: list[list[str]] = []

    def decide(pairs: Sequence[tuple[str, str]]) -> list[Score]:
        calls.append([first + second for first, second in pairs])
        return [Score(2, 0, 1, first_advances=True) if wins(*pair) else Score(0, 1, 2, False) for pair in pairs]

    return double_elimination(seeds, decide), calls


def meetings(bracket: Bracket, name: str) -> list[str]:
    (found,) = [each for each in bracket.rounds if each.name == name]
    return [f"{meeting.first or '-'}{meeting.second or '-'}" for meeting in found.meetings]


def test_eight_players_by_hand() -> None:
    bracket, calls = play("abcdefgh")
    assert meetings(bracket, "winners 1") == ["ah", "de", "bg", "cf"]
    assert meetings(bracket, "losers 1") == ["he", "gf"]
    assert meetings(bracket, "winners 2") == ["ad", "bc"]
    assert meetings(bracket, "losers 2") == ["ec", "fd"]  # those who drop come in reversed order
    assert meetings(bracket, "winners 3") == ["ab"]
    assert meetings(bracket, "losers 3") == ["cd"]
    assert meetings(bracket, "losers 4") == ["cb"]
    assert meetings(bracket, "final") == ["ab"]
    # A round of either side is played at the same time.
    assert calls == [["ah", "de", "bg", "cf"], ["ad", "bc", "he", "gf"], ["ec", "fd"], ["ab", "cd"], ["cb"], ["ab"]]
    places = [(standing.place, standing.name) for standing in bracket.standings]
    assert places == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"), (5, "f"), (7, "g"), (7, "h")]


def test_five_players_have_byes() -> None:
    bracket, calls = play("abcde")
    assert meetings(bracket, "winners 1") == ["a-", "de", "b-", "c-"]
    assert meetings(bracket, "winners 2") == ["ad", "bc"]
    assert meetings(bracket, "losers 1") == ["-e", "--"]
    assert meetings(bracket, "losers 2") == ["ec", "-d"]
    assert meetings(bracket, "losers 3") == ["cd"]
    assert meetings(bracket, "losers 4") == ["cb"]
    assert calls[0] == ["de"]
    assert bracket.played == 8  # everybody but the winner loses twice
    assert [standing.name for standing in bracket.standings] == list("abcde")
    document = bracket.as_json()
    byes = [meeting["winner"] for meeting in document["rounds"][0]["meetings"] if meeting["bye"]]
    assert byes == ["a", "b", "c"]
    assert document["rounds"][2]["round"] == "losers 1"
    assert [meeting["winner"] for meeting in document["rounds"][2]["meetings"]] == ["e"]  # an empty one is left out


def test_two_players_and_a_final_that_is_played_again() -> None:
    bracket, _ = play("ab")
    assert [each.name for each in bracket.rounds] == ["winners 1", "final"]
    outcomes = iter([True, False, False])
    turned, _ = play("ab", lambda _first, _second: next(outcomes))
    assert [each.name for each in turned.rounds] == ["winners 1", "final", "final, again"]
    assert [standing.name for standing in turned.standings] == ["b", "a"]
    outcomes = iter([True, False, True])
    saved, _ = play("ab", lambda _first, _second: next(outcomes))
    assert [standing.name for standing in saved.standings] == ["a", "b"]


@given(st.integers(2, 33), st.randoms(use_true_random=False))
def test_everybody_but_the_winner_loses_twice(players: int, random: object) -> None:
    names = [f"p{number:02}" for number in range(players)]
    toss = getattr(random, "random")  # noqa: B009 - hypothesis gives an object without a type
    bracket, _ = play(names, lambda _first, _second: toss() < 0.5)
    losses = dict.fromkeys(names, 0)
    for each in bracket.rounds:
        for meeting in each.meetings:
            if meeting.loser is not None:
                losses[meeting.loser] += 1
    champion = bracket.standings[0].name
    assert losses.pop(champion) <= 1
    assert set(losses.values()) == {2}
    assert sorted(standing.name for standing in bracket.standings) == names
    assert bracket.played in (2 * players - 2, 2 * players - 1)


@pytest.mark.parametrize("seeds", [[], ["a"], ["a", "b", "a"]])
def test_who_cannot_play(seeds: list[str]) -> None:
    with pytest.raises(ConfigError, match="players"):
        play(seeds)
