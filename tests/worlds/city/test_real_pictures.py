"""Perception on real pictures: what is found and read without anything taught before, by outlines and by rapidocr."""

from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest
from city_clicks import elements_of  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Frame, Wait
from ludus.worlds.city.drivers.micropolis import MicropolisTruth
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.interface.theme import RESOLUTIONS, THEMES, CityDisplay
from ludus.worlds.city.perception.elements import UiElement, find_elements
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.perception.reader import ProfileReader
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile

pytestmark = pytest.mark.screen

PROFILE = load_profile("micropolis")
CLICKABLE = ("tool", "menu", "field", "scroll")
READ = ("date", "funds", "tax", "population")


@pytest.fixture(scope="module")
def game(micropolis: GameProfile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Driver]:
    with X11Driver(micropolis, pictures=LearnedPictures(tmp_path_factory.mktemp("pictures"))) as driver:
        driver.launch()
        yield driver


def without_map(games: CityGames) -> Frame:
    frame, box = games.capture(0).copy(), games.interfaces[0].layout.view.box
    frame[box.top : box.bottom, box.left : box.right] = 0
    return frame


def share_found(games: CityGames, elements: list[UiElement], kind: str) -> tuple[int, int]:
    """How many of the elements that are really there are among those that were found, and how many there are."""
    width, height = games.display.width, games.display.height
    there = [element for element in elements_of(games.interfaces[0]) if element.kind == kind]
    places = [(int(element.at.x * width), int(element.at.y * height)) for element in elements]
    return sum(any(element.box.holds(*place) for place in places) for element in there), len(there)


def test_outlines_find_what_can_be_clicked_in_every_theme_at_every_size() -> None:
    found = dict.fromkeys(CLICKABLE, 0)
    total = dict.fromkeys(CLICKABLE, 0)
    for theme in THEMES:
        for width, height in RESOLUTIONS:
            games = CityGames(1, display=CityDisplay(themes=(theme,), width=width, height=height), seed=3)
            elements = find_elements(without_map(games))
            for kind in CLICKABLE:
                seen, there = share_found(games, elements, kind)
                found[kind], total[kind] = found[kind] + seen, total[kind] + there
            games.close()
    assert total["tool"] == len(THEMES) * len(RESOLUTIONS) * 16
    assert {kind: found[kind] / total[kind] >= 0.9 for kind in CLICKABLE} == dict.fromkeys(CLICKABLE, True), found


def test_outlines_find_all_tools_and_menus_of_micropolis(game: X11Driver) -> None:
    game.reset(1)
    places = [(element.at.x * game.width, element.at.y * game.height) for element in find_elements(game.capture())]
    targets = {name: tool.at for name, tool in PROFILE.tools.items() if tool.at is not None}
    targets |= {f"the menu {name}": menu.at for name, menu in PROFILE.menus.items()}
    for name, at in targets.items():
        x, y = at.x * game.width, at.y * game.height
        assert min(np.hypot(x - left, y - top) for left, top in places) < 15.0, name


def test_ocr_reads_micropolis_untaught_and_teaches_the_letters(game: X11Driver, tmp_path: Path) -> None:
    pytest.importorskip("rapidocr", reason="needs rapidocr, of the extra city")
    game.reset(1)
    truth = MicropolisTruth(game)
    perception = ProfileReader(PROFILE, tmp_path, names=READ)
    for funds, year in ((12_345, 1967), (6_789, 1980)):
        truth.set_number("Funds", funds)
        truth.set_number("Year", year)
        game.do([Wait(0.04)])
        frame = game.capture().copy()
        perception.reader.read(frame)
        assert not wait(perception.worker._asked.values(), 120.0).not_done
        perception.reader.read(frame)
        readings = perception.reader.read(frame)
        assert readings["funds"].value == funds
        assert (readings["date"].value.year, readings["date"].value.month) == (year, truth.month())  # type: ignore[union-attr]
        assert (readings["tax"].value, readings["population"].value) == (7.0, 0.0)
        assert {reading.engine for reading in readings.values()} <= {"rapidocr", "glyphs"}
    perception.close()
    taught = ProfileReader(PROFILE, tmp_path, use_ocr=False, names=READ)
    reading = taught.reader.read_field(frame, "funds")
    assert (reading.value, reading.engine) == (6_789.0, "glyphs")
    taught.close()
