"""The store of a run: names, order, retention, damaged and foreign entries, leftovers."""

import errno
import os
import shutil
from pathlib import Path

import pytest
import torch

from ludus.core import files
from ludus.core.errors import CheckpointError, ConfigError, FormatError, UnknownNameError
from ludus.store import NAMED, Checkpoint, CheckpointStore, step_name


def content(value: int) -> Checkpoint:
    return Checkpoint(tensors={"policy": {"weight": torch.full((3,), float(value))}}, documents={"counters": value})


class Example:
    def __init__(self, root: Path, keep: int) -> None:
        self.reports: list[str] = []
        self.store = CheckpointStore(root, keep=keep, report=self.reports.append)


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example(tmp_path / "checkpoints", keep=2)


def test_an_empty_store_has_nothing_and_makes_nothing(example: Example) -> None:
    assert example.store.names() == []
    assert example.store.latest_valid() is None
    assert example.store.prune(1) == []
    assert not example.store.root.exists()
    with pytest.raises(UnknownNameError, match="unknown checkpoint 'best'"):
        example.store.load("best")


def test_what_was_saved_last_is_the_latest_whatever_its_name_and_step(example: Example) -> None:
    store = example.store
    for name, step in (("init", 0), (step_name(200), 200), ("best", 200), (step_name(100), 100)):
        assert store.save(name, step, content(step)) == store.root / name
        latest = store.latest_valid()
        assert latest is not None
        assert (latest.name, latest.step, latest.checkpoint.documents) == (name, step, {"counters": step})
    assert store.names() == ["best", "init", "step-000000000100", "step-000000000200"]
    assert store.load("best").step == 200
    assert store.load("best", parts=["counters"]).checkpoint.tensors == {}
    assert example.reports == []


def test_old_ones_go_and_named_and_protected_ones_stay(example: Example) -> None:
    store = example.store
    for name in NAMED:
        store.save(name, 0, content(0))
    for step in range(1, 6):
        store.save(step_name(step), step, content(step))
    assert store.names() == sorted([*NAMED, step_name(4), step_name(5)])
    assert store.prune(1, protected=[step_name(4)]) == []
    assert store.prune(1, protected=[]) == [step_name(4)]


def test_foreign_entries_are_neither_listed_nor_touched(example: Example, tmp_path: Path) -> None:
    store = example.store
    store.save("init", 0, content(0))
    outside = tmp_path / "outside"
    store.save("final", 0, content(7))
    (store.root / "final").rename(outside)
    (store.root / "notes").mkdir()
    (store.root / "notes" / "todo.txt").write_text("mine")
    (store.root / "Backup of best").mkdir()
    (store.root / "file").write_text("mine")
    (store.root / "linked").symlink_to(outside)
    for step in range(4):
        store.save(step_name(step), step, content(step))
    assert store.names() == ["init", step_name(2), step_name(3)]
    assert {path.name for path in store.root.iterdir()} > {"notes", "Backup of best", "file", "linked"}
    assert (outside / "manifest.json").exists()


def test_damaged_ones_are_named_and_the_next_older_one_is_used(example: Example) -> None:
    store = Example(example.store.root, keep=9).store
    for step in range(4):
        store.save(step_name(step), step, content(step))
    (store.root / step_name(3) / "policy.safetensors").write_bytes(b"")
    (store.root / step_name(2) / "manifest.json").unlink()
    latest = example.store.latest_valid()
    assert latest is not None
    assert latest.step == 1
    assert len(example.reports) == 2
    assert f"{step_name(2)} cannot be used: manifest.json: is missing" in example.reports[0]
    assert f"{step_name(3)} cannot be used: policy.safetensors: has 0 bytes" in example.reports[1]
    with pytest.raises(CheckpointError):
        example.store.load(step_name(3))


def test_retention_counts_only_whole_ones_and_spares_damaged_ones(example: Example) -> None:
    store = example.store
    store.save(step_name(1), 1, content(1))
    store.save(step_name(2), 2, content(2))
    (store.root / step_name(2) / "policy.safetensors").write_bytes(b"")
    store.save(step_name(3), 3, content(3))
    assert store.names() == [step_name(1), step_name(2), step_name(3)]
    store.save(step_name(4), 4, content(4))
    assert store.names() == [step_name(2), step_name(3), step_name(4)]


def test_pruning_reads_the_newest_in_full_and_never_deletes_the_last_valid_one(example: Example) -> None:
    store = Example(example.store.root, keep=9).store
    for step in range(4):
        store.save(step_name(step), step, content(step))
    for step in (2, 3):  # same sizes: only reading finds it
        path = store.root / step_name(step) / "policy.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    assert example.store.prune(1) == [step_name(0), step_name(2)]
    assert store.names() == [step_name(1), step_name(3)]
    assert [step_name(step) in report for step, report in zip((3, 2), example.reports, strict=True)] == [True, True]


def test_a_name_can_be_reused_after_its_checkpoint_was_damaged(example: Example) -> None:
    store = example.store
    store.save("best", 1, content(1))
    (store.root / "best" / "manifest.json").write_text("?")
    store.save("best", 2, content(2))
    assert store.load("best").step == 2


def test_leftovers_of_a_killed_save_are_removed_and_reported(example: Example) -> None:
    store = example.store
    store.save("best", 1, content(1))
    leftover = store.root / f"{files.TEMPORARY_PREFIX}{os.getpid()}-999999999-best"
    leftover.mkdir()
    (store.root / "best").rename(store.root / f"{files.ASIDE_PREFIX}best")
    assert store.names() == ["best"]
    assert store.load("best").step == 1
    store.save(step_name(2), 2, content(2))
    assert sorted(path.name for path in store.root.iterdir()) == ["best", step_name(2)]
    assert example.reports == [f"removed {leftover}, left behind by a save that was cut off"]


def test_an_old_one_that_cannot_be_deleted_is_reported_and_the_save_counts(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = example.store
    for step in range(2):
        store.save(step_name(step), step, content(step))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EACCES, "permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", refuse)
        store.save(step_name(2), 2, content(2))
    assert "could not be deleted: permission denied" in example.reports[0]
    assert store.names() == [step_name(1), step_name(2)]


@pytest.mark.parametrize("name", ["", "../best", "Best", ".best", "a/b", "x" * 65])
def test_bad_names_are_refused(example: Example, name: str) -> None:
    with pytest.raises(ConfigError, match="checkpoint name"):
        example.store.save(name, 0, content(0))


def test_bad_settings_and_contents_are_refused(example: Example) -> None:
    with pytest.raises(ConfigError, match="keep is 0"):
        CheckpointStore(example.store.root, keep=0, report=example.reports.append)
    with pytest.raises(ConfigError, match="keep is 0"):
        example.store.prune(0)
    with pytest.raises(FormatError):
        example.store.save("best", -1, content(0))


def test_many_damaged_ones_are_counted_and_the_first_named(example: Example) -> None:
    store, reports = example.store, example.reports
    store.save("step-1", 1, content(1))
    for number in range(300):
        (store.root / f"foreign-{number:03}").mkdir()
        (store.root / f"foreign-{number:03}" / "model.safetensors").touch()
    latest = store.latest_valid()
    assert latest is not None
    assert latest.name == "step-1"
    named = [*(f"foreign-{number:03}" for number in range(50)), "250 more"]
    assert all(name in report for name, report in zip(named, reports, strict=True))
