"""What a walker observes of itself and of its task, and how these numbers change in a mirror."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.envs.spaces import Reflection
from ludus.worlds.mimic.body import Joint
from ludus.worlds.mimic.reference import Part

VELOCITY_UNIT = 10.0  # rad/s of a joint that are seen as 1
TURN_UNIT = 5.0  # rad/s of the trunk that are seen as 1
LARGEST = 20.0
AHEAD_M = tuple(round(-0.1 + 0.05 * number, 2) for number in range(12))  # where heights of the ground are seen

# Blocks in front of the joints': name -> numbers.
BLOCKS = {"phase": 2, "speed": 2, "height": 1, "orientation": 3, "velocity": 3, "turning": 3}
_FIELDS = (
    *("phase.cos", "phase.sin", "speed.reference", "speed.desired", "height"),
    *("orientation.roll", "orientation.pitch", "orientation.yaw", "velocity.ahead", "velocity.left", "velocity.up"),
    *("turning.roll", "turning.pitch", "turning.yaw"),
)


def joint_reflection(joints: Sequence[Joint]) -> Reflection:
    """Return the reflection of anything that has one number for each joint."""
    names = [joint.name for joint in joints]
    source = tuple(names.index(joint.mirror) for joint in joints)
    return Reflection(source, tuple(joint.mirror_sign for joint in joints))


def observation_space(joints: int, motions: int = 0, heights: int = 0) -> spaces.Dict:
    """Return the space of one walker's observation, which tells so many motions apart and sees so many heights."""
    size = sum(BLOCKS.values()) + 2 * joints + motions + heights
    return spaces.Dict({"vector": spaces.Box(-LARGEST, LARGEST, (size,), np.float32)})


def observation_blocks(joints: int, motions: int = 0, heights: int = 0) -> dict[str, tuple[int, int]]:
    """Return the block boundaries of the vector."""
    sizes = {**BLOCKS, "angles": joints, "velocities": joints, **({"motion": motions} if motions else {})}
    sizes |= {"terrain": heights} if heights else {}
    ends = np.cumsum([*sizes.values()]).tolist()
    return dict(zip(sizes, zip((0, *ends[:-1]), ends, strict=True), strict=True))


def observation_fields(joints: Sequence[Joint], motions: Sequence[str] = (), heights: int = 0) -> tuple[str, ...]:
    """Return the name of every number of the vector, such as `velocity.ahead` or `angles.right_knee`."""
    names = [joint.name.replace(".", "_") for joint in joints]
    parts = [f"{block}.{name}" for block in ("angles", "velocities") for name in names]
    told = (f"motion.{Path(name).stem.replace('.', '_')}" for name in motions)
    return (*_FIELDS, *parts, *told, *(f"terrain.height_{number}" for number in range(heights)))


def mirrored_motions(parts: Sequence[Part]) -> tuple[int, ...] | None:
    """Return, for each motion, the number of its mirror image among them; None if one has none there.

    Motions of the package are symmetric, or have a twin that goes or turns to the other side.
    """
    images = []
    goes = [(*part.speeds, math.sin(part.way_rad), part.turn_rad_s) for part in parts]
    for number, (low, high, aside, turn) in enumerate(goes):
        twins = [number] if abs(aside) + abs(turn) < 1e-2 else range(len(goes))
        same = [other for other in twins if np.allclose((low, high, -aside, -turn), goes[other], atol=1e-2)]
        if not same:
            return None
        images.append(same[0])
    return tuple(images)


def observation_reflection(
    joints: tuple[Joint, ...], motions: Sequence[int] = (), heights: int = 0, *, stride: bool
) -> Reflection:
    """Return the reflection of the observation vector.

    `motions`: the number of the mirror image of each motion. `heights`: how many heights of the ground there are, which
    are the same in a mirror. `stride`: the phase is that of a stride, of which the other half is the mirror image, not
    of a step.
    """
    phase, own = -1.0 if stride else 1.0, joint_reflection(joints)
    # Phase, speed and height; roll, pitch, yaw; velocity forward, left, up; turning about forward, left, up.
    head = (phase, phase, 1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0)
    starts = len(head), len(head) + len(joints)
    source = (*range(len(head)), *(start + index for start in starts for index in own.source))
    told = len(head) + 2 * len(joints)
    seen = told + len(motions)
    source = (*source, *(told + motion for motion in motions), *range(seen, seen + heights))
    return Reflection(source, (*head, *own.sign, *own.sign, *(1.0 for _ in motions), *(1.0 for _ in range(heights))))


def euler_angles(quaternions: Tensor) -> Tensor:
    """Return roll, pitch and yaw `(games, 3)` in rad of unit quaternions `(games, 4)` as (w, x, y, z)."""
    w, x, y, z = quaternions.unbind(1)
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = torch.asin((2.0 * (w * y - x * z)).clamp(-1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return torch.stack((roll, pitch, yaw), dim=1)


def observe(
    positions: Tensor,
    velocities: Tensor,
    angles: Tensor,
    phases: Tensor,
    speeds: Tensor,
    standing_m: float,
    *others: Tensor,
) -> Tensor:
    """Return the vectors `(games, numbers)`, not yet mirrored.

    Shapes are `(games, 7 + joints)`, `(games, 6 + joints)`, `(games, 3)` for roll, pitch and yaw, `(games,)` in [0, 1),
    and `(games, 2)` for the speed of the reference and the desired one, m/s; `standing_m` is the hips' height when
    standing. `others` are the shares of several motions in the reference `(games, motions)`, and heights of the ground
    `(games, heights)`, where there are.
    """
    turns = 2.0 * torch.pi * phases
    yaw = angles[:, 2]
    ahead, left = torch.cos(yaw), torch.sin(yaw)
    forward = velocities[:, 0] * ahead + velocities[:, 1] * left
    sideways = velocities[:, 1] * ahead - velocities[:, 0] * left
    head = torch.stack((torch.cos(turns), torch.sin(turns)), dim=1)
    height = (positions[:, 2:3] - standing_m) * 10.0  # decimetres
    moving = torch.stack((forward, sideways, velocities[:, 2]), dim=1)
    parts = (
        head,
        speeds,
        height,
        angles,
        moving,
        velocities[:, 3:6] / TURN_UNIT,
        positions[:, 7:],
        velocities[:, 6:] / VELOCITY_UNIT,
    )
    return torch.cat((*parts, *others), dim=1).clamp(-LARGEST, LARGEST)
