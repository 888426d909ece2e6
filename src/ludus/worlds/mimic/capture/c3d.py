"""Read C3D files: markers in three dimensions, as integers or floats, of Intel, DEC or MIPS processors.

Counts in the header are checked against limits and against the file's size before memory is spent. Analog channels and
events are not read. Markers that were not seen are NaN; `fill_gaps` bridges short times.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ludus.core.errors import FormatError
from ludus.worlds.mimic.capture.skeleton import MAX_JOINTS, MAX_NUMBERS, Capture
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.motion.table import MAX_FRAMES

_BLOCK = 512
_MARK = 0x50
_PROCESSORS = {84: "<", 85: "<", 86: ">"}  # Intel, DEC, MIPS
_DEC = 85
_MOST_PARAMETERS = 5_000
_MOST_PARAMETER_BYTES = 1 << 20  # of all together, which may lie on each other; the format has room for 130,560
_UNITS = {"mm": 0.001, "cm": 0.01, "dm": 0.1, "m": 1.0, "in": 0.0254}
_LONGEST_GAP_S = 0.25  # in which a marker that was not seen is taken to go straight on
_LARGEST = 1e7
_TEXT, _BYTE, _INTEGER, _FLOAT = -1, 1, 2, 4


class _Parameter(NamedTuple):
    kind: int
    sizes: tuple[int, ...]
    data: bytes


class _File:
    """The bytes of a file, read with bounds."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data, self.order, self.is_dec = path, data, "<", False

    def fault(self, text: str) -> FormatError:
        return FormatError(f"motion file {self.path}: {text}")

    def part(self, start: int, count: int, what: str) -> bytes:
        """Return some bytes; raise FormatError if the file ends before."""
        if not 0 <= start <= start + count <= len(self.data):
            raise self.fault(f"ends at byte {len(self.data)}, within its {what}, which goes to byte {start + count}")
        return self.data[start : start + count]

    def integer(self, start: int) -> int:
        return int(np.frombuffer(self.part(start, 2, "header"), f"{self.order}u2")[0])

    def floats(self, data: bytes) -> Floats:
        """Return floats of the file's processor: a DEC's have their halves swapped, and are four times as large."""
        words = np.frombuffer(data, f"{self.order}u2")
        if self.is_dec:
            values = words.reshape(-1, 2)[:, ::-1].astype("<u2").reshape(-1).view("<f4").astype(np.float64) / 4.0
        else:
            values = np.frombuffer(data, f"{self.order}f4").astype(np.float64)
        return values


def read_c3d(path: Path, data: bytes) -> Capture:
    """Read a motion out of the content of a C3D file; raise FormatError if it is none."""
    file = _File(path, data)
    if len(data) < _BLOCK or data[1] != _MARK or data[0] < 1:
        raise file.fault("is not a C3D file: its second byte must be 80 (hexadecimal 50)")
    parameters = _parameters(file, (data[0] - 1) * _BLOCK)
    points, analog, first, last = (file.integer(start) for start in (2, 4, 6, 8))
    scale = float(file.floats(file.part(12, 4, "header"))[0])
    start = (file.integer(16) - 1) * _BLOCK
    rate_hz = _number(file, parameters, "POINT:RATE", float(file.floats(file.part(20, 4, "header"))[0]))
    frames = _frames(file, parameters, first, last)
    is_float = scale < 0.0
    frame_bytes = (4 * points + analog) * (4 if is_float else 2)
    _check(file, points, frames, rate_hz, scale, start, frame_bytes)
    values = _values(file, start, frames, points, analog, is_float=is_float, scale=abs(scale))
    labels = _labels(file, parameters, points)
    unit_m = _UNITS.get(_text(parameters, "POINT:UNITS").lower())
    moves = {index: values[:, index] for index in range(points)}
    return Capture(
        path, "C3D", labels, (-1,) * points, np.zeros((points, 3)), None, moves, rate_hz,
        range(first, first + frames), "frame", has_rest=False, unit_m=unit_m,
    )  # fmt: skip


def _parameters(file: _File, start: int) -> dict[str, _Parameter]:
    """Return all parameters by GROUP:NAME."""
    head = file.part(start, 4, "parameters")
    if head[3] not in _PROCESSORS:
        raise file.fault(f"has the processor type {head[3]}; valid: {', '.join(map(str, _PROCESSORS))}")
    file.order, file.is_dec = _PROCESSORS[head[3]], head[3] == _DEC
    groups: dict[int, str] = {}
    found: list[tuple[int, str, _Parameter]] = []
    place, total = start + 4, 0
    for _ in range(_MOST_PARAMETERS):
        length = abs(np.frombuffer(file.part(place, 1, "parameters"), np.int8)[0].item())
        if length == 0:
            break
        group = np.frombuffer(file.part(place + 1, 1, "parameters"), np.int8)[0].item()
        name = file.part(place + 2, length, "parameters").decode("latin-1").strip().upper()
        following = place + 2 + length
        offset = file.integer(following)
        if group < 0:
            groups[-group] = name
        else:
            found.append((group, name, _parameter(file, following + 2)))
            total += len(found[-1][2].data)
            if total > _MOST_PARAMETER_BYTES:
                raise file.fault(f"has parameters of more than {_MOST_PARAMETER_BYTES} bytes")
        if offset == 0:
            break
        place = following + offset
    else:
        raise file.fault(f"has more than {_MOST_PARAMETERS} parameters")
    return {f"{groups.get(group, group)}:{name}": parameter for group, name, parameter in found}


