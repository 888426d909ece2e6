"""Marks on City's screen: frames around what is read, the pointer with its trail, rings where it has clicked."""

from collections.abc import Mapping

from ludus.envs.city.demo.looks import BRIGHT, POINTER, RIM, field_color
from ludus.envs.city.demo.scene import Shown
from ludus.envs.city.demo.track import Stop, Track
from ludus.envs.city.drivers.driver import Point, Region
from ludus.envs.pygame_tools import new_surface, pygame

# An arrow that points up and to the left, in pixels of a picture of 720 lines, its tip first.
_ARROW = ((0.0, 0.0), (0.0, 27.0), (6.5, 20.5), (11.5, 31.5), (16.0, 29.5), (11.0, 19.0), (20.0, 19.0))
_TRAIL, _TRAIL_HELD = 3.0, 7.0  # widths
_RING = (9.0, 24.0)  # radius when a button goes down, and when the ring has faded
_RING_SHARE = 0.3  # of a decision, for which a ring grows
_LINES = 720.0


class Marks:
    """Draws marks on pictures of one size."""

    def __init__(self, size: tuple[int, int], regions: Mapping[str, Region]) -> None:
        """Takes the size `(width, height)` of pictures, and where fields are read, by name."""
        self._size, self._regions, self._unit = size, regions, size[1] / _LINES

    def draw(self, target: pygame.Surface, shown: Shown, share: float) -> None:
        """Draws the marks of a decision at a share of it onto the upper left part of `target`."""
        layer = new_surface(self._size, alpha=True)
        self._frames(layer, shown)
        self._trail(layer, shown.track, share)
        for stop in shown.track.passed(share):
            if stop.presses:
                self._ring(layer, stop, share)
        self._arrow(layer, shown.track.at(share))
        target.blit(layer, (0, 0))

    def _frames(self, layer: pygame.Surface, shown: Shown) -> None:
        for seen in shown.seen:
            region = self._regions.get(seen.name)
            if region is not None:
                left, top, right, bottom = region.pixels(*self._size)
                color = field_color(readable=seen.value is not None, confidence=seen.confidence)
                grown = pygame.Rect(left, top, right - left, bottom - top).inflate(4, 2)
                pygame.draw.rect(layer, color, grown, max(round(2 * self._unit), 1), border_radius=2)

    def _trail(self, layer: pygame.Surface, track: Track, share: float) -> None:
        """A line along the way, thicker where a button is held."""
        before = track.start
        for stop in track.stops:
            if share <= stop.share:
                self._line(layer, before, track.at(share), held=stop.drags)
                return
            self._line(layer, before, stop.at, held=stop.drags)
            before = stop.at

    def _line(self, layer: pygame.Surface, start: Point, end: Point, *, held: bool) -> None:
        width = max(round((_TRAIL_HELD if held else _TRAIL) * self._unit), 1)
        pygame.draw.line(layer, (*POINTER, 150), self._place(start), self._place(end), width)

    def _ring(self, layer: pygame.Surface, stop: Stop, share: float) -> None:
        """A ring that grows and fades, and a dot that stays."""
        age = min((share - stop.share) / _RING_SHARE, 1.0)
        radius = (_RING[0] + (_RING[1] - _RING[0]) * age) * self._unit
        thick = max(round(4 * self._unit), 2)
        place = self._place(stop.at)
        pygame.draw.circle(layer, (*RIM, 120), place, radius + thick / 2, thick * 2)
        pygame.draw.circle(layer, (*POINTER, round(255 - 110 * age)), place, radius, thick)

    def _arrow(self, layer: pygame.Surface, at: Point) -> None:
        x, y = self._place(at)
        corners = [(x + dx * self._unit, y + dy * self._unit) for dx, dy in _ARROW]
        pygame.draw.polygon(layer, POINTER, corners)
        pygame.draw.lines(layer, BRIGHT, True, corners, max(round(2 * self._unit), 1))

    def _place(self, point: Point) -> tuple[float, float]:
        return point.x * self._size[0], point.y * self._size[1]
