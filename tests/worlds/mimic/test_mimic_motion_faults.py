"""Tests of motion files with faults: every message names the file, the column and the row."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus.core.errors import ConfigError, FormatError, LudusError
from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.gait import Floats, NormalGait
from ludus.worlds.mimic.model import make_walker
from ludus.worlds.mimic.motion.files import read_csv
from ludus.worlds.mimic.motion.motion import Motion, load_motion, motion_of_table
from ludus.worlds.mimic.motion.reference import checked_stride
from ludus.worlds.mimic.motion.table import JOINTS

Columns = dict[str, Floats]
FIRST_LINE = 3  # of the numbers: the rate and the header are before them
FRAMES = 460


def right_leg() -> Columns:
    """Returns hip, knee and ankle of the right leg in degrees: steady walking at 100 Hz, 1.1 s a stride."""
    phases = np.arange(FRAMES) / 110.0 % 1.0
    curves = NormalGait(has_trunk=False)
    return {
        f"right_{kind}_deg": np.rad2deg(curves.joint(kind, "right", phases, 1.0)) for kind in ("hip", "knee", "ankle")
    }


def lines_of(columns: Mapping[str, Floats], rate: str = "# rate_hz: 100") -> list[str]:
    rows = [",".join(f"{value:.5f}" for value in row) for row in zip(*columns.values(), strict=True)]
    return [rate, ",".join(columns), *rows]


@pytest.fixture
def fault(tmp_path: Path) -> Callable[[list[str]], str]:
    """Returns the message that a file of such lines gives."""

    def message(lines: list[str]) -> str:
        file = tmp_path / "walk.csv"
        file.write_text("\n".join(lines))
        with pytest.raises(FormatError) as error:
            load_motion(file)
        assert str(file) in str(error.value)
        return str(error.value)

    return message


def with_cell(lines: list[str], line: int, column: int, cell: str) -> list[str]:
    cells = lines[line - 1].split(",")
    cells[column] = cell
    return [*lines[: line - 1], ",".join(cells), *lines[line:]]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("abc", "'abc'"),
        ("", "''"),
        ("1_0", "'1_0'"),
        ("nan", "'nan'"),
        ("-inf", "'-inf'"),
        ("1e300", "1e+300"),
        ("170", "-2 to 130 deg"),
        ("-18", "-18.0 deg"),
    ],
)
def test_a_bad_cell_is_named(fault: Callable[[list[str]], str], cell: str, said: str) -> None:
    message = fault(with_cell(lines_of(right_leg()), 17, 1, cell))
    assert "line 17, column 'right_knee_deg'" in message
    assert said in message


def test_all_bad_cells_are_told_at_once(fault: Callable[[list[str]], str]) -> None:
    lines = lines_of(right_leg())
    for line in range(10, 30):
        lines = with_cell(lines, line, 0, "x")
    message = fault(lines)
    assert "has 20 faults" in message
    assert "line 10, column 'right_hip_deg'" in message
    assert message.endswith("and 12 more")


def test_wrong_number_of_cells(fault: Callable[[list[str]], str]) -> None:
    lines = lines_of(right_leg())
    lines[49] = "1.0,2.0"
    assert "line 50 has 2 cells" in fault(lines)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("right_knee", "'right_knee_deg' or 'right_knee_rad'"),
        ("right_knee_degrees", "'degrees'"),
        ("right_knee_vel_deg", "'right_knee_vel_deg_s'"),
        ("right_kne_deg", "'right_knee_deg'"),
        ("right_hip_frontl_deg", "'right_hip_frontal_deg'"),
        ("time", "'time_s'"),
        ("root_height_mm", "'root_height_m'"),
        ("", "name"),
        ("right_hip_deg", "'right_hip_deg'"),
        ("right_hip_rad", "'right_hip_deg'"),
    ],
)
def test_a_bad_column_is_named(fault: Callable[[list[str]], str], name: str, said: str) -> None:
    columns = right_leg()
    lines = lines_of(columns | {"left_hip_deg": columns["right_hip_deg"]})
    lines[1] = f"right_hip_deg,right_knee_deg,right_ankle_deg,{name}"
    message = fault(lines)
    assert "line 2, column 4: " in message
    assert said in message


def test_semicolons_are_told(fault: Callable[[list[str]], str]) -> None:
    assert "commas" in fault([line.replace(",", ";") for line in lines_of(right_leg())])


def test_missing_joints_are_named(fault: Callable[[list[str]], str]) -> None:
    columns = right_leg()
    del columns["right_ankle_deg"]
    columns["left_hip_deg"] = columns["right_hip_deg"]
    assert "right_ankle" in fault(lines_of(columns))


def test_degrees_called_radians_and_the_other_way_round(fault: Callable[[list[str]], str]) -> None:
    columns = right_leg()
    knee = columns.pop("right_knee_deg")
    peak = FIRST_LINE + int(knee.argmax())
    message = fault(lines_of(columns | {"right_knee_rad": knee}))
    assert f"line {peak}, column 'right_knee_rad'" in message
    assert "degrees" in message
    message = fault(lines_of(columns | {"right_knee_deg": np.deg2rad(knee)}))
    assert f"line {peak}, column 'right_knee_deg': all angles lie within 1.1 deg" in message


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("# no rate", "time_s"),
        ("# rate_hz: 5", "20 to 2000"),
        ("# rate_hz: 100000", "rate_hz gives 1e+05"),
        ("# rate_hz: -100", "rate_hz gives -100"),
        ("# rate_hz: fast", "line 1: rate_hz is 'fast'"),
        ("# rate_hz: nan", "line 1: rate_hz is 'nan'"),
    ],
)
def test_a_bad_rate_is_told(fault: Callable[[list[str]], str], rate: str, said: str) -> None:
    assert said in fault(lines_of(right_leg(), rate))


def test_two_rates_must_agree(fault: Callable[[list[str]], str]) -> None:
    times = {"time_s": np.arange(FRAMES) / 125.0}
    assert "column 'time_s' runs at 125 Hz" in fault(lines_of(times | right_leg()))
    lines = lines_of(right_leg())
    assert "line 2: rate_hz is 120" in fault([lines[0], "# rate_hz: 120", *lines[1:]])


def test_times_must_increase_evenly(fault: Callable[[list[str]], str]) -> None:
    times = np.arange(FRAMES) / 100.0
    back, gap, slow = times.copy(), times.copy(), times * 1000.0
    back[20] = 0.1
    gap[30:] += 0.02
    said = {}
    for name, series in (("back", back), ("gap", gap), ("slow", slow)):
        said[name] = fault(lines_of({"time_s": series} | right_leg(), "# times below"))
    assert f"line {FIRST_LINE + 20}, column 'time_s': 0.1 s" in said["back"]
    assert f"line {FIRST_LINE + 30}, column 'time_s': 0.03 s" in said["gap"]
    assert "column 'time_s' gives 0.1" in said["slow"]


def test_a_jump_or_a_wrong_rate_shows_in_the_speed(fault: Callable[[list[str]], str]) -> None:
    columns = right_leg()
    columns["right_hip_deg"][200:] += 40.0  # from one frame to the next: 0.7 rad at 100 Hz
    message = fault(lines_of(columns))
    assert f"line {FIRST_LINE + 200}, column 'right_hip_deg': moves at 7" in message
    assert "100 Hz" in message
    assert "1000 Hz" in fault(lines_of(right_leg(), "# rate_hz: 1000"))


def test_velocities_tell_the_rate_that_fits(fault: Callable[[list[str]], str], tmp_path: Path) -> None:
    phases = np.arange(2000) / (500.0 * 1.1)
    curves = NormalGait(has_trunk=False)
    columns = {
        f"right_{kind}_deg": np.rad2deg(curves.joint(kind, "right", phases % 1.0, 1.0))
        for kind in ("hip", "knee", "ankle")
    }
    columns["right_knee_vel_deg_s"] = np.gradient(columns["right_knee_deg"], 1.0 / 500.0)
    message = fault(lines_of(columns, "# rate_hz: 400"))
    assert "column 'right_knee_vel_deg_s'" in message
    assert "500 Hz" in message
    file = tmp_path / "right.csv"
    file.write_text("\n".join(lines_of(columns, "# rate_hz: 500")))
    assert load_motion(file).rate_hz == 500.0


def test_velocities_must_be_those_of_the_angles(fault: Callable[[list[str]], str]) -> None:
    columns = right_leg()
    speeds = np.gradient(columns["right_knee_deg"], 0.01)
    spoiled = speeds.copy()
    spoiled[100] += 1000.0
    message = fault(lines_of(columns | {"right_knee_vel_deg_s": spoiled}))
    assert f"line {FIRST_LINE + 100}, column 'right_knee_vel_deg_s'" in message
    assert "rad/s" in message
    assert "column 'right_knee_vel_deg_s'" in fault(lines_of(columns | {"right_knee_vel_deg_s": -speeds}))
    assert "column 'right_hip_vel_deg_s'" in fault(lines_of(columns | {"right_hip_vel_deg_s": speeds}))
    message = fault(lines_of(columns | {"left_knee_vel_deg_s": speeds}))
    assert "column 'left_knee_vel_deg_s'" in message


def test_too_short_empty_and_foreign_files(fault: Callable[[list[str]], str], tmp_path: Path) -> None:
    lines = lines_of(right_leg())
    assert "40 frames at 100 Hz" in fault(lines_of({name: values[20:60] for name, values in right_leg().items()}))
    assert "0 frames" in fault(lines[:2])
    assert "1 frames" in fault(["time_s," + lines[1], "0.0," + lines[2]])
    assert "is empty" in fault(["# rate_hz: 100"])
    (tmp_path / "walk.bin").touch()
    with pytest.raises(ConfigError, match=r"walk\.bin.*\.csv"):
        load_motion(tmp_path / "walk.bin")
    with pytest.raises(ConfigError, match=r"nowhere\.csv"):
        load_motion(tmp_path / "nowhere.csv")
    (tmp_path / "latin.csv").write_bytes(b"# a\nright_knee_deg\n\xff\n")
    with pytest.raises(FormatError, match=r"line 3.*UTF-8"):
        load_motion(tmp_path / "latin.csv")


def test_what_does_not_repeat_itself_is_no_stride(fault: Callable[[list[str]], str]) -> None:
    random = np.random.default_rng(1)
    drift = {name: np.cumsum(random.normal(0.0, 0.5, FRAMES)) + 15.0 for name in right_leg()}
    assert "no stride was found" in fault(lines_of(drift))
    hardly = {name: 10.0 + 2.0 * (np.arange(FRAMES) > 100) * (np.arange(FRAMES) - 100) / 100 for name in right_leg()}
    assert "hips and knees" in fault(lines_of(hardly))
    part = {name: values[10:120] for name, values in right_leg().items()}
    part["right_hip_deg"] = part["right_hip_deg"] + np.linspace(0.0, 20.0, 110)
    assert "no stride was found" in fault(lines_of(part))


def test_what_repeats_itself_may_be_unlike_walking(fault: Callable[[list[str]], str]) -> None:
    turns = 2.0 * np.pi * np.arange(FRAMES) / 100.0
    hopping = {"right_hip_deg": 10.0 - 10.0 * np.cos(3 * turns), "right_knee_deg": 20.0 + 10.0 * np.cos(5 * turns),
               "right_ankle_deg": 0.0 * turns}  # fmt: skip
    assert "correlation" in fault(lines_of(hopping, "# rate_hz: 50"))


def test_walking_backward_or_not_at_all_is_refused(tmp_path: Path) -> None:
    backward = {name: values[::-1] for name, values in right_leg().items()}
    backward["right_ankle_deg"] = np.zeros(FRAMES)
    still = right_leg()
    still["right_hip_deg"] = 0.5 * still["right_knee_deg"]  # the feet go up and down below the hips
    still["right_ankle_deg"] = 0.5 * still["right_knee_deg"]
    file = tmp_path / "walk.csv"
    for columns, way in ((backward, "backward: -"), (still, "not at all: -?")):
        file.write_text("\n".join(lines_of(columns)))
        with pytest.raises(FormatError, match=rf"walk.csv walks {way}\d\.\d\d m"):
            checked_stride(load_motion(file), make_walker(MimicConfig()))


def test_feet_in_the_ground_are_named_with_phase_and_row(tmp_path: Path) -> None:
    columns, file = right_leg(), tmp_path / "deep.csv"
    walker = make_walker(MimicConfig())
    file.write_text("\n".join(lines_of(columns)))
    needed = checked_stride(load_motion(file), walker).root[:, 0]
    heights = needed[np.round(np.arange(FRAMES) / 110.0 * len(needed)).astype(int) % len(needed)]
    file.write_text("\n".join(lines_of(columns | {"root_height_m": heights})))
    motion = load_motion(file)
    assert checked_stride(motion, walker).length_m > 1.0
    assert any(note.startswith("root_height is a check alone") for note in motion.notes)
    dent = 0.08 * np.exp(-(((np.arange(FRAMES) % 110 - 44) / 6.0) ** 2))  # deepest at phase 0.40, frame 44
    file.write_text("\n".join(lines_of(columns | {"root_height_m": heights - dent})))
    with pytest.raises(FormatError, match=r"column 'root_height_m': at phase 0\.(39|40|41) .* 8 cm below") as error:
        checked_stride(load_motion(file), walker)
    line = int(str(error.value).partition("line ")[2].partition(",")[0])
    assert abs(line - (FIRST_LINE + 44)) <= 2
    file.write_text("\n".join(lines_of(columns | {"root_height_m": 1000.0 * heights})))
    with pytest.raises(FormatError, match=r"line 3, column 'root_height_m': \d+\.\d+ m"):
        load_motion(file)


CELLS = st.one_of(
    st.floats(width=32).map(str), st.floats().map(repr), st.integers(-200, 200).map(str), st.text(max_size=4)
)
NAMES = st.sampled_from([f"{joint}_{unit}" for joint in JOINTS for unit in ("deg", "rad", "vel_deg_s")] + ["time_s"])


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Returns files that look like motions."""
    names = draw(st.lists(st.one_of(NAMES, NAMES, st.text(max_size=8)), min_size=1, max_size=6))
    if draw(st.booleans()):
        names = ["right_hip_deg", "right_knee_deg", "right_ankle_deg"]
    cells = draw(st.sampled_from([CELLS, st.floats(-1e3, 1e3).map(str), st.integers(-20, 40).map(str)]))
    rows = draw(st.lists(st.lists(cells, min_size=len(names), max_size=len(names)), max_size=40))
    head = draw(st.sampled_from(["# rate_hz: 20", "# rate_hz: 1e-320", "#", "# rate_hz: x"]))
    return "\n".join([head, ",".join(names), *map(",".join, rows)]).encode("utf-8", "surrogatepass")


