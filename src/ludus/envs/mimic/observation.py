"""What a walker sees of itself and of what is asked of it; left steps are seen in a mirror."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.envs.mimic.joints import Joint
from ludus.envs.mimic.mirror import joint_reflection, side_by_side, signs
from ludus.envs.mirror import Reflection

VELOCITY_UNIT = 10.0  # rad/s of a joint that are seen as 1
TURN_UNIT = 5.0  # rad/s of the trunk that are seen as 1
_LARGEST = 20.0

# Blocks in front of the joints': name -> numbers.
BLOCKS = {"phase": 2, "speed": 2, "height": 1, "orientation": 3, "velocity": 3, "turning": 3}


def observation_space(joints: int) -> spaces.Dict:
    """Returns the space of one walker's observation."""
    size = sum(BLOCKS.values()) + 2 * joints
    return spaces.Dict({"vector": spaces.Box(-_LARGEST, _LARGEST, (size,), np.float32)})


def observation_blocks(joints: int) -> dict[str, tuple[int, int]]:
    """Returns where each part of the vector lies."""
    ends = np.cumsum([*BLOCKS.values(), joints, joints]).tolist()
    return dict(zip((*BLOCKS, "angles", "velocities"), zip((0, *ends[:-1]), ends, strict=True), strict=True))


def observation_reflection(joints: tuple[Joint, ...], *, stride: bool) -> Reflection:
    """Returns how the vector looks in a mirror.

    Args:
        joints: Of the walker.
        stride: Whether the phase is that of a stride, of which the other half is the mirror image, not of a step.
    """
    phase = -1.0 if stride else 1.0
    own = joint_reflection(joints)
    return side_by_side(
        (
            signs(phase, phase),
            signs(1.0, 1.0),
            signs(1.0),
            signs(-1.0, 1.0, -1.0),  # roll, pitch, yaw
            signs(1.0, -1.0, 1.0),  # forward, left, up
            signs(-1.0, 1.0, -1.0),  # about forward, left, up
            own,
            own,
        )
    )


def euler_angles(quaternions: Tensor) -> Tensor:
    """Returns roll, pitch and yaw `(games, 3)` in rad of unit quaternions `(games, 4)` as (w, x, y, z)."""
    w, x, y, z = quaternions.unbind(1)
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = torch.asin((2.0 * (w * y - x * z)).clamp(-1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return torch.stack((roll, pitch, yaw), dim=1)


def observe(
    positions: Tensor, velocities: Tensor, angles: Tensor, phases: Tensor, speeds: Tensor, standing_m: float
) -> Tensor:
    """Returns the vectors `(games, numbers)`, not yet mirrored.

    Args:
        positions: `(games, 7 + joints)`.
        velocities: `(games, 6 + joints)`.
        angles: `(games, 3)` roll, pitch and yaw.
        phases: `(games,)` of a step or of a stride, in [0, 1).
        speeds: `(games, 2)` that of the reference and the desired one, m/s.
        standing_m: Height of the hips when standing.
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
    return torch.cat(parts, dim=1).clamp(-_LARGEST, _LARGEST)
