"""Checkpoints are written while the run trains on: of the state they were begun with, in order, and never lost."""

import errno
import logging
import os
import threading
from pathlib import Path

import pytest
import torch

from ludus.core.files import JSON
from ludus.store import Checkpoint
from ludus.training import TrainConfig
from ludus.training.callbacks import BaseCallback, Counters
from ludus.training.checkpointing import on_host
from ludus.training.loop import train

MAX_WAIT_S = 20.0
STEP_64, STEP_128 = "step-000000000064", "step-000000000128"


def make_config() -> TrainConfig:
    """Six iterations of 32 env steps, with a checkpoint after the second and the fourth."""
    return TrainConfig.model_validate(
        {
            "world": {"name": "recall", "num_envs": 4, "device": "cpu"},
            "total_env_steps": 192,
            "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 2},
            "checkpoints": {"every_env_steps": None, "every_iterations": 2},
        }
    )


def written(folder: Path) -> dict[str, bytes]:
    """Return all files of a run's checkpoints."""
    root = folder / "checkpoints"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.*"))}


class NextUpdate(BaseCallback):
    """Says when the update after the first periodic checkpoint is about to begin."""

    def __init__(self) -> None:
        self.begins = threading.Event()
        self.told: list[str] = []

    def on_rollout_end(self, counters: Counters) -> None:
        if counters.iterations == 2:
            self.begins.set()

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        self.told.append(f"{folder.name} {counters.iterations}")


def test_a_checkpoint_that_is_written_during_the_next_update_holds_the_state_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(make_config(), tmp_path / "quick")
    callback, fsync, waited = NextUpdate(), os.fsync, []

    def fsync_late(descriptor: int) -> None:
        """Let no file of the first periodic checkpoint reach the disk before the run has collected on."""
        if STEP_64 in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            waited.append(callback.begins.wait(MAX_WAIT_S))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync_late)
    train(make_config(), tmp_path / "late", [callback])
    assert waited
    assert all(waited), "the run did not continue while the checkpoint was written"
    assert callback.told == ["init 0", f"{STEP_64} 2", f"{STEP_128} 4", "final 6"]
    assert written(tmp_path / "late") == written(tmp_path / "quick")


def test_a_write_that_fails_in_the_background_is_warned_of_and_the_run_keeps_all_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fsync, callback = os.fsync, NextUpdate()

    def full_disk(descriptor: int) -> None:
        if STEP_64 in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_disk)
    with caplog.at_level(logging.WARNING):
        assert train(make_config(), tmp_path, [callback]).iterations == 6
    warnings = [record.getMessage() for record in caplog.records if "could not be written" in record.getMessage()]
    assert len(warnings) == 1
    assert STEP_64 in warnings[0]
    assert "No space left on device" in warnings[0]
    assert "training continues and tries again when the next one is due" in warnings[0]
    assert callback.told == ["init 0", f"{STEP_128} 4", "final 6"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["final", "init", STEP_128]


def test_no_thread_is_left_after_a_run(tmp_path: Path) -> None:
    train(make_config(), tmp_path)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("ludus-checkpoints")]


def test_a_copy_shares_nothing_with_the_run() -> None:
    offsets: list[JSON] = [1, 2]
    tensors = {"policy": {"weight": torch.arange(3.0)}}
    shown = Checkpoint(tensors, {"training": {"offsets": offsets}})
    copy, same = on_host(shown, copy=True), on_host(shown)
    tensors["policy"]["weight"].zero_()
    offsets.append(3)
    assert copy.tensors["policy"]["weight"].tolist() == [0.0, 1.0, 2.0]
    assert copy.documents == {"training": {"offsets": [1, 2]}}
    assert same.tensors["policy"]["weight"] is tensors["policy"]["weight"]


@pytest.mark.cuda
def test_tensors_of_a_gpu_are_copied_to_the_host_before_another_thread_has_them() -> None:
    weight = torch.arange(1_000_000, device="cuda", dtype=torch.float32)
    doubled = weight * 2.0  # still being computed, on the stream of the copy
    copy = on_host(Checkpoint({"policy": {"weight": weight, "doubled": doubled}}), copy=True).tensors["policy"]
    weight.zero_()
    doubled.zero_()
    assert copy["weight"].device.type == copy["doubled"].device.type == "cpu"
    assert torch.equal(copy["doubled"], 2.0 * torch.arange(1_000_000, dtype=torch.float32))
    assert torch.equal(copy["weight"], torch.arange(1_000_000, dtype=torch.float32))
