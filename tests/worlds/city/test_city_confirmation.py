"""Try, then confirm: a placement counts when the funds fell by what it costs, as they were read."""

import pytest
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.actions import CONFIRMED, NOT_JUDGED, REFUSED, ActionKind
from ludus.worlds.city.perception.embedded import Said, ThemeReader

ROAD = ActionKind("road", "build", uses_cell=True, least_cost=10, most_cost=60)


@pytest.mark.parametrize(
    ("fall", "grain", "expected"),
    [
        (10, 0, CONFIRMED),
        (60, 0, CONFIRMED),
        (0, 0, REFUSED),
        (9, 0, REFUSED),
        (61, 0, REFUSED),
        (-500, 0, REFUSED),
        (0, 100, NOT_JUDGED),  # written as 10.0k before and after
        (100, 100, CONFIRMED),
        (200, 100, REFUSED),
    ],
)
def test_a_fall_of_the_funds_is_judged(fall: float, grain: float, expected: int) -> None:
    assert ROAD.judge(fall, grain) == expected


def test_what_costs_more_than_a_reading_can_hide_is_refused_if_nothing_fell() -> None:
    assert ActionKind("coal", "build", least_cost=2_500, most_cost=5_000).judge(0.0, 100.0) == REFUSED


def placed(world: World, name: str, column: int = 3, row: int = 3) -> int:
    world.do(name, column, row)
    return int(world.backend.sight.placed[0])


def test_placements_are_confirmed_and_refused() -> None:
    world = World()
    assert placed(world, "road") == CONFIRMED
    assert world.city["funds"][0] == 9_990
    assert placed(world, "road") == REFUSED
    assert placed(world, "wait") == NOT_JUDGED
    assert placed(world, "tax_up") == NOT_JUDGED
    world.city["funds"][0] = 5
    world.do("wait")
    assert placed(world, "road", 5, 5) == REFUSED
    world.env.close()


def test_a_month_that_ends_does_not_disturb_the_judgement() -> None:
    world = World()
    for column in range(6):  # days 10 to 60, with the upkeep of roads on days 30 and 60
        assert placed(world, "road", column) == CONFIRMED
    world.env.close()


def test_funds_that_cannot_be_read_judge_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(ThemeReader, "read_one", lambda *_: Said(0.0, False, 0.0, 0.0))
    assert placed(world, "road") == NOT_JUDGED
    world.env.close()


def test_abbreviated_funds_are_judged_as_far_as_they_say_something() -> None:
    world = World(display={"themes": ["winter"]})  # writes 10.0k from 10,000 on
    assert placed(world, "wind") == CONFIRMED  # 10.0k, then 9,300
    assert placed(world, "road", 5) == CONFIRMED
    world.city["funds"][0] = 20_050
    world.do("wait")
    assert placed(world, "road", 7) == NOT_JUDGED  # 20.0k, then 20.0k
    assert placed(world, "wind", 9) == CONFIRMED
    assert placed(world, "wind", 9) == REFUSED
    world.env.close()


def test_the_truth_judges_alike() -> None:
    world = World(metrics="truth", observe=["readings", "menu"])
    assert placed(world, "road") == CONFIRMED
    assert placed(world, "road") == REFUSED
    world.env.close()
