"""The embedded game in a real window: a person plays it with mouse and keys, in real time."""

import os
from dataclasses import dataclass, field

import torch

from ludus.core.errors import DeviceError
from ludus.envs.pygame_tools import pygame
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Button, Click, Drag, Gesture, Key, Move, Point, Scroll, Wait
from ludus.worlds.city.interface.boxes import point_in

_HEADLESS = ("dummy", "offscreen")
_LONGEST_S = 0.25  # of the game's clock between two pictures, however long the machine was busy
_BUTTONS: dict[int, Button] = {1: "left", 2: "middle", 3: "right"}
_X11_NAMES = {name.lower(): name for name in ("Return", "Escape", "Left", "Right", "Up", "Down")}
_X11_NAMES |= {"enter": "KP_Enter", "+": "plus", "[+]": "plus", "-": "minus", "[-]": "minus", "=": "equal"}


class CityWindow:
    """A window that shows the first game of a batch and feeds it what mouse and keyboard do there."""

    def __init__(self, games: CityGames) -> None:
        """Open the window; raise DeviceError if there is no screen."""
        self._games = games
        self._hand = _Mouse(games.display.width, games.display.height)
        try:
            self._screen = _open((games.display.width, games.display.height))
        except BaseException:
            pygame.display.quit()
            raise
        self._clock = pygame.time.Clock()

    def run(self, rate_hz: float = 30.0, frames: int | None = None) -> int:
        """Play until the window is closed, or for a number of frames; return how many were shown."""
        shown = 0
        while frames is None or shown < frames:
            if not self.step(min(self._clock.tick(rate_hz) / 1000.0, _LONGEST_S)):
                break
            shown += 1
        return shown

    def step(self, seconds: float) -> bool:
        """Handle the events, let time pass and draw the game; return False once the window is closed."""
        gestures: list[Gesture] = []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return False
            gestures += self._hand.gestures(event)
        games = self._games
        games.act(0, [*gestures, Wait(seconds)])
        games.advance()
        if games.over()[0] and not games.interfaces[0].state.dialogs:
            games.restart(torch.arange(games.num_envs) == 0)
        games.pixels(0)
        self._screen.blit(games.painter(0).surface(), (0, 0))
        pygame.display.flip()
        return True

    def close(self) -> None:
        """Close the window; may be called twice."""
        pygame.display.quit()

    def __enter__(self) -> "CityWindow":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class _Mouse:
    """Converts pygame events to gestures; a button that goes down and up at different places is a drag."""

    width: int
    height: int
    _pressed: dict[int, tuple[int, int]] = field(default_factory=dict)

    def gestures(self, event: pygame.event.Event) -> list[Gesture]:
        """Return what an event means."""
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
        return point_in(pixel[0], pixel[1], self.width, self.height)


def _open(size: tuple[int, int]) -> pygame.Surface:
    # Finished pictures are shown: a GL context of SDL's own would only make that slower (21 ms per frame under Xvfb).
    os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
    try:
        pygame.display.init()
        pygame.display.set_caption("Ludus: city")  # before there is a window, so that it never has another name
        # Without a screen SDL silently draws into memory; allow that only if SDL_VIDEODRIVER asks for it.
        if pygame.display.get_driver() not in _HEADLESS or os.environ.get("SDL_VIDEODRIVER"):
            return pygame.display.set_mode(size)
    except pygame.error as error:
        raise DeviceError(f"the window cannot be opened: {error}; set DISPLAY to a screen") from None
    raise DeviceError("there is no screen to open a window on; set DISPLAY to one")