def loaded(data: bytes) -> Motion | None:
    """Returns a motion, or None if it was refused as it should be; any other error than ours fails the test."""
    try:
        motion = motion_of_table(read_csv(Path("garbage.csv"), data))
        checked_stride(motion, make_walker(MimicConfig()))
    except LudusError as error:
        if "garbage.csv" not in str(error):
            raise
        return None
    return motion


@given(st.one_of(st.binary(max_size=200), tables()))
@settings(max_examples=300)
def test_garbage_is_refused_with_a_message(data: bytes) -> None:
    motion = loaded(data)
    assert motion is None or np.isfinite(motion.stride.mean).all()


@given(st.integers(0, 2**32 - 1), st.integers(10, 400), st.sampled_from([20.0, 60.0, 250.0]), st.floats(0.0, 3.0))
@settings(max_examples=60)
def test_any_motion_is_averaged_or_refused(seed: int, frames: int, rate_hz: float, noise: float) -> None:
    random = np.random.default_rng(seed)
    turns = 2.0 * np.pi * np.arange(frames) / rate_hz * random.uniform(0.3, 2.0)
    columns = {}
    for kind in ("hip", "knee", "ankle"):
        waves = [random.normal(0.0, 6.0) * np.cos(k * turns + random.uniform(0.0, 6.0)) for k in (1, 2, 3)]
        columns[f"right_{kind}_deg"] = 10.0 + sum(waves, random.normal(0.0, noise, frames))
    motion = loaded("\n".join(lines_of(columns, f"# rate_hz: {rate_hz}")).encode())
    assert motion is None or (motion.stride.count >= 1 and np.isfinite(motion.stride.mean).all())
