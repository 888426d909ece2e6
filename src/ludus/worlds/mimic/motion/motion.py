"""Motions of users: loads joint angles out of a CSV file, checks them and finds the mean stride in them.

The page `docs/howto/own-body.md` describes the files. Angles are those of `joints`: 0 where a person stands straight,
flexion positive, hips and the root's pitch forward.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ludus.core.errors import ConfigError, FormatError
from ludus.store.documents import open_untrusted
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.motion import table as tables
from ludus.worlds.mimic.motion.files import read_csv
from ludus.worlds.mimic.motion.strides import MeanStride, average_strides

ROOT_HEIGHT = "root_height"
_LONGEST_S = 1_200.0  # up to 2,400 strides, of which each takes 1 ms to find and average


@dataclass(frozen=True, slots=True)
class Motion:
    """Someone's walking."""

    source: Path  # file it came from, or a word for one that was made
    joints: tuple[str, ...]  # names, such as `right_knee`
    angles: Floats  # `(frames, joints)` in rad
    # `root_roll`, `root_pitch`, `root_yaw` in rad and `root_height` in m, `(frames,)` each, where given.
    root: Mapping[str, Floats]
    rate_hz: float  # frames per second
    rows: tuple[int, ...]  # where each frame is in the file
    row_name: str  # name of such a location in the file: `line` or `frame`
    stride: MeanStride  # the mean stride of joints and root
    notes: tuple[str, ...]  # what a user should know about how the file was understood

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.angles)


def load_motion(path: Path | str) -> Motion:
    """Load a motion out of a `.csv` file.

    Raises ConfigError if there is no such file, and FormatError, with all faults by column and row, if it cannot be
    used.
    """
    file = Path(path)
    if file.suffix.lower() != ".csv":
        raise ConfigError(
            f"motion file {file} ends with {file.suffix or 'nothing'}; valid: .csv, which "
            "`ludus mimic motion import` makes of a recording"
        )
    return motion_of_table(read_csv(file, read_content(file)))


def read_content(file: Path) -> bytes:
    """Return the content of a regular file of limited size; raise ConfigError if there is none."""
    try:
        with open_untrusted(file) as reader:
            reader.check_limit(tables.MAX_FILE_BYTES)
            return reader.read(reader.size)
    except FormatError as error:
        is_sought_here = not (file.is_absolute() or os.path.lexists(file))
        hint = "; the path is relative to the folder in which ludus was started" if is_sought_here else ""
        raise ConfigError(f"motion file {file} {error}{hint}") from error
    except ValueError as error:  # a path with a null character
        raise ConfigError(f"motion file {str(file)!r} cannot be read: {error}") from error


def motion_of_table(table: tables.Table) -> Motion:
    """Check what was read and find the strides in it; raise FormatError if it cannot be used."""
    faults = tables.Faults(table.source)
    if len(table.values) < 2:
        raise FormatError(f"motion file {table.source} is too short: it has {len(table.values)} frames, not a stride")
    tables.check_sizes(table, faults)
    faults.check()
    tables.check_joints(table, faults)
    tables.check_angles(table, faults)
    rate_hz = tables.find_rate_hz(table, faults)
    faults.check()
    if len(table.values) > _LONGEST_S * rate_hz:
        raise FormatError(
            f"motion file {table.source} lasts {len(table.values) / rate_hz:.0f} s; at most {_LONGEST_S:g} s are read: "
            "cut it, since some minutes of walking are enough"
        )
    tables.check_speeds(table, rate_hz, faults)
    faults.check()
    found = {name: series for name in tables.JOINTS if (series := table.series(name, "angle")) is not None}
    joints, angles = tuple(found), np.stack(list(found.values()), axis=1)
    root = {name: series for name in tables.ROOT_ANGLES if (series := table.series(name, "angle")) is not None}
    if "root_yaw" in root:
        root["root_yaw"] = _deviation(root["root_yaw"])
    heights = table.series(ROOT_HEIGHT, "height")
    root |= {} if heights is None else {ROOT_HEIGHT: heights}
    values = np.concatenate((angles, *(column[:, None] for column in root.values())), axis=1)
    stride = average_strides(table.source, (*joints, *root), values, rate_hz)
    notes = (*_missing(joints, root), *_stride_notes(stride))
    return Motion(
        table.source, joints, angles, MappingProxyType(root), rate_hz, table.rows, table.row_name, stride, notes
    )


def _deviation(yaw: Floats) -> Floats:
    """Return how far the root is turned from the mean direction, which is where the motion goes."""
    unwrapped = np.unwrap(yaw)
    deviation: Floats = unwrapped - unwrapped.mean()
    return deviation


def _missing(joints: Sequence[str], root: Mapping[str, Floats]) -> list[str]:
    """List what is not in the file and what replaces it."""
    notes = []
    for kind in ("hip", "knee", "ankle", "hip_frontal", "hip_rotation"):
        absent = [f"{side}_{kind}" for side in SIDES if f"{side}_{kind}" not in joints]
        if len(absent) == 1:
            other = next(name for name in joints if name in (f"{side}_{kind}" for side in SIDES))
            notes.append(f"{absent[0]} is not in the file: {other} half a stride later")
        elif absent:
            only = " (walker-13 alone has it)" if kind == "hip_rotation" else ""
            notes.append(f"{kind} is not in the file: that of the normal gait{only}")
    absent = [name for name in tables.JOINTS if name.startswith("trunk_") and name not in joints]
    if absent:
        notes.append(f"{', '.join(absent)} not in the file: those of the normal gait (walker-13 alone has them)")
    absent = [name for name in ("root_roll", "root_yaw") if name not in root]
    if absent:
        notes.append(f"{', '.join(absent)} not in the file: those of the normal gait")
    if "root_pitch" not in root:
        notes.append("root_pitch is not in the file: the root stays upright")
    if ROOT_HEIGHT in root:
        notes.append("root_height is a check alone: the reference is as high as its feet on the ground demand")
    return notes


def _stride_notes(stride: MeanStride) -> list[str]:
    notes = []
    if stride.count == 1:
        notes.append("there is one whole stride, so nothing is known about the spread")
    if stride.left_out:
        notes.append(f"{stride.left_out} of {stride.count + stride.left_out} strides are unlike the others: left out")
    return notes
