"""Menus, dialogs, windows and bars of demand, seen in pictures of all themes and sizes."""

import numpy as np
import pytest

from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Move, Point
from ludus.worlds.city.interface.layout import BARS, demand_places
from ludus.worlds.city.interface.menus import MENUS, Dialog, Window
from ludus.worlds.city.interface.panes import DEMANDS
from ludus.worlds.city.interface.theme import RESOLUTIONS, THEMES, CityDisplay
from ludus.worlds.city.painting.typefaces import typeface_of
from ludus.worlds.city.perception.embedded import CoverDetector, DemandReader

LOOKS = [(theme, size) for theme in THEMES for size in RESOLUTIONS]


def games_of(theme: str, size: tuple[int, int]) -> CityGames:
    return CityGames(1, display=CityDisplay(themes=(theme,), width=size[0], height=size[1]))


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_everything_that_can_cover_the_map_is_seen(theme: str, size: tuple[int, int]) -> None:
    games = games_of(theme, size)
    interface = games.interfaces[0]
    look, state = interface.theme, interface.state
    sense = CoverDetector(interface.layout, look, typeface_of(look.family, look.size_for(size[1])))
    shown = [(-1, dialog, Window.NONE) for dialog in Dialog] + [(-1, Dialog.NONE, window) for window in Window]
    shown += [(menu, Dialog.NONE, Window.NONE) for menu in range(len(MENUS))]
    for menu, dialog, window in shown:
        state.path = (menu,) if menu >= 0 else ()
        state.dialogs = [(int(dialog), 1, 5)] if dialog else []
        state.window, state.window_cell = int(window), 5
        interface.serial += 1
        words = games.pixels(0).view("<u4")[..., 0]
        assert tuple(sense.look(words)) == (menu, dialog != Dialog.NONE, window != Window.NONE)
        pane = interface.pane()
        assert sense.pane(words) == (None if pane is None else pane.box)
    games.close()


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_bars_of_demand_say_what_they_show(theme: str, size: tuple[int, int]) -> None:
    games = games_of(theme, size)
    layout = games.layout(0)
    reader, places = DemandReader(layout.demand, games.interfaces[0].theme), demand_places(layout.demand)
    random = np.random.default_rng(0)
    for demands in [(-100, 0, 100), (1, -1, 3), *random.integers(-100, 101, (40, 3)).tolist()]:
        for name, demand in zip(DEMANDS, demands, strict=True):
            games.simulation.city[name][0] = demand
        readings = reader.read(games.capture(0))
        assert [reading.field for reading in readings] == list(BARS)
        for reading, demand in zip(readings, demands, strict=True):
            assert reading.value == places.shown(demand)
            assert reading.value == pytest.approx(demand, abs=200 / places.half)
    games.close()


def test_a_covered_bar_is_unreadable() -> None:
    games = games_of("classic", (640, 400))
    box = games.layout(0).demand
    reader = DemandReader(box, games.interfaces[0].theme)
    frame = games.capture(0).copy()
    assert all(reading.is_readable for reading in reader.read(frame))
    frame[box.top : box.bottom, box.left + 20 : box.left + 30] = (250, 250, 200)
    assert not any(reading.is_readable for reading in reader.read(frame))
    games.act(0, [Move(Point(0.5, 0.5))])
    games.close()
