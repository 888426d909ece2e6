"""The perspective camera: from places in the arena (uu) to pixels; polygons are cut off at the edges of the picture."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ludus.worlds.rocket.view import Quaternion

Floats: TypeAlias = NDArray[np.float64]
Pixel: TypeAlias = tuple[float, float]

NEAR = 12.0  # uu; nothing nearer to the eye is drawn
_GUARD = 1.6  # times the picture; what reaches farther out is cut off, because filling it would take long


class Camera:
    """An eye at a place that looks at another; the picture's upper side is up.

    `focal` is the number of pixels that a thing of 1 uu takes at a distance of 1 uu.
    """

    def __init__(self, eye: ArrayLike, target: ArrayLike, size: tuple[int, int], width_deg: float) -> None:
        """Place the camera; `width_deg` is the angle between the left and the right edge of the picture.

        Where the target is straight below the eye, the orange goal is on the right.
        """
        self.size, self.eye, self.width_deg = size, np.asarray(eye, dtype=np.float64), width_deg
        self._place: list[float] = self.eye.tolist()
        self.focal = size[0] / 2.0 / math.tan(math.radians(width_deg) / 2.0)
        ahead = np.asarray(target, dtype=np.float64) - self.eye
        ahead /= math.sqrt(float(ahead @ ahead))
        level = math.hypot(float(ahead[0]), float(ahead[1]))
        self.looks_down = level < 1e-6
        right = np.array((0.0, 1.0, 0.0) if self.looks_down else (ahead[1] / level, -ahead[0] / level, 0.0))
        self._axes = np.stack((right, np.cross(right, ahead), ahead), axis=1)
        self._rows: list[list[float]] = self._axes.T.tolist()
        self._middle = (size[0] / 2.0, size[1] / 2.0)
        self._slopes = (_GUARD * self._middle[0] / self.focal, _GUARD * self._middle[1] / self.focal)

    def resized(self, size: tuple[int, int]) -> "Camera":
        """Return a camera that sees the same in a picture of another size."""
        return Camera(self.eye, self.eye + self._axes[:, 2], size, self.width_deg)

    def level_ahead(self) -> Floats:
        """Return the way `(3,)` that it looks, without going up or down."""
        right = self._axes[:, 0]
        return np.array((-right[1], right[0], 0.0))

    def facing(self, point: ArrayLike) -> Floats:
        """Return the axes `(3, 3)` of something at a place that looks at the eye: right, up and toward the eye."""
        toward = self.eye - np.asarray(point, dtype=np.float64)
        toward /= max(math.sqrt(float(toward @ toward)), 1e-9)
        right = np.cross(self._axes[:, 1], toward)
        right /= max(math.sqrt(float(right @ right)), 1e-9)
        return np.stack((right, np.cross(toward, right), toward), axis=1)

    def see(self, points: ArrayLike) -> Floats:
        """Return points `(..., 3)` in the camera's own axes: right, up, ahead."""
        seen: Floats = (np.asarray(points, dtype=np.float64) - self.eye) @ self._axes
        return seen

    def picture(self, seen: Floats) -> Floats:
        """Return the pixels `(..., 2)` of points `(..., 3)` in the camera's axes, which are all in front of it."""
        scale = self.focal / seen[..., 2:3]
        return seen[..., :2] * scale * (1.0, -1.0) + self._middle

    def pixel(self, point: Sequence[float]) -> tuple[float, float, float] | None:
        """Return the pixel of a position and the pixels per uu there; None if it is behind the camera.

        For one place plain numbers are ten times as fast as arrays.
        """
        x, y, z = point[0] - self._place[0], point[1] - self._place[1], point[2] - self._place[2]
        right, up, ahead = (row[0] * x + row[1] * y + row[2] * z for row in self._rows)
        if ahead < NEAR:
            return None
        scale = self.focal / ahead
        return self._middle[0] + right * scale, self._middle[1] - up * scale, scale

    def polygon(self, seen: Floats) -> list[Pixel]:
        """Return the pixels of a polygon `(corners, 3)` in the camera's axes, cut off; none if it is out of sight."""
        if self._is_plain(seen):
            whole: list[Pixel] = self.picture(seen).tolist()
            return whole
        corners: list[Sequence[float]] = seen.tolist()
        for cut in self._cuts():
            corners = _clipped(corners, cut)
            if len(corners) < 3:
                return []
        scales = [self.focal / ahead for _, _, ahead in corners]
        x, y = self._middle
        return [(x + c[0] * s, y - c[1] * s) for c, s in zip(corners, scales, strict=True)]

    def polygons(self, seen: Floats) -> list[list[Pixel]]:
        """Return the pixels of many polygons `(polygons, corners, 3)`, each cut off; empty for those out of sight."""
        plain = self._is_plain(seen)
        flat = self.picture(np.where(plain[:, None, None], seen, 1.0)).tolist()
        return [flat[index] if is_plain else self.polygon(seen[index]) for index, is_plain in enumerate(plain.tolist())]

    def in_sight(self, seen: Floats) -> NDArray[np.bool_]:
        """Return which polygons `(polygons, corners, 3)` do not lie entirely beyond one edge of the picture."""
        right, up, ahead = seen[..., 0], seen[..., 1], seen[..., 2]
        wide, high = self._middle[0] / self.focal * ahead, self._middle[1] / self.focal * ahead
        # How far a corner is inside of each edge; a polygon is out of sight if its best corner is outside of one.
        inside = np.stack((ahead - NEAR, wide - right, wide + right, high - up, high + up))
        best: NDArray[np.bool_] = inside.max(axis=2).min(axis=0) > 0.0
        return best

    def _is_plain(self, seen: Floats) -> NDArray[np.bool_]:
        """Return which polygons `(..., corners, 3)` need no clipping."""
        ahead = seen[..., 2]
        wide, high = self._slopes
        beyond = np.maximum(np.abs(seen[..., 0]) - wide * ahead, np.abs(seen[..., 1]) - high * ahead)
        plain: NDArray[np.bool_] = np.maximum(beyond, NEAR - ahead).max(axis=-1) <= 0.0
        return plain

    def _cuts(self) -> tuple[tuple[float, float, float, float], ...]:
        """Return planes in the camera's axes with the side to keep: a*right + b*up + c*ahead >= d."""
        wide, high = self._slopes
        return (
            (0.0, 0.0, 1.0, NEAR),
            (-1.0, 0.0, wide, 0.0),
            (1.0, 0.0, wide, 0.0),
            (0.0, -1.0, high, 0.0),
            (0.0, 1.0, high, 0.0),
        )


def _clipped(corners: list[Sequence[float]], cut: tuple[float, float, float, float]) -> list[Sequence[float]]:
    """Cut a polygon off at a plane, after Sutherland and Hodgman."""
    a, b, c, d = cut
    heights = [a * x + b * y + c * z - d for x, y, z in corners]
    if min(heights) >= 0.0:
        return corners
    kept: list[Sequence[float]] = []
    for index, (corner, height) in enumerate(zip(corners, heights, strict=True)):
        before, before_height = corners[index - 1], heights[index - 1]
        if (height >= 0.0) != (before_height >= 0.0):
            t = before_height / (before_height - height)
            kept.append([p + (q - p) * t for p, q in zip(before, corner, strict=True)])
        if height >= 0.0:
            kept.append(corner)
    return kept


def rotation_matrix(rotation: Quaternion) -> Floats:
    """Return the matrix `(3, 3)` whose columns are a car's axes, forward, left and up, in the world."""
    x, y, z, w = rotation
    return np.array(
        (
            (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)),
            (2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)),
            (2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)),
        )
    )
