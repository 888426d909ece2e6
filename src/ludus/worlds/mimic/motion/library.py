"""The motions of the package: walking at any speed, running, marching, backward, sideways, turning, stairs, standing.

All are made by our own code for the body at hand; nothing was recorded. Normal and fast walking are the normal gait,
whose curves are those of people (`ludus.worlds.mimic.gait`); everything else is planned (`planner`), with times that
people have: stance takes 0.62 of a stride in normal and 0.7 in slow walking (Perry and Burnfield 2010), 0.39 at 2.5 and
0.34 at 3.5 m/s of running, with 160 to 170 steps a minute (Novacheck 1998, doi:10.1016/S0966-6362(97)00038-6).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.worlds.mimic import gait as normal
from ludus.worlds.mimic.gait import Floats, NormalGait
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip, carried, foot_points
from ludus.worlds.mimic.motion.footsteps import Gait
from ludus.worlds.mimic.motion.planner import plan_gait
from ludus.worlds.mimic.reference import (
    PHASES,
    Reference,
    Stride,
    make_stride,
    reference_of_strides,
    stairs_of,
    stride_of_advance,
    stride_of_poses,
)

NORMAL_SPEEDS_M_S = (0.4, 2.0)  # that the normal gait can have
_AMPLITUDES = np.linspace(0.4, 1.7, 14)
_STANDS_M, _STILL_M_S = 0.006, 0.4  # height and speed below which a foot of the normal gait stands
_STRIDES = 2  # in a clip, at least
_HARMONICS = 20  # of a stride, which are kept


@dataclass(frozen=True, slots=True)
class Entry:
    """A motion of the package."""

    summary: str
    speed_m_s: float
    gait: Gait | None = None  # how it is planned; None for the normal gait
    needs_rotation: bool = False  # whether legs must turn about their own axis, as those of walker-13 do
    shares: tuple[float, float, int] = (0.8, 1.2, 5)  # lowest and highest of its speeds as shares of it, and how many

    @property
    def is_symmetric(self) -> bool:
        """Whether it has left steps that are mirror images of right ones.

        Standing has no steps: a mirror that exchanges left and right with the phase makes the walker sway, and it never
        learns to stand.
        """
        gait = self.gait
        return gait is None or (gait.speed_m_s > 0.0 and gait.heading_deg % 180.0 == 0.0 and gait.turn_deg_s == 0.0)


_STAND = Gait(0.0, period_s=1.0, half_width_m=0.09, land_deg=0.0, leave_deg=0.0, straight=0.994)
_SLOW = Gait(
    0.4, period_s=1.7, duty=0.70, half_width_m=0.07, clearance_m=0.025, land_deg=10.0, leave_deg=-28.0, fold_deg=-30.0,
    turns_pelvis_deg=2.0,
)  # fmt: skip
_STROLL = Gait(
    0.7, period_s=1.4, duty=0.66, half_width_m=0.065, clearance_m=0.03, land_deg=14.0, leave_deg=-34.0, fold_deg=-38.0,
    turns_pelvis_deg=3.0,
)  # fmt: skip
_RUN = Gait(
    2.5, period_s=0.74, duty=0.39, half_width_m=0.03, clearance_m=0.12, land_deg=6.0, leave_deg=-50.0, flat=(0.2, 0.35),
    fold_deg=-80.0, peak=0.38, lean_deg=7.0, ahead_m=0.13, land_share=0.5, straight=0.985, turns_pelvis_deg=5.0,
)  # fmt: skip
_FAST_RUN = replace(
    _RUN, speed_m_s=3.5, period_s=0.70, duty=0.34, clearance_m=0.17, leave_deg=-55.0, flat=(0.2, 0.3), fold_deg=-95.0,
    peak=0.36, lean_deg=9.0, ahead_m=0.15, land_share=0.6,
)  # fmt: skip
_MARCH = Gait(
    0.9, period_s=1.0, duty=0.60, clearance_m=0.27, hurry=1.8, land_deg=0.0, leave_deg=-30.0, fold_deg=-15.0, peak=0.5,
    lean_deg=0.0,
)  # fmt: skip
_BACKWARD = Gait(
    0.8, heading_deg=180.0, period_s=1.15, duty=0.63, clearance_m=0.04, land_deg=-20.0, leave_deg=12.0,
    flat=(0.2, 0.75), fold_deg=0.0, peak=0.5, lean_deg=2.0,
)  # fmt: skip
_SIDE = Gait(
    0.3, heading_deg=90.0, period_s=1.1, duty=0.64, half_width_m=0.15, clearance_m=0.05, land_deg=0.0, leave_deg=0.0,
    fold_deg=0.0, peak=0.5, lean_deg=2.0, straight=0.985,
)  # fmt: skip
_TURN = Gait(0.8, turn_deg_s=35.0, period_s=1.3, duty=0.64, half_width_m=0.07, land_deg=12.0, leave_deg=-35.0)
_STAIRS = Gait(
    0.48, period_s=1.2, duty=0.66, clearance_m=0.06, land_deg=0.0, leave_deg=-25.0, flat=(0.15, 0.75), fold_deg=-15.0,
    peak=0.45, lean_deg=8.0, straight=0.985, stairs_m=(0.288, 0.17),
)  # fmt: skip

ENTRIES: Mapping[str, Entry] = MappingProxyType(
    {
        "walk-slow": Entry("slow walking", 0.4, _SLOW),
        # Slow steps, planned: the body sways over each foot, as it does not with the curves of the normal gait.
        "stroll": Entry("unhurried walking", 0.7, _STROLL, shares=(0.572, 1.43, 9)),
        # One range from slow to fast: what is learned at one speed helps at the others, and slow walking alone is hard.
        "walk": Entry("normal walking", 1.25, shares=(0.32, 1.6, 17)),
        "walk-fast": Entry("fast walking", 2.0),
        "run-2.5": Entry("running", 2.5, _RUN),
        "run-3.5": Entry("fast running", 3.5, _FAST_RUN),
        "march": Entry("marching with high knees", 0.9, _MARCH),
        "backward": Entry("walking backward", 0.8, _BACKWARD),
        "side-left": Entry("steps to the left", 0.3, _SIDE),
        "side-right": Entry("steps to the right", 0.3, replace(_SIDE, heading_deg=-90.0)),
        "turn-left": Entry("walking in a curve to the left", 0.8, _TURN, needs_rotation=True),
        "turn-right": Entry(
            "walking in a curve to the right", 0.8, replace(_TURN, turn_deg_s=-35.0), needs_rotation=True
        ),
        "stairs-up": Entry("climbing stairs of 17 cm", 0.48, _STAIRS),
        "stand": Entry("standing", 0.0, _STAND, shares=(1.0, 1.0, 1)),
    }
)


_LENGTHS: dict[str, list[float]] = {}  # of a stride in m at each amplitude, by the text of a body
_REFERENCES: dict[tuple[str, str], tuple[Reference, tuple[float, float]]] = {}  # each is made once per body


def is_library_motion(name: str) -> bool:
    """Return whether a motion of the package has this name."""
    return name in ENTRIES


def entry_of(name: str, walker: Walker) -> Entry:
    """Return a motion of the package; raise UnknownNameError, or ConfigError if the walker cannot make it."""
    if name not in ENTRIES:
        raise UnknownNameError("motion", name, ENTRIES)
    entry = ENTRIES[name]
    if entry.needs_rotation and not any(joint.name.endswith("hip_rotation") for joint in walker.joints):
        raise ConfigError(
            f"motion {name} turns the legs about their own axis, which {walker.name} cannot; use walker-13"
        )
    return entry


def library_clip(name: str, walker: Walker, least_s: float = 0.0, speed_m_s: float | None = None) -> Clip:
    """Make a motion of the package for a built-in walker, of at least some seconds; see `entry_of` for errors.

    The normal gait can have another speed than its own; ConfigError is raised if others are given one.
    """
    entry = entry_of(name, walker)
    if speed_m_s is not None:
        low, high = NORMAL_SPEEDS_M_S
        if entry.gait is not None:
            raise ConfigError(f"motion {name} is planned for its own speed; leave out the speed of {speed_m_s:g} m/s")
        if not low <= speed_m_s <= high:
            raise ConfigError(f"speed must be from {low:g} to {high:g}, got {speed_m_s:g}")
    if entry.gait is None:
        stride, period_s = normal_stride(walker, speed_m_s or entry.speed_m_s)
        return clip_of_stride(name, walker, stride, period_s, max(_STRIDES, math.ceil(least_s / period_s)))
    return plan_gait(entry.gait, walker, name, max(_STRIDES, math.ceil(least_s / entry.gait.period_s)))


def normal_stride(walker: Walker, speed_m_s: float) -> tuple[Stride, float]:
    """Return a stride of the normal gait at a speed, also beyond those that `normal_reference` has, and its period."""
    curves = NormalGait(has_trunk=any(joint.segment == "upper" for joint in walker.joints))
    period_s = normal.period_s(speed_m_s, walker.height_m)
    if walker.text not in _LENGTHS:
        _LENGTHS[walker.text] = [make_stride(walker, curves, amplitude).length_m for amplitude in _AMPLITUDES]
    amplitude = float(np.interp(speed_m_s * period_s, _LENGTHS[walker.text], _AMPLITUDES))
    return make_stride(walker, curves, amplitude), period_s


def clip_of_stride(name: str, walker: Walker, stride: Stride, period_s: float, strides: int) -> Clip:
    """Return some strides along the way, as the reference has them; feet stand where they are low and slow."""
    rate_hz = PHASES / period_s
    frames = strides * PHASES
    again = np.arange(frames) % PHASES
    way = np.concatenate((np.zeros((1, 2)), stride.advance_m[again].cumsum(axis=0)[:-1])) / PHASES
    clip = Clip(
        name, tuple(joint.name for joint in walker.joints), stride.angles[again],
        np.concatenate((way, stride.root[again, :1]), axis=1), stride.root[again, 1:],
        np.zeros((frames, 2), dtype=bool), np.zeros((frames, 2)), rate_hz, is_cyclic=True,
    )  # fmt: skip
    points, _ = foot_points(walker, clip)
    speeds = np.linalg.norm(carried(points), axis=2) * rate_hz
    speeds = np.concatenate((speeds, speeds[-1:]))
    return replace(clip, contacts=(points[..., 2].min(axis=2) < _STANDS_M) & (speeds < _STILL_M_S))


def library_reference(name: str, walker: Walker, *, mirror: bool) -> tuple[Reference, tuple[float, float]]:
    """Return the reference of a motion of the package, and the speeds at which it can be followed.

    Raises ConfigError if it cannot be imitated with `mirror`.
    """
    entry = entry_of(name, walker)
    if mirror and not entry.is_symmetric:
        raise ConfigError(f"motion {name} has no left steps that are mirror images of right ones; set mirror: false")
    made = _REFERENCES.get((name, walker.text))
    if made is None:
        made = _REFERENCES[name, walker.text] = _make_reference(name, walker)
    return made


def _make_reference(name: str, walker: Walker) -> tuple[Reference, tuple[float, float]]:
    entry = ENTRIES[name]
    strides, periods, speeds = [], [], []
    for share in np.linspace(*entry.shares).tolist():
        if entry.gait is None:
            stride, period_s = normal_stride(walker, share * entry.speed_m_s)
        else:
            # Steps a minute grow as the square root of the speed, as in the normal gait; on stairs as the speed itself.
            power = 0.5 if entry.gait.stairs_m is None else 1.0
            gait = replace(entry.gait, speed_m_s=share * entry.speed_m_s, period_s=entry.gait.period_s / share**power)
            clip = _levelled(plan_gait(gait, walker, name, 1), gait)
            of_clip = _turning_stride if gait.turn_deg_s else stride_of_clip
            stride, period_s = of_clip(walker, clip), clip.frames / clip.rate_hz
        strides.append(stride)
        periods.append(period_s)
        speeds.append(float(np.linalg.norm(stride.advance_m.mean(axis=0))) / period_s)
    limits = (speeds[0], speeds[-1])
    way, turn = (0.0, 0.0) if entry.gait is None else (entry.gait.heading_deg, entry.gait.turn_deg_s)
    pace = 1.0 if walker.body is None else (walker.height_m / normal.NORMAL_HEIGHT_M) ** 0.5
    stairs = None
    if entry.gait is not None and entry.gait.stairs_m is not None:
        scale = walker.height_m / normal.NORMAL_HEIGHT_M
        depth, height = (scale * size for size in entry.gait.stairs_m)
        stairs = stairs_of(walker, strides[len(strides) // 2], depth, height)
    turning = math.radians(turn) / pace
    reference = reference_of_strides(
        walker, strides, periods, limits, way_rad=math.radians(way), turn_rad_s=turning, stairs=stairs
    )
    return reference, limits


def _levelled(clip: Clip, gait: Gait) -> Clip:
    """Return a clip of one stride whose hips are as high as they are over the line of its stairs; see `Stairs`."""
    if gait.stairs_m is None:
        return clip
    depth, height = gait.stairs_m
    over = clip.root[:, 2] - height / depth * clip.root[:, 0]
    return replace(clip, root=np.concatenate((clip.root[:, :2], over[:, None]), axis=1))


def _turning_stride(walker: Walker, clip: Clip) -> Stride:
    """Return one stride of a cyclic clip of one stride that turns evenly, seen from the direction it goes in."""
    frames = np.arange(clip.frames)
    yaw = clip.turns[:, 2]
    whole = yaw[-1] - yaw[0] + 0.5 * (yaw[1] - yaw[0] + yaw[-1] - yaw[-2])
    heading = frames / clip.frames * whole
    heading = heading + np.mean(yaw - heading)
    steps = np.gradient(clip.root[:, :2], axis=0) * clip.frames
    cos, sin = np.cos(heading), np.sin(heading)
    advance = np.stack((cos * steps[:, 0] + sin * steps[:, 1], cos * steps[:, 1] - sin * steps[:, 0]), axis=1)
    turns = clip.turns - np.stack((0.0 * heading, 0.0 * heading, heading), axis=1)
    angles, height, turns, advance = (_resampled(each) for each in (clip.angles, clip.root[:, 2:], turns, advance))
    return stride_of_advance(walker, angles, np.concatenate((height, turns), axis=1), advance)


def stride_of_clip(walker: Walker, clip: Clip) -> Stride:
    """Return one stride of a cyclic clip of one stride that goes straight on."""
    start = np.concatenate((clip.root[:, :2], np.arange(clip.frames)[:, None] / clip.frames), axis=1)
    # The way of a stride, from the speed across its seam.
    step = 0.5 * ((clip.root[1] - clip.root[0]) + (clip.root[-1] - clip.root[-2]))[:2]
    whole = clip.root[-1, :2] - clip.root[0, :2] + step
    periodic = clip.root[:, :2] - start[:, 2:] * whole
    angles, height, turns, sway = (
        _resampled(values) for values in (clip.angles, clip.root[:, 2:], clip.turns, periodic)
    )
    return stride_of_poses(walker, angles, np.concatenate((height, turns), axis=1), sway, whole)


def _resampled(values: Floats) -> Floats:
    """Return periodic values `(frames, columns)` at `PHASES` phases, without what changes faster than a stride can."""
    spectrum = np.fft.rfft(values, axis=0)
    kept = np.zeros((PHASES // 2 + 1, values.shape[1]), dtype=complex)
    kept[: _HARMONICS + 1] = spectrum[: _HARMONICS + 1]
    sampled: Floats = np.fft.irfft(kept, n=PHASES, axis=0) * (PHASES / len(values))
    return sampled
