"""Read npz files in the style of AMASS: axis-angle vectors of the joints of SMPL, SMPL-H or SMPL-X, and a translation.

Only the arrays that are needed are opened, and nothing in the file can run code or expand beyond its declared size. The
files hold no lengths of limbs: unless there is an array `rest_joints`, those of a person of 1.75 m are used, whose rest
pose has the directions of the body model's: thighs 5 degrees apart, shanks 6 degrees back.
"""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import FormatError
from ludus.worlds.mimic.body import make_body
from ludus.worlds.mimic.capture.skeleton import MAX_NUMBERS, Capture, turns_of_vectors
from ludus.worlds.mimic.gait import Floats
from ludus.worlds.mimic.motion.table import MAX_FILE_BYTES, MAX_FRAMES, RATE_RANGE_HZ, Faults

POSES, TRANSLATION, REST = "poses", "trans", "rest_joints"
_RATES = ("mocap_framerate", "mocap_frame_rate", "fps", "rate_hz")
# Name -> parent; the first 22 joints of all these body models. Hands, jaw and eyes come behind them.
_PARENTS: Mapping[str, str | None] = MappingProxyType(
    {
        "Pelvis": None, "L_Hip": "Pelvis", "R_Hip": "Pelvis", "Spine1": "Pelvis", "L_Knee": "L_Hip", "R_Knee": "R_Hip",
        "Spine2": "Spine1", "L_Ankle": "L_Knee", "R_Ankle": "R_Knee", "Spine3": "Spine2", "L_Foot": "L_Ankle",
        "R_Foot": "R_Ankle", "Neck": "Spine3", "L_Collar": "Spine3", "R_Collar": "Spine3", "Head": "Neck",
        "L_Shoulder": "L_Collar", "R_Shoulder": "R_Collar", "L_Elbow": "L_Shoulder", "R_Elbow": "R_Shoulder",
        "L_Wrist": "L_Elbow", "R_Wrist": "R_Elbow",
    }
)  # fmt: skip
JOINTS = tuple(_PARENTS)
_LARGEST_RAD = 100.0
_LARGEST_M = 1e4

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


def read_amass(path: Path, data: bytes) -> Capture:
    """Read a motion out of the content of an npz file; raise FormatError if it is not as described."""
    arrays = _read_members(path, data, (POSES, TRANSLATION, REST, *_RATES))
    missing = [name for name in (POSES, TRANSLATION) if name not in arrays]
    if missing:
        raise FormatError(
            f"motion file {path} has no array {' or '.join(missing)}; it needs {POSES} (frames, 3 x joints) in rad, "
            f"{TRANSLATION} (frames, 3) in m and one of {', '.join(_RATES)}"
        )
    rate_hz = _rate(path, arrays)
    poses = _numbers(path, arrays, POSES, 3 * len(JOINTS), None, _LARGEST_RAD)[:, : 3 * len(JOINTS)]
    moves = _numbers(path, arrays, TRANSLATION, 3, len(poses), _LARGEST_M)
    rest = _rest(path, arrays)
    offsets = np.zeros((len(JOINTS), 3))
    for index, parent in enumerate(_PARENTS.values()):
        offsets[index] = rest[index] - (rest[JOINTS.index(parent)] if parent else 0.0)
    rotations = turns_of_vectors(poses.reshape(len(poses), len(JOINTS), 3))
    parents = tuple(-1 if parent is None else JOINTS.index(parent) for parent in _PARENTS.values())
    notes = () if REST in arrays else ("the file has no lengths of limbs: those of a person of 1.75 m are used",)
    return Capture(
        path, "AMASS", JOINTS, parents, offsets, rotations, {0: rest[0] + moves}, rate_hz, range(len(poses)), "frame",
        has_rest=True, unit_m=1.0, notes=notes,
    )  # fmt: skip


