"""Promise 4: any changed, lost or added byte is found before use and named; the next older checkpoint is used."""

from pathlib import Path

import pytest
import torch

from ludus.core.errors import CheckpointError
from ludus.store import Checkpoint, CheckpointStore, load_checkpoint, save_checkpoint, verify_checkpoint

SMALL = Checkpoint(
    tensors={"policy": {"weight": torch.tensor([1.5, -2.0]), "steps": torch.tensor(7)}},
    documents={"counters": {"env_steps": 7, "note": "a b"}},
)
FILES = ["manifest.json", "policy.safetensors", "counters.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "best", SMALL, step=7)
    assert sorted(path.name for path in (tmp_path / "best").iterdir()) == sorted(FILES)
    return tmp_path / "best"


def is_found(folder: Path, name: str) -> bool:
    """Whether reading refuses the checkpoint and names the file."""
    try:
        load_checkpoint(folder)
    except CheckpointError as error:
        return error.file == name
    return False


@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_is_found(folder: Path, name: str) -> None:
    original = (folder / name).read_bytes()
    missed = []
    for position in range(len(original)):
        for mask in (0x01, 0x20, 0x80, 0xFF):  # the lowest bit, a letter's case, out of ASCII, all bits
            changed = bytearray(original)
            changed[position] ^= mask
            (folder / name).write_bytes(changed)
            if not is_found(folder, name):
                missed.append((position, mask))
    assert missed == []
    (folder / name).write_bytes(original)
    assert verify_checkpoint(folder).step == 7


@pytest.mark.parametrize("name", FILES)
def test_every_truncation_and_any_addition_is_found(folder: Path, name: str) -> None:
    original = (folder / name).read_bytes()
    missed = []
    for length in range(len(original)):
        (folder / name).write_bytes(original[:length])
        if not is_found(folder, name):
            missed.append(length)
    for addition in (b"\x00", b"\n", b" ", original):
        (folder / name).write_bytes(original + addition)
        if not is_found(folder, name):
            missed.append(len(original) + len(addition))
    assert missed == []


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_found(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert is_found(folder, name)


def test_files_of_two_valid_checkpoints_cannot_be_mixed(folder: Path) -> None:
    other = folder.with_name("other")
    save_checkpoint(other, Checkpoint(tensors=SMALL.tensors, documents={"counters": {"env_steps": 8, "note": "a b"}}))
    (folder / "counters.json").write_bytes((other / "counters.json").read_bytes())
    assert is_found(folder, "counters.json")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fault", ["flip", "truncate", "remove"])
def test_the_next_older_valid_one_is_used_and_every_damaged_one_is_named(tmp_path: Path, name: str, fault: str) -> None:
    reports: list[str] = []
    store = CheckpointStore(tmp_path, keep=5, report=reports.append)
    for step in range(4):
        store.save(f"step-{step}", step, SMALL)
    for step in (2, 3):
        path = tmp_path / f"step-{step}" / name
        data = path.read_bytes()
        if fault == "flip":
            path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
        elif fault == "truncate":
            path.write_bytes(data[: len(data) // 2])
        else:
            path.unlink()
    latest = store.latest_valid()
    assert latest is not None
    assert (latest.name, latest.step) == ("step-1", 1)
    assert latest.checkpoint.documents == SMALL.documents
    for step in (2, 3):
        assert any(f"step-{step} cannot be used: {name}: " in report for report in reports)


def test_when_all_are_damaged_none_is_used(tmp_path: Path) -> None:
    reports: list[str] = []
    store = CheckpointStore(tmp_path, keep=5, report=reports.append)
    for step in range(3):
        store.save(f"step-{step}", step, SMALL)
        (tmp_path / f"step-{step}" / "policy.safetensors").write_bytes(b"")
    assert store.latest_valid() is None
    assert len(reports) == 3
