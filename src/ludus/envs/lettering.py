"""Outlined words on pictures; what was written once is kept, because writing is what takes long."""

from functools import lru_cache

from ludus.envs.colors import Color
from ludus.envs.pygame_tools import Font, new_surface, pygame

_LINES = 720.0  # of the picture that sizes are given for


class Lettering:
    """Writes on pictures of one size.

    Attributes:
        unit: Pixels for each pixel of a picture of 720 lines.
    """

    def __init__(self, size: tuple[int, int], outline: Color) -> None:
        """Makes fonts for pictures of `size` (width, height); words get a rim of the colour `outline`."""
        self.unit, self._outline = size[1] / _LINES, outline
        self._font = lru_cache(maxsize=16)(self._make_font)
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
        """Writes words; `anchor` names the point of the text that lies at `place`."""
        written = self._text(words, size, color)
        box = written.get_rect(**{anchor: (round(place[0]), round(place[1]))})
        target.blit(written, box)

    def _make_font(self, size: int) -> Font:
        return Font(max(round(size * self.unit), 8))

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
