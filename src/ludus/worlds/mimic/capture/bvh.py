"""Read BVH files: a hierarchy of joints with offsets and channels, then one line of numbers per frame.

Everything that is counted in the file is checked against limits, and against the file's size, before memory is spent.
"""

import io
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from ludus.core.errors import FormatError
from ludus.worlds.mimic.capture.skeleton import MAX_JOINTS, MAX_NUMBERS, Capture, turns_about
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.motion.table import BLOCK, MAX_FRAMES, Faults, parse_block

_MAX_LINE_BYTES = 200_000  # 400 joints of six channels with up to 80 characters each
_MAX_HIERARCHY_LINES = 12 * MAX_JOINTS
_MAX_HIERARCHY_WORDS = 50 * MAX_JOINTS  # a joint with six channels has 16
_MAX_LINES = 2 * MAX_FRAMES + _MAX_HIERARCHY_LINES  # frames, and as many blank lines
_MAX_DEPTH = 100
_LONGEST_NAME = 100
_CHANNELS = tuple(f"{axis}{kind}" for kind in ("position", "rotation") for axis in "XYZ")
_LARGEST = 1e9
_RATE_RANGE_HZ = (1.0, 2000.0)


class _Joint:
    """A joint while it is read."""

    def __init__(self, name: str, parent: int) -> None:
        self.name, self.parent = name, parent
        self.offset: Floats | None = None
        self.channels: list[str] | None = None


