"""Static shapes through a camera: meshes of four-cornered faces, and strokes with smooth edges.

Faces fade with distance. Strokes are long thin shapes (lines on the grass, joints of panels); where one would be
thinner than a pixel it becomes paler instead, so that nothing flickers in the distance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ludus.envs.colors import Color
from ludus.envs.pygame_tools import pygame
from ludus.worlds.rocket.rendering.camera import NEAR, Camera, Floats, Pixel

_THICK = 2.5  # pixels from which on a stroke is a polygon
_FAINT = 0.12  # a paler stroke is not painted


@dataclass(frozen=True, slots=True)
class Mesh:
    """Faces that never move."""

    corners: Floats  # `(faces, 4, 3)` uu
    colors: Floats  # `(faces, 3)`
    normals: Floats  # `(faces, 3)`; a face is seen from the side to which its normal points
    middles: Floats  # `(faces, 3)` means of the corners

    def paint(self, target: pygame.Surface, camera: Camera, mist: Color, mist_from: float, mist_to: float) -> None:
        """Paint the faces in order; far ones fade into `mist` from one distance to the other, in uu."""
        away = camera.eye - self.middles
        faces = np.nonzero((away * self.normals).sum(1) > 0.0)[0]
        seen = camera.see(self.corners[faces])
        in_sight = camera.in_sight(seen)
        faces, seen = faces[in_sight], seen[in_sight]
        share = np.clip((np.sqrt((away[faces] ** 2).sum(1)) - mist_from) / (mist_to - mist_from), 0.0, 1.0)[:, None]
        colors = (self.colors[faces] * (1.0 - share) + np.array(mist) * share).astype(np.int64).tolist()
        draw = pygame.draw.polygon
        for color, polygon in zip(colors, camera.polygons(seen), strict=True):
            if polygon:
                draw(target, color, polygon)


@dataclass(frozen=True, slots=True)
class Face:
    """One face while a mesh is built; corners run counter-clockwise as they are seen."""

    corners: Sequence[Sequence[float]]
    color: Color


def built(faces: Iterable[Face]) -> Mesh:
    """Build a mesh from faces."""
    listed = list(faces)
    corners = np.array([face.corners for face in listed], dtype=np.float64)
    return Mesh(
        corners, np.array([face.color for face in listed], dtype=np.float64), normals_of(corners), corners.mean(1)
    )


def normals_of(corners: ArrayLike) -> Floats:
    """Return the unit normals `(..., 3)` of faces `(..., corners, 3)` whose corners run counter-clockwise.

    It is made of the diagonals, so that two corners may be the same.
    """
    points: NDArray[np.float64] = np.asarray(corners, dtype=np.float64)
    last = points.shape[-2] - 1
    across = np.cross(points[..., last - 1, :] - points[..., 0, :], points[..., last, :] - points[..., 1, :])
    unit: Floats = across / np.maximum(np.sqrt((across**2).sum(-1, keepdims=True)), 1e-9)
    return unit


@dataclass(frozen=True, slots=True)
class Stroke:
    """One stroke while a set is built: four corners counter-clockwise, the long sides are 0-1 and 2-3."""

    corners: Sequence[Sequence[float]]
    color: Color
    behind: Color


@dataclass(frozen=True, slots=True)
class Strokes:
    """Strokes that never move."""

    corners: Floats  # `(strokes, 4, 3)` uu
    colors: Floats  # `(strokes, 3)`
    behind: Floats  # `(strokes, 3)` colours of what is behind them, towards which they pale
    normals: Floats  # `(strokes, 3)`; a stroke is seen from the side to which its normal points

    def paint(self, target: pygame.Surface, camera: Camera) -> None:
        """Paint the visible strokes."""
        away = camera.eye - self.corners[:, 0]
        shown = np.nonzero((away * self.normals).sum(1) > 0.0)[0]
        seen = camera.see(self.corners[shown])
        in_sight = camera.in_sight(seen)
        shown, seen = shown[in_sight], seen[in_sight]
        colors, behind = self.colors[shown], self.behind[shown]
        whole: NDArray[np.bool_] = seen[..., 2].min(axis=1) > NEAR
        points = camera.picture(np.where(whole[:, None, None], seen, 1.0))
        starts, ends = (points[:, 0] + points[:, 3]) / 2.0, (points[:, 1] + points[:, 2]) / 2.0
        along = ends - starts
        length = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-3)
        across = (points[:, 3] - points[:, 0] + points[:, 2] - points[:, 1]) / 2.0
        width = np.abs(along[:, 0] * across[:, 1] - along[:, 1] * across[:, 0]) / length
        width[~whole] = 2.0 * _THICK  # it begins behind the eye: near enough to be cut off as a polygon
        share = np.minimum(width, 1.0)[:, None]
        shades = (behind * (1.0 - share) + colors * share).astype(np.int64).tolist()
        polygons = iter(camera.polygons(seen[width > _THICK]))
        for wide, shade, start, end in zip(width.tolist(), shades, starts.tolist(), ends.tolist(), strict=True):
            if wide > _THICK:
                _paint_thick(target, shade, next(polygons))
            elif wide > _FAINT:
                pygame.draw.aaline(target, shade, start, end, max(round(wide), 1))


def _paint_thick(target: pygame.Surface, color: Color, polygon: list[Pixel]) -> None:
    if polygon:
        points = [(x + 0.5, y + 0.5) for x, y in polygon]  # polygons cut off, they do not round
        pygame.draw.polygon(target, color, points)
        pygame.draw.aalines(target, color, True, points)


def stroked(strokes: Iterable[Stroke]) -> Strokes:
    """Build the arrays of strokes."""
    listed = list(strokes)
    corners = np.array([stroke.corners for stroke in listed], dtype=np.float64)
    colors = np.array([stroke.color for stroke in listed], dtype=np.float64)
    behind = np.array([stroke.behind for stroke in listed], dtype=np.float64)
    return Strokes(corners, colors, behind, normals_of(corners))
