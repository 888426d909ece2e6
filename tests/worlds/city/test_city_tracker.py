"""Events and measures, by hand: differences of what could be read, carried over what could not."""

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from ludus.rewards.step_info import StepInfo
from ludus.worlds.city.actions import CONFIRMED, REFUSED, ActionKind, Catalogue
from ludus.worlds.city.backend import CityBackend, FieldKind, Sight
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.driver import Frame
from ludus.worlds.city.metrics import per_step
from ludus.worlds.city.tracker import IDLE_AFTER, Tracker

FIELDS = (FieldKind("date", "date"), FieldKind("funds", "money"), FieldKind("population", "number"))


class PaperTable(CityBackend):
    """Two games that are nothing but what a test says can be seen of them."""

    def __init__(self) -> None:
        self.num_envs, self.fields, self.menus = 2, FIELDS, ()
        self.catalogue = Catalogue([ActionKind("wait", "wait"), ActionKind("road", "build", True, 10, 60)], 3, 2)
        self.sight = Sight(2, len(FIELDS), self.catalogue, CityConfig(observe=("readings",)))

    def show(self, **figures: float | None) -> Sight:
        """Shows figures in both games; None is unreadable."""
        for number, field in enumerate(FIELDS):
            value = figures[field.name]
            self.sight.values[:, number] = 0.0 if value is None else value
            self.sight.readable[:, number] = value is not None
        return self.sight

    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        del games, seed
        return self.sight

    def play(self, decisions: NDArray[np.int64]) -> Sight:
        del decisions
        return self.sight

    def picture(self, game: int) -> Frame:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.fixture
def backend() -> PaperTable:
    return PaperTable()


@pytest.fixture
def tracker(backend: PaperTable) -> Tracker:
    tracker = Tracker(backend)
    tracker.begin(backend.show(date=360.0, funds=1_000.0, population=0.0), np.ones(2, np.bool_))
    return tracker


def follow(tracker: Tracker, backend: PaperTable, **figures: float | None) -> Mapping[str, float]:
    tracker.follow(backend.show(**figures), np.array([0, 1]))
    return {name: float(tracker.events[name][1, 0]) for name in tracker.events}


def test_differences_of_readings_are_events(tracker: Tracker, backend: PaperTable) -> None:
    events = follow(tracker, backend, date=370.0, funds=900.0, population=30.0)
    assert (events["population_gain"], events["population_loss"], events["funds_change"]) == (30.0, 0.0, -100.0)
    assert (events["peak_gain"], events["milestone"], events["unreadable"]) == (30.0, 0.0, 0.0)
    assert (events["did_build"], events["did_wait"]) == (1.0, 0.0)
    events = follow(tracker, backend, date=380.0, funds=950.0, population=12.0)
    assert (events["population_gain"], events["population_loss"], events["funds_change"]) == (0.0, 18.0, 50.0)
    events = follow(tracker, backend, date=390.0, funds=950.0, population=40.0)
    assert (events["population_gain"], events["peak_gain"]) == (28.0, 10.0)


def test_an_unreadable_figure_gives_nothing_until_it_is_read_again(tracker: Tracker, backend: PaperTable) -> None:
    events = follow(tracker, backend, date=None, funds=None, population=None)
    assert (events["population_gain"], events["funds_change"], events["unreadable"]) == (0.0, 0.0, 1.0)
    assert float(tracker.state_metrics["funds"][0, 0]) == 1_000.0
    assert float(tracker.state_metrics["funds_readable"][0, 0]) == 0.0
    events = follow(tracker, backend, date=380.0, funds=700.0, population=10.0)
    assert (events["population_gain"], events["funds_change"]) == (10.0, -300.0)
    assert float(tracker.state_metrics["funds_readable"][0, 0]) == 1.0
    assert float(tracker.state_metrics["year"][0, 0]) == pytest.approx(380 / 360)


def test_what_was_never_read_before_changes_nothing_when_it_is(backend: PaperTable) -> None:
    tracker = Tracker(backend)
    tracker.begin(backend.show(date=None, funds=None, population=None), np.ones(2, np.bool_))
    events = follow(tracker, backend, date=720.0, funds=5_000.0, population=80.0)
    assert (events["population_gain"], events["funds_change"]) == (0.0, 0.0)
    assert tracker.first_day.tolist() == [720.0, 720.0]


def test_a_milestone_counts_once(tracker: Tracker, backend: PaperTable) -> None:
    reached = [
        follow(tracker, backend, date=370.0, funds=0.0, population=people)["milestone"]
        for people in (49.0, 50.0, 20.0, 60.0, 210.0, 199.0, 250.0)
    ]
    assert reached == [0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0]  # 50, then 100 and 200 at once


def test_a_city_without_people_is_idle_after_fifty_decisions(tracker: Tracker, backend: PaperTable) -> None:
    idle = [follow(tracker, backend, date=370.0, funds=0.0, population=0.0)["idle_city"] for _ in range(IDLE_AFTER + 2)]
    assert idle == [0.0] * IDLE_AFTER + [1.0, 1.0]
    assert follow(tracker, backend, date=370.0, funds=0.0, population=1.0)["idle_city"] == 0.0


def test_nobody_says_idle_of_a_population_that_was_never_read(backend: PaperTable) -> None:
    tracker = Tracker(backend)
    tracker.begin(backend.show(date=0.0, funds=0.0, population=None), np.ones(2, np.bool_))
    for _ in range(IDLE_AFTER + 2):
        events = follow(tracker, backend, date=0.0, funds=0.0, population=None)
    assert events["idle_city"] == 0.0


def test_placements_and_ends_are_told(tracker: Tracker, backend: PaperTable) -> None:
    backend.sight.placed[:] = (CONFIRMED, REFUSED)
    follow(tracker, backend, date=370.0, funds=-5.0, population=7.0)
    tracker.end(np.array([True, False]))
    assert tracker.events["placed"][:, 0].tolist() == [1.0, 0.0]
    assert tracker.events["refused"][:, 0].tolist() == [0.0, 1.0]
    assert tracker.events["final_population"][:, 0].tolist() == [7.0, 0.0]
    assert tracker.events["final_funds"][:, 0].tolist() == [-5.0, 0.0]


def test_a_field_that_a_game_does_not_have_is_never_readable(tracker: Tracker, backend: PaperTable) -> None:
    follow(tracker, backend, date=370.0, funds=0.0, population=0.0)
    assert (
        float(tracker.state_metrics["happiness"][0, 0])
        == float(tracker.state_metrics["happiness_readable"][0, 0])
        == 0.0
    )
    assert "final_happiness" not in tracker.event_names
    assert "final_happiness" not in per_step(StepInfo(tracker.events, tracker.state_metrics, 1.0))
