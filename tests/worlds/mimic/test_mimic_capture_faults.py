"""Recordings that are broken or meant to harm: refused with the line or frame, in little memory."""

import io
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.worlds.mimic.captures import STYLES, bvh_text, c3d_bytes, gait_clip, gait_markers

from ludus.core.errors import ConfigError, FormatError, LudusError
from ludus.worlds.mimic.capture.amass import JOINTS
from ludus.worlds.mimic.capture.importing import import_capture, load_capture, prepare
from ludus.worlds.mimic.capture.roles import MapConfig, load_map
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.motion.table import MAX_FILE_BYTES, MAX_FRAMES

pytestmark = pytest.mark.fault

MIB = 1 << 20
WALKER = make_walker(MimicConfig())


@pytest.fixture(scope="module")
def text() -> str:
    return bvh_text(WALKER, gait_clip(WALKER, 1.25, 60.0, 1.0), STYLES["mixamo"])


@pytest.fixture(scope="module")
def markers() -> bytes:
    return c3d_bytes(gait_markers(WALKER, gait_clip(WALKER, 1.25, 60.0, 1.0)), 60.0)


def line_of(text: str, start: str) -> int:
    """Returns the number of the first line that begins so."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith(start))


def refused(tmp_path: Path, name: str, content: bytes) -> str:
    """Returns the message with which a file is refused, in little memory."""
    file = tmp_path / name
    file.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(LudusError) as error:
            import_capture(prepare(file, MapConfig()), WALKER, MapConfig())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(error.value, FormatError | ConfigError)
    assert peak < 300 * MIB
    assert len(str(error.value)) < 2_000
    assert name in str(error.value)
    return str(error.value)


BVH_FAULTS: dict[str, tuple[str, str, str]] = {
    "not a BVH": ("HIERARCHY", "HELLO", "line 1: is not HIERARCHY"),
    "no frames": ("Frames: 60", "Frames: none", "must be 'Frames: N' with a whole number"),
    "too many frames": ("Frames: 60", "Frames: 99999999999999999999", "declares 99999999999999999999 frames"),
    "frames that are not there": ("Frames: 60", "Frames: 100000", "for which the file is too short"),
    "a frame too many": ("Frames: 60", "Frames: 59", "follows the 59 frames"),
    "a frame too few": ("Frames: 60", "Frames: 61", "the file ends after 60 of 61 frames"),
    "no time": ("Frame Time: 0.0166667", "Frame Time: 0", "a Frame Time of 0 s is not one"),
    "time is not a number": ("Frame Time: 0.0166667", "Frame Time: nan", "Frame Time is 'nan', which is not a finite"),
    "channels": ("CHANNELS 3 Zrotation Yrotation Xrotation", "CHANNELS 3 Zrotation Yrotation", "must be a count and"),
    "channel twice": ("CHANNELS 3 Zrotation Yrotation Xrotation", "CHANNELS 2 Zrotation Zrotation", "must be a count"),
    "offset": ("OFFSET 0.000000 10.000000 0.000000", "OFFSET 0 ten 0", "OFFSET of 'mixamorig:Spine2' is 'ten'"),
    "names twice": ("JOINT mixamorig:LeftLeg", "JOINT mixamorig:RightLeg", "joint 'mixamorig:RightLeg' is named twice"),
    "a second root": ("JOINT mixamorig:Spine2", "ROOT mixamorig:Spine2", "ROOT must not be inside another joint"),
    "a word": ("MOTION", "POTION", "'POTION' is unexpected here"),
    "no leg": ("mixamorig:RightLeg", "mixamorig:Tail", "no joint was found for right_knee"),
    "a leg elsewhere": ("OFFSET 0.000000 -42.875000 0.000000", "OFFSET 0 -3 0", "a wrong joint is mapped"),
}  # fmt: skip


@pytest.mark.parametrize("name", BVH_FAULTS)
def test_a_broken_bvh_file_is_refused(tmp_path: Path, text: str, name: str) -> None:
    old, new, said = BVH_FAULTS[name]
    assert old in text
    assert said in refused(tmp_path, "walk.bvh", text.replace(old, new).encode())


def test_faults_name_their_lines(tmp_path: Path, text: str) -> None:
    lines = text.splitlines()
    first = line_of(text, "Frame Time") + 1
    lines[first + 4] = lines[first + 4].rsplit(" ", 1)[0]
    lines[first + 9] = "nan " + lines[first + 9].split(" ", 1)[1]
    lines[first + 19] = "x " + lines[first + 19].split(" ", 1)[1]
    said = refused(tmp_path, "walk.bvh", "\n".join(lines).encode())
    assert f"line {first + 5} has 32 numbers, but the joints have 33 channels" in said
    assert f"line {first + 10}, number 1: 'nan' is not finite" in said
    assert f"line {first + 20}: 'x' is not a number" in said


def test_someone_who_lies_has_no_axis_that_is_up(tmp_path: Path, text: str) -> None:
    head, _, rows = text.partition("Frame Time: 0.0166667\n")
    lying = [" ".join([*row.split()[:3], "45", "0", "45", *row.split()[6:]]) for row in rows.splitlines()]
    said = refused(tmp_path, "walk.bvh", (head + "Frame Time: 0.0166667\n" + "\n".join(lying)).encode())
    assert "Give the axis as `up` in a map" in said


def test_exchanged_sides_are_found_out(tmp_path: Path, text: str) -> None:
    swapped = text.replace("Right", "?").replace("Left", "Right").replace("?", "Left")
    assert "left and right joints are exchanged" in refused(tmp_path, "walk.bvh", swapped.encode())


def bomb(member: str, size: int, header: bytes = b"") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{member}.npy", header + bytes(size))
    return content.getvalue()


def saved(**changes: object) -> bytes:
    """Returns an AMASS file with arrays changed; None leaves one out."""
    arrays: dict[str, object] = {"poses": np.zeros((50, 156)), "trans": np.zeros((50, 3)), "mocap_framerate": 60.0}
    arrays |= changes
    content = io.BytesIO()
    kept = {name: np.asarray(value) for name, value in arrays.items() if value is not None}
    np.savez_compressed(content, allow_pickle=True, **kept)
    return content.getvalue()


def unfinished() -> object:
    poses = np.zeros((50, 156))
    poses[7, 3] = np.nan
    return poses


NPZ_FAULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "not a zip": (lambda: b"PK\x03\x04" + bytes(100), "is not an intact npz file"),
    "no poses": (lambda: saved(poses=None), "has no array poses; it needs"),
    "no rate": (lambda: saved(mocap_framerate=None), "has no rate; it needs one of mocap_framerate"),
    "bad rate": (lambda: saved(mocap_framerate=0.0), "mocap_framerate must be one number from 20 to 2000"),
    "few joints": (lambda: saved(poses=np.zeros((50, 60))), "must hold numbers of shape (frames, 66 or more)"),
    "other frames": (lambda: saved(trans=np.zeros((49, 3))), "'trans' must hold numbers of shape (50, 3 or more)"),
    "NaN": (lambda: saved(poses=unfinished()), "frame 7, array 'poses', column 3: nan is not valid"),
    "pickle": (lambda: saved(poses=np.array([{"a": 1}], dtype=object)), "is not an npy array of numbers or text"),
    "zip bomb": (lambda: bomb("poses", 200 * MIB), "declares 209715200 bytes of arrays"),
    "text": (lambda: saved(trans=np.array(["a", "b"])), "array 'trans' must hold numbers"),
    "rest": (lambda: saved(rest_joints=np.zeros((3, 3))), "'rest_joints' must hold places of shape (22 or more, 3)"),
}  # fmt: skip


@pytest.mark.parametrize("name", NPZ_FAULTS)
def test_a_broken_npz_file_is_refused(tmp_path: Path, name: str) -> None:
    content, said = NPZ_FAULTS[name]
    assert said in refused(tmp_path, "walk.npz", content())


def test_a_pickle_that_is_not_needed_is_never_opened(tmp_path: Path) -> None:
    file = tmp_path / "walk.npz"
    file.write_bytes(saved(gender=np.array([{"male"}], dtype=object)))
    assert load_capture(file).names == JOINTS


def patched(content: bytes, at: int, data: bytes) -> bytes:
    return content[:at] + data + content[at + len(data) :]


C3D_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "not a C3D": (lambda data: patched(data, 1, b"x"), "is not a C3D file"),
    "short": (lambda data: data[:100], "is not a C3D file"),
    "cut off": (lambda data: data[:-100], "but ends at byte"),
    "no markers": (lambda data: patched(data, 2, struct.pack("<H", 0)), "declares 0 markers; valid: 1 to 400"),
    "many markers": (lambda data: patched(data, 2, struct.pack("<H", 65535)), "declares 65535 markers"),
    "many frames": (lambda data: patched(data, 8, struct.pack("<H", 65535)), "but ends at byte"),
    "backward": (lambda data: patched(data, 6, struct.pack("<H", 900)), "declares -839 frames of 14 markers"),
    "no scale": (lambda data: patched(data, 12, struct.pack("<f", 0.0)), "has a scale of 0, which is not one"),
    "data elsewhere": (lambda data: patched(data, 16, struct.pack("<H", 60000)), "but ends at byte"),
    "processor": (lambda data: patched(data, 515, b"\x01"), "has the processor type 1; valid: 84, 85, 86"),
    "parameters beyond": (lambda data: patched(data, 0, b"\xff"), "within its parameters"),
    "parameter": (lambda data: patched(data, 536, b"\x05"), "has a parameter of type 5 with 2 axes at byte 536"),
    "offset": (lambda data: patched(data, 534, b"\xff\xff"), "within its parameters, which goes to byte 66070"),
    "unseen": (lambda data: data[:1024] + bytes(12) + struct.pack("<f", -1.0) + data[1040:],
               "marker 'RASI' is not seen from frame 1 to 1; fill the gap, or leave it out with --start"),
}  # fmt: skip


@pytest.mark.parametrize("name", C3D_FAULTS)
def test_a_broken_c3d_file_is_refused(tmp_path: Path, markers: bytes, name: str) -> None:
    change, said = C3D_FAULTS[name]
    assert said in refused(tmp_path, "walk.c3d", change(markers))


@pytest.mark.parametrize("suffix", [".bvh", ".npz", ".c3d"])
def test_a_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"walk{suffix}"
    with file.open("wb") as stream:
        stream.truncate(10 * 1024 * MIB)  # takes no space
    with pytest.raises(ConfigError, match=f"has 10737418240 bytes; at most {MAX_FILE_BYTES}"):
        load_capture(file)


HOSTILE: dict[str, bytes] = {
    "one line": b"HIERARCHY\nROOT " + b"a" * (50 * MIB),
    "deep": b"HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\nCHANNELS 0\n" + b"JOINT a\n{\n" * 100_000,
    "braces": b"HIERARCHY\n" + b"{" * 100_000,
    "blank": b"HIERARCHY\n" + b"\n" * (50 * MIB),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_hierarchy_is_refused(tmp_path: Path, name: str) -> None:
    assert "line" in refused(tmp_path, "walk.bvh", HOSTILE[name])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("- a\n", "must be a mapping with the key joints, got list"),
        ("joints: {right_knie: a}\n", "joints.right_knie is no part of the body (did you mean 'right_knee'?)"),
        ("unit: 3\n", "unknown key 'unit'"),
        ("up: w\n", "up: String should match pattern"),
        ("rate_hz: 1\n", "rate_hz: Input should be greater than or equal to 20"),
    ],
)
def test_a_wrong_map_is_refused(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "map.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError) as error:
        load_map(file)
    assert said in str(error.value)


def test_a_map_that_names_no_joint_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "walk.bvh"
    file.write_text(text)
    settings = MapConfig(joints={"left_toe": "mixamorig:LeftTowBase"})
    with pytest.raises(ConfigError, match="did you mean 'mixamorig:LeftToeBase'"):
        import_capture(prepare(file, settings), WALKER, settings)


def skeleton_of(joints: int, channels: str, frames: int, words: str = "") -> bytes:
    """Returns a BVH file up to its frames: a root with one channel, and joints below it."""
    parts = "".join(f"JOINT j{number}\n{{\nOFFSET 0 0 0\n{channels}\n}}\n" for number in range(joints))
    head = f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 1 Xposition\n{words}{parts}}}\nMOTION\n"
    return f"{head}Frames: {frames}\nFrame Time: 0.01\n".encode()


ROTATIONS = "CHANNELS 3 Zrotation Xrotation Yrotation"
ROW = b"0 " + b" ".join([b"-12.345"] * 57) + b"\n"  # of 19 joints
BAD = [ROW if number % 1_000 else b"x" + ROW for number in range(MAX_FRAMES)]


def overlapping() -> bytes:
    """A C3D file with 5,000 parameters of 60 MB each, all on the same bytes."""
    parameter = b"\x01\x01A\x0a\x00\x01\x03\xff\xff\xff"  # of one letter, in group 1, the next one 10 bytes on
    head = bytes([2, 80]).ljust(512, b"\0") + bytes([1, 80, 1, 84])
    return (head + parameter * 6_000).ljust(20 * MIB, b"\0")


COSTLY: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "as much as is read": ("walk.bvh", lambda: skeleton_of(19, ROTATIONS, MAX_FRAMES) + ROW * MAX_FRAMES, "read"),
    "a fault in every block": (
        "walk.bvh", lambda: skeleton_of(19, ROTATIONS, MAX_FRAMES) + b"".join(BAD), "at least 100 faults",
    ),
    "joints without channels": (
        "walk.bvh", lambda: skeleton_of(398, "CHANNELS 0", MAX_FRAMES) + b"1\n" * MAX_FRAMES, "399 joints with 1",
    ),
    "words": (
        "walk.bvh", lambda: skeleton_of(1, ROTATIONS, 2, ("OFFSET 0 0 0 " * 15_000 + "\n") * 300), "20000 words",
    ),
    "parameters on each other": ("walk.c3d", overlapping, "parameters of more than 1048576 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTLY)
def test_the_largest_files_take_seconds(tmp_path: Path, name: str) -> None:
    file, content, said = COSTLY[name]
    (tmp_path / file).write_bytes(content())
    started = time.process_time()
    try:
        message = f"{load_capture(tmp_path / file).frames} frames were read"
    except FormatError as error:
        message = str(error)
    assert said in message
    assert time.process_time() - started < 10.0  # 2 s on a machine without other work


def test_more_than_a_walker_takes_must_be_cut(tmp_path: Path, text: str) -> None:
    head, times, rows = text.partition("Frame Time: 0.0166667\n")
    long = head.replace("Frames: 60", "Frames: 60000") + times + rows * 1_000
    assert "has 60000 frames; at most 50000" in refused(tmp_path, "walk.bvh", long.encode())
    assert prepare(tmp_path / "walk.bvh", MapConfig(), 10.0, 20.0).frames == 600
