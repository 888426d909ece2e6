"""Tests of batches of games: whole games, with interface and picture."""

import numpy as np
import pytest
import torch
from benchmarks.city_player import StrategyPlayer

from ludus.core.errors import ConfigError, SnapshotError
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Key, Point, Wait
from ludus.worlds.city.game.rules import CityRules
from ludus.worlds.city.interface.layout import BARS, point_in
from ludus.worlds.city.interface.theme import FIELDS, CityDisplay
from ludus.worlds.city.perception.reading import Date
from ludus.worlds.city.strategies import STRATEGIES

RULES = CityRules(threads=1, days_per_second=30)


def play(games: CityGames, steps: int, first: int = 0) -> None:
    """Plays every game as its index says, by clicks alone."""
    for step in range(first, first + steps):
        for game in range(games.num_envs):
            random = np.random.default_rng((games.simulation.first_game + game, step))
            tool = games.layout(game).tools[int(random.integers(16))].box.middle
            cell = Point(0.2 + 0.7 * float(random.random()), 0.2 + 0.6 * float(random.random()))
            games.act(game, [Key("Return"), Click(point_in(*tool, 640, 400)), Click(cell), Wait(1.0)])
        games.advance()


def known(games: CityGames, game: int) -> tuple[object, ...]:
    """The exact figures of a game, and what it says."""
    figures = games.interfaces[game].figures
    return figures.values(), figures.demands(), games.texts(game)


def test_a_batch_equals_single_games() -> None:
    display = CityDisplay(themes=("classic", "slate", "night"))
    batch = CityGames(3, rules=RULES, display=display, seed=2)
    play(batch, 25)
    state = batch.snapshot()
    for game in range(3):
        single = CityGames(1, rules=RULES, display=display, seed=2, first_game=game)
        play(single, 25)
        assert (single.capture(0) == batch.capture(game)).all()
        assert known(single, 0) == known(batch, game)
        for name, tensor in single.snapshot().items():
            if name != "seed":
                assert torch.equal(tensor[0], state[name][game]), name


def test_a_restored_batch_goes_on_and_looks_the_same() -> None:
    games = CityGames(2, rules=RULES, seed=4)
    play(games, 10)
    games.act(0, [Key("F1"), Wait(0.7)])  # a window is open, and time is still to pass
    kept = games.snapshot()
    play(games, 10, first=10)
    straight = [games.capture(game).copy() for game in range(2)]
    other = CityGames(2, rules=RULES, seed=99)
    other.restore(kept)
    play(other, 10, first=10)
    assert all((other.capture(game) == straight[game]).all() for game in range(2))
    assert all(torch.equal(tensor, games.snapshot()[name]) for name, tensor in other.snapshot().items())
    with pytest.raises(SnapshotError, match="interface"):
        CityGames(1, rules=RULES).restore(kept)


def test_a_state_fits_a_screen_of_another_size() -> None:
    small = CityGames(1, rules=RULES)
    small.act(0, [Key("Down")])
    assert small.interfaces[0].state.row > 0
    large = CityGames(1, rules=RULES, display=CityDisplay(width=1280, height=720))
    large.restore(small.snapshot())
    assert large.interfaces[0].state.row == 0  # the whole map is in view
    assert known(large, 0) == known(small, 0)


def test_truth_says_everything_and_texts_say_the_truth() -> None:
    games = CityGames(1, rules=RULES, display=CityDisplay(themes=("winter",)), seed=1)
    games.simulation.city["funds"][0] = 12_345
    games.simulation.city["happiness"][0] = 66.5
    games.simulation.city["balance"][0] = -123
    truth = games.interfaces[0].figures.values()
    assert tuple(truth) == FIELDS
    assert len(games.interfaces[0].figures.numbers()) == len(FIELDS) + len(BARS)
    assert (truth["date"], truth["funds"], truth["happiness"]) == (Date(1900, 1, 1), 12_345.0, 67.0)
    said = games.said(0)
    assert tuple(said) == (*FIELDS, *BARS)
    assert (said["funds"], said["balance"], said["date"]) == (12_300.0, -123.0, Date(1900, 1, 1))
    texts = games.texts(0)
    assert (texts["funds"], texts["balance"], texts["happiness"], texts["date"]) == (
        "$12.3k",
        "-$123",
        "67%",
        "Jan 1900",
    )


def test_time_passes_for_each_game_by_its_own_waits() -> None:
    games = CityGames(3, rules=RULES)
    games.act(0, [Wait(1.0)])
    games.act(1, [Wait(0.5), Key("space"), Wait(5.0)])  # what was waited before a key passes before it
    assert games.simulation.city["day"].tolist() == [0, 15, 0]
    games.advance()
    assert games.simulation.city["day"].tolist() == [30, 15, 0]


def test_places_beyond_the_edge_are_moved_onto_it() -> None:
    games = CityGames(1, rules=RULES)
    games.act(0, [Click(Point(-3.0, 0.5)), Click(Point(7.0, 7.0))])
    state = games.interfaces[0].state
    assert (state.pointer_x, state.pointer_y) == (639, 399)
    with pytest.raises(ConfigError, match=r"game 1 .*0 to 0"):
        games.act(1, [])


def test_only_chosen_games_begin_anew() -> None:
    games = CityGames(2, rules=RULES)
    play(games, 3)
    games.restart(torch.tensor([True, False]))
    assert games.simulation.city["day"].tolist() == [0, 90]
    assert games.interfaces[0].state.tool == 0
    assert games.interfaces[1].state.tool != 0 or games.interfaces[1].state.message != 0


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_play_through_the_interface(name: str) -> None:
    games = CityGames(2, rules=CityRules(threads=1), seed=6)
    players = [StrategyPlayer(name, games, game, seed=1) for game in range(2)]
    for _ in range(60):
        for game, player in enumerate(players):
            games.act(game, player.decide())
        games.advance()
    assert (games.simulation.city["day"] >= 550).all()  # a dialog costs a decision a part of its days
    population = games.simulation.city["population"]
    if name in ("greedy", "balanced"):
        assert (population > 60).all()
    if name == "never-build":
        assert population.max() == 0
        assert (games.simulation.city["funds"] < 10_000).all()  # the hamlet's upkeep


def test_random_play_depends_on_the_game_alone() -> None:
    games = CityGames(2, rules=RULES, seed=6)
    first, again, other = (StrategyPlayer("random", games, game, 3).decide() for game in (1, 1, 0))
    assert first == again
    assert first != other
