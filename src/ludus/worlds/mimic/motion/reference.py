"""The reference that a motion file gives to a walker, at the speeds it can be followed at, and its summary."""

from pathlib import Path

import numpy as np

from ludus.core.errors import ConfigError, FormatError
from ludus.core.files import JSON
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats, NormalGait
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip
from ludus.worlds.mimic.motion.library import ENTRIES, clip_of_stride, library_reference
from ludus.worlds.mimic.motion.motion import ROOT_HEIGHT, Motion, load_motion
from ludus.worlds.mimic.reference import PHASES, Reference, Stride, make_reference, make_stride, slope
from ludus.worlds.mimic.scoring import GRAVITY_M_S2

# In a mirror, half a stride later, these turn round.
_ODD = frozenset({"roll", "yaw", "trunk_bending", "trunk_rotation"})

SPEED_SHARE = 0.4  # by which the speed of a motion may be changed, for the same steps
_USUAL_SHARE = 0.2
_SHORTEST_M = 0.1  # of a stride
_DEEPEST_M = 0.02  # feet below the ground
_SPEEDS = 11  # rows of the table
_STANDING_SHARE = 0.5  # of the usual backward speed of a foot on the ground, below which it is none
_RUNNING_FROUDE = 0.5


class MotionCurves:
    """Fourier series of a motion's mean stride; what the file does not have is the normal gait's."""

    def __init__(self, motion: Motion, *, has_trunk: bool, symmetric: bool = False) -> None:
        """Make curves; with `symmetric` both sides are averaged. `has_trunk`: the trunk moves against the pelvis."""
        self._stride, self._symmetric = motion.stride, symmetric
        self._normal = NormalGait(has_trunk=has_trunk)

    def joint(self, kind: str, side: str, phases: Floats, amplitude: float) -> Floats:
        """See `gait.Curves`."""
        other = SIDES[1 - SIDES.index(side)]
        names = [name for name in (f"{side}_{kind}", f"{other}_{kind}") if name in self._stride.columns]
        if not names:
            return self._normal.joint(kind, side, phases, amplitude)
        used = names if self._symmetric else names[:1]
        shifts = [0.0 if name.startswith(side) else 0.5 for name in used]
        curves = [self._series(name, phases + shift) for name, shift in zip(used, shifts, strict=True)]
        angles = np.mean(curves, axis=0)
        middle = np.mean([self._stride.column(name).mean() for name in used])
        sized: Floats = middle + amplitude * (angles - middle)
        return sized

    def trunk(self, kind: str, phases: Floats) -> Floats:
        """See `gait.Curves`."""
        name = kind if kind.startswith("trunk_") else f"root_{kind}"
        if name not in self._stride.columns:
            # Hips of a file that tells no pitch are taken as measured from the vertical: a lean would turn the thighs.
            return np.zeros_like(phases) if kind == "pitch" else self._normal.trunk(kind, phases)
        angles = self._series(name, phases)
        if not self._symmetric:
            return angles
        mirrored: Floats = (-1.0 if kind in _ODD else 1.0) * self._series(name, phases + 0.5)
        return 0.5 * (angles + mirrored)

    def _series(self, name: str, phases: Floats) -> Floats:
        """Return a column's mean stride at phases `(phases,)`, exactly between its samples too."""
        column = self._stride.column(name)
        spectrum = np.fft.rfft(column) / len(column)
        spectrum[1:] *= 2.0
        turns = np.exp(2j * np.pi * np.outer(phases, np.arange(len(spectrum))))
        angles: Floats = (turns * spectrum).real.sum(axis=1)
        return angles


def curves_of(motion: Motion, walker: Walker, *, symmetric: bool = False) -> MotionCurves:
    """Return the curves of a motion for a walker; see `MotionCurves`."""
    has_trunk = any(joint.segment == "upper" for joint in walker.joints)
    return MotionCurves(motion, has_trunk=has_trunk, symmetric=symmetric)


def checked_stride(motion: Motion, walker: Walker) -> Stride:
    """Make the stride of a motion on a walker; raise FormatError unless it walks forward on the ground."""
    stride = make_stride(walker, curves_of(motion, walker), 1.0)
    if stride.length_m < _SHORTEST_M:
        way = "backward" if stride.length_m < -_SHORTEST_M else "not at all"
        raise FormatError(
            f"motion file {motion.source} walks {way}: {stride.length_m:.2f} m per stride on a body of "
            f"{walker.height_m:g} m; check that hips, knees and ankles are positive in flexion"
        )
    if ROOT_HEIGHT in motion.root:
        _check_height(motion, walker, stride)
    return stride


