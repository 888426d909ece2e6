"""Promise 5, the loop's half: on a full disk training goes on, the old checkpoint stays, and saving is tried again."""

from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import StoreFullError
from ludus.store import verify_checkpoint
from ludus.training import BaseCallback, Iteration, TrainConfig, train

ITERATIONS = 8


class Filler(BaseCallback):
    """Fills the disk to the last byte after one iteration and empties it after a later one."""

    def __init__(self, disk: Any, full_after: int, free_after: int) -> None:
        self._disk = disk
        self._full_after, self._free_after = full_after, free_after
        self.names: list[list[str]] = []

    def on_iteration(self, iteration: Iteration) -> None:
        done = iteration.counters.iterations
        store = self._disk.path / "run" / "checkpoints"
        self.names.append(sorted(path.name for path in store.iterdir()))
        for name in self.names[-1]:
            verify_checkpoint(store / name)
        if done == self._full_after:
            self._disk.fill()
        if done == self._free_after:
            self._disk.empty()


def make_config() -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "world": {"name": "duel", "num_envs": 2},
            "total_env_steps": ITERATIONS * 2 * 8,
            "policy": {"net_arch": {"pi": [4], "vf": [4]}},
            "ppo": {"n_steps": 8, "sequence_length": 4, "batch_size": 16, "n_epochs": 1},
            "opponents": "random",
            "checkpoints": {"every_iterations": 1, "keep": 1},
            "guard": {"free_disk_gib": None},  # which would stop the run before the disk is full
        }
    )


def test_training_goes_on_and_saving_is_tried_again(
    small_disk: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filler = Filler(small_disk, full_after=3, free_after=6)
    counters = train(make_config(), small_disk.path / "run", [filler])
    assert counters.iterations == ITERATIONS
    step_2, step_6, step_7 = (f"step-{16 * iterations:012d}" for iterations in (2, 6, 7))
    # What is seen after an iteration was saved after the one before it; 3, 4 and 5 could not be saved.
    assert filler.names[2:] == [["init", step_2]] * 4 + [["init", step_6], ["init", step_7]]
    assert caplog.text.count("training continues and tries again when the next one is due") == 3
    assert "No space left on device" in caplog.text
    train(make_config(), tmp_path / "straight")
    metrics = (small_disk.path / "run" / "metrics.jsonl").read_bytes()
    assert metrics == (tmp_path / "straight" / "metrics.jsonl").read_bytes(), "no line was lost, doubled or torn"


def test_a_final_checkpoint_that_cannot_be_saved_is_an_error_and_resuming_finishes(small_disk: Any) -> None:
    with pytest.raises(StoreFullError, match="No space left on device"):
        train(make_config(), small_disk.path / "run", [Filler(small_disk, full_after=6, free_after=-1)])
    small_disk.empty()
    assert train(make_config(), small_disk.path / "run").iterations == ITERATIONS
    verify_checkpoint(small_disk.path / "run" / "checkpoints" / "final")
    assert len((small_disk.path / "run" / "metrics.jsonl").read_text().splitlines()) == ITERATIONS
