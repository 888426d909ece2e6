"""Tests of the game in a real window: without a screen by SDL's dummy, and on a virtual screen by real input."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ludus.core.errors import DeviceError
from ludus.envs.pygame_tools import pygame
from ludus.worlds.city.display import CityWindow
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.game.rules import CityRules, Kind, Over, Tool

if TYPE_CHECKING:
    from ludus.worlds.city.screen.session import ScreenSession
    from ludus.worlds.city.screen.xserver import Window

pytestmark = pytest.mark.screen

RULES = CityRules(threads=1)
GAME = """
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.display import CityWindow
from ludus.worlds.city.game.rules import CityRules
with CityWindow(CityGames(1, rules=CityRules(threads=1, days_per_second=1), seed=3)) as window:
    window.run(30.0, 3000)
"""


@pytest.fixture
def games(monkeypatch: pytest.MonkeyPatch) -> CityGames:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    return CityGames(1, rules=RULES, seed=3)


def test_a_window_feeds_the_game_with_mouse_and_keys(games: CityGames) -> None:
    with CityWindow(games) as window:
        window.step(0.0)
        pygame.event.clear()
        road = games.layout(0).tools[Tool.ROAD].box.middle
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=road))
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONUP, button=1, pos=road))
        window.step(1.0)
        assert games.interfaces[0].state.tool == Tool.ROAD
        assert games.simulation.city["day"][0] == 10
        view = games.layout(0).view
        places = [(view.box.left + column * view.tile + 5, view.box.top + 5) for column in (1, 4)]
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=places[0]))
        pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONUP, button=1, pos=places[1]))
        for key in (pygame.K_EQUALS, pygame.K_F1):
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
        window.step(0.0)
        assert (games.simulation.cells.kind[0, 1:5] == Kind.ROAD).all()
        assert (games.simulation.city["tax"][0], games.interfaces[0].state.window) == (8, 1)
        screen = pygame.display.get_surface()
        assert screen is not None
        shown = pygame.surfarray.array3d(screen).swapaxes(0, 1)
        assert (shown == games.capture(0)).all()
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        assert window.run(1000.0, 5) == 0


def test_a_game_that_is_over_begins_anew_when_its_dialog_is_closed(games: CityGames) -> None:
    with CityWindow(games) as window:
        pygame.event.clear()
        games.simulation.city["over"][0] = Over.ABANDONED
        before = games.simulation.cells.terrain.copy()
        window.step(0.1)
        assert games.simulation.city["over"][0] == Over.PLAYING
        assert (games.simulation.cells.terrain != before).any()


def test_without_a_screen_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    games = CityGames(1, rules=RULES)
    with pytest.raises(DeviceError, match="set DISPLAY"):
        CityWindow(games)


def await_picture(session: "ScreenSession", window: "Window", part: tuple[slice, slice], twin: CityGames) -> None:
    """Waits until a part of the window shows what it shows in a game that is played alike."""
    give_up = time.monotonic() + 60.0
    while (session.capture.grab(window.box)[part] != twin.capture(0)[part]).any():
        assert time.monotonic() < give_up, "the window does not show what it should"
        time.sleep(0.05)


@pytest.mark.usefixtures("xvfb")
def test_real_clicks_on_a_real_screen_build() -> None:
    pytest.importorskip("Xlib", reason="needs python-xlib, from the extra 'city'")
    pytest.importorskip("mss", reason="needs mss, from the extra 'city'")
    from ludus.worlds.city.screen.session import ScreenSession

    twin = CityGames(1, rules=CityRules(threads=1, days_per_second=1), seed=3)
    session = ScreenSession(800, 600)
    try:
        environment = {"SDL_VIDEODRIVER": "x11", "HOME": str(Path.home())}  # where compiled kernels are kept
        session.start([sys.executable, "-c", GAME], environment, None, None)
        window = session.wait_for(lambda window: window.title == "Ludus: city", "the game's window", 120.0)
        park = twin.layout(0).tools[Tool.PARK].box.middle
        view = twin.layout(0).view
        cell = int(np.flatnonzero((twin.simulation.cells.kind[0] == 0) & (twin.simulation.cells.terrain[0] == 0))[0])
        row, column = divmod(cell, 32)
        place = view.box.left + column * view.tile + 8, view.box.top + row * view.tile + 8
        inside = slice(place[1] - 4, place[1] + 4), slice(place[0] - 4, place[0] + 4)  # within the mark at the pointer
        await_picture(session, window, inside, twin)
        session.input.click(window.box.left + park[0], window.box.top + park[1])
        session.input.click(window.box.left + place[0], window.box.top + place[1])
        twin.editor.do(0, Tool.PARK, column, row)
        twin.act(0, [])
        await_picture(session, window, inside, twin)
    finally:
        session.close()
