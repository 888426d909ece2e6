"""Typefaces: letters of one family and size that measure and draw lines of text."""

from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from ludus.config import read_yaml
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import Font, new_surface, pygame
from ludus.worlds.city.interface.theme import Family

GLYPHS = TypeAdapter(dict[str, str]).validate_python(
    read_yaml(Path(__file__).with_name("letters.yaml"), "letters", 20_000)
)
ROWS = 9


def pixels_of(letter: str) -> list[tuple[int, int]]:
    """Return the inked pixels of a letter as (column, row); letters that are missing look like `?`."""
    rows = GLYPHS.get(letter, GLYPHS["?"]).split(" ")
    return [(x, y) for y, row in enumerate(rows) for x, ink in enumerate(row) if ink == "#"]


def width_of(letter: str) -> int:
    """Return the columns that a letter takes, without the space after it."""
    return len(GLYPHS.get(letter, GLYPHS["?"]).partition(" ")[0])


_KEPT = 4096  # lines of text that are kept written


class Typeface:
    """Letters of one family and size."""

    def __init__(self, family: Family, size: int) -> None:
        """Make the letters; `size` is a factor for pixel letters, else the nominal height of pygame's own."""
        self._bold = int(family == "pixel bold")
        self._smooth = family.startswith("smooth")
        self._scale = size
        self._font = None if family.startswith("pixel") else Font(size, bold=family == "smooth bold")
        self.height = ROWS * size if self._font is None else self._font.height
        self.width = lru_cache(maxsize=_KEPT)(self._width)
        self._letter = lru_cache(maxsize=_KEPT)(self._draw_letter)
        self.write = lru_cache(maxsize=_KEPT)(self._write)

    def _width(self, text: str) -> int:
        """Return the width of a line of text in pixels."""
        if self._font is not None:
            return self._font.width(text)
        return sum(width_of(letter) + self._bold + 1 for letter in text) * self._scale

    def _write(self, text: str, color: Color) -> pygame.Surface:
        """Return a line of text on a transparent background."""
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
def typeface_of(family: Family, size: int) -> Typeface:
    """Return the letters of a family and size; equal ones are shared by all games."""
    return Typeface(family, size)
