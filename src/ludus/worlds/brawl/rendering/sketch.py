"""Shapes in stage units: the fixed camera, the colours, and sketches with one outline and smooth edges.

The look is a training yard at dusk, cool stone, two teams that differ in hue and brightness. Shapes are drawn several
times as large and scaled down. They are opaque or empty, so the scaled picture has its colours multiplied by its alpha
and blends without dark fringes.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from ludus.envs.colors import Color, Team, mixed
from ludus.envs.pygame_tools import new_surface, pygame

VIEW_WIDTH = 28.4  # units; the kill box is 28 wide
VIEW_HEIGHT = 16.0  # units; exactly the kill box

INK: Color = (13, 14, 26)
WHITE: Color = (246, 244, 236)
SKY = ((16, 18, 40), (34, 38, 74), (70, 66, 104), (122, 100, 124))  # from the top down
FAR_WALL: Color = (46, 46, 82)
NEAR_WALL: Color = (33, 33, 64)
MOON: Color = (206, 198, 208)
STONE: Color = (112, 104, 118)
STONE_LIGHT: Color = (156, 146, 150)
STONE_DARK: Color = (74, 68, 88)
SAND: Color = (222, 200, 152)
BRASS: Color = (214, 170, 92)
WOOD: Color = (128, 92, 70)
SKIN: Color = (232, 188, 152)
STEEL: Color = (196, 200, 212)
PANEL: Color = (18, 19, 36)
MUTED: Color = (150, 150, 170)
DANGER: Color = (255, 64, 64)
DEBUG_HURT: Color = (90, 255, 140)
DEBUG_HIT: Color = (255, 70, 70)

TEAMS = (
    Team("Azure", (64, 144, 255), (34, 82, 176), (160, 208, 255)),
    Team("Scarlet", (244, 74, 82), (158, 34, 58), (255, 172, 160)),
)

# Damage at which the number has each colour; in between they blend.
_DAMAGE_RAMP: tuple[tuple[float, Color], ...] = (
    (0.0, WHITE),
    (50.0, (255, 226, 120)),
    (100.0, (255, 154, 60)),
    (150.0, (255, 78, 52)),
    (250.0, (190, 24, 60)),
)

Point: TypeAlias = tuple[float, float]

_OVERSAMPLING = 3


@dataclass(frozen=True, slots=True)
class Camera:
    """Shows the stage in a picture of `size` (width, height) pixels, centred, with square units."""

    size: tuple[int, int]

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return min(self.size[0] / VIEW_WIDTH, self.size[1] / VIEW_HEIGHT)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a place on the stage."""
        scale = self.scale
        return self.size[0] / 2 + x * scale, self.size[1] / 2 + y * scale


