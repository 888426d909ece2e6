"""A motion file as it was read: named columns of numbers, and checks that they are those of a person who walks."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import FormatError, did_you_mean
from ludus.worlds.mimic.body import SIDES, WALKER_13, kind_of
from ludus.worlds.mimic.gait import Floats

MAX_FILE_BYTES = 64 * 2**20
# 20 minutes at 80 Hz, 50 s at 2,000 Hz. Putting them onto a walker takes about 5 s; longer recordings are cut.
MAX_FRAMES = 100_000
MAX_COLUMNS = 64
ROOT_ANGLES = ("root_roll", "root_pitch", "root_yaw")
JOINTS = tuple(joint.name for joint in WALKER_13)
_UNITS: Mapping[str, float] = MappingProxyType({"deg": math.pi / 180.0, "rad": 1.0})
BLOCK = 512  # lines that are read at once; a fault among them is looked for in each
_MOST_SHOWN = 8  # faults in one message
_MOST_FAULTS = 100  # at which a file is given up

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


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds."""

    name: str  # as the file calls it
    target: str  # joint or root angle; `time` or `root_height`
    kind: Literal["angle", "velocity", "time", "height"]  # what it tells of the target
    factor: float  # of the file's numbers to rad, rad/s, m or s
    unit: str  # as the file calls it


@dataclass(frozen=True, slots=True)
class Table:
    """All numbers of a file."""

    source: Path
    columns: tuple[Column, ...]  # what is in which column
    values: Floats  # `(frames, columns)` in the units of the file
    rows: tuple[int, ...]  # where each frame is in the file
    row_name: str  # name of such a location in the file: `line` or `frame`
    rate_hz: float | None  # frames per second, if declared outside the columns

    def place(self, frame: int, column: str) -> str:
        """Return the location of a cell in the file."""
        return f"{self.row_name} {self.rows[frame]}, column {column!r}"

    def series(self, target: str, kind: str) -> Floats | None:
        """Return `(frames,)` of a target in rad, rad/s, m or s; None if the file has none."""
        for index, column in enumerate(self.columns):
            if column.target == target and column.kind == kind:
                scaled: Floats = self.values[:, index] * column.factor
                return scaled
        return None


class Faults:
    """Collects what is wrong with a file, to tell it all at once."""

    def __init__(self, source: Path) -> None:
        self._source, self._faults = source, list[str]()

    def add(self, fault: str) -> None:
        """Keep one fault; raise FormatError at once when there are many."""
        self._faults.append(fault)
        if len(self._faults) >= _MOST_FAULTS:
            self.check()

    def add_cells(self, wrong: NDArray[np.bool_], describe: Callable[[int, int], str]) -> None:
        """Keep a fault for every cell of `wrong`, `(frames, columns)`; `describe` returns it for a frame and column."""
        for cell in np.flatnonzero(wrong)[:_MOST_FAULTS].tolist():
            self.add(describe(*divmod(cell, wrong.shape[1])))

    def check(self) -> None:
        """Raise FormatError if there were any."""
        if not self._faults:
            return
        shown, more = self._faults[:_MOST_SHOWN], len(self._faults) - _MOST_SHOWN
        lines = [*shown, f"and {more} more"] if more > 0 else shown
        if len(lines) == 1:
            raise FormatError(f"motion file {self._source}: {lines[0]}")
        least = "at least " if len(self._faults) >= _MOST_FAULTS else ""
        raise FormatError("\n  ".join([f"motion file {self._source} has {least}{len(self._faults)} faults:", *lines]))


def parse_block(lines: Sequence[str], columns: int, separator: str) -> Floats | None:
    """Return the numbers of some lines, `(lines, columns)`; None if one of them is not so many finite numbers.

    Lines one by one take three times as long.
    """
    cells = [len(line.split()) if separator == " " else line.count(separator) + 1 for line in lines]
    if cells != [columns] * len(lines):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # of NumPy before 2.3 about text that is no number
            numbers: Floats = np.fromstring(separator.join(lines), dtype=np.float64, sep=separator)
    except (ValueError, DeprecationWarning):
        return None
    is_whole = numbers.size == columns * len(lines) and np.isfinite(numbers).all()
    return numbers.reshape(-1, columns) if is_whole else None


def _known_columns() -> dict[str, Column]:
    columns = [Column("time_s", "time", "time", 1.0, "s"), Column("root_height_m", "root_height", "height", 1.0, "m")]
    for target in (*JOINTS, *ROOT_ANGLES):
        for unit, factor in _UNITS.items():
            columns.append(Column(f"{target}_{unit}", target, "angle", factor, unit))
            columns.append(Column(f"{target}_vel_{unit}_s", target, "velocity", factor, f"{unit}_s"))
    return {column.name: column for column in columns}


