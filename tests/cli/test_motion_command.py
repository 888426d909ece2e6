"""Tests of `ludus mimic motion`: export, show as table, JSON and picture, and errors as one message."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.image import imread

pytestmark = pytest.mark.train

Run = Callable[..., tuple[int, str, str]]


def test_export_and_show(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "new" / "gait.csv"
    code, out, _ = run("mimic", "motion", "export", file, "--speed", 1.0)
    assert code == 0
    assert f"256 frames of walk written to {file}" in out
    code, out, _ = run("mimic", "motion", "show", file)
    assert code == 0
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert "at 104.079 Hz" in lines["frames"]
    assert lines["strides"].split() == ["strides", "1"]
    assert "1.00 m/s, can be followed at 0.60 to 1.40" in lines["natural speed"]
    assert lines["right_knee"].split()[-1] == "0.0"
    assert "note: hip_rotation is not in the file: that of the normal gait (walker-13 alone has it)" in out


def test_show_draws_a_picture_and_prints_json(run: Run, tmp_path: Path) -> None:
    file, picture = tmp_path / "gait.csv", tmp_path / "pictures" / "motion.png"
    run("mimic", "motion", "export", file, "--walker", "walker-13")
    code, out, _ = run("mimic", "motion", "show", file, "--walker", "walker-13", "--out", picture, "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["natural_speed_m_s"] == pytest.approx(1.25, abs=0.02)
    assert summary["cadence_steps_min"] == pytest.approx(109.0, abs=0.5)
    assert len(summary["joints"]) == 13
    assert summary["joints"]["right_knee"]["range_deg"] == pytest.approx(60.0, abs=3.0)
    assert summary["picture"] == str(picture)
    pixels = imread(picture)
    assert pixels.shape == (1254, 1650, 4)
    ground_and_figures = pixels[90:460, :, :3]
    assert (ground_and_figures.min(axis=2) < 0.6).mean() > 0.02


def test_a_larger_body_takes_longer_strides(run: Run, tmp_path: Path) -> None:
    run("mimic", "motion", "export", tmp_path / "a.csv")
    lengths = [
        json.loads(run("mimic", "motion", "show", tmp_path / "a.csv", "--height", height, "--json")[1])[
            "stride_length_m"
        ]
        for height in (1.6, 1.9)
    ]
    assert lengths[1] / lengths[0] == pytest.approx(1.9 / 1.6, rel=0.02)


def test_a_scuffing_foot_is_told(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    run("mimic", "motion", "export", file)
    _, head, names, *rows = file.read_text().splitlines()
    column = names.split(",").index("left_knee_deg")
    stiff = []
    for row in rows:
        cells = row.split(",")
        cells[column] = str(0.5 * float(cells[column]) + 3.0)
        stiff.append(",".join(cells))
    file.write_text("\n".join([head, names, *stiff]))
    code, out, _ = run("mimic", "motion", "show", file)
    assert code == 0
    assert "note: the swinging foot scuffs the ground" in out


def test_a_trial_beyond_the_motions_speeds_is_warned_of(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, folder = tmp_path / "slow.csv", tmp_path / "run"
    run("mimic", "motion", "export", file, "--speed", 0.7)
    rate_hz = float(file.read_text().partition("rate_hz: ")[2].split()[0])
    slower = f"rate_hz: {0.8 * rate_hz:g}"  # 0.56 m/s, followed up to 0.78
    file.write_text(file.read_text().replace(f"rate_hz: {rate_hz:g}", slower))
    small = ("world.num_envs=4", "ppo.n_steps=16", "ppo.batch_size=32", "total_env_steps=64", "evaluation.matches=2")
    words = (*small, f"world.settings.motion={file}", "evaluation.scenarios=[walk, speed-1.4]")
    code, _, err = run("train", "mimic", *words, "--preset", "debug", "--run-dir", folder)
    assert code == 0, err
    said = f"a desired speed of 1.4 m/s is outside the range of the motion {file}, 0.34 to 0.78 m/s"
    assert caplog.text.count(f"[WARN] {said}") == 1
    code, out, _ = run("eval", folder, "--scenario", "speed-1.4", "--matches", 1, "--json")
    assert code == 0
    (warning,) = json.loads(out)["warnings"]
    assert warning.startswith(said)
    assert run("report", folder)[0] == 0
    assert said in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "nowhere.csv"), "motion file nowhere.csv is missing; the path is relative"),
        (("show", "walk", "--height", 5), "height_m: Input should be less than or equal to 2.2, got 5"),
        (("show", "walk", "--walker", "walker-9"), "walker: Input should be 'walker-8' or 'walker-13'"),
        (("export", "a.txt"), "motion file a.txt ends with .txt; valid: .csv"),
        (("export", "a.csv", "--speed", 9), "speed must be from 0.4 to 2, got 9"),
    ],
)
def test_errors_are_one_message(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("mimic", "motion", *arguments)
    assert code == 2
    assert err.startswith("[ERROR] ")
    assert said in err
    assert not list(tmp_path.iterdir())
