"""Checks of a motion's numbers: units, rate, ranges and speeds must be those of a person who walks."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.joints import SIDES, WALKER_13, kind_of
from ludus.envs.mimic.motion.table import ROOT_ANGLES, Column, Faults, Table

RATE_RANGE_HZ = (20.0, 2000.0)
_LARGEST = 1e12  # seconds since 1970 are well below
_HEIGHT_RANGE_M = (0.3, 1.5)
_LEG = ("hip", "knee", "ankle")
_BEYOND_DEG = 15.0  # by which markers on skin may leave an anatomical range
_LARGEST_RAD = 4.0
_SMALLEST_DEG = 3.0  # hips and knees of walking people move through ten times as much
_FASTEST_RAD_S = 25.0  # a sprinter's knee reaches about 20, a walker's 7
_UNEVEN = 0.3  # of a step of time; two digits fewer than needed still pass
_RATES_AGREE = 0.01
_RATE_TOLERANCE = 0.05  # of finite differences against velocities, as a rate
_VELOCITY_RMS = 0.25  # and as what is left between them, of the velocities' own size
_VELOCITY_PEAK = 0.5  # largest difference in one row, of the highest speed
_RANGES_DEG: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **{joint.name: joint.range_deg for joint in WALKER_13},
        **dict(zip(ROOT_ANGLES, ((-30.0, 30.0), (-30.0, 45.0), (-360.0, 360.0)), strict=True)),
    }
)


def check_sizes(table: Table, faults: Faults) -> None:
    """Adds a fault for every number that is too large to compute with, whatever its unit."""
    for frame, index in np.argwhere(np.abs(table.values) > _LARGEST).tolist():
        value = table.values[frame, index]
        faults.add(f"{table.place(frame, table.columns[index].name)}: {value:g} is no angle, time or height")


def check_joints(table: Table, faults: Faults) -> None:
    """Adds a fault unless one leg at least has its hip, knee and ankle."""
    given = {column.target for column in table.columns if column.kind == "angle"}
    lacking = {side: [f"{side}_{kind}" for kind in _LEG if f"{side}_{kind}" not in given] for side in SIDES}
    right, left = lacking.values()
    if right and left:
        said = ", ".join(left if len(left) < len(right) else right)
        faults.add(f"no leg is whole: add {said} (hip, knee and ankle of one side are the least that is needed)")


def find_rate_hz(table: Table, faults: Faults) -> float:
    """Returns frames a second from the column of times, the file's own word or both; NaN and a fault if unclear."""
    times, rate = table.series("time", "time"), table.rate_hz
    origin = "rate_hz"
    if times is not None:
        measured, origin = _rate_of_times(table, times, faults), "column 'time_s'"
        if rate is not None and abs(measured - rate) > _RATES_AGREE * measured:
            faults.add(f"column 'time_s' runs at {measured:.4g} Hz, but rate_hz is {rate:g}; remove the wrong one")
            return math.nan
        rate = measured
    if rate is None:
        faults.add("the rate is missing: add a column time_s, or a line '# rate_hz: 100' before the header")
        return math.nan
    low, high = RATE_RANGE_HZ
    if rate < low or rate > high:
        faults.add(f"{origin} gives {rate:.4g} frames a second; valid: {low:g} to {high:g} (times are in seconds)")
    return rate


def _rate_of_times(table: Table, times: Floats, faults: Faults) -> float:
    """Returns frames a second; NaN and a fault if the times of two or more frames do not increase evenly."""
    steps = np.diff(times)
    backward = np.flatnonzero(steps <= 0.0)
    if len(backward):
        frame = int(backward[0]) + 1
        faults.add(f"{table.place(frame, 'time_s')}: {times[frame]:g} s comes after {times[frame - 1]:g} s")
        return math.nan
    usual = float(np.median(steps))
    uneven = np.flatnonzero(np.abs(steps - usual) > _UNEVEN * usual)
    if len(uneven):
        frame = int(uneven[0]) + 1
        faults.add(
            f"{table.place(frame, 'time_s')}: {steps[frame - 1]:.4g} s after the frame before, but frames are usually "
            f"{usual:.4g} s apart; resample the motion evenly"
        )
        return math.nan
    return (len(times) - 1) / float(times[-1] - times[0])


def check_angles(table: Table, faults: Faults) -> None:
    """Adds a fault for every column whose angles have other units than its name says, or no person could have."""
    for index, column in enumerate(table.columns):
        if column.kind == "angle":
            fault = _wrong_unit(column, table.values[:, index]) or _out_of_range(column, table.values[:, index])
            if fault is not None:
                frame, text = fault
                faults.add(f"{table.place(frame, column.name)}: {text}")
    heights = table.series("root_height", "height")
    if heights is not None:
        low, high = _HEIGHT_RANGE_M
        wrong = np.flatnonzero((heights < low) | (heights > high))
        if len(wrong):
            frame = int(wrong[0])
            faults.add(
                f"{table.place(frame, 'root_height_m')}: {heights[frame]:g} m is no height of hips; valid: {low:g} to "
                f"{high:g} m"
            )