def _stems(columns: Mapping[str, Column]) -> dict[str, list[str]]:
    """Return names without their units -> the names that they begin."""
    stems: dict[str, list[str]] = {}
    for name, column in columns.items():
        stems.setdefault(name.removesuffix(f"_{column.unit}"), []).append(name)
    return stems


_KNOWN: Mapping[str, Column] = MappingProxyType(_known_columns())
_STEMS: Mapping[str, list[str]] = MappingProxyType(_stems(_KNOWN))


def read_columns(names: Sequence[str], place: str, faults: Faults) -> tuple[Column, ...]:
    """Return the columns of these names; add a fault at `place` for each that is unknown, ambiguous or duplicated."""
    found: list[Column] = []
    for number, name in enumerate(names, start=1):
        column = _KNOWN.get(name)
        if column is None:
            faults.add(f"{place}, column {number}: {_unknown(name)}")
            continue
        twin = next((old for old in found if (old.target, old.kind) == (column.target, column.kind)), None)
        if twin is not None:
            faults.add(f"{place}, column {number}: {name!r} duplicates {twin.name!r}; keep one of them")
            continue
        found.append(column)
    return tuple(found)


def _unknown(name: str) -> str:
    """Describe what is wrong with a column's name."""
    if not name:
        return "has no name; valid names are joints with a unit, such as 'right_knee_deg'"
    stem = max((stem for stem in _STEMS if name == stem or name.startswith(f"{stem}_")), key=len, default=None)
    if stem is not None:
        unit, valid = name[len(stem) + 1 :], " or ".join(map(repr, _STEMS[stem]))
        if not unit:
            return f"{name!r} has no unit; write {valid}"
        if "_" not in unit:  # else the joint's name is wrong, as in right_hip_frontl_deg
            return f"{name!r} has the unknown unit {unit!r}; write {valid}"
    joints = ", ".join((*JOINTS, *ROOT_ANGLES))
    return (
        f"unknown column {name!r}{did_you_mean(name, _KNOWN)}; valid: time_s, root_height_m, and with _deg, _rad, "
        f"_vel_deg_s or _vel_rad_s behind it: {joints}"
    )


def check_sizes(table: Table, faults: Faults) -> None:
    """Add a fault for every number that is too large to compute with, whatever its unit."""

    def describe(frame: int, index: int) -> str:
        place = table.place(frame, table.columns[index].name)
        return f"{place}: {table.values[frame, index]:g} is not a valid angle, time or height"

    faults.add_cells(np.abs(table.values) > _LARGEST, describe)


def check_joints(table: Table, faults: Faults) -> None:
    """Add a fault unless one leg at least has its hip, knee and ankle."""
    given = {column.target for column in table.columns if column.kind == "angle"}
    lacking = {side: [f"{side}_{kind}" for kind in _LEG if f"{side}_{kind}" not in given] for side in SIDES}
    right, left = lacking.values()
    if right and left:
        said = ", ".join(left if len(left) < len(right) else right)
        faults.add(f"no leg is complete: add {said} (hip, knee and ankle of one side are required)")


def find_rate_hz(table: Table, faults: Faults) -> float:
    """Return frames per second from the time column, the declared rate or both; NaN and a fault if they disagree."""
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
        faults.add(f"{origin} gives {rate:.4g} frames per second; valid: {low:g} to {high:g} (times are in seconds)")
    return rate


def _rate_of_times(table: Table, times: Floats, faults: Faults) -> float:
    """Return frames per second; NaN and a fault if times do not increase evenly."""
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
    """Add a fault for every column whose angles have other units than its name says, or no person could have."""
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
                f"{table.place(frame, 'root_height_m')}: {heights[frame]:g} m is not a height of hips; "
                f"valid: {low:g} to {high:g} m"
            )


def _wrong_unit(column: Column, values: Floats) -> tuple[int, str] | None:
    """Return a frame and what is wrong with it, if the numbers must have another unit."""
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
    """Add a fault for every column that moves too fast, or that contradicts its column of velocities."""
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
            faults.add(f"column {column.name!r} holds velocities of {column.target}, whose angles are missing")
            continue
        turning = column.target == "root_yaw"
        fault = _disagreement(np.unwrap(angles) if turning else angles, velocities, rate_hz)
        if fault is not None:
            frame, text = fault
            faults.add(f"{table.place(frame + 1, column.name)}: {text}")
            return  # a wrong rate makes all columns wrong in the same way


def _disagreement(angles: Floats, velocities: Floats, rate_hz: float) -> tuple[int, str] | None:
    """Return where and how velocities differ from differences of the angles: `(frames,)` in rad/s and rad."""
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
