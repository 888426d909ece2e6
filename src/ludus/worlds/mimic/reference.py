"""The reference motion as a table over speed and phase, made consistent with the walker, and the starts of episodes.

Curves give joint angles and the trunk's orientation. Everything else follows from the model: the hips are as high as
the lowest point of the feet demands, and they move so that the point that carries them stands still. So no foot goes
through the ground or slides, whatever the body's size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.core.random import uniform
from ludus.worlds.mimic import gait
from ludus.worlds.mimic.body import SIDES, kind_of
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Curves, Floats, NormalGait
from ludus.worlds.mimic.model import POINTS, Walker

PHASES = 128  # of a stride, in the table
STAIR_STEPS = 60  # of a stair; in 15 s walkers climb 30
_FIRST_STEP = 4  # on which the right foot comes down at phase 0 of the first stride; there are some behind it
_SPEEDS = 10
_FOOT_AT = 0.41  # of a step, where the middle of a foot is: so a swinging foot does not touch the edge of the next one
_AMPLITUDES = np.linspace(0.4, 1.7, 14)
_SMOOTHNESS_M = 0.004  # weight moves from one point of the feet to another over such differences of height
_HARMONICS = 8
ROOT = ("height", "roll", "pitch", "yaw")
ROOT_VELOCITY = ("vx", "vy", "vz", "wx", "wy", "wz")


class Stream(IntEnum):
    """The first numbers of random streams; each has room for as many as it needs."""

    START = 0
    NOISE = 16
    COMMAND = 64
    PUSH = 80


STREAMS = 5  # random numbers that `draw_starts` needs
# `starts: fixed`: 20 speeds, evenly over the range, in an order in which the first few cover it too. Phases of a step
# are multiples of the golden ratio, which never repeat and are evenly spread however many there are. Steps alternate
# between right and left, and since no phase comes twice no walk is the mirror image of another.
FIXED_SPEEDS, SPEED_STRIDE = 20, 7
FIRST_PHASE = 0.75  # of a step
GOLDEN_RATIO = 0.5 * (5.0**0.5 - 1.0)
NOISE_SPAN = 3.0**0.5  # even noise of this half width has deviation 1
TRANSITION_S = 0.8  # over which one motion goes over into another
VELOCITY_NOISE = 10.0  # rad/s of noise for every rad of it


class Frame(NamedTuple):
    """Where the reference is, `(games, ...)` each."""

    angles: Tensor  # `(games, joints)` in rad
    velocities: Tensor  # `(games, joints)` in rad/s
    root: Tensor  # `(games, 4)` height in m; roll, pitch and yaw in rad
    root_velocity: Tensor  # `(games, 6)` m/s along the way, to the left and up; rad/s about the trunk's own axes
    points: Tensor  # `(games, points, 3)` heel and ball of both feet, in m from the root along its own axes
    period_s: Tensor  # `(games,)` time of a stride


@dataclass(frozen=True, slots=True)
class Part:
    """One of the motions of a reference: its rows of the table, the speeds of the first and the last, and its way."""

    name: str
    first: int
    rows: int
    speeds: tuple[float, float]
    way_rad: float = 0.0  # direction that it goes in, from ahead to the left
    turn_rad_s: float = 0.0  # by which that direction turns to the left


@dataclass(frozen=True, slots=True)
class Stairs:
    """Stairs under a motion that climbs them, along x; they rise by a step for every step of the walker.

    Heights of hips are taken from a line that rises as the stairs do, so that they are the same in every stride.
    """

    depth_m: float  # of a step
    height_m: float  # of a step
    first_m: float  # x of the edge of step 0, whose top is one step over the ground
    start_m: float  # x of the hips at phase 0 of the stride in which episodes start
    line_m: float  # height of the line at that place
    way_m: tuple[float, ...]  # of the hips from there, at each of `PHASES` phases

    @property
    def slope(self) -> float:
        """By how much the line rises per m."""
        return self.height_m / self.depth_m

    @property
    def stride_m(self) -> float:
        """Way of a stride, of two steps."""
        return 2.0 * self.depth_m

    def line(self, x: Tensor) -> Tensor:
        """Return the height of the line at some places, m."""
        return self.line_m + self.slope * (x - self.start_m)

    def ground(self, x: Tensor) -> Tensor:
        """Return the height of the ground at some places, m."""
        number = ((x - self.first_m) / self.depth_m).floor() + 1.0
        return self.height_m * number.clamp(0.0, float(STAIR_STEPS))

    def place(self, phases: Tensor) -> Tensor:
        """Return where the hips are in the first stride at phases `(games,)`, m."""
        column = phases * PHASES
        first = column.floor()
        way = torch.tensor([*self.way_m, self.stride_m])
        start = first.long().clamp(max=PHASES - 1)
        return self.start_m + torch.lerp(way[start], way[start + 1], column - first)

    def lag(self, x: Tensor, phases: Tensor) -> Tensor:
        """Return by how much hips at `x` are ahead of the reference, m; by less than a step, as strides are alike."""
        off = x - self.place(phases)
        return off - self.stride_m * (off / self.stride_m).round()


class Reference:
    """Motions at every speed and phase.

    Attributes:
        table: `(rows, phases, channels)`; a row is one speed of one motion.
        speeds: Lowest and highest speed of all, m/s.
        parts: The motions, one after the other in the table.
        joints: How many joints have angles in it.
        stairs: Stairs that it climbs; None on level ground.
    """

    def __init__(
        self,
        table: Tensor,
        speeds: tuple[float, float],
        joints: int,
        parts: Sequence[Part] = (),
        stairs: Stairs | None = None,
    ) -> None:
        """Wrap a table `(rows, phases, channels)`, of one motion that goes ahead unless there are `parts`."""
        self.table, self.speeds, self.stairs = table, speeds, stairs
        self.parts = tuple(parts) or (Part("", 0, len(table), speeds),)
        self.joints = joints
        self._flat = table.flatten(0, 1)
        self._sizes = [joints, joints, len(ROOT), len(ROOT_VELOCITY), len(SIDES) * len(POINTS) * 3, 1]
        self._low = torch.tensor([part.speeds[0] for part in self.parts])
        self._span = torch.tensor([max(part.speeds[1] - part.speeds[0], 1e-9) for part in self.parts])
        self._first, self._count = (
            torch.tensor([getattr(part, name) for part in self.parts]) for name in ("first", "rows")
        )

    @staticmethod
    def join(references: Sequence["Reference"], names: Sequence[str]) -> "Reference":
        """Return one reference with the motions of several, under these names."""
        parts, first = [], 0
        for reference, name in zip(references, names, strict=True):
            parts.append(replace(reference.parts[0], name=name, first=first))
            first += parts[-1].rows
        speeds = (min(part.speeds[0] for part in parts), max(part.speeds[1] for part in parts))
        return Reference(torch.cat([each.table for each in references]), speeds, references[0].joints, parts)

    def at(self, speeds: Tensor, phases: Tensor, motions: Tensor | None = None) -> Frame:
        """Return the motion at speeds `(games,)` in m/s and phases `(games,)` of a stride, in [0, 1).

        `motions` `(games,)` says which of `parts` each plays; the first one without it.
        """
        return self.split(self.rows(speeds, phases, motions))

    def rows(self, speeds: Tensor, phases: Tensor, motions: Tensor | None = None) -> Tensor:
        """Return the interpolated rows of the table, `(games, channels)`; see `at`."""
        columns = self.table.shape[1]
        played = torch.zeros_like(phases, dtype=torch.long) if motions is None else motions.long()
        rows = self._count[played]
        place = ((speeds - self._low[played]) / self._span[played]).clamp(0.0, 1.0) * (rows - 1)
        row = torch.minimum(place.floor(), (rows - 2).clamp(min=0))
        column = phases * columns
        first = column.floor()
        along, across = (place - row).unsqueeze(1), (column - first).unsqueeze(1)
        start = first.long() % columns
        following = (start + 1) % columns
        base = (self._first[played] + row.long()) * columns
        above = columns * (rows > 1).long()
        slower = torch.lerp(self._flat[base + start], self._flat[base + following], across)
        faster = torch.lerp(self._flat[base + above + start], self._flat[base + above + following], across)
        return torch.lerp(slower, faster, along)

    def split(self, rows: Tensor) -> Frame:
        """Return rows of the table as a frame, whose tensors share their memory."""
        angles, velocities, root, root_velocity, points, period = torch.split(rows, self._sizes, dim=1)
        return Frame(angles, velocities, root, root_velocity, points.view(len(points), -1, 3), period.squeeze(1))


@dataclass(frozen=True, slots=True)
class Stride:
    """One stride of a walker, at every phase."""

    angles: Floats  # `(phases, joints)`
    root: Floats  # `(phases, 4)`
    points: Floats  # `(phases, points, 3)` in the root's frame
    advance_m: Floats  # `(phases, 2)` way forward and to the left for a whole stride at each phase's pace

    @property
    def length_m(self) -> float:
        """Length of the stride."""
        return float(self.advance_m[:, 0].mean())


def normal_reference(walker: Walker) -> Reference:
    """Return the reference of the package's own gait for a walker, made once per body: it takes half a second."""
    if walker.text not in _NORMAL_REFERENCES:
        _NORMAL_REFERENCES[walker.text] = _make_normal_reference(walker)
    return _NORMAL_REFERENCES[walker.text]


