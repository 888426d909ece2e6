"""Promise 12: memory and disk limits clean up, or save and stop, before the system ends the process.

And a run whose evaluations no longer get better says so, or stops.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ludus.store import verify_checkpoint
from ludus.training import BaseCallback, Counters, Iteration, TrainConfig, Trainer
from ludus.training.resources import GIB, folder_bytes
from ludus.training.session import EXIT_STOPPED

if TYPE_CHECKING:
    from tests.commands import Commands

PLUGIN = Path(__file__).with_name("slow_plugin.py")
ITERATIONS = 8
SETTINGS: dict[str, Any] = {
    "world": {"name": "duel", "num_envs": 4},
    "total_env_steps": ITERATIONS * 32,
    "policy": {"net_arch": {"pi": [4], "vf": [4]}},
    "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1},
    "opponents": "random",
    "checkpoints": {"every_iterations": 1, "keep": 50},
    "guard": {"every_s": 0.0, "folder_gib": None, "free_disk_gib": None},
    "monitoring": {"console": "plain", "tensorboard": False, "curves": False},
}


class Watcher(BaseCallback):
    """Writes down what it is told, and the periodic checkpoints that are there after every iteration."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.messages: list[str] = []
        self.periodic: list[int] = []

    def on_iteration(self, iteration: Iteration) -> None:
        self.periodic.append(len(list((self._folder / "checkpoints").glob("step-*"))))

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        self.messages.append(f"{level}: {text}")


def run(folder: Path, **guard: Any) -> tuple[Trainer, Watcher]:
    watcher = Watcher(folder)
    config = TrainConfig.model_validate(SETTINGS | {"guard": SETTINGS["guard"] | guard})
    with Trainer(config, folder, [watcher]) as trainer:
        trainer.run()
    return trainer, watcher


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight")
    assert run(folder)[0].is_finished
    return folder


def check_stop(trainer: Trainer, watcher: Watcher, folder: Path, reason: str) -> None:
    assert not trainer.is_finished
    assert trainer.stop_reason.startswith(reason)
    assert watcher.messages[-1] == f"alarm: {trainer.stop_reason}; the run saves and stops"
    verify_checkpoint(folder / "checkpoints" / "interrupted")


def test_memory_that_runs_short_saves_and_stops_with_a_reason(
    commands: "Commands", straight: Path, tmp_path: Path
) -> None:
    file, folder = tmp_path / "duel.yaml", tmp_path / "run"
    file.write_text(json.dumps(SETTINGS))
    words = ("train", "duel", "--config", file, "--run-dir", folder, "guard.memory_gib=1", "--plugin", PLUGIN)
    code, said = commands.run(*words, environment={"FAULT": "memory"})
    assert code == EXIT_STOPPED == 3, said
    assert "GiB of memory, guard.memory_gib allows 1.00; use fewer games" in said
    assert "[OK] checkpoint interrupted saved at 96 steps" in said
    assert "[WARN] ended at env step 96: the process and its children use 1." in said
    assert commands.run("resume", folder)[0] == 0
    assert (folder / "metrics.jsonl").read_bytes() == (straight / "metrics.jsonl").read_bytes()


def test_a_run_folder_that_grows_too_large_loses_its_old_checkpoints_first(straight: Path, tmp_path: Path) -> None:
    one = folder_bytes(straight / "checkpoints" / "init")
    trainer, watcher = run(tmp_path, folder_gib=4.5 * one / GIB)  # init and three more fit beside the tables
    assert trainer.is_finished
    assert watcher.periodic == [0, 1, 2, 3, 4, 2, 3, 4]
    assert [text.rpartition("; ")[2] for text in watcher.messages] == ["deleted 3 old checkpoints"] * 2
    assert all("guard.folder_gib allows" in text for text in watcher.messages)
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert left == ["final", "init", "step-000000000224"]
    assert (tmp_path / "metrics.jsonl").read_bytes() == (straight / "metrics.jsonl").read_bytes()


def test_a_run_folder_that_cannot_be_made_smaller_stops_the_run(straight: Path, tmp_path: Path) -> None:
    one = folder_bytes(straight / "checkpoints" / "init")
    trainer, watcher = run(tmp_path, folder_gib=0.5 * one / GIB)
    check_stop(trainer, watcher, tmp_path, "the run folder holds ")
    assert trainer.counters.iterations == 1
    trainer, _ = run(tmp_path)
    assert trainer.is_finished
    assert (tmp_path / "metrics.jsonl").read_bytes() == (straight / "metrics.jsonl").read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("mount is not installed")
    words = [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {result.stderr.strip()}")
    yield disk
    subprocess.run([umount, str(disk)], check=True)


def test_a_disk_that_runs_short_loses_old_checkpoints_first_and_then_stops_the_run(
    small_disk: Path, straight: Path
) -> None:
    folder = small_disk / "run"
    free = shutil.disk_usage(small_disk).free
    shutil.copytree(straight / "checkpoints" / "init", small_disk / "init")
    one = free - shutil.disk_usage(small_disk).free  # in whole pages
    trainer, watcher = run(folder, free_disk_gib=(free - 6.5 * one) / GIB)
    assert trainer.is_finished
    assert max(watcher.periodic) < ITERATIONS - 1
    assert "guard.free_disk_gib asks for" in watcher.messages[0]
    shutil.rmtree(folder)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - 3 * one))
    trainer, watcher = run(folder, free_disk_gib=2.5 * one / GIB)
    check_stop(trainer, watcher, folder, "the disk has ")
    assert trainer.counters.iterations <= 2
    ballast.unlink()
    trainer, _ = run(folder)
    assert trainer.is_finished
    assert (folder / "metrics.jsonl").read_bytes() == (straight / "metrics.jsonl").read_bytes()


def make_stuck(action: str) -> TrainConfig:
    """Settings of a run that does not learn, so that each evaluation gives the score of the first."""
    return TrainConfig.model_validate(
        SETTINGS
        | {
            "ppo": SETTINGS["ppo"] | {"learning_rate": 1e-12},
            "evaluation": {"every_env_steps": 32, "opponents": ["rock"], "matches": 4},
            "guard": SETTINGS["guard"] | {"plateau": {"evaluations": 3, "action": action}},
        }
    )


def test_a_plateau_is_warned_of_once_each_time(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path)
    with Trainer(make_stuck("warn"), tmp_path, [watcher]) as trainer:
        trainer.run()
    assert trainer.is_finished
    best = trainer.evaluator.best
    assert watcher.messages == [
        f"warning: plateau: no better score than {best:.3f} in {count} evaluations" for count in (3, 6)
    ]


def test_a_plateau_can_stop_the_run(commands: "Commands", tmp_path: Path) -> None:
    file = tmp_path / "stuck.yaml"
    file.write_text(make_stuck("stop").model_dump_json())
    code, said = commands.run("train", "duel", "--config", file, "--run-dir", tmp_path / "run")
    assert code == EXIT_STOPPED
    assert "[WARN] ended at env step 128: no better score than " in said
    assert "[OK] checkpoint interrupted saved at 128 steps" in said
    code, said = commands.run("resume", tmp_path / "run")
    assert code == EXIT_STOPPED, "the next three are no better either"
    assert "[WARN] ended at env step 224: no better score than " in said
