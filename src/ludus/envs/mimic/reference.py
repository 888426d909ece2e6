"""The reference motion as a table over speed and phase, made consistent with the walker by its own kinematics.

Curves give joint angles and the trunk's orientation. Everything else follows from the model: the hips are as high as
the lowest point of the feet demands, and move forward and sideways as the point that carries them stands still. So no
foot goes through the ground or slides, whatever the body's size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.mimic import gait
from ludus.envs.mimic.gait import Curves, Floats, NormalGait
from ludus.envs.mimic.joints import SIDES, kind_of
from ludus.envs.mimic.model import CONTACT_RADIUS_M, POINTS, Walker

PHASES = 128  # of a stride, in the table
_SPEEDS = 10
_AMPLITUDES = np.linspace(0.4, 1.7, 14)
_SMOOTHNESS_M = 0.004  # weight moves from one point of the feet to another over such differences of height
_HARMONICS = 8
ROOT = ("height", "roll", "pitch", "yaw")
ROOT_VELOCITY = ("vx", "vy", "vz", "wx", "wy", "wz")


class Frame(NamedTuple):
    """Where the reference is, `(games, ...)` each.

    Attributes:
        angles: `(games, joints)` in rad.
        velocities: `(games, joints)` in rad/s.
        root: `(games, 4)` height in m; roll, pitch and yaw in rad.
        root_velocity: `(games, 6)` m/s along the way, to the left and up; rad/s about the trunk's own axes.
        points: `(games, points, 3)` heel and ball of both feet, in m from the root along its own axes.
        period_s: `(games,)` time of a stride.
    """

    angles: Tensor
    velocities: Tensor
    root: Tensor
    root_velocity: Tensor
    points: Tensor
    period_s: Tensor


class Reference:
    """A motion at every speed and phase.

    Attributes:
        table: `(speeds, phases, channels)`.
        speeds: Lowest and highest speed in m/s.
    """

    def __init__(self, table: Tensor, speeds: tuple[float, float], joints: int) -> None:
        """Takes what `make_reference` made: `table` `(speeds, phases, channels)`."""
        self.table, self.speeds = table, speeds
        self._flat = table.flatten(0, 1)
        self._sizes = [joints, joints, len(ROOT), len(ROOT_VELOCITY), len(SIDES) * len(POINTS) * 3, 1]

    def at(self, speeds: Tensor, phases: Tensor) -> Frame:
        """Returns the motion at speeds `(games,)` in m/s and phases `(games,)` of a stride, in [0, 1)."""
        rows, columns, _ = self.table.shape
        low, high = self.speeds
        place = ((speeds - low) / max(high - low, 1e-9)).clamp(0.0, 1.0) * (rows - 1)
        row = place.floor().clamp(max=max(rows - 2, 0))
        column = phases * columns
        first = column.floor()
        along, across = (place - row).unsqueeze(1), (column - first).unsqueeze(1)
        start = first.long() % columns
        following = (start + 1) % columns
        base = row.long() * columns
        above = columns if rows > 1 else 0
        slower = torch.lerp(self._flat[base + start], self._flat[base + following], across)
        faster = torch.lerp(self._flat[base + above + start], self._flat[base + above + following], across)
        parts = torch.split(torch.lerp(slower, faster, along), self._sizes, dim=1)
        angles, velocities, root, root_velocity, points, period = parts
        return Frame(angles, velocities, root, root_velocity, points.reshape(len(points), -1, 3), period.squeeze(1))


@dataclass(frozen=True, slots=True)
class Stride:
    """One stride of a walker, at every phase.

    Attributes:
        angles: `(phases, joints)`.
        root: `(phases, 4)`.
        points: `(phases, points, 3)` in the root's frame.
        advance_m: `(phases, 2)` way forward and to the left for a whole stride at each phase's pace.
    """

    angles: Floats
    root: Floats
    points: Floats
    advance_m: Floats

    @property
    def length_m(self) -> float:
        """Length of the stride."""
        return float(self.advance_m[:, 0].mean())


def normal_reference(walker: Walker) -> Reference:
    """Makes the reference of the package's own gait for a walker."""
    curves = NormalGait(has_trunk=any(joint.segment == "upper" for joint in walker.joints))
    lengths = np.array([make_stride(walker, curves, amplitude).length_m for amplitude in _AMPLITUDES])
    speeds = np.linspace(*gait.SPEED_RANGE_M_S, _SPEEDS)
    rows = []
    for speed in speeds:
        period = gait.period_s(float(speed), walker.body.height_m)
        amplitude = float(np.interp(speed * period, lengths, _AMPLITUDES))
        rows.append(_row(make_stride(walker, curves, amplitude), period))
    return _reference(rows, gait.SPEED_RANGE_M_S, walker)