def damage_color(damage: float) -> Color:
    """Return the colour of a damage number: white, yellow, orange, red, dark red."""
    for (low, low_color), (high, high_color) in pairwise(_DAMAGE_RAMP):
        if damage <= high:
            return mixed(low_color, high_color, (damage - low) / (high - low))
    return _DAMAGE_RAMP[-1][1]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A polygon with round corners: circles of `radii` around `points`, filled in between."""

    points: tuple[Point, ...]
    radii: tuple[float, ...]
    color: Color
    outlined: bool


@dataclass(slots=True)
class Sketch:
    """Collects shapes in stage units and paints them in the order in which they came."""

    outline: float = 0.0  # width of the dark line around the whole (units); 0 for none
    _shapes: list[_Shape] = field(default_factory=list)

    def circle(self, center: Point, radius: float, color: Color, *, outlined: bool = True) -> None:
        """Add a disc."""
        self._shapes.append(_Shape((center,), (radius,), color, outlined))

    def capsule(
        self, start: Point, end: Point, radius: float, color: Color, *, end_radius: float | None = None
    ) -> None:
        """Add a thick line with round ends, thinner or thicker at its end if `end_radius` says so."""
        self._shapes.append(_Shape((start, end), (radius, radius if end_radius is None else end_radius), color, True))

    def polygon(self, points: tuple[Point, ...], color: Color, *, outlined: bool = True) -> None:
        """Add a filled polygon."""
        self._shapes.append(_Shape(points, (0.0,) * len(points), color, outlined))

    def paint(self, target: pygame.Surface, camera: Camera, opacity: int = 255) -> None:
        """Paint the sketch; `opacity` 0 to 255 makes all of it see-through."""
        if not self._shapes:
            return
        left, top, width, height = self._pixels(camera)
        scale = camera.scale * _OVERSAMPLING
        large = new_surface((width * _OVERSAMPLING, height * _OVERSAMPLING), alpha=True)
        center = camera.point(0.0, 0.0)
        origin = ((center[0] - left) * _OVERSAMPLING, (center[1] - top) * _OVERSAMPLING)
        if self.outline > 0.0:
            for shape in self._shapes:
                if shape.outlined:
                    _draw(large, shape, INK, scale, origin, self.outline)
        for shape in self._shapes:
            _draw(large, shape, shape.color, scale, origin, 0.0)
        small = pygame.transform.smoothscale(large, (width, height))
        if opacity < 255:
            small.fill((opacity,) * 4, special_flags=pygame.BLEND_RGBA_MULT)
        target.blit(small, (left, top), special_flags=pygame.BLEND_PREMULTIPLIED)

    def _pixels(self, camera: Camera) -> tuple[int, int, int, int]:
        """Return left, top, width and height in whole pixels of what the sketch covers."""
        margin, scale = self.outline, camera.scale
        center = camera.point(0.0, 0.0)
        xs_low = min(p[0] - r for s in self._shapes for p, r in zip(s.points, s.radii, strict=True)) - margin
        xs_high = max(p[0] + r for s in self._shapes for p, r in zip(s.points, s.radii, strict=True)) + margin
        ys_low = min(p[1] - r for s in self._shapes for p, r in zip(s.points, s.radii, strict=True)) - margin
        ys_high = max(p[1] + r for s in self._shapes for p, r in zip(s.points, s.radii, strict=True)) + margin
        left, top = math.floor(center[0] + xs_low * scale) - 1, math.floor(center[1] + ys_low * scale) - 1
        right, bottom = math.ceil(center[0] + xs_high * scale) + 1, math.ceil(center[1] + ys_high * scale) + 1
        return left, top, right - left, bottom - top


def _draw(surface: pygame.Surface, shape: _Shape, color: Color, scale: float, origin: Point, grow: float) -> None:
    points = [(origin[0] + x * scale, origin[1] + y * scale) for x, y in shape.points]
    radii = [(radius + grow) * scale for radius in shape.radii]
    if len(points) == 1:
        pygame.draw.circle(surface, color, points[0], radii[0])
        return
    if len(points) > 2:
        pygame.draw.polygon(surface, color, points)
        if grow == 0.0:
            return
        pairs = [(index, (index + 1) % len(points)) for index in range(len(points))]
    else:
        pairs = [(0, 1)]
    for a, b in pairs:
        draw_bar(surface, color, points[a], points[b], radii[a], radii[b])


def draw_bar(
    surface: pygame.Surface, color: tuple[int, ...], a: Point, b: Point, radius_a: float, radius_b: float
) -> None:
    """Draw a bar with round ends of these radii, in pixels."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = math.hypot(dx, dy)
    if length > 0.0:
        nx, ny = -dy / length, dx / length
        pygame.draw.polygon(
            surface,
            color,
            (
                (a[0] + nx * radius_a, a[1] + ny * radius_a),
                (b[0] + nx * radius_b, b[1] + ny * radius_b),
                (b[0] - nx * radius_b, b[1] - ny * radius_b),
                (a[0] - nx * radius_a, a[1] - ny * radius_a),
            ),
        )
    pygame.draw.circle(surface, color, a, radius_a)
    pygame.draw.circle(surface, color, b, radius_b)