_NORMAL_REFERENCES: dict[str, Reference] = {}


def _make_normal_reference(walker: Walker) -> Reference:
    curves = NormalGait(has_trunk=any(joint.segment == "upper" for joint in walker.joints))
    lengths = np.array([make_stride(walker, curves, amplitude).length_m for amplitude in _AMPLITUDES])
    _check_length(float(lengths.max()))
    # Built-in bodies walk as people of their height do. Others walk dynamically similar to a person: at equal Froude
    # numbers v^2 / (g l), so that speeds and periods go with the root of the legs' length l.
    ratio = 1.0 if walker.body is not None else walker.hip_height_m / gait.NORMAL_HIP_HEIGHT_M
    low, high = gait.SPEED_RANGE_M_S
    speeds = (low * ratio**0.5, high * ratio**0.5)
    height = walker.height_m if walker.body is not None else gait.NORMAL_HEIGHT_M
    rows = []
    for speed in np.linspace(*speeds, _SPEEDS):
        period = ratio**0.5 * gait.period_s(float(speed) / ratio**0.5, height)
        amplitude = float(np.interp(speed * period, lengths, _AMPLITUDES))
        rows.append(_row(make_stride(walker, curves, amplitude), period))
    return _reference(rows, speeds, walker)


def make_reference(walker: Walker, curves: Curves, speed_range: tuple[float, float], speeds: int = 5) -> Reference:
    """Make a reference from curves of constant stride length; other speeds change the period of the stride.

    Raises ConfigError if the motion does not walk forward on this walker.
    """
    stride = make_stride(walker, curves, 1.0)
    _check_length(stride.length_m)
    grid = np.linspace(*speed_range, speeds)
    return _reference([_row(stride, stride.length_m / float(speed)) for speed in grid], speed_range, walker)


