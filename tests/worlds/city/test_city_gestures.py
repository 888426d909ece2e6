"""What every kind of action does in the embedded game, by its own clicks and keys."""

from collections.abc import Iterator

import pytest
from city_clicks import elements_of  # type: ignore[import-not-found,unused-ignore]  # beside this file
from city_world import World  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.core.errors import UnknownNameError
from ludus.worlds.city.actions import CLOSED_MENUS, EXPLORATORY, embedded_catalogue, embedded_gestures
from ludus.worlds.city.config import GROUPS
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Point
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import Kind, Terrain, Tool
from ludus.worlds.city.interface.layout import find_at, point_in
from ludus.worlds.city.interface.menus import Overlay, Window, all_entries
from ludus.worlds.city.interface.theme import THEMES, CityDisplay
from ludus.worlds.city.painting.typefaces import typeface_of

BUILT = [tool for tool in Tool if tool not in (Tool.QUERY, Tool.BULLDOZER, Tool.PUMP)]


@pytest.fixture(scope="module")
def shared() -> Iterator[World]:
    """One world for tests that look at what one decision does."""
    world = World(rules={"funds": 1_000_000}, steps=10_000)
    yield world
    world.env.close()


@pytest.fixture
def world(shared: World) -> World:
    """A new city on flat land."""
    shared.env.reset()
    shared.games.simulation.cells.terrain[:] = Terrain.LAND
    return shared


@pytest.mark.parametrize("tool", BUILT)
def test_a_tool_builds_at_its_cell(world: World, tool: Tool) -> None:
    result = world.do(tool.name.lower(), 7, 5)
    side = 2 if tool in ZONES else 1
    assert (world.buildings[5 : 5 + side, 7 : 7 + side] == int(tool)).all()
    assert int((world.buildings != Kind.EMPTY).sum()) == side * side
    assert world.event(result, "placed") == 1.0
    assert world.event(result, "did_build") == 1.0


def test_a_pump_needs_water(world: World) -> None:
    assert world.event(world.do("pump", 7, 5), "refused") == 1.0
    world.games.simulation.cells.terrain[0, 5 * 20 + 8] = Terrain.WATER
    assert world.event(world.do("pump", 7, 5), "placed") == 1.0


@pytest.mark.parametrize(
    ("name", "column", "row", "cells"),
    [
        ("street_across", 3, 4, {(4, 3), (4, 4), (4, 5), (4, 6)}),
        ("street_down", 3, 4, {(4, 3), (5, 3), (6, 3), (7, 3)}),
        ("street_across", 18, 0, {(0, 18), (0, 19)}),
        ("street_down", 0, 13, {(13, 0)}),
    ],
)
def test_a_street_is_four_cells_long_within_the_view(
    world: World, name: str, column: int, row: int, cells: set[tuple[int, int]]
) -> None:
    result = world.do(name, column, row)
    rows, columns = (world.buildings == Kind.ROAD).nonzero()
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == cells
    assert world.event(result, "placed") == 1.0


def test_bulldozing_answers_the_question_that_is_asked_for_a_school(world: World) -> None:
    world.do("school", 4, 4)
    assert world.event(world.do("bulldoze", 4, 4), "placed") == 1.0
    assert world.buildings[4, 4] == Kind.EMPTY
    assert not world.state.dialogs
    assert world.event(world.do("bulldoze", 4, 4), "refused") == 1.0


def test_taxes_and_funding_go_step_by_step(world: World) -> None:
    world.do("tax_up")
    assert world.city["tax"][0] == 8
    world.do("tax_down")
    world.do("tax_down")
    assert world.city["tax"][0] == 6
    levels = []
    for name in ("safety_down", "safety_down", "safety_down", "safety_down", "safety_up"):
        world.do(name)
        levels.append(int(world.city["funding_safety"][0]))
    assert levels == [80, 50, 0, 0, 50]
    assert world.city["funding_transport"][0] == world.city["funding_welfare"][0] == 100


def test_menu_commands_do_what_they_are_called(world: World) -> None:
    world.do("menu.windows.graph")
    assert world.state.window == Window.GRAPH
    world.do("escape")
    world.do("menu.overlays.services.fire")
    assert world.state.overlay == Overlay.FIRE
    world.do("menu.budget.taxes.12")
    assert world.city["tax"][0] == 12


@pytest.mark.parametrize("theme", THEMES)
def test_every_click_of_a_menu_command_hits_its_entry(theme: str) -> None:
    games = CityGames(1, display=CityDisplay(themes=(theme,)))
    look = games.interfaces[0].theme
    catalogue = embedded_catalogue(games.simulation.rules, games.layout(0).view, GROUPS)
    gestures = embedded_gestures(catalogue, games.layout(0), typeface_of(look.family, look.size_for(400)))
    commands = {path: entry for path, entry in all_entries() if not entry.children}
    for path, entry in commands.items():
        if path.split(".")[1] in CLOSED_MENUS:
            assert path not in gestures.fixed
            continue
        games.interfaces[0].restart()
        for depth, gesture in enumerate(gestures.fixed[path], start=2):
            assert isinstance(gesture, Click)
            at = find_at(elements_of(games.interfaces[0]), int(gesture.at.x * 640), int(gesture.at.y * 400))
            assert at is not None
            assert at.name == ".".join(path.split(".")[:depth])
            games.act(0, [gesture])
        assert games.interfaces[0].state.path == (), entry.label
    games.close()


def test_the_camera_moves_over_a_map_that_is_larger_than_the_view() -> None:
    world = World(rules={"columns": 60, "rows": 50})
    assert (world.backend.catalogue.columns, world.backend.catalogue.rows) < (60, 50)
    world.do("camera_right")
    world.do("camera_down")
    assert (world.state.column, world.state.row) == (4, 4)
    world.do("road", 0, 0)
    assert world.buildings[4, 4] == Kind.ROAD
    world.do("camera_left")
    world.do("scroll_up")
    assert (world.state.column, world.state.row) == (0, 0)
    world.env.close()


def test_no_exploring_click_goes_where_a_city_is_ended_or_time_is_changed(world: World) -> None:
    layout, gestures = world.games.layout(0), world.backend._views[0].gestures
    kind = world.backend.catalogue.number("click_element")
    for menu in layout.menus:
        x, y = menu.box.middle
        middle = point_in(x, y, layout.width, layout.height)
        is_closed = menu.name.removeprefix("menu.") in CLOSED_MENUS
        assert (gestures.of(kind, 0, middle) == ()) == is_closed
    assert gestures.of(kind, 0, None) == ()
    for cell in range(0, 280, 7):  # of the whole window
        (click,) = gestures.of(world.backend.catalogue.number("random_click"), cell) or (Click(Point(0.5, 0.5)),)
        assert isinstance(click, Click)
        assert not gestures.is_forbidden(click.at)


def test_the_catalogue_names_its_kinds(world: World) -> None:
    catalogue = world.backend.catalogue
    assert catalogue.names[0] == "wait"
    assert tuple(catalogue.names[number] for number in catalogue.exploratory) == EXPLORATORY
    assert len(set(catalogue.names)) == len(catalogue)
    used = {name for name, uses in zip(catalogue.names, catalogue.uses_cell, strict=True) if uses}
    built = {tool.name.lower() for tool in (*BUILT, Tool.PUMP)}
    assert used == built | {"bulldoze", "street_across", "street_down", "random_click"}
    with pytest.raises(UnknownNameError, match="'road'"):
        catalogue.number("raod")
