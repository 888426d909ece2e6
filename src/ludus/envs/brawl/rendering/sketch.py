"""A sketch: shapes in stage units, painted together with one outline and smooth edges.

Shapes are drawn several times as large and scaled down. What is drawn is opaque or empty, so the scaled picture
has its colours multiplied by its alpha, and blends without dark fringes.
"""

import math
from dataclasses import dataclass, field
from typing import TypeAlias

from ludus.envs.brawl.rendering.camera import Camera
from ludus.envs.brawl.rendering.palette import INK
from ludus.envs.colors import Color
from ludus.envs.pygame_tools import new_surface, pygame

Point: TypeAlias = tuple[float, float]

_OVERSAMPLING = 3


@dataclass(frozen=True, slots=True)
class _Shape:
    """A polygon with round corners: circles of `radii` around `points`, filled in between."""

    points: tuple[Point, ...]
    radii: tuple[float, ...]
    color: Color
    outlined: bool


@dataclass(slots=True)
class Sketch:
    """Collects shapes in stage units and paints them in the order in which they came.

    Attributes:
        outline: Width of the dark line around the whole (units); 0 for none.
    """

    outline: float = 0.0
    _shapes: list[_Shape] = field(default_factory=list)

    def circle(self, center: Point, radius: float, color: Color, *, outlined: bool = True) -> None:
        """Adds a disc."""
        self._shapes.append(_Shape((center,), (radius,), color, outlined))

    def capsule(
        self, start: Point, end: Point, radius: float, color: Color, *, end_radius: float | None = None
    ) -> None:
        """Adds a thick line with round ends, thinner or thicker at its end if `end_radius` says so."""
        self._shapes.append(_Shape((start, end), (radius, radius if end_radius is None else end_radius), color, True))

    def polygon(self, points: tuple[Point, ...], color: Color, *, outlined: bool = True) -> None:
        """Adds a filled polygon."""
        self._shapes.append(_Shape(points, (0.0,) * len(points), color, outlined))

    def paint(self, target: pygame.Surface, camera: Camera, opacity: int = 255) -> None:
        """Paints the sketch; `opacity` 0 to 255 makes all of it see-through."""
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
        """Left, top, width and height in whole pixels of what the sketch covers."""
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
        _draw_bar(surface, color, points[a], points[b], radii[a], radii[b])


def _draw_bar(surface: pygame.Surface, color: Color, a: Point, b: Point, radius_a: float, radius_b: float) -> None:
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
