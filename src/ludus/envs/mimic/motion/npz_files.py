"""Reads motions out of npz files, and writes them; nothing in such a file can run code or grow beyond what it declares.

Arrays: `angles` (frames, joints), `joints` (their names without units), `units` (`deg` or `rad`), `rate_hz`; and, if
wanted, `velocities` (frames, joints) in units a second, and `root_height_m` (frames,).
"""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import FormatError, did_you_mean
from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.motion.table import MAX_COLUMNS, MAX_FILE_BYTES, MAX_FRAMES, Faults, Table, read_columns

_REQUIRED = ("angles", "joints", "units", "rate_hz")
_OPTIONAL = ("velocities", "root_height_m")
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    r"\{'descr': '(?P<descr>[<>|][fiu][1248]|[<>]U[0-9]{1,3})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>[0-9, ]*)\),? ?\}\s*",
    re.ASCII,
)
_LAST_ASCII = 127
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, KeyError)


def read_npz(path: Path, data: bytes) -> Table:
    """Reads a table out of the content of an npz file.

    Raises:
        FormatError: The content is damaged, too large or not as the format demands.
    """
    arrays = _arrays(path, data)
    faults = Faults(path)
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise FormatError(f"motion file {path} has no array {', '.join(missing)}; it needs {', '.join(_REQUIRED)}")
    joints, unit, rate = _texts(path, arrays, "joints"), _unit(path, arrays), _rate(path, arrays)
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
    for frame, index in np.argwhere(~np.isfinite(values)).tolist():
        value = values[frame, index]
        faults.add(f"frame {frame}, column {names[index]!r}: {value} is not finite; fill gaps before loading")
    faults.check()
    return Table(path, columns, values, tuple(range(frames)), "frame", rate)


def npz_bytes(angles: Floats, joints: Sequence[str], rate_hz: float, velocities: Floats | None) -> bytes:
    """Returns a file's content: `angles` and `velocities` are `(frames, joints)` in degrees and degrees a second."""
    arrays: dict[str, Any] = {"angles": angles, "joints": np.array(joints), "units": "deg", "rate_hz": rate_hz}
    if velocities is not None:
        arrays["velocities"] = velocities
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _arrays(path: Path, data: bytes) -> dict[str, NDArray[Any]]:
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
        raise FormatError(f"motion file {path} is no intact npz file: {error}") from error
    return {name: _array(path, name, content) for name, content in contents.items()}


def _check_members(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raises FormatError unless the archive holds only arrays that we know, each once, of bearable size."""
    valid = [f"{name}.npy" for name in (*_REQUIRED, *_OPTIONAL)]
    names = [member.filename for member in members]
    for name in names:
        if name not in valid:
            raise FormatError(
                f"motion file {path}: unknown array {name.removesuffix('.npy')!r}{did_you_mean(name, valid)}; "
                f"valid: {', '.join((*_REQUIRED, *_OPTIONAL))}"
            )
        if names.count(name) > 1:
            raise FormatError(f"motion file {path}: array {name.removesuffix('.npy')!r} is there twice")
    total = sum(member.file_size for member in members)
    if total > MAX_FILE_BYTES:
        raise FormatError(f"motion file {path} declares {total} bytes of arrays; at most {MAX_FILE_BYTES} are read")


def _array(path: Path, name: str, content: bytes) -> NDArray[Any]:
    """Reads an array whose header is exactly as numpy writes it for numbers and text, and whose size is as declared."""
    major = content[6] if len(content) > 10 and content.startswith(_MAGIC) else 0
    width = 2 if major == 1 else 4
    length = int.from_bytes(content[8 : 8 + width], "little")
    start = 8 + width + length
    header = _HEADER.fullmatch(content[8 + width : start].decode("latin-1")) if major in (1, 2, 3) else None
    if header is None:
        raise FormatError(f"motion file {path}: array {name!r} is no npy array of numbers or text")
    dtype = np.dtype(header["descr"])
    sizes = [text.strip() for text in header["shape"].split(",")]
    shape = tuple(int(text) for text in sizes if text.isascii() and text.isdigit() and len(text) < 10)
    body = content[start:]
    if math.prod(shape) * dtype.itemsize != len(body) or len(shape) != sum(map(bool, sizes)):
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


def _rate(path: Path, arrays: Mapping[str, NDArray[Any]]) -> float:
    rate = arrays["rate_hz"]
    if rate.size != 1 or rate.dtype.kind not in "fiu" or not np.isfinite(rate).all():
        raise FormatError(f"motion file {path}: rate_hz must be one number, got {rate.dtype} of shape {rate.shape}")
    return float(rate.reshape(-1)[0])


def _block(
    path: Path, arrays: Mapping[str, NDArray[Any]], name: str, columns: int, frames: int | None = None
) -> Floats:
    """Returns an array as `(frames, columns)` of floats."""
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