def reference_of_strides(
    walker: Walker,
    strides: Sequence[Stride],
    periods_s: Sequence[float],
    speeds: tuple[float, float],
    *,
    way_rad: float = 0.0,
    turn_rad_s: float = 0.0,
    stairs: Stairs | None = None,
) -> Reference:
    """Make a reference from a stride for each of several speeds, which are evenly apart, and how long each takes.

    `way_rad` is the direction that it goes in, and `turn_rad_s` how fast that turns; strides are seen from it. On
    `stairs` the heights of the strides are those over the line.
    """
    rise = 0.0 if stairs is None else stairs.slope
    rows = [_row(stride, period_s, turn_rad_s, rise) for stride, period_s in zip(strides, periods_s, strict=True)]
    part = Part("", 0, len(rows), speeds, way_rad, turn_rad_s)
    return _reference(rows, speeds, walker, part, stairs)


def stairs_of(walker: Walker, stride: Stride, depth_m: float, height_m: float) -> Stairs:
    """Return the stairs on whose steps the feet of a stride come down, each a little behind the middle of a step.

    The right foot is flat on its step at phase 0, and the left one is on the step below.
    """
    world, _ = _points(walker, stride.angles[:1], stride.root[:1, 1:])
    middle = float(world[0, : len(POINTS), 0].mean())  # of the right foot, from the hips
    way = np.concatenate((np.zeros(1), stride.advance_m[:-1, 0].cumsum())) / PHASES
    first_m = middle - (_FIRST_STEP + _FOOT_AT) * depth_m
    return Stairs(depth_m, height_m, first_m, 0.0, _FIRST_STEP * height_m, tuple(way.tolist()))


