"""`ludus mimic motion import`: the printed tables, the files it writes, corrections, and errors as one message."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.worlds.mimic.captures import STYLES, bvh_text, gait_clip

from ludus.worlds.mimic.config import MimicConfig
from ludus.worlds.mimic.model import make_walker

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def walk() -> str:
    """A BVH file of a body of 1.75 m that walks at 1.25 m/s for three seconds."""
    walker = make_walker(MimicConfig())
    return bvh_text(walker, gait_clip(walker, 1.25, 60.0, 3.0), STYLES["mixamo"])


def test_import_writes_a_motion_that_can_be_shown(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walk.bvh").write_text(walk)
    code, out, err = run("mimic", "motion", "import", "walk.bvh")
    assert code == 0, err
    cells = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in out.splitlines()}
    assert cells["up axis"] == "y"
    assert cells["unit"].startswith("cm")
    assert cells["right_knee"] == "mixamorig:RightLeg"
    assert float(cells["standing feet float"].split()[0]) < 6.5
    assert "[OK] 180 frames written to walk.csv" in out
    assert "[OK] 2 strides at 1.25 m/s" in out
    code, out, _ = run("mimic", "motion", "show", "walk.csv", "--json")
    assert code == 0
    assert json.loads(out)["natural_speed_m_s"] == pytest.approx(1.25, rel=0.02)


def test_a_map_is_written_corrected_and_used(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walk.bvh").write_text(walk.replace("mixamorig:RightLeg", "Tail"))
    code, _, err = run("mimic", "motion", "import", "walk.bvh")
    assert code == 2
    assert "no joint was found for right_knee" in err
    assert "--write-map" in err
    code, out, err = run("mimic", "motion", "import", "walk.bvh", "--write-map", "map.yaml")
    assert code == 0, err
    text = Path("map.yaml").read_text()
    assert "  right_knee: null\n" in text
    assert "  left_knee: 'mixamorig:LeftLeg'\n" in text
    Path("map.yaml").write_text(text.replace("right_knee: null", "right_knee: Tail") + "unit_m: 0.01\n")
    code, out, err = run(
        "mimic", "motion", "import", "walk.bvh", "--map", "map.yaml", "--out", "new/walk.csv", "--json"
    )
    assert code == 0, err
    report = json.loads(out)
    assert report["joints"]["right_knee"] == "Tail"
    assert report["found"]["unit"].startswith("0.01 m (given)")
    assert report["summary"]["natural_speed_m_s"] == pytest.approx(1.25, rel=0.02)
    assert Path("new/walk.csv").is_file()


def test_a_part_that_is_no_walk_is_written_with_a_warning(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walk.bvh").write_text(walk)
    code, out, err = run("mimic", "motion", "import", "walk.bvh", "--start", 0.5, "--stop", 1.0)
    assert code == 0
    assert "[OK] 30 frames written to walk.csv" in out
    assert "[WARN] a walker cannot imitate all of it: motion file walk.csv" in err


def test_the_walker_is_filmed_beside_the_recording(run: Run, tmp_path: Path, walk: str) -> None:
    imageio = pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg")
    from ludus.core.errors import VideoError
    from ludus.worlds.mimic.rendering.gl import open_context

    try:
        open_context(64, 64).free()
    except VideoError as error:
        pytest.skip(f"needs OpenGL, from the Debian packages libegl1 and libegl-mesa0, or libosmesa6: {error}")
    file, video = tmp_path / "walk.bvh", tmp_path / "walk.mp4"
    file.write_text(walk)
    code, out, err = run(
        "mimic", "motion", "import", file, "--stop", 0.34, "--out", tmp_path / "walk.csv", "--video", video
    )
    assert code == 0, err
    assert f"[OK] video written to {video}" in out
    assert imageio.count_frames_and_secs(str(video))[0] == 10


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.bvh",), "motion file nowhere.bvh is missing; the path is relative"),
        (("walk.csv",), "(.csv) are used as they are"),
        (("walk.fbx",), "motion file walk.fbx ends with .fbx; valid: .bvh, .npz, .c3d"),
        (("walk.bvh", "--out", "a.txt"), "motion file a.txt ends with .txt; valid: .csv"),
        (("walk.bvh", "--start", 9), "from 9 s to its end there are 0 frames of walk.bvh, which lasts 3.00 s"),
        (("walk.bvh", "--map", "no.yaml"), "there is no such file"),
        (("walk.bvh", "--height", 5), "height_m: Input should be less than or equal to 2.2, got 5"),
        (("walk.bvh", "--video", "a.txt"), "video a.txt must end in one of .mp4, .gif"),
    ],
)
def test_errors_are_one_message(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: str, arguments: tuple[object, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walk.bvh").write_text(walk)
    code, _, err = run("mimic", "motion", "import", *arguments)
    assert code == 2
    assert err.startswith("[ERROR] ")
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["walk.bvh"]
