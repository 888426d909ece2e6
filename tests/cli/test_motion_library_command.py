"""Tests of the motions of the package on the command line: list, show and export, and a training that follows one."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.image import imread

Run = Callable[..., tuple[int, str, str]]


def test_list_names_motions_and_what_can_be_imitated(run: Run) -> None:
    code, out, _ = run("mimic", "motion", "list")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines["run-2.5"].endswith("world.settings.motion=run-2.5")
    assert "walker-13" in lines["turn-left"]
    assert lines["stairs-up"].endswith("world.settings.motion=stairs-up")
    rows = json.loads(run("mimic", "motion", "list", "--json")[1])
    assert {row["name"]: row["speed_m_s"] for row in rows}["walk-slow"] == 0.4


def test_show_tells_and_draws_a_motion_of_the_package(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "march.png"
    code, out, err = run("mimic", "motion", "show", "march", "--out", picture)
    assert code == 0, err
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert lines["speed"].split()[1:] == ["0.90", "m/s"]
    assert float(lines["right_hip"].split()[2]) > 65.0
    assert f"[OK] picture written to {picture}" in out
    pixels = imread(picture)
    assert (pixels[90:460, :, :3].min(axis=2) < 0.6).mean() > 0.01
    summary = json.loads(run("mimic", "motion", "show", "turn-left", "--walker", "walker-13", "--json")[1])
    assert len(summary["joints"]) == 13
    assert summary["quality"]["slide_mm"] < 11.0


def test_export_writes_a_motion_that_loads(run: Run, tmp_path: Path) -> None:
    code, out, err = run("mimic", "motion", "export", tmp_path / "march.csv", "--motion", "march")
    assert code == 0, err
    assert "400 frames of march written to" in out
    summary = json.loads(run("mimic", "motion", "show", tmp_path / "march.csv", "--json")[1])
    assert summary["natural_speed_m_s"] == pytest.approx(0.9, rel=0.05)
    assert summary["period_s"] == pytest.approx(1.0, rel=0.01)


def test_a_training_follows_a_motion_by_name(run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    small = ("world.num_envs=4", "ppo.n_steps=16", "ppo.batch_size=32", "total_env_steps=64", "evaluation.matches=2")
    words = (*small, "world.settings.motion=backward", "evaluation.scenarios=[walk]")
    code, _, err = run("train", "mimic", *words, "--preset", "debug", "--run-dir", tmp_path / "run")
    assert code == 0, err
    # Its way is measured along the motion's direction, so there is nothing to warn of.
    assert "mean little" not in caplog.text
    assert "motion: backward" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "turn-left"), "which walker-8 cannot; use walker-13"),
        (("show", "march", "--video", "a.txt"), "video a.txt must end in one of .mp4, .gif"),
        (("export", "a.csv", "--motion", "marsh"), "unknown motion 'marsh' (did you mean 'march'?)"),
        (("export", "a.csv", "--motion", "march", "--speed", 1), "planned for its own speed"),
        (("export", "a.txt", "--motion", "march"), "motion file a.txt ends with .txt; valid: .csv"),
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
