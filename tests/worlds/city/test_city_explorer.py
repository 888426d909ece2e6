"""Exploring: elements are remembered once, menus are opened one after the other, the map is no interface."""

import numpy as np
import pytest
import torch
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.drivers.driver import Point
from ludus.worlds.city.explorer import Explorer

HEADINGS = (Point(0.1, 0.02), Point(0.2, 0.02))


@pytest.fixture
def explorer() -> Explorer:
    return Explorer(2, 3, (640, 400))


def test_within_twenty_pixels_it_is_the_same_element(explorer: Explorer) -> None:
    assert explorer.note(0, [Point(0.5, 0.5), Point(0.5, 0.6)]) == 2  # 40 pixels apart
    assert explorer.note(0, [Point(0.5 + 19 / 640, 0.5)]) == 0
    assert explorer.note(0, [Point(0.5 + 19 / 640, 0.5 - 21 / 400)]) == 1
    assert (explorer.count(0), explorer.count(1)) == (3, 0)


def test_the_newest_are_kept(explorer: Explorer) -> None:
    for x in (0.1, 0.3, 0.5):
        explorer.note(0, [Point(x, 0.5)])
    explorer.note(0, [Point(0.1, 0.5)])  # seen again, and so the newest
    assert explorer.note(0, [Point(0.9, 0.5)]) == 1  # takes the place of 0.3
    assert explorer.note(0, [Point(0.1, 0.5), Point(0.5, 0.5), Point(0.9, 0.5)]) == 0
    assert explorer.note(0, [Point(0.3, 0.5)]) == 1
    assert explorer.count(0) == 3


def test_an_element_is_drawn_by_lot(explorer: Explorer) -> None:
    assert explorer.any_element(0, 1, 2, 3) is None
    explorer.note(0, [Point(0.1, 0.5), Point(0.5, 0.5), Point(0.9, 0.5)])
    drawn = [explorer.any_element(0, 7, turn) for turn in range(60)]
    assert {point.x for point in drawn if point is not None} == {0.1, 0.5, 0.9}
    assert drawn == [explorer.any_element(0, 7, turn) for turn in range(60)]


def test_menus_are_opened_in_turn_and_their_entries_tried_once(explorer: Explorer) -> None:
    assert explorer.next_in_menus(0, HEADINGS, is_open=False) == HEADINGS[0]
    explorer.note(0, [HEADINGS[0], Point(0.1, 0.1), Point(0.1, 0.2)])
    tried = [explorer.next_in_menus(0, HEADINGS, is_open=True) for _ in range(3)]
    assert tried == [Point(0.1, 0.1), Point(0.1, 0.2), HEADINGS[1]]
    assert explorer.next_in_menus(0, HEADINGS, is_open=True) == HEADINGS[0]
    assert explorer.next_in_menus(1, HEADINGS, is_open=False) == HEADINGS[0]
    assert explorer.next_in_menus(1, (), is_open=False) is None


def test_what_is_remembered_can_be_kept_and_forgotten(explorer: Explorer) -> None:
    explorer.note(1, [Point(0.1, 0.5)])
    kept = {name: tensor.clone() for name, tensor in explorer.state().items()}
    explorer.forget(np.array([False, True]))
    assert explorer.count(1) == 0
    for name, tensor in explorer.state().items():
        tensor.copy_(kept[name])
    assert explorer.count(1) == 1
    assert all(torch.equal(kept[name], tensor) for name, tensor in explorer.state().items())


def test_menus_of_the_game_are_explored_and_looking_finds_its_buttons() -> None:
    world = World()
    result = world.do("explore_menu")
    assert world.backend.sight.menu[0] >= 0
    assert (world.event(result, "changed"), world.event(result, "did_explore")) == (1.0, 1.0)
    found = world.event(result, "discovered")
    assert found >= 3.0  # the entries of the budget's menu
    world.do("explore_menu")  # tries one of them: a submenu opens, or the window of the budget
    assert len(world.state.path) == 2 or world.backend.sight.window[0]
    world.do("escape")
    before = int(world.backend.sight.elements[0])
    assert world.event(world.do("observe"), "discovered") > 5.0
    assert int(world.backend.sight.elements[0]) > before
    assert world.event(world.do("observe"), "changed") == 0.0
    world.env.close()


def test_buildings_are_no_elements() -> None:
    world = World(rules={"funds": 100_000})
    for _ in range(3):
        world.do("observe")  # knows all that is on the screen
    known = int(world.backend.sight.elements[0])
    for column in range(2, 18, 3):
        world.do("school", column, 5)
        world.do("park", column, 8)
    world.do("observe")
    view = world.games.layout(0).view.box
    places = world.backend._explorer.state()["places"][0]
    inside = [
        (x, y)
        for x, y in places.tolist()
        if view.left < x * 640 < view.right and view.top < y * 400 < view.bottom and (x, y) != (0.0, 0.0)
    ]
    assert inside == []
    assert int(world.backend.sight.elements[0]) <= known + 4
    world.env.close()


def test_a_discovered_element_is_clicked() -> None:
    world = World()
    world.do("click_element")  # nothing is known yet
    assert world.state.pointer_x == -1
    world.do("observe")
    world.do("click_element")
    assert world.state.pointer_x >= 0
    world.env.close()
