"""Meshes: four-cornered faces with a colour each, painted through a camera, paler the farther away they are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ludus.envs.colors import Color
from ludus.envs.pygame_tools import pygame
from ludus.envs.rocket.rendering.camera import Camera, Floats


@dataclass(frozen=True, slots=True)
class Mesh:
    """Faces that never move.

    Attributes:
        corners: `(faces, 4, 3)` uu.
        colors: `(faces, 3)`.
        normals: `(faces, 3)`; a face is seen from the side to which its normal points.
        middles: `(faces, 3)` means of the corners.
    """

    corners: Floats
    colors: Floats
    normals: Floats
    middles: Floats

    def paint(self, target: pygame.Surface, camera: Camera, mist: Color, mist_from: float, mist_to: float) -> None:
        """Paints the faces in their order.

        Args:
            target: Where.
            camera: Who looks.
            mist: Colour into which far faces fade.
            mist_from: Distance in uu from which on they do.
            mist_to: Distance at which a face would have that colour.
        """
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
    """Puts faces together."""
    listed = list(faces)
    corners = np.array([face.corners for face in listed], dtype=np.float64)
    return Mesh(
        corners, np.array([face.color for face in listed], dtype=np.float64), normals_of(corners), corners.mean(1)
    )


def normals_of(corners: ArrayLike) -> Floats:
    """Returns the unit normals `(..., 3)` of faces `(..., corners, 3)` whose corners run counter-clockwise.

    It is made of the diagonals, so that two corners may be the same.
    """
    points: NDArray[np.float64] = np.asarray(corners, dtype=np.float64)
    last = points.shape[-2] - 1
    across = np.cross(points[..., last - 1, :] - points[..., 0, :], points[..., last, :] - points[..., 1, :])
    unit: Floats = across / np.maximum(np.sqrt((across**2).sum(-1, keepdims=True)), 1e-9)
    return unit