def _read_members(path: Path, data: bytes, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
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


def _rate(path: Path, arrays: Mapping[str, NDArray[Any]]) -> float:
    found = [name for name in _RATES if name in arrays]
    if not found:
        raise FormatError(f"motion file {path} has no rate; it needs one of {', '.join(_RATES)}")
    rate = arrays[found[0]]
    low, high = RATE_RANGE_HZ
    if rate.size != 1 or rate.dtype.kind not in "fiu" or not low <= float(rate.reshape(-1)[0]) <= high:
        raise FormatError(
            f"motion file {path}: {found[0]} must be one number from {low:g} to {high:g}, got {rate.dtype} of shape "
            f"{rate.shape}"
        )
    return float(rate.reshape(-1)[0])


def _numbers(
    path: Path, arrays: Mapping[str, NDArray[Any]], name: str, columns: int, frames: int | None, largest: float
) -> Floats:
    """Return an array of at least `columns` as floats; raise FormatError, which names the frame, if it is wrong."""
    array = arrays[name]
    fits = array.ndim == 2 and array.shape[1] >= columns and frames in (None, len(array)) and array.dtype.kind in "fiu"
    if not fits or not 2 <= len(array) <= MAX_FRAMES:
        raise FormatError(
            f"motion file {path}: array {name!r} must hold numbers of shape ({frames or 'frames'}, {columns} or more) "
            f"with 2 to {MAX_FRAMES} frames; got {array.dtype} of shape {array.shape}"
        )
    if len(array) * columns > MAX_NUMBERS:
        raise FormatError(f"motion file {path}: {len(array)} frames are too many; at most {MAX_NUMBERS // columns}")
    values: Floats = array.astype(np.float64)
    faults = Faults(path)
    faults.add_cells(
        ~(np.abs(values) < largest),
        lambda frame, column: f"frame {frame}, array {name!r}, column {column}: {values[frame, column]} is not valid",
    )
    faults.check()
    return values


def _rest(path: Path, arrays: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the places `(joints, 3)` of joints in the rest pose: x to the left, y up, z forward."""
    if REST in arrays:
        array = arrays[REST]
        if array.ndim != 2 or array.shape[1] != 3 or len(array) < len(JOINTS):
            raise FormatError(
                f"motion file {path}: array {REST!r} must hold places of shape ({len(JOINTS)} or more, 3) in m, "
                f"got {array.dtype} of shape {array.shape}"
            )
        return _numbers(path, arrays, REST, 3, None, 10.0)[: len(JOINTS)]
    body = make_body()
    half, thigh, shank = body.hip_half_width_m, body.thigh.length_m, body.shank.length_m
    apart, back = np.deg2rad(5.0), np.deg2rad(6.0)
    places: dict[str, tuple[float, float, float]] = {"Pelvis": (0.0, 0.09, 0.0)}
    for mark, sign in (("L", 1.0), ("R", -1.0)):
        knee = (sign * (half + np.sin(apart) * thigh), -np.cos(apart) * thigh, 0.0)
        ankle = (knee[0], knee[1] - np.cos(back) * shank, knee[2] - np.sin(back) * shank)
        ball = (ankle[0], ankle[1] - body.ankle_height_m + 0.015, ankle[2] + body.ball_m)
        places |= {f"{mark}_Hip": (sign * half, 0.0, 0.0), f"{mark}_Knee": knee, f"{mark}_Ankle": ankle}
        places |= {f"{mark}_Foot": ball, f"{mark}_Collar": (sign * 0.08, 0.50, 0.0)}
        places |= {f"{mark}_Shoulder": (sign * 0.18, 0.52, 0.0), f"{mark}_Elbow": (sign * 0.46, 0.52, 0.0)}
        places[f"{mark}_Wrist"] = (sign * 0.71, 0.52, 0.0)
    places |= {"Spine1": (0.0, 0.2, 0.0), "Spine2": (0.0, 0.32, 0.0), "Spine3": (0.0, 0.38, 0.0)}
    places |= {"Neck": (0.0, 0.58, 0.0), "Head": (0.0, 0.68, 0.03)}
    return np.array([places[name] for name in JOINTS])
