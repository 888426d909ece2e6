"""The numbers in a corner of a picture: speed, desired speed, distance and time."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ludus.envs.pygame_tools import Font, Picture, new_surface, pygame

_LINES = 720.0  # of the picture that sizes below are of
_PANEL = (22, 26, 34, 170)
_NAME = (188, 196, 208)
_NUMBER = (250, 250, 248)


class Caption:
    """Writes on pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size, self._unit = size, size[1] / _LINES
        self._canvas, self._picture = new_surface(size), Picture(size)
        self._font = Font(max(round(34 * self._unit), 10))
        self._write = lru_cache(maxsize=512)(self._font.render)  # writing is what takes long

    def write(self, picture: NDArray[np.uint8], rows: tuple[tuple[str, str], ...]) -> NDArray[np.uint8]:
        """Return the picture `(height, width, 3)` with rows of a name and a number in its upper left corner."""
        unit, canvas = self._unit, self._canvas
        canvas.blit(pygame.image.frombuffer(np.ascontiguousarray(picture).tobytes(), self._size, "RGB"), (0, 0))
        left, top, height = round(24 * unit), round(22 * unit), round(33 * unit)
        panel = new_surface((round(280 * unit), height * len(rows) + round(18 * unit)), alpha=True)
        pygame.draw.rect(panel, _PANEL, panel.get_rect(), border_radius=round(12 * unit))
        canvas.blit(panel, (left, top))
        for index, (name, number) in enumerate(rows):
            line = top + round(13 * unit) + height * index
            canvas.blit(self._write(name, _NAME), (left + round(16 * unit), line))
            written = self._write(number, _NUMBER)
            canvas.blit(written, (left + panel.get_width() - round(16 * unit) - written.get_width(), line))
        return self._picture.of(canvas)
