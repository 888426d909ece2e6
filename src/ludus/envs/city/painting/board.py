"""A board to draw small pictures on, in units of 1/16 of a cell whatever its size in pixels."""

from collections.abc import Sequence

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame

UNITS = 16.0
_OVERSAMPLING = 4
_BLACK: Color = (0, 0, 0)
_WHITE: Color = (255, 255, 255)


def darker(color: Color, share: float = 0.3) -> Color:
    """Returns a colour with some black in it."""
    return mixed(color, _BLACK, share)


def lighter(color: Color, share: float = 0.3) -> Color:
    """Returns a colour with some white in it."""
    return mixed(color, _WHITE, share)


class Board:
    """A square picture in the making, 16 units wide and high; drawn large and scaled down for smooth edges."""

    def __init__(self, side: int, ground: Color | None = None) -> None:
        """Begins a picture of `side` pixels, on a ground or on nothing."""
        self._side = side
        self._large = new_surface((side * _OVERSAMPLING, side * _OVERSAMPLING), alpha=ground is None)
        self._scale = side * _OVERSAMPLING / UNITS
        if ground is not None:
            self._large.fill(ground)

    def box(self, left: float, top: float, width: float, height: float, color: Color) -> None:
        """Draws a rectangle; its edges lie on whole pixels of the large picture."""
        s = self._scale
        x, y = round(left * s), round(top * s)
        self._large.fill((*color, 255), (x, y, round((left + width) * s) - x, round((top + height) * s) - y))

    def shape(self, points: Sequence[tuple[float, float]], color: Color) -> None:
        """Draws a polygon."""
        pygame.draw.polygon(self._large, color, [(x * self._scale, y * self._scale) for x, y in points])

    def disc(self, x: float, y: float, radius: float, color: Color) -> None:
        """Draws a disc."""
        pygame.draw.circle(self._large, color, (x * self._scale, y * self._scale), radius * self._scale)

    def line(self, start: tuple[float, float], end: tuple[float, float], width: float, color: Color) -> None:
        """Draws a line."""
        s = self._scale
        first, last = (start[0] * s, start[1] * s), (end[0] * s, end[1] * s)
        pygame.draw.line(self._large, color, first, last, max(round(width * s), 1))

    def windows(self, left: float, top: float, across: int, down: int, step: tuple[float, float], color: Color) -> None:
        """Draws rows of small windows."""
        for row in range(down):
            for column in range(across):
                self.box(left + column * step[0], top + row * step[1], step[0] * 0.55, step[1] * 0.55, color)

    def finish(self) -> pygame.Surface:
        """Returns the picture in its final size."""
        return pygame.transform.smoothscale(self._large, (self._side, self._side))