def make_reference(walker: Walker, curves: Curves, speed_range: tuple[float, float], speeds: int = 5) -> Reference:
    """Makes a reference of curves whose steps are always as long; other speeds are other times for the same way.

    Raises:
        ConfigError: The motion does not walk forward on this walker.
    """
    stride = make_stride(walker, curves, 1.0)
    if stride.length_m < 0.1:
        raise ConfigError(
            f"the motion moves the walker by {stride.length_m:.2f} m a stride; a gait must walk forward: check that "
            "flexion is positive and the units are right"
        )
    grid = np.linspace(*speed_range, speeds)
    return _reference([_row(stride, stride.length_m / float(speed)) for speed in grid], speed_range, walker)


def _reference(rows: Sequence[Floats], speeds: tuple[float, float], walker: Walker) -> Reference:
    return Reference(torch.as_tensor(np.stack(rows), dtype=torch.float32), speeds, len(walker.joints))


def _row(stride: Stride, period_s: float) -> Floats:
    """Returns the table's row of one speed, `(phases, channels)`."""
    velocities = _slope(stride.angles) / period_s
    turning = _slope(stride.root[:, 1:]) / period_s  # small angles: rates of roll, pitch and yaw are the trunk's own
    linear = np.concatenate((stride.advance_m / period_s, _slope(stride.root[:, :1]) / period_s), axis=1)
    period = np.full((PHASES, 1), period_s)
    parts = (stride.angles, velocities, stride.root, linear, turning, stride.points.reshape(PHASES, -1), period)
    return np.concatenate(parts, axis=1)


def make_stride(walker: Walker, curves: Curves, amplitude: float) -> Stride:
    """Makes one stride of a walker out of curves, with its root as high and as fast as the feet demand."""
    phases = np.arange(PHASES) / PHASES
    columns = []
    for joint in walker.joints:
        kind = kind_of(joint.name)
        side = joint.name.partition("_")[0]
        if side in SIDES:
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
    advance = -(weights[:, :, None] * _slope(world[:, :, :2])).sum(axis=1)
    advance = _smooth(advance)
    advance[:, 1] -= advance[:, 1].mean()
    root = np.concatenate((height[:, None], orientation), axis=1)
    return Stride(angles, root, own_frame, advance)


def _points(walker: Walker, angles: Floats, orientation: Floats) -> tuple[Floats, Floats]:
    """Returns the feet's lowest points from the root, `(phases, points, 3)`, along the world's axes and its own."""
    model = walker.model
    data = mujoco.MjData(model)
    names = [f"{side}_{point}" for side in SIDES for point in POINTS]
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
        world[phase] = lowest - (0.0, 0.0, CONTACT_RADIUS_M)
        own[phase] = data.site_xpos[sites] @ data.xmat[1].reshape(3, 3)
    return world, own


def quaternions(angles: Floats) -> Floats:
    """Returns `(..., 4)` as (w, x, y, z) of turning by yaw about z, then pitch about y, then roll about x.

    Args:
        angles: `(..., 3)` roll, pitch and yaw in rad.
    """
    (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(part(0.5 * angles), -1, 0) for part in (np.cos, np.sin))
    parts = (
        cy * cp * cr + sy * sp * sr,
        cy * cp * sr - sy * sp * cr,
        cy * sp * cr + sy * cp * sr,
        sy * cp * cr - cy * sp * sr,
    )
    return np.stack(parts, axis=-1)


def _slope(values: Floats) -> Floats:
    """Returns the change a stride of periodic values `(phases, ...)`, exact for the harmonics that they have."""
    spectrum = np.fft.rfft(values, axis=0)
    order = np.arange(len(spectrum)).reshape(-1, *(1,) * (values.ndim - 1))
    spectrum[-1] = 0.0
    return np.fft.irfft(spectrum * 2j * np.pi * order, n=len(values), axis=0)


def _smooth(values: Floats) -> Floats:
    """Keeps the mean and the lowest harmonics of periodic values `(phases, ...)`."""
    spectrum = np.fft.rfft(values, axis=0)
    spectrum[_HARMONICS + 1 :] = 0.0
    return np.fft.irfft(spectrum, n=len(values), axis=0)
