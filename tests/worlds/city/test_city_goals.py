"""Goals and novelty of City, by hand: what is reached, what is new, and only as far as it could be read."""

import numpy as np
import pytest
from pydantic import ValidationError

from ludus.worlds.city.actions import ActionKind, Catalogue
from ludus.worlds.city.backend import Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.tracker import Goals, Held, Novelty, Turn, progress

CATALOGUE = Catalogue([ActionKind("wait", "wait"), ActionKind("road", "build", True, 10, 60)], 3, 2)
ALL = np.ones(2, np.bool_)


class Games:
    """Two games of which a test says what can be seen and what is known."""

    def __init__(self) -> None:
        self.sight = Sight(2, 0, CATALOGUE, CityConfig(observe=("readings",)))
        self.known: dict[str, float] = {}

    def turn(self, **figures: float) -> Turn:
        """The next moment, in which some figures say something new; the others are as they were."""
        self.known |= figures
        return Turn(self.sight, self._held, np.zeros(2, np.int64), np.zeros(2, np.int64))

    def _held(self, name: str) -> Held:
        return Held(np.full(2, self.known.get(name, 0.0)), np.full(2, name in self.known))


def follow(goals: Goals, turn: Turn) -> tuple[dict[str, float], dict[str, float]]:
    events, state_metrics = (
        np.zeros((2, len(goals.events)), np.float32),
        np.zeros((2, len(goals.state_metrics)), np.float32),
    )
    goals.follow(turn, events, state_metrics)
    return dict(zip(goals.events, events[0], strict=True)), dict(
        zip(goals.state_metrics, state_metrics[0], strict=True)
    )


def test_progress_of_more_and_of_less() -> None:
    people = np.array([-5.0, 0.0, 100.0, 400.0, 900.0])
    assert progress("population", 400.0, people).tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]
    smog = np.array([100.0, 60.0, 20.0, 0.0])
    assert progress("pollution", 20.0, smog).tolist() == [0.0, 0.5, 1.0, 1.0]


def test_goals_reached_count_once_in_a_city() -> None:
    games, goals = Games(), Goals({"population": 200.0, "traffic": 50.0}, 2)
    goals.begin(games.turn(population=0.0, traffic=100.0), ALL)
    reached, gained = 0.0, 0.0
    for people in (50.0, 100.0, 200.0, 150.0, 250.0):
        events, state_metrics = follow(goals, games.turn(population=people))
        reached, gained = reached + events["goals_reached"], gained + events["goal_population"]
        assert state_metrics["goal_population"] == pytest.approx(min(people / 200.0, 1.0))
    # Reached twice, counted once; what the progress gained and lost adds up to what it is.
    assert reached == 1.0
    assert gained == pytest.approx(1.0)
    events, _ = follow(goals, games.turn(traffic=40.0))
    assert (events["goals_reached"], events["goal_traffic"], events["goal_population"]) == (1.0, 1.0, 0.0)
    goals.begin(games.turn(population=0.0, traffic=100.0), ALL)
    events, _ = follow(goals, games.turn(population=300.0))
    assert events["goals_reached"] == 1.0  # in the next city it counts again


def test_what_cannot_be_read_reaches_nothing() -> None:
    games, goals = Games(), Goals({"happiness": 60.0}, 2)
    goals.begin(games.turn(), ALL)
    events, state_metrics = follow(goals, games.turn())
    assert (events["goal_happiness"], events["goals_reached"], state_metrics["goal_happiness"]) == (0.0, 0.0, 0.0)
    events, _ = follow(goals, games.turn(happiness=60.0))
    assert events["goals_reached"] == 1.0
    events, state_metrics = follow(goals, games.turn())  # unreadable again: the last reading stays
    assert (events["goal_happiness"], state_metrics["goal_happiness"]) == (0.0, 1.0)


def test_a_city_that_begins_at_a_goal_has_not_reached_it() -> None:
    games, goals = Games(), Goals({"funds": 5_000.0}, 2)
    goals.begin(games.turn(funds=20_000.0), ALL)
    events, state_metrics = follow(goals, games.turn())
    assert (events["goals_reached"], state_metrics["goal_funds"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("goals", "said"),
    [
        ({"poplation": 5.0}, "'poplation'"),
        ({"population": 0.0}, "population.* 0"),
        ({"traffic": 100.0}, "traffic.* 100"),
    ],
)
def test_goals_that_cannot_be_are_refused(goals: dict[str, float], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CityConfig(goals=goals)


def test_a_menu_is_new_once_in_a_city() -> None:
    games, novelty = Games(), Novelty(3, 2)
    events, state_metrics = np.zeros((2, 1), np.float32), np.zeros((2, 0), np.float32)

    def open_menu(menu: int, *, dialog: bool = False) -> float:
        games.sight.menu[:] = menu
        games.sight.dialog[:] = dialog
        novelty.follow(games.turn(), events, state_metrics)
        return float(events[0, 0])

    novelty.begin(games.turn(), ALL)
    assert [open_menu(menu) for menu in (-1, 1, 1, -1, 1, 2)] == [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    assert open_menu(0, dialog=True) == 2.0
    assert open_menu(0, dialog=True) == 0.0
    games.sight.menu[:], games.sight.dialog[:] = -1, False
    novelty.begin(games.turn(), ALL)
    assert open_menu(1) == 1.0
