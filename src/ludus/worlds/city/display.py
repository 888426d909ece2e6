"""City's display, and play in a window by a person with mouse and keys, in real time."""

import contextlib
from collections.abc import Mapping, Sequence

import torch

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import BatchedEnv
from ludus.envs.display import Display, Painter
from ludus.envs.pygame_tools import pygame
from ludus.evaluation.window import Window
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Button, Click, Drag, Gesture, Key, Move, Point, Scroll, Wait
from ludus.worlds.city.env import CityEnv
from ludus.worlds.city.interface.layout import point_in

DECISION_S = 0.6  # for which a decision is shown, however long it takes in the game


def make_painter(env: BatchedEnv, names: Sequence[str], *, debug: bool) -> Painter:
    """Draw the first game; see `ludus.envs.display.PainterMaker`."""
    from ludus.worlds.city.demo import CityPainter  # pygame is optional

    if not isinstance(env, CityEnv):
        raise UnsupportedError(f"this is the display of city, not of {env.spec.id}")
    if debug:
        raise UnsupportedError(f"{env.spec.id} has no debug layer; leave --debug out")
    return CityPainter(env, names)


def play(*, seed: int, overrides: Sequence[str], frames: int | None, options: Mapping[str, object]) -> None:
    """Play the embedded game with mouse and keys; see `ludus.envs.display.Play`."""
    from ludus.cli.console import echo, print_ok
    from ludus.envs.settings import read_settings
    from ludus.evaluation.display import display_settings
    from ludus.worlds.city.config import EMBEDDED, CityConfig

    given = [name for name, value in options.items() if value]
    if given:
        raise ConfigError(f"{', '.join(given)} means nothing in city, which is played alone; leave it out")
    settings = display_settings("city", {"display": {"width": 1280, "height": 720}}, words=overrides)
    config = read_settings(CityConfig, settings, "city-v1")
    if config.game != EMBEDDED:
        raise ConfigError(f"game={config.game} has its own window; only {EMBEDDED} is played here")
    with contextlib.closing(CityGames(1, rules=config.rules, display=config.display, seed=seed)) as games:
        echo("  Choose a tool on the palette and click on the map; drag to build streets. Menus at the top.")
        echo(f"  Escape closes what is open; close the window to quit; seed {seed}")
        with CityWindow(games) as window:
            window.run(frames=frames)
        shown_last = games.texts(0)
    print_ok(f"{shown_last['date']}: {shown_last['population']} people, {shown_last['funds']}")


DISPLAY = Display(painter=make_painter, bots=("balanced",), is_smooth=True, step_s=DECISION_S, play=play)


_LONGEST_S = 0.25  # of the game's clock between two pictures, however long the machine was busy
_BUTTONS: dict[int, Button] = {1: "left", 2: "middle", 3: "right"}
_X11_NAMES = {name.lower(): name for name in ("Return", "Escape", "Left", "Right", "Up", "Down")}
_X11_NAMES |= {"enter": "KP_Enter", "+": "plus", "[+]": "plus", "-": "minus", "[-]": "minus", "=": "equal"}


class CityWindow(Window):
    """A window that shows the first game of a batch and feeds it what mouse and keyboard do there."""

    def __init__(self, games: CityGames) -> None:
        """Open the window; raise DeviceError if there is no screen."""
        size = (games.display.width, games.display.height)
        super().__init__("Ludus: city", size, is_resizable=False)
        self._games, self._size = games, size
        self._pressed: dict[int, tuple[int, int]] = {}

    def run(self, rate_hz: float = 30.0, frames: int | None = None) -> int:
        """Play until the window is closed, or for a number of frames; return how many were shown."""
        shown = 0
        while (frames is None or shown < frames) and self.step(min(self.wait(rate_hz), _LONGEST_S)):
            shown += 1
        return shown

    def step(self, seconds: float) -> bool:
        """Handle the events, let time pass and draw the game; return False once the window is closed."""
        gestures: list[Gesture] = []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return False
            gestures += self._gestures(event)
        games = self._games
        games.act(0, [*gestures, Wait(seconds)])
        games.advance()
        if games.over()[0] and not games.interfaces[0].state.dialogs:
            games.restart(torch.arange(games.num_envs) == 0)
        games.pixels(0)
        self._surface.blit(games.painter(0).canvas, (0, 0))
        pygame.display.flip()
        return True

    def _gestures(self, event: pygame.event.Event) -> list[Gesture]:
        """Return what an event means; a button that goes down and up at different places is a drag."""
        if event.type == pygame.MOUSEMOTION:
            return [Move(self._point(event.pos))]
        if event.type == pygame.MOUSEBUTTONDOWN and event.button in _BUTTONS:
            self._pressed[event.button] = event.pos
        elif event.type == pygame.MOUSEBUTTONUP and event.button in self._pressed:
            start, button = self._pressed.pop(event.button), _BUTTONS[event.button]
            if start == event.pos:
                return [Click(self._point(start), button)]
            return [Drag(self._point(start), self._point(event.pos), button)]
        elif event.type == pygame.MOUSEWHEEL and event.y:
            return [Scroll(self._point(pygame.mouse.get_pos()), event.y)]
        elif event.type == pygame.KEYDOWN:
            name = pygame.key.name(event.key)
            return [Key(_X11_NAMES.get(name, name.upper() if name[1:].isdigit() else name))]
        return []

    def _point(self, pixel: tuple[int, int]) -> Point:
        return point_in(*pixel, *self._size)
