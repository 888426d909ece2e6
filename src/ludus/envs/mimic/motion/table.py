"""A motion file as it was read: named columns of numbers, what the names mean, and all that is wrong with them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from ludus.core.errors import FormatError, did_you_mean
from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.joints import WALKER_13

MAX_FILE_BYTES = 64 * 2**20
MAX_FRAMES = 240_000  # two minutes at 2,000 Hz
MAX_COLUMNS = 64
ROOT_ANGLES = ("root_roll", "root_pitch", "root_yaw")
JOINTS = tuple(joint.name for joint in WALKER_13)
_UNITS: Mapping[str, float] = MappingProxyType({"deg": math.pi / 180.0, "rad": 1.0})
_MOST_SHOWN = 8  # faults in one message


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds.

    Attributes:
        name: As the file calls it.
        target: Joint or root angle; `time` or `root_height`.
        kind: What it tells of the target.
        factor: Of the file's numbers to rad, rad/s, m or s.
        unit: As the file calls it.
    """

    name: str
    target: str
    kind: Literal["angle", "velocity", "time", "height"]
    factor: float
    unit: str


@dataclass(frozen=True, slots=True)
class Table:
    """All numbers of a file.

    Attributes:
        source: The file.
        columns: What is in which column.
        values: `(frames, columns)` in the units of the file.
        rows: Where each frame is in the file.
        row_name: What the file calls such a place: `line` or `frame`.
        rate_hz: Frames a second, if the file says so outside the columns.
    """

    source: Path
    columns: tuple[Column, ...]
    values: Floats
    rows: tuple[int, ...]
    row_name: str
    rate_hz: float | None

    def place(self, frame: int, column: str) -> str:
        """Names a cell as a reader finds it in the file."""
        return f"{self.row_name} {self.rows[frame]}, column {column!r}"

    def series(self, target: str, kind: str) -> Floats | None:
        """Returns `(frames,)` of a target in rad, rad/s, m or s; None if the file has none."""
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
        """Keeps one fault."""
        self._faults.append(fault)

    def check(self) -> None:
        """Raises FormatError if there were any."""
        if not self._faults:
            return
        shown, more = self._faults[:_MOST_SHOWN], len(self._faults) - _MOST_SHOWN
        lines = [*shown, f"and {more} more"] if more > 0 else shown
        if len(lines) == 1:
            raise FormatError(f"motion file {self._source}: {lines[0]}")
        raise FormatError("\n  ".join([f"motion file {self._source} has {len(self._faults)} faults:", *lines]))


def _known_columns() -> dict[str, Column]:
    columns = [Column("time_s", "time", "time", 1.0, "s"), Column("root_height_m", "root_height", "height", 1.0, "m")]
    for target in (*JOINTS, *ROOT_ANGLES):
        for unit, factor in _UNITS.items():
            columns.append(Column(f"{target}_{unit}", target, "angle", factor, unit))
            columns.append(Column(f"{target}_vel_{unit}_s", target, "velocity", factor, f"{unit}_s"))
    return {column.name: column for column in columns}


def _stems(columns: Mapping[str, Column]) -> dict[str, list[str]]:
    """Returns names without their units -> the names that they begin."""
    stems: dict[str, list[str]] = {}
    for name, column in columns.items():
        stems.setdefault(name.removesuffix(f"_{column.unit}"), []).append(name)
    return stems


_KNOWN: Mapping[str, Column] = MappingProxyType(_known_columns())
_STEMS: Mapping[str, list[str]] = MappingProxyType(_stems(_KNOWN))


def read_columns(names: Sequence[str], place: str, faults: Faults) -> tuple[Column, ...]:
    """Returns what the columns of these names hold; adds a fault for each one that is unknown, unclear or twice there.

    Args:
        names: Of the file's columns.
        place: Where the names stand in the file.
        faults: Where faults are kept.
    """
    found: list[Column] = []
    for number, name in enumerate(names, start=1):
        column = _KNOWN.get(name)
        if column is None:
            faults.add(f"{place}, column {number}: {_unknown(name)}")
            continue
        twin = next((old for old in found if (old.target, old.kind) == (column.target, column.kind)), None)
        if twin is not None:
            faults.add(f"{place}, column {number}: {name!r} is there twice, as {twin.name!r} before; keep one of them")
            continue
        found.append(column)
    return tuple(found)


def _unknown(name: str) -> str:
    """Says what is wrong with a column's name."""
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
