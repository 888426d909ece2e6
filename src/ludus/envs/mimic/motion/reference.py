"""The reference that a motion file gives to a walker, at the speeds at which the motion can be followed."""

from pathlib import Path

import numpy as np

from ludus.core.errors import ConfigError, FormatError
from ludus.envs.mimic.config import MimicConfig
from ludus.envs.mimic.model import Walker
from ludus.envs.mimic.motion.curves import MotionCurves
from ludus.envs.mimic.motion.motion import ROOT_HEIGHT, Motion, load_motion
from ludus.envs.mimic.reference import PHASES, Reference, Stride, make_reference, make_stride

SPEED_SHARE = 0.4  # by which the speed of a motion may be changed, for the same steps
_USUAL_SHARE = 0.2
_SHORTEST_M = 0.1  # of a stride
_DEEPEST_M = 0.02  # feet below the ground
_SPEEDS = 11  # rows of the table


def curves_of(motion: Motion, walker: Walker, *, symmetric: bool = False) -> MotionCurves:
    """Returns the curves of a motion for a walker; see `MotionCurves`."""
    has_trunk = any(joint.segment == "upper" for joint in walker.joints)
    return MotionCurves(motion, has_trunk=has_trunk, symmetric=symmetric)


def checked_stride(motion: Motion, walker: Walker) -> Stride:
    """Makes the stride of a motion on a walker.

    Raises:
        FormatError: It does not walk forward, or its own height of the root puts feet into the ground.
    """
    stride = make_stride(walker, curves_of(motion, walker), 1.0)
    if stride.length_m < _SHORTEST_M:
        way = "backward" if stride.length_m < -_SHORTEST_M else "not at all"
        raise FormatError(
            f"motion file {motion.source} walks {way}: {stride.length_m:.2f} m a stride on a body of "
            f"{walker.body.height_m:g} m; check that hips, knees and ankles are positive in flexion"
        )
    if ROOT_HEIGHT in motion.root:
        _check_height(motion, walker, stride)
    return stride


def _check_height(motion: Motion, walker: Walker, stride: Stride) -> None:
    """Raises FormatError where feet would be in the ground at the height that the file gives."""
    depths = stride.root[:, 0] - motion.stride.column(ROOT_HEIGHT)
    deepest = int(depths.argmax())
    if depths[deepest] > _DEEPEST_M:
        frame = motion.stride.frame_at(deepest / PHASES) % motion.frames
        raise FormatError(
            f"motion file {motion.source}: {motion.row_name} {motion.rows[frame]}, column 'root_height_m': at phase "
            f"{deepest / PHASES:.2f} of the stride the feet are {100.0 * depths[deepest]:.0f} cm below the ground on a "
            f"body of {walker.body.height_m:g} m; set height_m to that of the person, or leave the column out"
        )


def scuffing(stride: Stride) -> str | None:
    """Says where a stride goes backward because the swinging foot is lower than the standing one; None if nowhere."""
    backward = np.flatnonzero(stride.advance_m[:, 0] < 0.0)
    if not len(backward):
        return None
    share, worst = len(backward) / PHASES, int(stride.advance_m[:, 0].argmin()) / PHASES
    return (
        f"the swinging foot scuffs the ground in {100.0 * share:.0f} % of the stride, most at phase {worst:.2f}, so "
        "the stride is shorter than the person's: check the angles of both legs there"
    )


def natural_speed_m_s(motion: Motion, stride: Stride) -> float:
    """Returns the speed of a motion on the walker that made its stride."""
    return stride.length_m / motion.stride.period_s


def speed_limits_m_s(natural_m_s: float) -> tuple[float, float]:
    """Returns the lowest and the highest speed at which a motion can be followed."""
    return (1.0 - SPEED_SHARE) * natural_m_s, (1.0 + SPEED_SHARE) * natural_m_s


def reference_of_motion(
    motion: Motion, walker: Walker, speed_range: tuple[float, float], *, symmetric: bool = False
) -> Reference:
    """Makes the reference of a motion for a walker, at all speeds at which the motion can be followed.

    Args:
        motion: What a file held.
        walker: Who follows.
        speed_range: Lowest and highest desired speed, m/s, which must be among them.
        symmetric: Whether both sides are made alike.

    Raises:
        FormatError: The motion does not walk on this walker.
        ConfigError: The speeds are not those of the motion.
    """
    natural = natural_speed_m_s(motion, checked_stride(motion, walker))
    limits = speed_limits_m_s(natural)
    if not _within(speed_range, limits):
        raise ConfigError(
            f"speed_range {speed_range[0]:g} to {speed_range[1]:g} m/s does not fit the motion {motion.source}, which "
            f"walks at {natural:.2f} m/s on a body of {walker.body.height_m:g} m; valid: from {limits[0]:.2f} to "
            f"{limits[1]:.2f}"
        )
    return make_reference(walker, curves_of(motion, walker, symmetric=symmetric), limits, _SPEEDS)


def follow_motion(path: Path, config: MimicConfig, walker: Walker) -> tuple[Reference, tuple[float, float]]:
    """Loads the motion of a world's settings; returns its reference and the range of desired speeds.

    The default range gives way to that of the motion, a fifth slower and faster, where the two do not fit. With
    `mirror` both sides are made alike, because left steps are seen as right ones.

    Raises:
        FormatError: The file cannot be used.
        ConfigError: There is no such file, or the speeds are not those of the motion.
    """
    motion = load_motion(path)
    natural = natural_speed_m_s(motion, checked_stride(motion, walker))
    speeds = config.speed_range
    if speeds == MimicConfig.model_fields["speed_range"].default and not _within(speeds, speed_limits_m_s(natural)):
        speeds = ((1.0 - _USUAL_SHARE) * natural, (1.0 + _USUAL_SHARE) * natural)
    return reference_of_motion(motion, walker, speeds, symmetric=config.mirror), speeds


def _within(speeds: tuple[float, float], limits: tuple[float, float]) -> bool:
    low, high = np.round(limits, 2).tolist()  # as messages show them
    return bool(low <= speeds[0] and speeds[1] <= high)
