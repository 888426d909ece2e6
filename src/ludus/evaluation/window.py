"""A real-time window that shows frames at a steady rate and reads the keyboard."""

import os
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from ludus.core.errors import DeviceError
from ludus.envs.display import Image
from ludus.envs.pygame_tools import pygame

_HEADLESS = ("dummy", "offscreen")
_ADVICE = "set DISPLAY, or write a video instead (`ludus demo` and `ludus replay` with --video)"


@dataclass(frozen=True, slots=True)
class Input:
    """Keyboard input since the last call of `look`.

    Attributes:
        held: Names of keys that are held, or were pressed and released since, so that no tap is lost.
        pressed: Names of keys that were pressed since.
        closed: Whether the window was closed.
    """

    held: frozenset[str]
    pressed: frozenset[str]
    closed: bool


class Window:
    """A window, resizable by default; its content keeps its aspect ratio."""

    def __init__(self, title: str, size: tuple[int, int] = (1280, 720), *, is_resizable: bool = True) -> None:
        """Open the window.

        Raises:
            DeviceError: There is no display.
        """
        try:
            self._surface = _open(title, size, pygame.RESIZABLE if is_resizable else 0)
        except BaseException:
            pygame.display.quit()
            raise
        self._clock = pygame.time.Clock()
        self._down: set[str] = set()

    def look(self) -> Input:
        """Return the keyboard input since the last call."""
        pressed: set[str] = set()
        closed = False
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                closed = True
            elif event.type == pygame.KEYDOWN:
                pressed.add(pygame.key.name(event.key))
                self._down.add(pygame.key.name(event.key))
            elif event.type == pygame.KEYUP:
                self._down.discard(pygame.key.name(event.key))
            elif event.type == pygame.WINDOWFOCUSLOST:  # key releases in other windows are not reported
                self._down.clear()
        return Input(frozenset(self._down | pressed), frozenset(pressed), closed)

    def show(self, picture: Image) -> None:
        """Show a picture `(height, width, 3)`, as large as the window allows."""
        height, width = picture.shape[:2]
        surface = pygame.image.frombuffer(np.ascontiguousarray(picture).tobytes(), (width, height), "RGB")
        screen = pygame.display.get_surface() or self._surface  # a new one after a resize
        scale = min(screen.get_width() / width, screen.get_height() / height)
        fitted = (max(round(width * scale), 1), max(round(height * scale), 1))
        if fitted != (width, height):
            surface = pygame.transform.smoothscale(surface, fitted)
        if fitted != screen.get_size():
            screen.fill((0, 0, 0))
        screen.blit(surface, surface.get_rect(center=screen.get_rect().center))
        pygame.display.flip()

    def wait(self, rate_hz: float) -> float:
        """Wait until the next frame is due at this rate; return the seconds since the last."""
        return float(self._clock.tick(rate_hz)) / 1000.0

    @property
    def busy_s(self) -> float:
        """Seconds of work between the last two waits."""
        return float(self._clock.get_rawtime()) / 1000.0

    def close(self) -> None:
        """Close the window; idempotent."""
        pygame.display.quit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


def _open(title: str, size: tuple[int, int], flags: int) -> pygame.Surface:
    # SDL would make its own GL context current in this thread, and worlds that draw with GL could not open
    # theirs; showing finished frames does not need it.
    os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
    try:
        pygame.display.init()
        pygame.display.set_caption(title)  # before there is a window, so that it never has another name
        # Without a display SDL silently draws into memory; allow that only on request.
        if pygame.display.get_driver() not in _HEADLESS or os.environ.get("SDL_VIDEODRIVER"):
            return pygame.display.set_mode(size, flags)
    except pygame.error as error:
        raise DeviceError(f"the window cannot be opened: {error}; {_ADVICE}") from None
    raise DeviceError(f"there is no screen to open a window on; {_ADVICE}")
