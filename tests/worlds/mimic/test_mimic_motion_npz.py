"""Tests of npz motion files: what is read, what is refused, and that no file can run code or fill the memory."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.core.errors import FormatError, LudusError
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import NormalGait
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.motion.export import export_gait
from ludus.worlds.mimic.motion.files import read_npz
from ludus.worlds.mimic.motion.motion import Motion, load_motion, motion_of_table

FRAMES = 460
KINDS = ("hip", "knee", "ankle")


def arrays(**changes: Any) -> dict[str, Any]:
    """Returns the arrays of a good file: the right leg, 1.1 s a stride; some of them changed, None takes one away."""
    curves, phases = NormalGait(has_trunk=False), np.arange(FRAMES) / 110.0 % 1.0
    angles = np.stack([curves.joint(kind, "right", phases, 1.0) for kind in KINDS], axis=1)
    joints = np.array([f"right_{kind}" for kind in KINDS])
    whole = {"angles": angles, "joints": joints, "units": "rad", "rate_hz": 100} | changes
    return {name: array for name, array in whole.items() if array is not None}


def content_of(**changes: Any) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays(**changes))
    return content.getvalue()


@pytest.fixture
def load(tmp_path: Path) -> Callable[[bytes], Motion]:
    """Loads a file with such content."""

    def loaded(content: bytes) -> Motion:
        file = tmp_path / "walk.npz"
        file.write_bytes(content)
        return load_motion(file)

    return loaded


def good_angles() -> Any:
    return arrays()["angles"]


def test_a_good_file_is_read(load: Callable[[bytes], Motion]) -> None:
    angles = good_angles()
    motion = load(content_of())
    assert motion.joints == ("right_hip", "right_knee", "right_ankle")
    assert np.array_equal(motion.angles, angles)
    assert motion.stride.period_s == pytest.approx(1.1, rel=1e-3)
    assert (motion.row_name, motion.rows[:2]) == ("frame", (0, 1))
    other = load(
        content_of(
            angles=np.asfortranarray(np.rad2deg(angles).astype(">f4")),
            units=np.array(["deg"]),
            rate_hz=np.array([100.0]),
            velocities=np.gradient(np.rad2deg(angles), 0.01, axis=0),
            root_height_m=np.full(FRAMES, 0.95),
        )
    )
    assert other.angles == pytest.approx(angles, abs=1e-5)
    assert other.root["root_height"] == pytest.approx(np.full(FRAMES, 0.95))


def test_joints_are_found_by_name_in_any_order(load: Callable[[bytes], Motion]) -> None:
    motion = load(
        content_of(angles=good_angles()[:, ::-1], joints=np.array(["right_ankle", "right_knee", "right_hip"]))
    )
    assert motion.joints == ("right_hip", "right_knee", "right_ankle")
    assert np.array_equal(motion.angles, good_angles())


class Runs:
    """Says that it was unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return pytest.fail, ("code of the file was run",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"units": None}, "has no array units; it needs angles, joints, units, rate_hz"),
        ({"units": "degrees"}, "units must be 'deg' or 'rad', got 'degrees'"),
        ({"units": np.array(1.0)}, "array 'units' must hold 1 to 64 texts, got float64"),
        ({"rate_hz": "100"}, "rate_hz must be one number, got <U3"),
        ({"rate_hz": np.nan}, "rate_hz must be one number"),
        ({"rate_hz": 3.0}, "20 to 2000"),
        ({"angels": np.zeros(3)}, "unknown array 'angels' (did you mean 'angles.npy'?)"),
        ({"angles": np.zeros((FRAMES, 2))}, "array 'angles' must hold numbers of shape (frames, 3)"),
        ({"angles": np.zeros((FRAMES, 3), complex)}, "array 'angles'"),
        ({"velocities": np.zeros((3, 3))}, "array 'velocities' must hold numbers of shape (460, 3)"),
        ({"joints": np.array(["right_hip", "right_kne", "right_ankle"])}, "joints, column 2: unknown column"),
        ({"joints": np.array(["right_hip", "right_knee", "right_hip"])}, "joints, column 3: 'right_hip_rad'"),
        ({"joints": np.array([], dtype="U3")}, "array 'joints' must hold 1 to 64 texts"),
        ({"joints": np.array([Runs()])}, "array 'joints'"),
        ({"root_height_m": np.full(FRAMES, 9.5)}, "frame 0, column 'root_height_m': 9.5 m"),
    ],
)
def test_faults_are_named(load: Callable[[bytes], Motion], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FormatError) as error:
        load(content_of(**changes))
    assert "walk.npz" in str(error.value)
    assert said in str(error.value)


def test_a_number_that_is_not_finite_is_named_with_its_frame(load: Callable[[bytes], Motion]) -> None:
    angles = good_angles()
    angles[33, 1] = np.nan
    with pytest.raises(FormatError, match="frame 33, column 'right_knee_rad': nan"):
        load(content_of(angles=angles))


def test_a_zip_bomb_is_not_unpacked(load: Callable[[bytes], Motion]) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("angles.npy", bytes(80 * 2**20))
    assert len(content.getvalue()) < 2**20
    with pytest.raises(FormatError, match=r"83886080.*67108864"):
        load(content.getvalue())


def _npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"not numpy at all",
        _npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }"),
        _npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, , 2), }", bytes(8)),
        _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        _npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        _npy("{'descr': '<f8', 'fortran_order': __import__('os'), 'shape': (1,), }", bytes(8)),
        _npy("{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }", bytes(3)),
    ],
)
def test_arrays_with_other_headers_are_refused(load: Callable[[bytes], Motion], member: bytes) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("angles.npy", member)
    with pytest.raises(FormatError, match="array 'angles'"):
        load(content.getvalue())


def test_an_array_twice_and_foreign_text_are_refused(load: Callable[[bytes], Motion]) -> None:
    content = io.BytesIO(content_of())
    with zipfile.ZipFile(content, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("angles.npy", b"")
    with pytest.raises(FormatError, match="array 'angles'"):
        load(content.getvalue())
    beyond = np.array([0x7FFFFFFF] * 3, dtype="<u4").view("<U1")
    with pytest.raises(FormatError, match=r"array 'joints'.*ASCII"):
        load(content_of(joints=beyond))


def read(content: bytes) -> Motion | None:
    """Returns a motion, or None if it was refused as it should be; any other error than ours fails the test."""
    try:
        return motion_of_table(read_npz(Path("garbage.npz"), content))
    except LudusError as error:
        if "garbage.npz" not in str(error):
            raise
        return None


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_garbage_is_refused(content: bytes) -> None:
    assert read(content) is None


@given(st.lists(st.tuples(st.floats(0.0, 1.0, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=5))
@settings(max_examples=200)
def test_a_damaged_file_is_refused_or_still_a_motion(damage: list[tuple[float, int]]) -> None:
    content = bytearray(content_of())
    for place, value in damage:
        content[int(place * len(content))] = value
    motion = read(bytes(content))
    assert motion is None or np.isfinite(motion.stride.mean).all()


@given(st.integers(0, 12_000))
@settings(max_examples=50)
def test_a_file_that_was_cut_off_is_refused(length: int) -> None:
    whole = content_of()
    assert read(whole[: min(length, len(whole) - 1)]) is None


def test_an_exported_file_is_small_and_read_without_numpy_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_gait(tmp_path / "gait.npz", make_walker(MimicConfig()), 1.25, 100.0)
    monkeypatch.setattr(np, "load", lambda *_: pytest.fail("numpy.load was called"))
    assert load_motion(tmp_path / "gait.npz").stride.count == 5