class _Reader:
    """Reads lines with their numbers, and turns what is wrong into errors that name them."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.number = path, 0
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if (lines := data.count(b"\n")) > _MAX_LINES:
            raise FormatError(f"motion file {path} has {lines} lines; at most {_MAX_LINES} are read")
        self._lines = io.BytesIO(data)

    def fault(self, text: str) -> FormatError:
        """Return an error at the present line."""
        return FormatError(f"motion file {self.path}: line {self.number}: {text}")

    def lines(self) -> Iterator[str]:
        """Yield every further line that is not blank."""
        for line in self._lines:
            self.number += 1
            if len(line) > _MAX_LINE_BYTES:
                raise self.fault(f"has {len(line)} bytes; at most {_MAX_LINE_BYTES} are read")
            text = line.decode("latin-1").strip()
            if text:
                yield text

    def line(self, wanted: str) -> str:
        """Return the next line; raise FormatError, which names what is wanted, at the end of the file."""
        text = next(self.lines(), None)
        if text is None:
            raise self.fault(f"the file ends here, but {wanted} must follow")
        return text

    def number_of(self, text: str, what: str) -> float:
        """Return a finite number."""
        try:
            value = float(text) if "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if not abs(value) < _LARGEST:
            raise self.fault(f"{what} is {text[:40]!r}, which is not a finite number")
        return value


def read_bvh(path: Path, data: bytes) -> Capture:
    """Read a motion out of the content of a BVH file; raise FormatError, which names the line, if it is none."""
    reader = _Reader(path, data)
    joints = _hierarchy(reader)
    frames, seconds = _head(reader)
    channels = sum(len(joint.channels or ()) for joint in joints)
    _check_size(reader, frames, len(joints), channels, len(data))
    values, rows = _frames(reader, frames, channels)
    return _capture(path, joints, values, rows, 1.0 / seconds)


def _hierarchy(reader: _Reader) -> list[_Joint]:
    if reader.line("HIERARCHY").upper() != "HIERARCHY":
        raise reader.fault("is not HIERARCHY, with which a BVH file begins")
    joints: list[_Joint] = []
    open_joints: list[int] = []
    pending: int | None = None  # a joint whose brace is awaited
    total = 0
    for text in reader.lines():
        if reader.number > _MAX_HIERARCHY_LINES:
            raise reader.fault(f"the hierarchy has more than {_MAX_HIERARCHY_LINES} lines")
        words = text.replace("{", " { ").replace("}", " } ").split()
        total += len(words)
        if total > _MAX_HIERARCHY_WORDS:
            raise reader.fault(f"the hierarchy has more than {_MAX_HIERARCHY_WORDS} words")
        if words[0].upper() == "MOTION":
            _check_hierarchy(reader, joints, open_joints)
            return joints
        while words:
            word = words.pop(0)
            if word == "{" and pending is not None:
                open_joints.append(pending)
                pending = None
            elif word == "}" and open_joints:
                open_joints.pop()
            elif word.upper() in ("ROOT", "JOINT", "END"):
                until = words.index("{") if "{" in words else len(words)
                name, words = "_".join(words[:until]), words[until:]
                pending = _add(reader, joints, open_joints, word.upper(), name)
            elif word.upper() in ("OFFSET", "CHANNELS") and open_joints:
                words = _take(reader, joints[open_joints[-1]], word.upper(), words)
            else:
                raise reader.fault(
                    f"{word[:40]!r} is unexpected here; valid: ROOT, JOINT, End Site, OFFSET, CHANNELS, braces, MOTION"
                )
    raise reader.fault("the file ends here, but MOTION must follow the hierarchy")


def _add(reader: _Reader, joints: list[_Joint], open_joints: list[int], word: str, name: str) -> int:
    """Add a joint below the innermost open one and return its index; an end site is named after its parent."""
    if len(joints) >= MAX_JOINTS or len(open_joints) >= _MAX_DEPTH:
        raise reader.fault(f"has more than {MAX_JOINTS} joints, or {_MAX_DEPTH} within each other")
    if (word == "ROOT") == bool(open_joints):
        raise reader.fault(f"{word} must {'not ' if open_joints else ''}be inside another joint")
    if word == "ROOT" and joints:
        raise reader.fault("a second ROOT begins; put each person into a file of their own")
    parent = open_joints[-1] if open_joints else -1
    name = f"{joints[parent].name}_end" if word == "END" else name
    if not name or len(name) > _LONGEST_NAME:
        raise reader.fault(f"{word} must have a name of 1 to {_LONGEST_NAME} characters")
    taken = {joint.name for joint in joints}
    if name in taken and word != "END":
        raise reader.fault(f"joint {name!r} is named twice")
    number = 2
    while name in taken:
        name, number = f"{joints[parent].name}_end{number}", number + 1
    joints.append(_Joint(name, parent))
    if word == "END":
        joints[-1].channels = []
    return len(joints) - 1


def _take(reader: _Reader, joint: _Joint, word: str, words: list[str]) -> list[str]:
    """Read what follows OFFSET or CHANNELS; return the words behind it."""
    if word == "OFFSET":
        if len(words) < 3:
            raise reader.fault(f"OFFSET of {joint.name!r} needs 3 numbers, got {len(words)}")
        joint.offset = np.array([reader.number_of(text, f"OFFSET of {joint.name!r}") for text in words[:3]])
        return words[3:]
    count = int(words[0]) if words and words[0].isdigit() and len(words[0]) < 3 else -1
    names = words[1 : count + 1]
    valid = {name.lower(): name for name in _CHANNELS}
    known = [valid[name.lower()] for name in names if name.lower() in valid]
    if count < 0 or len(known) != count or len(set(known)) != count:
        raise reader.fault(
            f"CHANNELS of {joint.name!r} must be a count and as many different names of {', '.join(_CHANNELS)}; "
            f"got {' '.join(words)[:80]!r}"
        )
    joint.channels = known
    return words[count + 1 :]


def _check_hierarchy(reader: _Reader, joints: list[_Joint], open_joints: list[int]) -> None:
    if not joints:
        raise reader.fault("MOTION begins, but the hierarchy has no ROOT")
    if open_joints:
        raise reader.fault(f"MOTION begins, but joint {joints[open_joints[-1]].name!r} has no closing brace")
    for joint in joints:
        if joint.offset is None or joint.channels is None:
            lacks = "OFFSET" if joint.offset is None else "CHANNELS"
            raise reader.fault(f"MOTION begins, but joint {joint.name!r} has no {lacks}")


def _head(reader: _Reader) -> tuple[int, float]:
    """Return the number of frames and the time of one."""
    name, _, text = reader.line("'Frames: N'").partition(":")
    text = text.strip()
    if name.strip().lower() != "frames" or not (text.isascii() and text.isdigit()):
        raise reader.fault(f"must be 'Frames: N' with a whole number, got {name[:40]!r} and {text[:40]!r}")
    frames = int(text) if len(text) < 12 else MAX_FRAMES + 1
    if not 2 <= frames <= MAX_FRAMES:
        raise reader.fault(f"declares {text[:40]} frames; valid: 2 to {MAX_FRAMES}")
    name, _, text = reader.line("'Frame Time: SECONDS'").partition(":")
    if name.strip().lower() != "frame time":
        raise reader.fault(f"must be 'Frame Time: SECONDS', got {name[:40]!r}")
    seconds = reader.number_of(text.strip(), "Frame Time")
    low, high = _RATE_RANGE_HZ
    if not 1.0 / high <= seconds <= 1.0 / low:
        raise reader.fault(f"a Frame Time of {seconds:g} s is not one; valid: {1 / high:g} to {1 / low:g} s")
    return frames, seconds


def _check_size(reader: _Reader, frames: int, joints: int, channels: int, size: int) -> None:
    if not channels:
        raise reader.fault("no joint has channels, so nothing moves")
    most = MAX_NUMBERS // max(channels, 2 * joints)  # a joint's rotation takes 9 numbers, even without channels
    if frames > most:
        raise reader.fault(
            f"{frames} frames of {joints} joints with {channels} channels are too many; at most {most} are read: cut "
            "the recording into parts"
        )
    if 2 * frames * channels > size + 1:  # a digit and a space each
        raise reader.fault(f"declares {frames} frames of {channels} channels, for which the file is too short")


def _frames(reader: _Reader, frames: int, channels: int) -> tuple[Floats, list[int]]:
    """Return `(frames, channels)` and the line of each frame; raise FormatError for each line that is not a frame."""
    values, rows = np.zeros((frames, channels)), list[int]()
    faults = Faults(reader.path)
    lines = ((reader.number, text) for text in reader.lines())
    while block := list(islice(lines, BLOCK)):
        start = len(rows)
        rows += [number for number, _ in block]
        if len(rows) > frames:
            reader.number = rows[frames]
            raise reader.fault(f"follows the {frames} frames that line 'Frames:' declares")
        parsed = parse_block([text for _, text in block], channels, " ")
        if parsed is not None and (np.abs(parsed) < _LARGEST).all():
            values[start : len(rows)] = parsed
        else:
            _add_faults(block, values[start : len(rows)], faults)
    if len(rows) < frames:
        faults.add(f"line {reader.number}: the file ends after {len(rows)} of {frames} frames")
    faults.check()
    return values, rows


def _add_faults(lines: Sequence[tuple[int, str]], values: Floats, faults: Faults) -> None:
    """Read numbered lines into `values` `(lines, channels)` one by one; add a fault for each that is not a frame."""
    for (number, text), row in zip(lines, values, strict=True):
        cells = text.split()
        if len(cells) != len(row):
            faults.add(f"line {number} has {len(cells)} numbers, but the joints have {len(row)} channels")
            continue
        try:
            row[:] = cells
        except ValueError:
            bad = next(cell for cell in cells if not _is_number(cell))
            faults.add(f"line {number}: {bad[:40]!r} is not a number")
        if not (np.abs(row) < _LARGEST).all():
            column = int(np.flatnonzero(~(np.abs(row) < _LARGEST))[0])
            faults.add(f"line {number}, number {column + 1}: {cells[column][:40]!r} is not finite; fill gaps")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _capture(path: Path, joints: list[_Joint], values: Floats, rows: list[int], rate_hz: float) -> Capture:
    offsets = np.stack([joint.offset if joint.offset is not None else np.zeros(3) for joint in joints])
    rotations = np.broadcast_to(np.eye(3), (len(values), len(joints), 3, 3)).copy()
    moves, column = {}, 0
    for index, joint in enumerate(joints):
        place, turn = np.tile(offsets[index], (len(values), 1)), None
        for channel in joint.channels or ():
            axis, numbers = "XYZ".index(channel[0]), values[:, column]
            column += 1
            if channel.endswith("rotation"):  # in the order of the channels, each about the axes turned so far
                further = turns_about(axis, np.deg2rad(numbers))
                turn = further if turn is None else turn @ further
            else:  # positions of inner joints replace their offsets; a root's offset is added to them
                place[:, axis] = numbers + (offsets[index, axis] if joint.parent < 0 else 0.0)
                moves[index] = place
        if turn is not None:
            rotations[:, index] = turn
    names, parents = tuple(joint.name for joint in joints), tuple(joint.parent for joint in joints)
    return Capture(path, "BVH", names, parents, offsets, rotations, moves, rate_hz, rows, "line", has_rest=True)