def _check_height(motion: Motion, walker: Walker, stride: Stride) -> None:
    """Raise FormatError where feet would be in the ground at the height that the file gives."""
    depths = stride.root[:, 0] - motion.stride.column(ROOT_HEIGHT)
    deepest = int(depths.argmax())
    if depths[deepest] > _DEEPEST_M:
        frame = motion.stride.frame_at(deepest / PHASES) % motion.frames
        raise FormatError(
            f"motion file {motion.source}: {motion.row_name} {motion.rows[frame]}, column 'root_height_m': at phase "
            f"{deepest / PHASES:.2f} of the stride the feet are {100.0 * depths[deepest]:.0f} cm below the ground on a "
            f"body of {walker.height_m:g} m; set height_m to that of the person, or leave the column out"
        )


def scuffing(stride: Stride) -> str | None:
    """Describe where a stride goes backward because the swinging foot is lower than the standing one, or None."""
    backward = np.flatnonzero(stride.advance_m[:, 0] < 0.0)
    if not len(backward):
        return None
    share, worst = len(backward) / PHASES, int(stride.advance_m[:, 0].argmin()) / PHASES
    return (
        f"the swinging foot scuffs the ground in {100.0 * share:.0f} % of the stride, most at phase {worst:.2f}, so "
        "the stride is shorter than the person's: check the angles of both legs there"
    )


def flight(motion: Motion, stride: Stride, walker: Walker) -> str | None:
    """Say that a motion has a flight phase, as running does, with no foot on the ground; None if it has none.

    A foot on the ground moves backward from the hips as fast as the body moves forward, and since it can push and not
    pull, the hips fall no faster than gravity lets them. In running there are moments at which neither holds. Motions
    that are too fast for walking are reported too: people run above a Froude number v^2 / (g * leg length) of 0.5.
    """
    backward = (-slope(stride.points[:, :, 0])).max(axis=1)
    falling = -slope(slope(stride.root[:, 0])) / motion.stride.period_s**2
    speed = natural_speed_m_s(motion, stride)
    fastest = (_RUNNING_FROUDE * GRAVITY_M_S2 * walker.hip_height_m) ** 0.5
    if falling.max() > GRAVITY_M_S2 and backward.min() < _STANDING_SHARE * np.median(backward):
        place = int(backward.argmin()) / PHASES
        what = f"has a flight phase, as running does: no foot is on the ground around phase {place:.2f} of the stride"
    elif speed > fastest:
        what = f"moves at {speed:.2f} m/s; above {fastest:.1f} m/s people run, with a flight phase off the ground"
    else:
        return None
    return (
        f"the motion {motion.source} {what}; the reference always keeps a foot on the ground, so its height and speed "
        "are not the person's, and a walker may not be able to follow it"
    )


def clip_of_motion(motion: Motion, walker: Walker, strides: int = 3) -> Clip:
    """Return some of a motion's mean strides along the way; raise FormatError if it does not walk on this walker."""
    stride = checked_stride(motion, walker)
    return clip_of_stride(motion.source.name, walker, stride, motion.stride.period_s, strides)


def natural_speed_m_s(motion: Motion, stride: Stride) -> float:
    """Return the speed of a motion on the walker that made its stride."""
    return stride.length_m / motion.stride.period_s


def speed_limits_m_s(natural_m_s: float) -> tuple[float, float]:
    """Return the lowest and the highest speed at which a motion can be followed."""
    return (1.0 - SPEED_SHARE) * natural_m_s, (1.0 + SPEED_SHARE) * natural_m_s


def reference_of_motion(
    motion: Motion, walker: Walker, speed_range: tuple[float, float], *, symmetric: bool = False
) -> Reference:
    """Make the reference of a motion for a walker, at all speeds at which the motion can be followed.

    Raises FormatError if the motion does not walk on this walker, ConfigError if the desired speeds are not among its
    own. With `symmetric` both sides are averaged.
    """
    natural = natural_speed_m_s(motion, checked_stride(motion, walker))
    limits = speed_limits_m_s(natural)
    if not _within(speed_range, limits):
        raise ConfigError(
            f"speed_range {speed_range[0]:g} to {speed_range[1]:g} m/s does not fit the motion {motion.source}, which "
            f"walks at {natural:.2f} m/s on a body of {walker.height_m:g} m; valid: from {limits[0]:.2f} to "
            f"{limits[1]:.2f}"
        )
    return make_reference(walker, curves_of(motion, walker, symmetric=symmetric), limits, _SPEEDS)