def _parameter(file: _File, place: int) -> _Parameter:
    kind = np.frombuffer(file.part(place, 1, "parameters"), np.int8)[0].item()
    axes = file.part(place + 1, 1, "parameters")[0]
    if kind not in (_TEXT, _BYTE, _INTEGER, _FLOAT) or axes > 7:
        raise file.fault(f"has a parameter of type {kind} with {axes} axes at byte {place}")
    sizes = tuple(file.part(place + 2, axes, "parameters"))
    return _Parameter(kind, sizes, file.part(place + 2 + axes, abs(kind) * math.prod(sizes), "parameters"))


def _numbers(file: _File, parameters: dict[str, _Parameter], name: str) -> list[float]:
    parameter = parameters.get(name)
    if parameter is None or parameter.kind == _TEXT or not parameter.data:
        return []
    if parameter.kind == _FLOAT:
        return [float(value) for value in file.floats(parameter.data)]
    kind = f"{file.order}u2" if parameter.kind == _INTEGER else "u1"
    return [float(value) for value in np.frombuffer(parameter.data, kind)]


def _number(file: _File, parameters: dict[str, _Parameter], name: str, otherwise: float) -> float:
    numbers = _numbers(file, parameters, name)
    return numbers[0] if numbers else otherwise


def _text(parameters: dict[str, _Parameter], name: str) -> str:
    parameter = parameters.get(name)
    return parameter.data.decode("latin-1").strip("\0 ") if parameter and parameter.kind == _TEXT else ""


def _frames(file: _File, parameters: dict[str, _Parameter], first: int, last: int) -> int:
    """Return the number of frames; the header's numbers end at 65,535, and longer recordings tell it elsewhere."""
    ends = [_numbers(file, parameters, f"TRIAL:ACTUAL_{word}_FIELD") for word in ("START", "END")]
    if all(len(words) == 2 for words in ends):
        begun, ended = (words[0] + 65536.0 * words[1] for words in ends)
        if ended >= begun:
            return int(ended - begun) + 1
    return last - first + 1


def _check(file: _File, points: int, frames: int, rate_hz: float, scale: float, start: int, frame_bytes: int) -> None:
    if not 1 <= points <= MAX_JOINTS:
        raise file.fault(f"declares {points} markers; valid: 1 to {MAX_JOINTS}")
    if not 2 <= frames <= MAX_FRAMES or 3 * frames * points > MAX_NUMBERS:
        raise file.fault(
            f"declares {frames} frames of {points} markers; valid: 2 to {min(MAX_FRAMES, MAX_NUMBERS // (3 * points))}"
        )
    if not (math.isfinite(rate_hz) and 1.0 <= rate_hz <= 2000.0):
        raise file.fault(f"declares {rate_hz:g} frames per second; valid: 1 to 2000")
    if not math.isfinite(scale) or scale == 0.0:
        raise file.fault(f"has a scale of {scale:g}, which is not one")
    if start < _BLOCK or start + frames * frame_bytes > len(file.data):
        raise file.fault(
            f"declares {frames} frames of {frame_bytes} bytes from byte {start}, but ends at byte {len(file.data)}"
        )


def _values(file: _File, start: int, frames: int, points: int, analog: int, *, is_float: bool, scale: float) -> Floats:
    """Return places `(frames, markers, 3)`, NaN where a marker was not seen."""
    width = 4 * points + analog
    data = file.part(start, frames * width * (4 if is_float else 2), "frames")
    if is_float:
        table = file.floats(data).reshape(frames, width)
    else:
        table = np.frombuffer(data, f"{file.order}i2").reshape(frames, width).astype(np.float64)
    cells = table[:, : 4 * points].reshape(frames, points, 4)
    places = cells[..., :3] * (1.0 if is_float else scale)
    unseen = ~(cells[..., 3] >= 0.0) | ~(np.abs(places) < _LARGEST).all(axis=2)
    return np.where(unseen[..., None], np.nan, places)


def _labels(file: _File, parameters: dict[str, _Parameter], points: int) -> tuple[str, ...]:
    labels: list[str] = []
    for name in ("POINT:LABELS", *(f"POINT:LABELS{number}" for number in range(2, 5))):
        parameter = parameters.get(name)
        if parameter is not None and parameter.kind == _TEXT and len(parameter.sizes) == 2 and parameter.sizes[0]:
            width = parameter.sizes[0]
            texts = [parameter.data[at : at + width] for at in range(0, len(parameter.data), width)]
            labels += [text.decode("latin-1").strip("\0 ") for text in texts]
    labels = [label or f"marker {index + 1}" for index, label in enumerate(labels[:points])]
    labels += [f"marker {index + 1}" for index in range(len(labels), points)]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise file.fault(f"has two markers named {twice!r}; rename one of them")
    return tuple(labels)


def fill_gaps(capture: Capture, marker: int) -> Floats:
    """Return the places `(frames, 3)` of a marker without short gaps; raise FormatError, with frames, for long ones."""
    places = capture.moves[marker]
    seen = np.isfinite(places.sum(axis=1))
    if seen.all():
        return places
    edges = np.diff(np.concatenate(([0], (~seen).astype(np.int8), [0])))
    longest = round(_LONGEST_GAP_S * capture.rate_hz)
    for start, stop in zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True):
        if stop - start > longest or start == 0 or stop == len(seen):
            raise FormatError(
                f"motion file {capture.source}: marker {capture.names[marker]!r} is not seen from frame "
                f"{capture.rows[start]} to {capture.rows[stop - 1]}; fill the gap, or leave it out with --start and "
                "--stop"
            )
    times = np.arange(len(seen))
    return np.stack([np.interp(times, times[seen], places[seen, axis]) for axis in range(3)], axis=1)
