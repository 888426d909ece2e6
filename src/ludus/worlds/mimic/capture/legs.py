"""Legs of the built-in walkers in closed form: angles from the directions of a leg's parts, and from where a foot is.

Hip, knee and ankle turn about one axis, so thigh, shank and foot of a leg lie in a plane. Without hip rotation the
plane contains the forward axis of the root; with it, the plane may be turned. Vectors are in the root's frame, with x
forward, y left and z up; angles are those of `ludus.worlds.mimic.body`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ludus.worlds.mimic.capture.skeleton import turns_about, unit
from ludus.worlds.mimic.gait import Floats

_STRAIGHTEST = 0.99995  # share of its length that a leg may be long: a knee of about 1 degree


class LegSize(NamedTuple):
    """Lengths of a leg."""

    thigh_m: float
    shank_m: float

    @property
    def reach_m(self) -> float:
        """Largest distance of the ankle from the hip."""
        return _STRAIGHTEST * (self.thigh_m + self.shank_m)


def angles_of_directions(
    thigh: Floats, shank: Floats, foot: Floats, side: str, *, has_rotation: bool
) -> dict[str, Floats]:
    """Return the angles `(frames,)` of each joint of a leg whose parts point along vectors `(frames, 3)`.

    Thigh and shank point down, the foot forward along its sole. What lies outside the leg's plane is left out.
    """
    thigh, shank, foot = unit(thigh), unit(shank), unit(foot)
    if has_rotation:
        # The knee's axis: across thigh and shank where it is bent, across leg and foot where it is straight.
        axis = np.cross(thigh, shank) + np.cross(foot, unit(thigh + shank))
        axis = unit(axis - _along(axis, thigh))
    else:
        axis = unit(np.stack((np.zeros(len(thigh)), -thigh[:, 2], thigh[:, 1]), axis=1))
    return angles_of_plane(thigh, shank, foot, axis, side, has_rotation=has_rotation)


def angles_of_place(
    ankle: Floats, foot: Floats, size: LegSize, side: str, *, has_rotation: bool, bend: Floats | None = None
) -> dict[str, Floats]:
    """Return the angles `(frames,)` that bring the ankle to a place `(frames, 3)` from the hip, with the foot's sole.

    `foot` `(frames, 3)` is where the sole points; `bend` `(frames, 3)` is the knee's axis, of which hip rotation
    follows; without it, it follows from the foot. A place beyond reach is approached as far as the leg allows.
    """
    distance = np.linalg.norm(ankle, axis=1)
    shortest = abs(size.thigh_m - size.shank_m) + 1e-6
    reached = np.clip(distance, shortest, size.reach_m)
    down = unit(ankle)
    if has_rotation:
        axis = np.cross(foot, down) if bend is None else bend
        axis = unit(axis - _along(axis, down))
    else:
        axis = unit(np.stack((np.zeros(len(ankle)), -ankle[:, 2], ankle[:, 1]), axis=1))
    ahead = np.cross(down, axis)
    # Law of cosines: the thigh is ahead of the line from hip to ankle by this angle, since knees bend backward.
    cosine = (size.thigh_m**2 + reached**2 - size.shank_m**2) / (2.0 * size.thigh_m * reached)
    between = np.arccos(np.clip(cosine, -1.0, 1.0))[:, None]
    thigh = np.cos(between) * down + np.sin(between) * ahead
    shank = unit(reached[:, None] * down - size.thigh_m * thigh)
    return angles_of_plane(thigh, shank, foot, axis, side, has_rotation=has_rotation)


def angles_of_plane(
    thigh: Floats, shank: Floats, foot: Floats, axis: Floats, side: str, *, has_rotation: bool
) -> dict[str, Floats]:
    """Return the angles of a leg whose plane is known by its `axis` `(frames, 3)`, which points to the left."""
    forward = np.cross(thigh, axis)
    knee = np.arctan2(-_dot(shank, forward), _dot(shank, thigh))
    ahead = np.cos(knee)[:, None] * forward + np.sin(knee)[:, None] * thigh
    up = np.cross(ahead, axis)
    ankle = np.arctan2(_dot(foot, up), _dot(foot, ahead))
    return {**_hip(thigh, axis, forward, side, has_rotation=has_rotation), "knee": knee, "ankle": ankle}


def bend_axis(angles: Mapping[str, Floats], side: str) -> Floats:
    """Return the knee's axis `(frames, 3)` in the root's frame of a leg with these angles."""
    return _hip_turn(angles, side)[:, :, 1]


def ankle_place(angles: Mapping[str, Floats], size: LegSize, side: str) -> tuple[Floats, Floats]:
    """Return where the ankle is from the hip, `(frames, 3)`, and how the foot is turned, `(frames, 3, 3)`.

    Both are in the root's frame; the sole points along the foot's first axis.
    """
    thigh = _hip_turn(angles, side)
    shank = thigh @ turns_about(1, angles["knee"])
    foot = shank @ turns_about(1, -angles["ankle"])
    return -size.thigh_m * thigh[:, :, 2] - size.shank_m * shank[:, :, 2], foot


def _hip_turn(angles: Mapping[str, Floats], side: str) -> Floats:
    """Return the orientation of the thigh `(frames, 3, 3)`."""
    sign = 1.0 if side == "right" else -1.0
    turn = turns_about(0, sign * angles["hip_frontal"]) @ turns_about(1, -angles["hip"])
    if "hip_rotation" in angles:
        turn = turn @ turns_about(2, sign * angles["hip_rotation"])
    return turn


def _hip(thigh: Floats, axis: Floats, forward: Floats, side: str, *, has_rotation: bool) -> dict[str, Floats]:
    """Return the hip's angles: Rx(frontal) Ry(-hip) Rz(rotation) turns the axes to forward, `axis` and up the thigh."""
    sign = 1.0 if side == "right" else -1.0
    up = -thigh
    frontal = np.arctan2(-up[:, 1], up[:, 2])
    hip = -np.arctan2(up[:, 0], np.hypot(up[:, 1], up[:, 2]))
    angles = {"hip_frontal": sign * frontal, "hip": hip}
    if has_rotation:
        # The first row of the rotation is cos(hip) cos(rotation), -cos(hip) sin(rotation), sin.
        angles["hip_rotation"] = sign * np.arctan2(-axis[:, 0], forward[:, 0])
    return angles


def _dot(one: Floats, other: Floats) -> Floats:
    product: Floats = np.einsum("fi,fi->f", one, other)
    return product


def _along(vectors: Floats, direction: Floats) -> Floats:
    """Return the part of vectors `(frames, 3)` along a unit direction `(frames, 3)`."""
    return _dot(vectors, direction)[:, None] * direction
