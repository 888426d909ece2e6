"""Tests of painting: only what changed is drawn, and what is drawn that way equals a picture drawn at once."""

import numpy as np
import pytest
from city_clicks import PLAIN, Player  # type: ignore[import-not-found,unused-ignore]  # beside this file
from numpy.typing import NDArray

from ludus.envs.pygame_tools import pygame
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Box, Click, Key, Move, Point, Scroll, Wait
from ludus.worlds.city.game.rules import CityRules, Kind, Tool
from ludus.worlds.city.interface.theme import RESOLUTIONS, THEMES, CityDisplay
from ludus.worlds.city.painting.painter import Painter
from ludus.worlds.city.painting.sprites import tool_icon
from ludus.worlds.city.painting.typefaces import GLYPHS, ROWS, pixels_of


def changed(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> Box:
    """The smallest box that holds all pixels that differ."""
    ys, xs = np.nonzero((before != after).any(-1))
    assert len(xs), "nothing changed"
    return Box(int(xs.min()), int(ys.min()), int(xs.max() - xs.min()) + 1, int(ys.max() - ys.min()) + 1)


def fresh(games: CityGames) -> NDArray[np.uint8]:
    """The picture of game 0 as somebody paints it who has never seen it."""
    painter = Painter(games._huds[0], games.simulation, games.interfaces[0])
    games.simulation.write_sprites()
    painter.paint()
    return painter.pixels[..., :3].copy()


@pytest.mark.parametrize("theme", THEMES)
def test_pictures_painted_bit_by_bit_equal_pictures_painted_at_once(theme: str) -> None:
    rules = CityRules(threads=1, columns=40, rows=30, days_per_second=60, funds=60_000)
    games = CityGames(1, rules=rules, display=CityDisplay(themes=(theme,)), seed=8)
    random = np.random.default_rng(3)
    keys = (
        *"dlrcigwutofhspb",
        "F1",
        "F2",
        "Escape",
        "Return",
        "Return",
        "Left",
        "Down",
        "Right",
        "Up",
        "plus",
        "space",
    )
    for step in range(120):
        point = Point(float(random.random()), float(random.random()))
        view = games.layout(0).view.box
        at = (view.left + random.random() * view.width, view.top + random.random() * view.height)
        cell = Point(at[0] / 640.0, at[1] / 400.0)
        key = Key(keys[int(random.integers(len(keys)))])
        gestures = (Click(point), Move(point), key, Click(cell), Click(cell), Scroll(cell, int(random.integers(-2, 3))))
        games.act(0, [gestures[int(random.integers(len(gestures)))], Wait(0.2)])
        games.advance()
        shown = games.capture(0)
        if step % 4 == 3:
            assert (shown == fresh(games)).all(), f"step {step}: {changed(shown, fresh(games))}"


def test_building_changes_the_cell_and_the_figures_alone() -> None:
    player = Player()
    player.key("p")
    player.games.act(0, [Move(player.at_cell(20, 15))])
    before = player.games.capture(0).copy()
    player.games.editor.do(0, Tool.PARK, 5, 5)
    player.games.act(0, [])
    after = player.games.capture(0).copy()
    funds = player.games.layout(0).fields["funds"].value
    view = player.games.layout(0).view
    cell = Box(view.box.left + 5 * view.tile, view.box.top + 5 * view.tile, view.tile, view.tile)
    mask = np.zeros(before.shape[:2], bool)
    for box in (funds, cell):
        part = before[box.top : box.bottom, box.left : box.right] != after[box.top : box.bottom, box.left : box.right]
        assert part.any()
        mask[box.top : box.bottom, box.left : box.right] = True
    assert (before[~mask] == after[~mask]).all()


def test_a_closed_menu_leaves_no_trace() -> None:
    player = Player()
    player.hover("menu.file")
    before = player.games.capture(0).copy()
    player.click("menu.budget", "menu.budget.taxes")
    opened = player.games.capture(0).copy()
    box = changed(before, opened)
    lists = player.games.interfaces[0].lists()
    for menu in lists:
        assert box.left <= menu.box.left
        assert menu.box.right <= box.right
    player.key("Escape")
    player.hover("menu.file")
    assert (player.games.capture(0) == before).all()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", RESOLUTIONS)
def test_buttons_show_their_tools_where_clicks_find_them(theme: str, size: tuple[int, int]) -> None:
    player = Player(theme, size)
    frame = player.games.capture(0)
    assert frame.shape == (size[1], size[0], 3)
    map_colors = THEMES[theme].map_colors
    for tool in Tool:
        if tool != Tool.QUERY:  # which is selected, with a frame around it
            box = player.element(f"tool.{tool.name.lower()}").box
            icon = pygame.surfarray.array3d(tool_icon(map_colors, tool, box.width - 6)).swapaxes(0, 1)
            assert (frame[box.top + 3 : box.bottom - 3, box.left + 3 : box.right - 3] == icon).all(), tool


@pytest.mark.parametrize("theme", THEMES)
def test_values_are_drawn_in_their_places_alone(theme: str) -> None:
    player = Player(theme)
    city = player.games.simulation.city
    before = player.games.capture(0).copy()
    for name, field, value in (("funds", "funds", 77), ("population", "population", 88_000), ("tax", "tax", 19)):
        city[field][0] = value
        player.games.act(0, [])
        after = player.games.capture(0).copy()
        box, place = changed(before, after), player.games.layout(0).fields[name].value
        assert place.left <= box.left
        assert place.top <= box.top
        assert box.right <= place.right
        assert box.bottom <= place.bottom
        before = after


def test_every_look_of_a_cell_is_another_picture() -> None:
    player = Player(rules=PLAIN.model_copy(update={"funds": 100_000}))
    pictures = []
    for tool in [tool for tool in Tool if tool not in (Tool.QUERY, Tool.BULLDOZER, Tool.PUMP)]:
        player.games.editor.do(0, tool, 3, 3)
        player.games.act(0, [])
        view = player.games.layout(0).view
        left, top = view.box.left + 3 * view.tile, view.box.top + 3 * view.tile
        pictures.append(player.games.capture(0)[top : top + view.tile, left : left + view.tile].copy())
        for row in (3, 4):
            for column in (3, 4):
                player.games.editor.do(0, Tool.BULLDOZER, column, row)
    assert all((a != b).any() for i, a in enumerate(pictures) for b in pictures[:i])


def test_zones_look_larger_as_they_grow_and_show_missing_power() -> None:
    player = Player()
    cells = player.games.simulation.cells
    player.games.editor.do(0, Tool.RESIDENTIAL, 3, 3)
    seen = set()
    for amount in (0, 1, 8, 9, 17, 18, 30, 48):
        for flags in (0, 2):
            cells.amount[0, 3 * 32 + 3], cells.flags[0, 3 * 32 + 3] = amount, flags
            player.games.simulation.write_sprites()
            seen.add((amount, flags, int(player.games.simulation.sprite_codes[0, 3 * 32 + 3])))
    looks = {look for _, _, look in seen}
    assert len(looks) == 5 * 2  # five sizes, with power and without
    assert all(look // 1024 == Kind.RESIDENTIAL for look in looks)


def test_an_overlay_colours_the_map_and_goes_away() -> None:
    player = Player()
    before = player.games.capture(0).copy()
    player.click("menu.overlays", "menu.overlays.land_value")
    tinted = player.games.capture(0).copy()
    view = player.games.layout(0).view.box
    assert (
        tinted[view.top + 40 : view.bottom, view.left : view.right]
        != before[view.top + 40 : view.bottom, view.left : view.right]
    ).mean() > 0.9
    player.key("Escape")
    player.games.act(0, [Move(Point(0.999, 0.5))])
    after = player.games.capture(0)
    assert (
        after[view.top : view.bottom, view.left : view.right] == before[view.top : view.bottom, view.left : view.right]
    ).all()


def test_captures_are_views_that_the_next_one_overwrites() -> None:
    player = Player()
    first = player.games.capture(0)
    kept = first.copy()
    player.games.editor.do(0, Tool.COAL, 4, 4)
    player.games.act(0, [])
    second = player.games.capture(0)
    assert np.shares_memory(first, second)
    assert (first != kept).any()
    assert player.games.pixels(0).flags["C_CONTIGUOUS"]


def test_letters_differ_and_fit() -> None:
    pictures = {letter: frozenset(pixels_of(letter)) for letter in GLYPHS if letter != " "}
    assert len(set(pictures.values())) == len(pictures)
    for letter, rows in GLYPHS.items():
        lines = rows.split(" ")
        assert len({len(line) for line in lines}) == 1, letter
        assert 7 <= len(lines) <= ROWS, letter
