"""Faces: letters of one family and size, which measure and write lines of text."""

from functools import lru_cache

from ludus.envs.city.interface.theme import Family
from ludus.envs.city.painting.letters import ROWS, pixels_of, width_of
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import Font, new_surface, pygame

_KEPT = 4096  # lines of text that are kept written


class Face:
    """Letters of one family and size.

    Attributes:
        height: Of a line, in pixels.
    """

    def __init__(self, family: Family, size: int) -> None:
        """Makes the letters; `size` is a factor for pixel letters, else the nominal height of pygame's own."""
        self._bold = 1 if family == "pixel bold" else 0
        self._scale = size
        self._smooth = family in ("smooth", "smooth bold")
        is_pixels = family.startswith("pixel")
        self._font = None if is_pixels else Font(size, bold=family == "smooth bold")
        self.height = ROWS * size if self._font is None else self._font.height
        self.width = lru_cache(maxsize=_KEPT)(self._width)
        self._letter = lru_cache(maxsize=_KEPT)(self._draw_letter)
        self.write = lru_cache(maxsize=_KEPT)(self._write)

    def _width(self, text: str) -> int:
        """Returns the width of a line of text in pixels."""
        if self._font is not None:
            return self._font.width(text)
        return sum(width_of(letter) + self._bold + 1 for letter in text) * self._scale

    def _write(self, text: str, color: Color) -> pygame.Surface:
        """Returns a line of text on nothing."""
        if self._font is not None:
            return self._font.render(text, color, smooth=self._smooth)
        line = new_surface((max(self.width(text), 1), self.height), alpha=True)
        left = 0
        for letter in text:
            picture = self._letter(letter, color)
            line.blit(picture, (left, 0))
            left += picture.get_width()
        return line

    def _draw_letter(self, letter: str, color: Color) -> pygame.Surface:
        scale = self._scale
        picture = new_surface(((width_of(letter) + self._bold + 1) * scale, self.height), alpha=True)
        for x, y in pixels_of(letter):
            picture.fill((*color, 255), (x * scale, y * scale, (1 + self._bold) * scale, scale))
        return picture


@lru_cache(maxsize=64)
def face_of(family: Family, size: int) -> Face:
    """Returns the letters of a family and size; equal ones are shared by all games."""
    return Face(family, size)
