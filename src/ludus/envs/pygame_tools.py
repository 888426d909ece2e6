"""What renderers share: pygame, imported with an error that names the install command, and pictures as arrays.

Nothing here opens a window or needs a screen: drawing happens on surfaces in memory.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import MissingDependencyError
from ludus.envs.colors import Color

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # its greeting would stand in front of our own output
try:
    import pygame
except ImportError as error:
    raise MissingDependencyError("pygame-ce", "window", "drawing a game") from error

__all__ = ["CanvasRenderer", "Font", "Lettering", "Picture", "new_surface", "pygame"]

ViewT = TypeVar("ViewT")
ResultT = TypeVar("ResultT")

# Red first in memory, as in pictures; one layout everywhere, because blits between unequal ones are 10 times slower.
_MASKS = (0x000000FF, 0x0000FF00, 0x00FF0000, 0x00000000)
_MASKS_ALPHA = (0x000000FF, 0x0000FF00, 0x00FF0000, 0xFF000000)

_LINES = 720.0  # of the picture that sizes are given for


def new_surface(size: tuple[int, int], *, alpha: bool = False) -> pygame.Surface:
    """Make a black or, with `alpha`, transparent surface of `(width, height)` pixels."""
    if alpha:
        return pygame.Surface(size, pygame.SRCALPHA, 32, _MASKS_ALPHA)
    return pygame.Surface(size, 0, 32, _MASKS)


class Font:
    """The font that comes with pygame, in one size.

    It outlives `pygame.quit`, which other libraries call when they close a window (Gymnasium's own worlds do):
    pygame's fonts are of no use after that.
    """

    def __init__(self, size: int, *, bold: bool = False) -> None:
        """Make the font; `size` is its nominal height in pixels."""
        self._size, self._bold = size, bold
        self._font = self._make()

    def render(self, words: str, color: tuple[int, int, int], *, smooth: bool = True) -> pygame.Surface:
        """Return words on nothing."""
        return self._use(lambda font: font.render(words, smooth, color))

    def width(self, words: str) -> int:
        """Return how many pixels wide words are."""
        return self._use(lambda font: font.size(words)[0])

    @property
    def height(self) -> int:
        """Height of a line in pixels."""
        return self._use(lambda font: font.get_height())

    def _use(self, ask: Callable[[pygame.font.Font], ResultT]) -> ResultT:
        try:
            return ask(self._font)
        except pygame.error:
            self._font = self._make()
            return ask(self._font)

    def _make(self) -> pygame.font.Font:
        pygame.font.init()
        font = pygame.font.Font(None, self._size)
        font.set_bold(self._bold)
        return font


class Picture:
    """Turns a surface into an array `(height, width, 3)`; 8 times as fast as `pygame.surfarray` at 1280x720."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._packed = pygame.Surface(size, 0, 24, _MASKS)

    def of(self, surface: pygame.Surface) -> NDArray[np.uint8]:
        """Return a new array with the colours of `surface`, which has the size of this picture."""
        packed = self._packed
        packed.blit(surface, (0, 0))  # drops the fourth byte
        width, height = packed.get_size()
        memory = cast("memoryview", packed.get_buffer())  # numpy reads it as one
        rows = np.frombuffer(memory, np.uint8).reshape(height, packed.get_pitch())
        return rows[:, : 3 * width].reshape(height, width, 3).copy()


class CanvasRenderer(ABC, Generic[ViewT]):
    """Paints a game at one moment, of which it gets a view, in pictures of `size` (width, height); opens no window."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self._canvas, self._picture = new_surface(size), Picture(size)

    def frame(self, view: ViewT) -> NDArray[np.uint8]:
        """Return a game at one moment as an RGB picture `(height, width, 3)`."""
        self._paint(view)
        return self._picture.of(self._canvas)

    def draw(self, view: ViewT, surface: pygame.Surface) -> None:
        """Draw a game at one moment on a surface, such as a window's, scaled to its size."""
        self._paint(view)
        if surface.get_size() == self.size:
            surface.blit(self._canvas, (0, 0))
        else:
            surface.blit(pygame.transform.smoothscale(self._canvas, surface.get_size()), (0, 0))

    @abstractmethod
    def _paint(self, view: ViewT) -> None:
        """Paint the moment on the canvas."""


class Lettering:
    """Writes on pictures of one size; `unit` is the pixels for each pixel of a picture of 720 lines."""

    def __init__(self, size: tuple[int, int], outline: Color) -> None:
        """Make fonts for pictures of `size` (width, height); words get a rim of the colour `outline`."""
        self.unit, self._outline = size[1] / _LINES, outline
        self._font = lru_cache(maxsize=16)(lambda size: Font(max(round(size * self.unit), 8)))
        self._text = lru_cache(maxsize=512)(self._write)

    def text(
        self,
        target: pygame.Surface,
        words: str,
        place: tuple[float, float],
        size: int,
        color: Color,
        anchor: str = "topleft",
    ) -> None:
        """Write words; `anchor` names the point of the text that lies at `place`."""
        written = self._text(words, size, color)
        box = written.get_rect(**{anchor: (round(place[0]), round(place[1]))})
        target.blit(written, box)

    def _write(self, words: str, size: int, color: Color) -> pygame.Surface:
        font = self._font(size)
        face, rim = font.render(words, color), font.render(words, self._outline)
        thick = max(round(size * self.unit / 22), 1)
        written = new_surface((face.get_width() + 2 * thick, face.get_height() + 2 * thick), alpha=True)
        for dx in (0, thick, 2 * thick):
            for dy in (0, thick, 2 * thick):
                written.blit(rim, (dx, dy))
        written.blit(face, (thick, thick))
        return written
