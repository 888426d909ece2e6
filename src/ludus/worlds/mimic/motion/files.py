"""Read motions from CSV and npz files, and write them.

A CSV file has a header with units in the names, then one line per frame.

An npz file has the arrays `angles` (frames, joints), `joints` (their names without units), `units` (`deg` or `rad`) and
`rate_hz`; optionally `velocities` (frames, joints) in units per second, and `root_height_m` (frames,). Nothing in such
a file can run code or expand beyond its declared size.
"""

import codecs
import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import FormatError, did_you_mean
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.motion.table import (
    BLOCK,
    MAX_COLUMNS,
    MAX_FILE_BYTES,
    MAX_FRAMES,
    Faults,
    Table,
    parse_block,
    read_columns,
)

_RATE = "rate_hz"
_MAX_LINES = 2 * MAX_FRAMES + 1_000  # frames, as many blank lines between them, and comments
_MAX_LINE_BYTES = 10_000

_REQUIRED = ("angles", "joints", "units", "rate_hz")
_OPTIONAL = ("velocities", "root_height_m")
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    r"\{'descr': '(?P<descr>[<>|][fiu][1248]|[<>]U[1-9][0-9]{0,2})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]*)\),? ?\}\s*",
    re.ASCII,
)
_MOST_AXES = 2
_LAST_ASCII = 127
_CENTRAL_ENTRY = b"PK\x01\x02"  # begins what the directory at the end of an archive says of a member
_MOST_ENTRIES = 100  # the bytes may be part of an array by chance
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others are unpacked without a limit
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, KeyError)


def read_csv(path: Path, data: bytes) -> Table:
    """Read a table out of the content of a CSV file; raise FormatError with all faults if it is none."""
    faults = Faults(path)
    lines = list(_lines(path, data))
    rate = _comment_rate_hz(lines, faults)
    rows = [(number, line) for number, line in lines if not line.startswith("#")]
    if not rows:
        raise FormatError(f"motion file {path} is empty; its first line must name the columns, such as right_knee_deg")
    place, names = f"line {rows[0][0]}", _cells(rows[0][1])
    if len(names) > MAX_COLUMNS:
        raise FormatError(f"motion file {path}: {place} names {len(names)} columns; at most {MAX_COLUMNS} are read")
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise FormatError(f"motion file {path}: {place} has no commas; columns must be separated by commas")
    columns = read_columns(names, place, faults)
    faults.check()
    frames = rows[1:]
    if len(frames) > MAX_FRAMES:
        raise FormatError(f"motion file {path} has {len(frames)} frames; at most {MAX_FRAMES} are read")
    values = _numbers(frames, names, faults)
    faults.check()
    return Table(path, columns, values, tuple(number for number, _ in frames), "line", rate)