def follow_motion(
    path: Path, config: MimicConfig, walker: Walker
) -> tuple[Reference, tuple[float, float], tuple[str, ...]]:
    """Return the reference of the motion in a world's settings, the range of desired speeds, and warnings.

    The motion is a file, or the name of one of the package's.

    The default range gives way to that of the motion, a fifth slower and faster, where the two do not fit. With
    `mirror` both sides are averaged, because left steps are observed as right ones. See `load_motion` and
    `reference_of_motion` for errors.
    """
    if str(path) in ENTRIES:
        return _follow_library(str(path), config, walker)
    motion = load_motion(path)
    stride = checked_stride(motion, walker)
    natural = natural_speed_m_s(motion, stride)
    speeds = config.speed_range
    if speeds == MimicConfig.model_fields["speed_range"].default and not _within(speeds, speed_limits_m_s(natural)):
        speeds = ((1.0 - _USUAL_SHARE) * natural, (1.0 + _USUAL_SHARE) * natural)
    warning = flight(motion, stride, walker)
    reference = reference_of_motion(motion, walker, speeds, symmetric=config.mirror)
    return reference, speeds, () if warning is None else (warning,)


def follow_motions(config: MimicConfig, walker: Walker) -> tuple[Reference, tuple[float, float], tuple[str, ...]]:
    """Return one reference with all of a world's `motions`, its range of speeds, and warnings; see `follow_motion`."""
    alone = config.model_copy(update={"speed_range": MimicConfig.model_fields["speed_range"].default})
    followed = [follow_motion(path, alone, walker) for path in config.motions]
    climbing = [str(path) for path, found in zip(config.motions, followed, strict=True) if found[0].stairs is not None]
    if climbing:
        raise ConfigError(f"motion {climbing[0]} has stairs, which others have not: set it alone, motion={climbing[0]}")
    joined = Reference.join([reference for reference, *_ in followed], [str(path) for path in config.motions])
    return joined, joined.speeds, tuple(warning for *_, warnings in followed for warning in warnings)


def _follow_library(
    name: str, config: MimicConfig, walker: Walker
) -> tuple[Reference, tuple[float, float], tuple[str, ...]]:
    """Return the reference of a motion of the package, the range of desired speeds, and warnings."""
    reference, limits = library_reference(name, walker, mirror=config.mirror)
    speeds = config.speed_range
    if speeds == MimicConfig.model_fields["speed_range"].default:
        speeds = limits
    elif not _within(speeds, limits):
        raise ConfigError(
            f"speed_range {speeds[0]:g} to {speeds[1]:g} m/s does not fit the motion {name}; valid: from "
            f"{limits[0]:.2f} to {limits[1]:.2f}"
        )
    return reference, speeds, ()


def _within(speeds: tuple[float, float], limits: tuple[float, float]) -> bool:
    low, high = np.round(limits, 2).tolist()  # as messages show them
    return bool(low <= speeds[0] and speeds[1] <= high)


def summarise(motion: Motion, walker: Walker) -> dict[str, JSON]:
    """Return the summary of a motion on a walker, ready for JSON; raise FormatError if it does not walk on it."""
    stride, mean = checked_stride(motion, walker), motion.stride
    natural = natural_speed_m_s(motion, stride)
    degrees, spread = np.rad2deg(mean.mean), np.rad2deg(mean.spread)
    joints: dict[str, JSON] = {
        name: {
            "lowest_deg": _rounded(degrees[:, index].min()),
            "highest_deg": _rounded(degrees[:, index].max()),
            "range_deg": _rounded(np.ptp(degrees[:, index])),
            "spread_deg": _rounded(np.sqrt(np.mean(spread[:, index] ** 2))),
        }
        for index, name in enumerate(mean.columns)
        if name in motion.joints
    }
    return {
        "source": str(motion.source),
        "frames": motion.frames,
        "rate_hz": _rounded(motion.rate_hz),
        "duration_s": _rounded(motion.frames / motion.rate_hz),
        "strides": mean.count,
        "strides_left_out": mean.left_out,
        "period_s": _rounded(mean.period_s),
        "period_spread_s": _rounded(mean.period_spread_s),
        "cadence_steps_min": _rounded(120.0 / mean.period_s),
        "body_height_m": walker.height_m,
        "stride_length_m": _rounded(stride.length_m),
        "natural_speed_m_s": _rounded(natural),
        "speed_range_m_s": [_rounded(limit) for limit in speed_limits_m_s(natural)],
        "joints": joints,
        "notes": [*motion.notes, *([said] if (said := flight(motion, stride, walker) or scuffing(stride)) else [])],
    }


def _rounded(value: float) -> float:
    return round(float(value), 4)
