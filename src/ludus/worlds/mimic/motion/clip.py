"""A motion on a walker, with its place in the world: where the feet are, and whether they float, sink or slide."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import UnsupportedError
from ludus.worlds.mimic.body import SIDES, Body
from ludus.worlds.mimic.capture.legs import LegSize, ankle_place
from ludus.worlds.mimic.capture.skeleton import turns_about
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.model import CONTACT_RADIUS_M, Walker
from ludus.worlds.mimic.reference import quaternions

_CARRY_M = 0.004  # weight moves between the points of a foot over such differences of height, as in `reference`


@dataclass(frozen=True, slots=True)
class Clip:
    """Frames of a built-in walker."""

    name: str
    joints: tuple[str, ...]  # names, in the walker's order
    angles: Floats  # `(frames, joints)` in rad
    root: Floats  # `(frames, 3)` place of the hips' middle in m; x forward, y left, z up
    turns: Floats  # `(frames, 3)` roll, pitch and yaw of the root in rad; yaw without jumps
    contacts: NDArray[np.bool_]  # `(frames, 2)` whether the right and the left foot are meant to stand
    floor_m: Floats  # `(frames, 2)` height of the ground under each foot
    rate_hz: float
    is_cyclic: bool  # whether the frame after the last one is the first one, farther along the way

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.angles)

    def leg(self, side: str) -> dict[str, Floats]:
        """Return the angles `(frames,)` of each joint of a leg."""
        marks = {name: index for index, name in enumerate(self.joints) if name.startswith(f"{side}_")}
        return {name.removeprefix(f"{side}_"): self.angles[:, index] for name, index in marks.items()}

    def positions(self) -> Floats:
        """Return `(frames, 7 + joints)` positions as MuJoCo has them: root, then joints."""
        return np.concatenate((self.root, quaternions(self.turns), self.angles), axis=1)


@dataclass(frozen=True, slots=True)
class Quality:
    """How well a motion fits the ground and the body."""

    float_mm: float  # largest height of a standing foot over the ground
    sink_mm: float  # largest depth of any foot in the ground
    slide_mm: float  # longest way of a standing foot along the ground, from when it comes down to when it leaves
    beyond_deg: float  # by which an angle leaves its joint's range; 0 if none does
    fastest_rad_s: float  # of any joint
    seam_deg: float  # jump of an angle from the last frame to the first, beyond that of the frames around; 0 if open
    standing: float  # mean number of feet on the ground


def body_of(walker: Walker) -> Body:
    """Return the sizes of a built-in walker; raise UnsupportedError for a body of the user's own."""
    if walker.body is None:
        raise UnsupportedError(
            f"walker {walker.name} is a body of your own; motions are placed on walker-8 and walker-13, and the joint "
            "angles in a motion file fit any body"
        )
    return walker.body


def leg_size(walker: Walker) -> LegSize:
    """Return the lengths of a built-in walker's legs."""
    body = body_of(walker)
    return LegSize(body.thigh.length_m, body.shank.length_m)


def hips_of(walker: Walker) -> Mapping[str, Floats]:
    """Return where each hip joint is in the frame of the root, `(3,)`."""
    half = body_of(walker).hip_half_width_m
    return {side: np.array((0.0, -half if side == "right" else half, 0.0)) for side in SIDES}


def turn_matrices(turns: Floats) -> Floats:
    """Return rotations `(frames, 3, 3)` of roll, pitch and yaw `(frames, 3)`: yaw first, then pitch, then roll."""
    roll, pitch, yaw = turns.T
    return turns_about(2, yaw) @ turns_about(1, pitch) @ turns_about(0, roll)


def turn_angles(matrices: Floats) -> Floats:
    """Return roll, pitch and yaw `(frames, 3)`, yaw without jumps, of rotations `(frames, 3, 3)`."""
    roll = np.arctan2(matrices[:, 2, 1], matrices[:, 2, 2])
    pitch = np.arcsin(np.clip(-matrices[:, 2, 0], -1.0, 1.0))
    yaw = np.unwrap(np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0]))
    return np.stack((roll, pitch, yaw), axis=1)


def sole_points(walker: Walker) -> Floats:
    """Return the lowest points `(4, 3)` of heel and ball in the foot's frame: the centres of spheres, less a radius."""
    body = body_of(walker)
    half = body.foot_half_width_m - CONTACT_RADIUS_M
    ends = (CONTACT_RADIUS_M - body.heel_m, body.ball_m)
    return np.array([(x, y, CONTACT_RADIUS_M - body.ankle_height_m) for x in ends for y in (-half, half)])