def stride_of_poses(walker: Walker, angles: Floats, root: Floats, sway: Floats, way_m: Floats) -> Stride:
    """Make a stride whose hips are placed already, as those of a motion with a flight phase are.

    Args:
        walker: Whose stride it is.
        angles: `(phases, joints)`.
        root: `(phases, 4)`, see `ROOT`.
        sway: `(phases, 2)` place of the hips, forward and to the left, without the way of the stride.
        way_m: `(2,)` of the whole stride.
    """
    return stride_of_advance(walker, angles, root, slope(sway) + way_m)


def stride_of_advance(walker: Walker, angles: Floats, root: Floats, advance_m: Floats) -> Stride:
    """Make a stride whose hips are placed already from `advance_m` `(phases, 2)`; see `Stride`."""
    _, own_frame = _points(walker, angles, root[:, 1:])
    return Stride(angles, root, own_frame, advance_m)


def _check_length(length_m: float) -> None:
    if length_m < 0.1:
        raise ConfigError(
            f"the motion moves the walker by {length_m:.2f} m per stride; a gait must walk forward: check that "
            "flexion is positive and the units are right"
        )


def _reference(
    rows: Sequence[Floats],
    speeds: tuple[float, float],
    walker: Walker,
    part: Part | None = None,
    stairs: Stairs | None = None,
) -> Reference:
    table = torch.as_tensor(np.stack(rows), dtype=torch.float32)
    return Reference(table, speeds, len(walker.joints), () if part is None else (part,), stairs)


def _row(stride: Stride, period_s: float, turn_rad_s: float = 0.0, rise: float = 0.0) -> Floats:
    """Return the table's row of one speed, `(phases, channels)`, on ground that rises by `rise` per m."""
    velocities = slope(stride.angles) / period_s
    turning = slope(stride.root[:, 1:]) / period_s  # small angles: rates of roll, pitch and yaw are the trunk's own
    turning[:, 2] += turn_rad_s
    up = slope(stride.root[:, :1]) + rise * stride.advance_m[:, :1]
    linear = np.concatenate((stride.advance_m / period_s, up / period_s), axis=1)
    period = np.full((PHASES, 1), period_s)
    parts = (stride.angles, velocities, stride.root, linear, turning, stride.points.reshape(PHASES, -1), period)
    return np.concatenate(parts, axis=1)


def make_stride(walker: Walker, curves: Curves, amplitude: float) -> Stride:
    """Make one stride of a walker out of curves, with its root as high and as fast as the feet demand."""
    phases = np.arange(PHASES) / PHASES
    columns = []
    for joint in walker.joints:
        kind = kind_of(joint.name)
        side = joint.name.partition("_")[0]
        if joint.is_held:
            columns.append(np.zeros_like(phases))
        elif side in SIDES:
            columns.append(curves.joint(kind, side, phases, amplitude))
        else:
            columns.append(curves.trunk(kind, phases))
    angles = np.stack(columns, axis=1)
    orientation = np.stack([curves.trunk(name, phases) for name in ("roll", "pitch", "yaw")], axis=1)
    world, own_frame = _points(walker, angles, orientation)
    height = _smooth(-world[:, :, 2].min(axis=1))
    height += max(0.0, float((-world[:, :, 2].min(axis=1) - height).max()))
    # The lowest point carries the walker: its weight is the softest of choices between points nearly as low.
    weights = np.exp(-(world[:, :, 2] - world[:, :, 2].min(axis=1, keepdims=True)) / _SMOOTHNESS_M)
    weights /= weights.sum(axis=1, keepdims=True)
    advance = -(weights[:, :, None] * slope(world[:, :, :2])).sum(axis=1)
    advance = _smooth(advance)
    advance[:, 1] -= advance[:, 1].mean()
    root = np.concatenate((height[:, None], orientation), axis=1)
    return Stride(angles, root, own_frame, advance)


