"""Full and read-only disks: every command that writes ends with one line that names the file and the reason, code 2."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.training import TrainConfig, train
from ludus.training.callbacks import Counters
from ludus.training.run_folder import describe_run

pytestmark = pytest.mark.fault

Run = Callable[..., tuple[int, str, str]]

SMALL = ("world.num_envs=2", "total_env_steps=32", "ppo.n_steps=8", "ppo.sequence_length=4", "ppo.batch_size=16",
         "ppo.n_epochs=1", "opponents=random", "guard.free_disk_gib=null", "monitoring.console=off")  # fmt: skip
REASONS = {"full": "No space left on device", "read-only": "Read-only file system"}

# The arguments, and what the error names; {disk} is the bad disk, with a run on it, and {run} a run elsewhere.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": (f"train duel {' '.join(SMALL)} --run-dir {{disk}}/new", "{disk}/new/run.lock"),
    "resume": ("resume {disk}/run", "{disk}/run/"),
    "fork": ("resume {run} --fork {disk}/fork", "{disk}/fork/run.lock"),
    "export": ("export {run} --out {disk}/sub/agent.ludus", "{disk}/sub/agent.ludus"),
    "card": ("export {run} --out {run}/agent.ludus --card {disk}/card.md", "{disk}/card.md"),
    "onnx": ("export {run} --out {run}/agent.ludus --onnx {disk}/agent.onnx", "{disk}/agent.onnx"),
    "motion export": ("mimic motion export {disk}/gait.csv", "{disk}/gait.csv"),
    "motion show": ("mimic motion show {run}/gait.csv --out {disk}/gait.png", "{disk}/gait.png"),
    "tournament": ("tournament rock cycle --world duel --matches 2 --out {disk}/all", "{disk}/all/tournament.json"),
    "report": ("report {disk}/run", "{disk}/run/report.html"),
    "report elsewhere": ("report {run} --out {disk}/sub/page.html", "{disk}/sub/page.html"),
    "mp4": ("demo brawl --frames 3 --video {disk}/demo.mp4", "{disk}/demo.mp4"),
    "gif": ("demo brawl --frames 3 --video {disk}/demo.gif", "{disk}/demo.gif"),
    "record": ("demo brawl --frames 3 --video {run}/x.mp4 --record {disk}/sub/a.replay", "{disk}/sub/a.replay"),
    "replay": ("replay {run}/match.replay --video {disk}/v.mp4", "{disk}/v.mp4"),
}
NEEDS = {"onnx": "onnxscript", "mp4": "imageio_ffmpeg", "gif": "imageio_ffmpeg", "record": "imageio_ffmpeg",
         "replay": "imageio_ffmpeg"}  # fmt: skip


@pytest.fixture(scope="module")
def good_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "run"
    config = TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 2},
            "total_env_steps": 32,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1},
            "opponents": "random",
            "guard": {"free_disk_gib": None},
        }
    )
    train(config, folder)
    describe_run(folder, config, Counters())
    return folder


@pytest.mark.parametrize("kind", list(REASONS))
@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_bad_disk_is_an_error_with_a_path_and_a_reason(
    name: str, kind: str, run: Run, good_run: Path, small_disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(good_run)
    places = {"disk": small_disk.path, "run": good_run}
    if name == "motion show":
        assert run("mimic", "motion", "export", good_run / "gait.csv")[0] == 0
    if name == "replay":
        pytest.importorskip("pygame")
        assert run("demo", "brawl", "--frames", 3, "--video", good_run / "x.mp4", "--record", "match.replay")[0] == 0
    shutil.copytree(good_run, small_disk.path / "run")
    small_disk.fill() if kind == "full" else small_disk.protect()
    arguments, file = COMMANDS[name]
    code, _, err = run(*arguments.format(**places).split())
    errors = [line for line in err.splitlines() if line.startswith("[ERROR]")]
    assert code == 2, err
    assert len(errors) == 1, err
    assert "Traceback" not in err
    assert file.format(**places) in errors[0]
    assert REASONS[kind] in errors[0]


def test_a_disk_without_room_for_the_first_checkpoint_is_an_error(run: Run, small_disk: Any) -> None:
    small_disk.fill(free=64 * 1024)  # room for the lock and the first tables
    code, _, err = run("train", "duel", *SMALL, "policy.net_arch={pi: [256, 256], vf: [256, 256]}", "--run-dir",
                       small_disk.path / "new")  # fmt: skip
    errors = [line for line in err.splitlines() if line.startswith("[ERROR]")]
    assert code == 2, err
    assert len(errors) == 1, err
    assert "Traceback" not in err
    assert "checkpoints/" in errors[0]
    assert "init" in errors[0], "before anything is trained"
    assert REASONS["full"] in errors[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_to_a_full_disk_is_an_error_too() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "ludus.cli.main", "--help"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"[ERROR] the output could not be written: No space left on device; free some space\n"


def test_a_kernel_cache_that_cannot_be_written_is_an_error(small_disk: Any) -> None:
    small_disk.protect()
    done = subprocess.run(
        [sys.executable, "-m", "ludus.cli.main", "verify", "duel"], capture_output=True, text=True,
        env=os.environ | {"WARP_CACHE_PATH": str(small_disk.path / "warp")},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "WARP_CACHE_PATH" in done.stderr
    assert "could not be written: Read-only file system" in done.stderr