def _wrong_unit(column: Column, values: Floats) -> tuple[int, str] | None:
    """Returns a frame and what is wrong with it, if the numbers must have another unit."""
    largest = int(np.abs(values).argmax())
    if column.unit == "rad" and abs(values[largest]) > _LARGEST_RAD:
        return largest, f"{values[largest]:g} rad is {math.degrees(values[largest]):.0f} deg; is the column in degrees?"
    span = float(np.ptp(values))
    if column.unit == "deg" and kind_of(column.target) in ("hip", "knee") and span < _SMALLEST_DEG:
        return largest, f"all angles lie within {span:.2g} deg; is the column in radians?"
    return None


def _out_of_range(column: Column, values: Floats) -> tuple[int, str] | None:
    degrees = np.rad2deg(values * column.factor)
    low, high = _RANGES_DEG[column.target]
    beyond = np.maximum(low - degrees, degrees - high)
    frame = int(beyond.argmax())
    if beyond[frame] <= _BEYOND_DEG:
        return None
    return frame, (
        f"{degrees[frame]:.1f} deg is beyond what a {column.target} can do, {low:g} to {high:g} deg; is flexion "
        "positive, and 0 a straight joint?"
    )


def check_speeds(table: Table, rate_hz: float, faults: Faults) -> None:
    """Adds a fault for every column that moves too fast, or otherwise than its column of velocities says."""
    for column in table.columns:
        angles = table.series(column.target, "angle") if column.kind == "angle" else None
        if angles is None or len(angles) < 2:
            continue
        turning = column.target == "root_yaw"  # 179 and -179 degrees are near each other
        speeds = np.abs(np.diff(np.unwrap(angles) if turning else angles)) * rate_hz
        frame = int(speeds.argmax())
        if speeds[frame] > _FASTEST_RAD_S:
            faults.add(
                f"{table.place(frame + 1, column.name)}: moves at {speeds[frame]:.0f} rad/s, people at less than "
                f"{_FASTEST_RAD_S:g}; was it sampled at another rate than {rate_hz:.4g} Hz, or does it jump?"
            )
    _check_velocities(table, rate_hz, faults)


def _check_velocities(table: Table, rate_hz: float, faults: Faults) -> None:
    for column in table.columns:
        if column.kind != "velocity":
            continue
        angles, velocities = table.series(column.target, "angle"), table.series(column.target, "velocity")
        if angles is None or velocities is None:
            faults.add(f"column {column.name!r} tells velocities of {column.target}, whose angles are missing")
            continue
        turning = column.target == "root_yaw"
        fault = _disagreement(np.unwrap(angles) if turning else angles, velocities, rate_hz)
        if fault is not None:
            frame, text = fault
            faults.add(f"{table.place(frame + 1, column.name)}: {text}")
            return  # a wrong rate makes all columns wrong in the same way


def _disagreement(angles: Floats, velocities: Floats, rate_hz: float) -> tuple[int, str] | None:
    """Returns where and how velocities differ from differences of the angles: `(frames,)` in rad/s and rad."""
    if len(angles) < 3:
        return None
    between = (velocities[:-2] + 4.0 * velocities[1:-1] + velocities[2:]) / 6.0  # Simpson's rule: good at low rates too
    steps = 0.5 * (angles[2:] - angles[:-2])
    size, common = float(np.sqrt(np.mean(between**2))), float(np.mean(between * steps))
    difference = steps * rate_hz - between
    frame = int(np.abs(difference).argmax())
    if size < 0.1 and np.abs(difference).max() < 0.5:
        return None  # both stand still
    fitting_hz = size**2 / common if common > 0.0 else math.inf
    left = float(np.sqrt(np.mean((steps * fitting_hz - between) ** 2))) / size if math.isfinite(fitting_hz) else 1.0
    given, implied = velocities[frame + 1], steps[frame] * rate_hz
    said = f"is {given:.3g} rad/s, but the angles move at {implied:.3g} rad/s"
    if left < _VELOCITY_RMS:
        if abs(fitting_hz / rate_hz - 1.0) > _RATE_TOLERANCE:
            return frame, f"{said} if read at {rate_hz:.4g} Hz; a rate of {fitting_hz:.4g} Hz would fit"
        if np.abs(difference).max() <= _VELOCITY_PEAK * np.abs(velocities).max():
            return None
    return frame, f"{said}; velocities must be those of the angles"
