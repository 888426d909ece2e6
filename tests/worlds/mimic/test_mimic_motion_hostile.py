"""Motion files that are meant to harm: refused with a typed error, in little memory, without waiting for anything."""

import io
import os
import re
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ludus.core.errors import ConfigError, FormatError, LudusError
from ludus.worlds.mimic.capture.importing import load_capture
from ludus.worlds.mimic.motion.files import read_csv
from ludus.worlds.mimic.motion.motion import load_motion
from ludus.worlds.mimic.motion.table import MAX_FILE_BYTES, MAX_FRAMES

pytestmark = pytest.mark.fault

MIB = 1 << 20
NAMES = b"# rate_hz: 100\nright_hip_deg,right_knee_deg,right_ankle_deg\n"


def npy(descr: str, shape: str, body: bytes = b"") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def archive(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as file:
        for name, member in members.items():
            file.writestr(f"{name}.npy", member)
    return content.getvalue()


def not_finite() -> bytes:
    content = io.BytesIO()
    poses = np.full((90_000, 66), np.nan)
    np.savez_compressed(content, poses=poses, trans=np.zeros((90_000, 3)), mocap_framerate=100.0)
    return content.getvalue()


def many_members() -> bytes:
    """Returns an archive of 300,000 empty members, put together by hand: `zipfile` takes long to write it."""
    count = 300_000
    entries = (b"PK\x01\x02" + bytes(24) + b"\x01\x00" + bytes(16) + b"a") * count
    end = b"PK\x05\x06" + bytes(4) + 2 * (count % 65_536).to_bytes(2, "little")
    return entries + end + len(entries).to_bytes(4, "little") + bytes(6)


HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "newlines": (".csv", lambda: b"\n" * (60 * MIB), "62914560 lines; at most 201000"),
    "carriage returns": (".csv", lambda: b"\r" * (60 * MIB), "62914560 lines"),
    "one long line": (".csv", lambda: b"a" * (60 * MIB), "line 1 has 62914560 bytes; at most 10000"),
    "cells without end": (".csv", lambda: NAMES + b"1," * (30 * MIB), "line 3 has 62914560 bytes"),
    "many bad cells": (".csv", lambda: NAMES + b"nan,nan,nan\n" * 50_000, "has at least 100 faults"),
    "many short lines": (".csv", lambda: NAMES + b"1\n" * 50_000, "has at least 100 faults"),
    "many rates": (".csv", lambda: b"# rate_hz: x\n" * 50_000, "has at least 100 faults"),
    "too many bytes": (".csv", lambda: bytes(MAX_FILE_BYTES + 1), "has 67108865 bytes; at most 67108864"),
    "many NaN": (".npz", not_finite, "has at least 100 faults"),
    "many members": (".npz", many_members, "has 300000 arrays"),
    "huge empty shape": (".npz", lambda: archive(poses=npy("<f8", f"(0, {10**27})")), "declares shape"),
    "huge empty cube": (".npz", lambda: archive(poses=npy("<f8", "(0, 999999999, 999999999)")), "declares shape"),
    "empty": (".npz", lambda: archive(poses=npy("<f8", "(0, 999999999)")), "has no array trans"),
    "text without letters": (".npz", lambda: archive(poses=npy("<U0", "(999999999,)")), "array 'poses'"),
    "bzip2 bomb": (
        ".npz",
        lambda: archive(zipfile.ZIP_BZIP2, poses=bytes(10 * MIB)),
        "deflate",
    ),
    "lzma bomb": (
        ".npz",
        lambda: archive(zipfile.ZIP_LZMA, poses=bytes(10 * MIB)),
        "deflate",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content_is_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    suffix, content, said = HOSTILE[name]
    file = tmp_path / f"walk{suffix}"
    file.write_bytes(content())
    tracemalloc.start()
    try:
        with pytest.raises(LudusError) as error:
            load_motion(file) if suffix == ".csv" else load_capture(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(error.value, FormatError | ConfigError)
    assert said in str(error.value)
    assert len(str(error.value)) < 2_000
    assert peak < 256 * MIB


def _link(target: str) -> Callable[[Path], None]:
    return lambda file: file.symlink_to(target)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs and devices")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "a FIFO"),
        (Path.mkdir, "a folder"),
        (_link("/dev/zero"), "a symbolic link"),
        (_link("walk.csv"), "a symbolic link"),
        (_link("nowhere.csv"), "a symbolic link"),
    ],
    ids=["FIFO", "folder", "device", "circle", "dangling"],
)
def test_only_regular_files_are_opened(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    file = tmp_path / "walk.csv"
    make(file)
    with pytest.raises(ConfigError, match=f"walk.csv cannot be opened: it is {said}, not a regular file"):
        load_motion(file)


def test_a_path_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'walk\\x00\.csv'"):
        load_motion("walk\0.csv")


@pytest.mark.parametrize(
    ("line", "said"),
    [("20,20,-5", "lasts 5000 s; at most 1200"), ("20,20,-5x", "has at least 100 faults")],
)
def test_the_longest_files_take_seconds(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "walk.csv"
    angles = [f"{value:.3f}" for value in 20.0 * np.sin(np.arange(20) / 20 * 2 * np.pi) + 20.0]
    rows = "\n".join(line.replace("20", angles[number % 20]) for number in range(MAX_FRAMES))
    file.write_bytes(NAMES.replace(b"100", b"20") + rows.encode())
    started = time.process_time()
    with pytest.raises(FormatError) as error:
        load_motion(file)
    assert said in str(error.value)
    assert time.process_time() - started < 10.0


def test_blocks_of_lines_are_read_as_cells_are(tmp_path: Path) -> None:
    lines = ["1, 2 ,3", ' "4","5",6', "+7,8e0,.9e1", "", "10,11,12"]
    table = read_csv(tmp_path / "walk.csv", NAMES + "\n".join(lines).encode())
    assert table.values.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]
    assert table.rows == (3, 4, 5, 7)
    for line, fault in (("1,,3", "line 4, column 'right_knee_deg'"), ("1 2,3,4", "line 4, column 'right_hip_deg'"),
                        ("1,2,3,", "line 4 has 4 cells"), ("1,2", "line 4 has 2 cells"), ("1_0,2,3", "line 4, column"),
                        ("1,2,1e999", "is not finite"), ("1,2,0x10", "'0x10' is not a number")):  # fmt: skip
        with pytest.raises(FormatError, match=re.escape(fault)):
            read_csv(tmp_path / "walk.csv", NAMES + f"1,2,3\n{line}\n4,5,6\n".encode())
