"""Promise 5, the loop's half: on a full disk training goes on, the old checkpoint stays, and saving is tried again."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ludus.core.errors import StoreFullError
from ludus.store import verify_checkpoint
from ludus.training import Iteration, QuietCallback, TrainConfig, train

ITERATIONS = 8


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("mount is not installed")
    result = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if result.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {result.stderr.strip()}")
    yield disk
    subprocess.run([umount, str(disk)], check=True)


class Filler(QuietCallback):
    """Fills the disk to the last byte after one iteration and empties it after a later one."""

    def __init__(self, disk: Path, full_after: int, free_after: int) -> None:
        self._ballast = disk / "ballast"
        self._full_after, self._free_after = full_after, free_after
        self.names: list[list[str]] = []

    def on_iteration(self, iteration: Iteration) -> None:
        done = iteration.counters.iterations
        store = self._ballast.parent / "run" / "checkpoints"
        self.names.append(sorted(path.name for path in store.iterdir()))
        for name in self.names[-1]:
            verify_checkpoint(store / name)
        if done == self._full_after:
            with self._ballast.open("wb", buffering=0) as file:
                for size in (1 << 16, 1):
                    try:
                        while True:
                            file.write(bytes(size))
                    except OSError:
                        continue
        if done == self._free_after:
            self._ballast.unlink()


def make_config() -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_games": 2},
            "total_env_steps": ITERATIONS * 2 * 8,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"steps": 8, "chunk": 4, "batch_size": 16, "epochs": 1},
            "opponents": "random",
            "checkpoints": {"every_iterations": 1, "keep": 1},
            "guard": {"free_disk_gib": None},  # which would stop the run before the disk is full
        }
    )


def test_training_goes_on_and_saving_is_tried_again(
    small_disk: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filler = Filler(small_disk, full_after=3, free_after=6)
    counters = train(make_config(), small_disk / "run", [filler])
    assert counters.iterations == ITERATIONS
    step_2, step_6, step_7 = (f"step-{16 * iterations:012d}" for iterations in (2, 6, 7))
    # What is seen after an iteration was saved after the one before it; 3, 4 and 5 could not be saved.
    assert filler.names[2:] == [["init", step_2]] * 4 + [["init", step_6], ["init", step_7]]
    assert caplog.text.count("training goes on and tries again when the next one is due") == 3
    assert "No space left on device" in caplog.text
    train(make_config(), tmp_path / "straight")
    metrics = (small_disk / "run" / "metrics.jsonl").read_bytes()
    assert metrics == (tmp_path / "straight" / "metrics.jsonl").read_bytes(), "no line was lost, doubled or torn"


def test_a_final_checkpoint_that_cannot_be_saved_is_an_error_and_resuming_finishes(small_disk: Path) -> None:
    with pytest.raises(StoreFullError, match="No space left on device"):
        train(make_config(), small_disk / "run", [Filler(small_disk, full_after=6, free_after=-1)])
    (small_disk / "ballast").unlink()
    assert train(make_config(), small_disk / "run").iterations == ITERATIONS
    verify_checkpoint(small_disk / "run" / "checkpoints" / "final")
    assert len((small_disk / "run" / "metrics.jsonl").read_text().splitlines()) == ITERATIONS