def csv_text(columns: Mapping[str, Floats], rate_hz: float, comments: Sequence[str]) -> str:
    """Return a file's text: comments, then columns `(frames,)` by name with unit."""
    head = [f"# {comment}" for comment in comments]
    lines = [*head, f"# {_RATE}: {rate_hz:g}", ",".join(columns)]
    line = ",".join(["%.4f"] * len(columns))
    lines += [line % row for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
    return "\n".join(lines) + "\n"


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    """Yield number and text of every line that is not blank; raise FormatError for too many, too long or no UTF-8."""
    data = data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    count = data.count(b"\n")
    if count > _MAX_LINES:
        raise FormatError(f"motion file {path} has {count} lines; at most {_MAX_LINES} are read")
    for number, line in enumerate(io.BytesIO(data), start=1):
        if len(line) > _MAX_LINE_BYTES:
            raise FormatError(
                f"motion file {path}: line {number} has {len(line)} bytes; at most {_MAX_LINE_BYTES} are read"
            )
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            raise FormatError(f"motion file {path}: line {number} is not UTF-8 text; save it as plain CSV") from error
        if text:
            yield number, text


def _cells(line: str) -> list[str]:
    return [cell.strip().removeprefix('"').removesuffix('"').strip() for cell in line.split(",")]


def _comment_rate_hz(lines: Sequence[tuple[int, str]], faults: Faults) -> float | None:
    """Return the rate of a comment such as `# rate_hz: 100`, if there is one."""
    found = None
    for number, line in lines:
        name, colon, text = line.removeprefix("#").partition(":")
        if not (line.startswith("#") and colon and name.strip() == _RATE):
            continue
        rate = _number(text.strip())
        if rate is None or not math.isfinite(rate):
            faults.add(f"line {number}: {_RATE} is {text.strip()!r}, which is not a number; write '# {_RATE}: 100'")
        elif found is not None and rate != found:
            faults.add(f"line {number}: {_RATE} is {rate:g}, but was {found:g} before; keep one of them")
        else:
            found = rate
    return found


def _numbers(frames: Sequence[tuple[int, str]], names: Sequence[str], faults: Faults) -> Floats:
    """Return `(frames, columns)`; add a fault for every line or cell that is not as it must be."""
    values = np.zeros((len(frames), len(names)))
    for start in range(0, len(frames), BLOCK):
        block = frames[start : start + BLOCK]
        parsed = parse_block([line for _, line in block], len(names), ",")
        values[start : start + BLOCK] = _cell_by_cell(block, names, faults) if parsed is None else parsed
    return values


def _cell_by_cell(frames: Sequence[tuple[int, str]], names: Sequence[str], faults: Faults) -> Floats:
    values = np.zeros((len(frames), len(names)))
    for frame, (number, line) in enumerate(frames):
        cells = _cells(line)
        if len(cells) != len(names):
            faults.add(f"line {number} has {len(cells)} cells, but the header names {len(names)} columns")
            continue
        for index, cell in enumerate(cells):
            value = _number(cell)
            if value is None:
                faults.add(f"line {number}, column {names[index]!r}: {cell[:40]!r} is not a number")
            elif not math.isfinite(value):
                faults.add(f"line {number}, column {names[index]!r}: {cell!r} is not finite; fill gaps before loading")
            else:
                values[frame, index] = value
    return values


def _number(cell: str) -> float | None:
    if "_" in cell:  # Python reads 1_000 as a number
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def read_npz(path: Path, data: bytes) -> Table:
    """Read a table out of the content of an npz file; raise FormatError if it is not as the format demands."""
    arrays = _arrays(path, data)
    faults = Faults(path)
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise FormatError(f"motion file {path} has no array {', '.join(missing)}; it needs {', '.join(_REQUIRED)}")
    joints, unit, rate = _texts(path, arrays, "joints"), _unit(path, arrays), _array_rate_hz(path, arrays)
    names = [f"{joint}_{unit}" for joint in joints]
    parts = [_block(path, arrays, "angles", len(names))]
    frames = len(parts[0])
    if "velocities" in arrays:
        names += [f"{joint}_vel_{unit}_s" for joint in joints]
        parts.append(_block(path, arrays, "velocities", len(joints), frames))
    if "root_height_m" in arrays:
        names.append("root_height_m")
        parts.append(_block(path, arrays, "root_height_m", 1, frames))
    columns = read_columns(names, "joints", faults)
    faults.check()
    values = np.concatenate(parts, axis=1)

    def describe(frame: int, index: int) -> str:
        return f"frame {frame}, column {names[index]!r}: {values[frame, index]} is not finite; fill gaps before loading"

    faults.add_cells(~np.isfinite(values), describe)
    faults.check()
    return Table(path, columns, values, tuple(range(frames)), "frame", rate)


def npz_bytes(angles: Floats, joints: Sequence[str], rate_hz: float, velocities: Floats | None) -> bytes:
    """Return a file's content: `angles` and `velocities` are `(frames, joints)` in degrees and degrees per second."""
    arrays: dict[str, Any] = {"angles": angles, "joints": np.array(joints), "units": "deg", "rate_hz": rate_hz}
    if velocities is not None:
        arrays["velocities"] = velocities
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _arrays(path: Path, data: bytes) -> dict[str, NDArray[Any]]:
    if (entries := data.count(_CENTRAL_ENTRY)) > _MOST_ENTRIES:
        raise FormatError(f"motion file {path} has {entries} arrays; it needs {', '.join(_REQUIRED)}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_members(path, members)
            contents = {}
            for member in members:
                with archive.open(member) as file:
                    contents[member.filename.removesuffix(".npy")] = file.read(member.file_size + 1)
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(f"motion file {path} is not an intact npz file: {error}") from error
    return {name: _array(path, name, content) for name, content in contents.items()}


def read_members(path: Path, data: bytes, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return those of the `wanted` arrays that an npz file has; others are never opened.

    Raises FormatError if the file is broken, or if these arrays are not plain numbers or text of their declared size.
    """
    if (entries := data.count(_CENTRAL_ENTRY)) > _MOST_ENTRIES:
        raise FormatError(f"motion file {path} has {entries} arrays; at most {_MOST_ENTRIES} are allowed")
    contents = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [member for member in archive.infolist() if member.filename.removesuffix(".npy") in wanted]
            _check_sizes(path, members)
            for member in members:
                with archive.open(member) as file:
                    contents[member.filename.removesuffix(".npy")] = file.read(member.file_size + 1)
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(f"motion file {path} is not an intact npz file: {error}") from error
    return {name: _array(path, name, content) for name, content in contents.items()}


def _check_members(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise FormatError unless the archive holds only known arrays, each once, within the size limit."""
    valid = [f"{name}.npy" for name in (*_REQUIRED, *_OPTIONAL)]
    names = [member.filename for member in members]
    for name in names:
        if name not in valid:
            raise FormatError(
                f"motion file {path}: unknown array {name.removesuffix('.npy')!r}{did_you_mean(name, valid)}; "
                f"valid: {', '.join((*_REQUIRED, *_OPTIONAL))}"
            )
        if names.count(name) > 1:
            raise FormatError(f"motion file {path}: array {name.removesuffix('.npy')!r} is duplicated")
    _check_sizes(path, members)


def _check_sizes(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise FormatError unless members are compressed in a way that has limits, and are within them."""
    if any(member.compress_type not in _COMPRESSIONS for member in members):
        raise FormatError(f"motion file {path} is not compressed with deflate; use numpy.savez")
    total = sum(member.file_size for member in members)
    if total > MAX_FILE_BYTES:
        raise FormatError(f"motion file {path} declares {total} bytes of arrays; at most {MAX_FILE_BYTES} are read")


def _array(path: Path, name: str, content: bytes) -> NDArray[Any]:
    """Read an array whose header is exactly as numpy writes it for numbers and text, and whose size is as declared."""
    major = content[6] if len(content) > 10 and content.startswith(_MAGIC) else 0
    width = 2 if major == 1 else 4
    length = int.from_bytes(content[8 : 8 + width], "little")
    start = 8 + width + length
    header = _HEADER.fullmatch(content[8 + width : start].decode("latin-1")) if major in (1, 2, 3) else None
    if header is None:
        raise FormatError(f"motion file {path}: array {name!r} is not an npy array of numbers or text")
    dtype = np.dtype(header["descr"])
    sizes = [text.strip() for text in header["shape"].split(",")]
    shape = tuple(int(text) for text in sizes if text.isascii() and text.isdigit() and len(text) < 10)
    body = content[start:]
    is_whole = len(shape) == sum(map(bool, sizes)) <= _MOST_AXES
    if not is_whole or math.prod(shape) * dtype.itemsize != len(body):
        raise FormatError(f"motion file {path}: array {name!r} declares shape {shape}, but holds {len(body)} bytes")
    if dtype.kind == "U" and (np.frombuffer(body, f"{header['descr'][0]}u4") > _LAST_ASCII).any():
        # Python itself fails on code points that no text has.
        raise FormatError(f"motion file {path}: array {name!r} holds text that is not ASCII")
    order: Literal["F", "C"] = "F" if header["fortran"] == "True" else "C"
    return np.frombuffer(body, dtype).reshape(shape, order=order)


def _texts(path: Path, arrays: Mapping[str, NDArray[Any]], name: str) -> list[str]:
    array = arrays[name]
    texts = [str(text) for text in array.reshape(-1).tolist()] if array.dtype.kind == "U" else []
    if not 0 < len(texts) <= MAX_COLUMNS:
        raise FormatError(
            f"motion file {path}: array {name!r} must hold 1 to {MAX_COLUMNS} texts, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return texts


def _unit(path: Path, arrays: Mapping[str, NDArray[Any]]) -> str:
    texts = _texts(path, arrays, "units")
    if texts not in (["deg"], ["rad"]):
        raise FormatError(f"motion file {path}: units must be 'deg' or 'rad', got {', '.join(texts)[:40]!r}")
    return texts[0]


def _array_rate_hz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> float:
    rate = arrays["rate_hz"]
    if rate.size != 1 or rate.dtype.kind not in "fiu" or not np.isfinite(rate).all():
        raise FormatError(f"motion file {path}: rate_hz must be one number, got {rate.dtype} of shape {rate.shape}")
    return float(rate.reshape(-1)[0])


def _block(
    path: Path, arrays: Mapping[str, NDArray[Any]], name: str, columns: int, frames: int | None = None
) -> Floats:
    """Return an array as `(frames, columns)` of floats."""
    array = arrays[name]
    block = array[:, None] if array.ndim == 1 and columns == 1 else array
    wanted = f"({frames or 'frames'}, {columns})"
    fits = block.ndim == 2 and block.shape[1] == columns and frames in (None, len(block))
    if not fits or block.dtype.kind not in "fiu":
        raise FormatError(
            f"motion file {path}: array {name!r} must hold numbers of shape {wanted}, one column a joint of `joints`; "
            f"got {array.dtype} of shape {array.shape}"
        )
    if len(block) > MAX_FRAMES:
        raise FormatError(f"motion file {path} has {len(block)} frames; at most {MAX_FRAMES} are read")
    numbers: Floats = block.astype(np.float64)
    return numbers