def _points(walker: Walker, angles: Floats, orientation: Floats) -> tuple[Floats, Floats]:
    """Return the feet's lowest points from the root, `(phases, points, 3)`, along the world's axes and its own."""
    model = walker.model
    data = mujoco.MjData(model)
    names = [f"{walker.mark}{side}_{point}" for side in SIDES for point in POINTS]
    spheres = [[model.geom(f"{name}_{index}").id for index in range(2)] for name in names]
    sites = [model.site(name).id for name in names]
    world, own = np.empty((len(angles), len(names), 3)), np.empty((len(angles), len(names), 3))
    for phase, (pose, turned) in enumerate(zip(angles, quaternions(orientation), strict=True)):
        data.qpos[:3] = 0.0
        data.qpos[3:7] = turned
        data.qpos[7:] = pose
        mujoco.mj_kinematics(model, data)
        centres = data.geom_xpos[spheres].copy()
        lowest = centres[np.arange(len(names)), centres[:, :, 2].argmin(axis=1)]
        world[phase] = lowest - (0.0, 0.0, walker.contact_radius_m)
        own[phase] = data.site_xpos[sites] @ data.xmat[1].reshape(3, 3)
    return world, own


def quaternions(angles: Floats) -> Floats:
    """Return (w, x, y, z) of turning by yaw about z, then pitch, then roll, given as roll, pitch and yaw in rad."""
    (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(part(0.5 * angles), -1, 0) for part in (np.cos, np.sin))
    parts = (
        cy * cp * cr + sy * sp * sr,
        cy * cp * sr - sy * sp * cr,
        cy * sp * cr + sy * cp * sr,
        sy * cp * cr - cy * sp * sr,
    )
    return np.stack(parts, axis=-1)


def slope(values: Floats) -> Floats:
    """Return the derivative per stride of periodic values `(phases, ...)`, exact for their harmonics."""
    spectrum = np.fft.rfft(values, axis=0)
    order = np.arange(len(spectrum)).reshape(-1, *(1,) * (values.ndim - 1))
    spectrum[-1] = 0.0
    return np.fft.irfft(spectrum * 2j * np.pi * order, n=len(values), axis=0)


def _smooth(values: Floats) -> Floats:
    """Keep the mean and the lowest harmonics of periodic values `(phases, ...)`."""
    spectrum = np.fft.rfft(values, axis=0)
    spectrum[_HARMONICS + 1 :] = 0.0
    return np.fft.irfft(spectrum, n=len(values), axis=0)


def draw_motions(config: MimicConfig, parts: Sequence[Part], games: Tensor, hashes: Tensor) -> Tensor:
    """Return the motions `(games,)` to begin with, numbers of `parts`; see `draw_starts`."""
    if config.command is not None:
        return torch.full_like(games, [part.name for part in parts].index(config.command))
    if config.starts == "fixed":
        return games % len(parts)
    return (uniform(hashes[:, 4]) * len(parts)).long()


def draw_starts(
    config: MimicConfig, games: Tensor, hashes: Tensor, speed_range: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return phases of a stride and speeds `(games,)` to begin at, from the lowest to the highest of each game.

    Fixed starts follow from the index of each game, random ones from `hashes` `(games, STREAMS)`.
    """
    low, high = speed_range
    random = uniform(hashes)
    if config.starts == "fixed":
        phases = 0.5 * (games % 2) + 0.5 * ((FIRST_PHASE + GOLDEN_RATIO * games.double()) % 1.0)
        speeds = low + (high - low) * (SPEED_STRIDE * games % FIXED_SPEEDS) / (FIXED_SPEEDS - 1)
    else:
        phases, speeds = random[:, 0], low + (high - low) * random[:, 1]
    return phases.float(), speeds.float()


def first_states(frame: Frame, noise: Tensor, deviation: float) -> tuple[Floats, Floats]:
    """Return positions `(games, 7 + joints)` and velocities `(games, 6 + joints)` of walkers on the reference.

    `noise` has `(games, 2 * joints)` even numbers in [0, 1); `deviation` is that of joint angles in rad.
    """
    games, joints = frame.angles.shape
    spread = ((2.0 * NOISE_SPAN * deviation) * (noise - 0.5)).double().numpy()
    root = frame.root.double().numpy()
    positions, velocities = np.zeros((games, 7 + joints)), np.zeros((games, 6 + joints))
    positions[:, 2] = root[:, 0]
    positions[:, 3:7] = quaternions(root[:, 1:])
    positions[:, 7:] = frame.angles.numpy() + spread[:, :joints]
    velocities[:, :6] = frame.root_velocity.numpy()
    velocities[:, 6:] = frame.velocities.numpy() + VELOCITY_NOISE * spread[:, joints:]
    return positions, velocities