def foot_points(walker: Walker, clip: Clip) -> tuple[Floats, Floats]:
    """Return the lowest points of heels and balls `(frames, 2, 4, 3)` and the ankles `(frames, 2, 3)` in the world.

    A heel or ball touches the ground with a sphere: its point is that below the sphere's centre.
    """
    size, hips, sole = leg_size(walker), hips_of(walker), sole_points(walker)
    root = turn_matrices(clip.turns)
    points, ankles = np.empty((clip.frames, 2, 4, 3)), np.empty((clip.frames, 2, 3))
    for foot, side in enumerate(SIDES):
        place, foot_turn = ankle_place(clip.leg(side), size, side)
        turn = (root @ foot_turn).reshape(-1, 3)
        ankles[:, foot] = clip.root + np.einsum("fij,fj->fi", root, hips[side] + place)
        points[:, foot] = ankles[:, None, foot] + (turn @ sole.T).reshape(-1, 3, 4).swapaxes(1, 2)
    points[..., 2] -= CONTACT_RADIUS_M
    return points, ankles


def carried(points: Floats) -> Floats:
    """Return how far the point that carries a foot moves from each frame to the next, `(frames - 1, feet, 2)` in m.

    `points` is `(frames, feet, points, 3)`. Weight lies on the lowest point, and moves softly to others nearly as low.
    """
    heights = points[..., 2]
    weights = np.exp(-(heights - heights.min(axis=-1, keepdims=True)) / _CARRY_M)
    between = weights[:-1] * weights[1:] + 1e-12
    between /= between.sum(axis=-1, keepdims=True)
    moved: Floats = (between[..., None] * np.diff(points[..., :2], axis=0)).sum(axis=-2)
    return moved


def stances(contacts: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first frame of each time that a foot stands, `(frames,)` bool, and the frame behind its last one."""
    edges = np.diff(np.concatenate(([0], contacts.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def summarise_clip(clip: Clip, quality: Quality) -> dict[str, Any]:
    """Return the summary of a motion, ready for JSON."""
    way = clip.root[-1, :2] - clip.root[0, :2]
    lasts = (clip.frames - 1) / clip.rate_hz
    degrees = np.rad2deg(clip.angles)
    return {
        "source": clip.name,
        "frames": clip.frames,
        "rate_hz": round(clip.rate_hz, 4),
        "duration_s": round(clip.frames / clip.rate_hz, 4),
        "speed_m_s": round(float(np.linalg.norm(way)) / lasts, 4),
        "quality": {name: round(value, 2) for name, value in asdict(quality).items()},
        "joints": {
            name: {
                "lowest_deg": round(float(degrees[:, index].min()), 2),
                "highest_deg": round(float(degrees[:, index].max()), 2),
                "range_deg": round(float(np.ptp(degrees[:, index])), 2),
            }
            for index, name in enumerate(clip.joints)
        },
    }


def check_clip(walker: Walker, clip: Clip) -> Quality:
    """Measure how well a motion fits the ground and the walker."""
    points, _ = foot_points(walker, clip)
    heights = points[..., 2].min(axis=2) - clip.floor_m
    moved = carried(points)
    slides = [0.0]
    for foot in range(len(SIDES)):
        for start, stop in stances(clip.contacts[:, foot]):
            way = moved[start : stop - 1, foot].cumsum(axis=0)
            slides.append(float(np.linalg.norm(way, axis=1).max()) if len(way) else 0.0)
    degrees = np.rad2deg(clip.angles)
    ranges = np.array([joint.range_deg for joint in walker.joints])
    beyond = np.maximum(ranges[:, 0] - degrees, degrees - ranges[:, 1]).max()
    steps = np.abs(np.diff(clip.angles, axis=0))
    seam = 0.0
    if clip.is_cyclic:
        jump = np.abs(clip.angles[0] - clip.angles[-1])
        seam = max(0.0, float(np.rad2deg(jump - np.maximum(steps[0], steps[-1])).max()))
    return Quality(
        float_mm=1000.0 * max(0.0, float(np.where(clip.contacts, heights, 0.0).max())),
        sink_mm=1000.0 * max(0.0, float(-heights.min())),
        slide_mm=1000.0 * max(slides),
        beyond_deg=max(0.0, float(beyond)),
        fastest_rad_s=float(steps.max()) * clip.rate_hz,
        seam_deg=seam,
        standing=float(clip.contacts.sum(axis=1).mean()),
    )
