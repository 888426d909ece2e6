"""One checkpoint: round trip, selected parts, faults that name the file, special files, manifests."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ludus.core.errors import CheckpointError, FormatError, StoreError
from ludus.core.files import ASIDE_PREFIX
from ludus.store import (
    DEFAULT_LIMITS,
    Checkpoint,
    load_checkpoint,
    read_manifest,
    save_checkpoint,
    verify_checkpoint,
)

EXAMPLE = Checkpoint(
    tensors={"policy": {"weight": torch.arange(4.0)}, "simulator": {"state": torch.ones(3, dtype=torch.int32)}},
    documents={"counters": {"env_steps": 12, "rate": 0.1}, "policy": ["mlp"]},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "best", EXAMPLE, step=12, sequence=3)
    return tmp_path / "best"


def test_a_checkpoint_is_a_folder_of_plain_files_and_goes_round(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "counters.json",
        "manifest.json",
        "policy.json",
        "policy.safetensors",
        "simulator.safetensors",
    ]
    loaded = load_checkpoint(folder)
    assert loaded.documents == EXAMPLE.documents
    assert loaded.tensors["policy"]["weight"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert loaded.tensors["simulator"]["state"].dtype == torch.int32
    manifest = verify_checkpoint(folder)
    assert (manifest.step, manifest.sequence) == (12, 3)


def test_an_empty_checkpoint_and_an_empty_group_go_round(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "init", Checkpoint(tensors={"policy": {}}))
    assert load_checkpoint(tmp_path / "init") == Checkpoint(tensors={"policy": {}}, documents={})


@pytest.mark.cuda
def test_tensors_on_a_gpu_come_back_on_the_host(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "best", Checkpoint(tensors={"policy": {"a": torch.arange(4.0, device="cuda")}}))
    assert load_checkpoint(tmp_path / "best").tensors["policy"]["a"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_parts_read_only_their_files(folder: Path) -> None:
    (folder / "simulator.safetensors").unlink()
    loaded = load_checkpoint(folder, parts=["policy"])
    assert set(loaded.tensors) == {"policy"}
    assert loaded.documents == {"policy": ["mlp"]}
    with pytest.raises(CheckpointError, match=r"brain.*counters, policy, simulator"):
        load_checkpoint(folder, parts=["brain", "policy"])


def test_faults_name_the_folder_and_the_file(folder: Path) -> None:
    (folder / "simulator.safetensors").unlink()
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert str(caught.value) == f"checkpoint {folder} cannot be used: simulator.safetensors: is missing"
    assert (caught.value.file, caught.value.fault) == ("simulator.safetensors", "is missing")
    with pytest.raises(CheckpointError, match=r"nowhere.*manifest\.json.*missing"):
        load_checkpoint(folder.with_name("nowhere"))


def test_files_that_the_manifest_does_not_name_are_ignored(folder: Path) -> None:
    (folder / "evil.pkl").write_bytes(b"\x80\x04.")
    (folder / "notes.txt").write_text("mine")
    assert set(load_checkpoint(folder).tensors) == {"policy", "simulator"}


@pytest.mark.parametrize("name", ["manifest.json", "counters.json", "policy.safetensors"])
@pytest.mark.parametrize("kind", ["symbolic link", "folder", "FIFO"])
def test_special_files_are_refused_without_waiting(folder: Path, name: str, kind: str) -> None:
    path = folder / name
    original = path.rename(folder.with_name("original"))
    if kind == "symbolic link":
        path.symlink_to(original)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(CheckpointError, match=kind):
        load_checkpoint(folder)


@pytest.mark.parametrize("part", ["../policy", "/etc/passwd", "Policy", "", "a.b", "manifest", ".hidden", "x" * 65])
def test_names_that_are_not_plain_are_refused_before_anything_is_written(tmp_path: Path, part: str) -> None:
    with pytest.raises(FormatError, match="file name"):
        save_checkpoint(tmp_path / "best", Checkpoint(documents={part: 1}))
    assert list(tmp_path.iterdir()) == []


def test_contents_that_cannot_be_stored_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"league\.json.*document/score.*nan"):
        save_checkpoint(tmp_path / "best", Checkpoint(documents={"league": {"score": float("nan")}}))
    with pytest.raises(FormatError, match=r"policy\.safetensors.*tensor 'a'"):
        save_checkpoint(tmp_path / "best", Checkpoint(tensors={"policy": {"a": torch.zeros(1, device="meta")}}))
    with pytest.raises(FormatError, match=r"step.*-1"):
        save_checkpoint(tmp_path / "best", EXAMPLE, step=-1)
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_is_a_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="permissions"):
        save_checkpoint(tmp_path / "file" / "best", EXAMPLE)


def test_a_total_over_the_limit_is_refused_before_reading(folder: Path) -> None:
    total = sum(record.size for record in read_manifest(folder).files.values())
    load_checkpoint(folder, limits=replace(DEFAULT_LIMITS, total_bytes=total))
    with pytest.raises(CheckpointError, match=rf"{total} bytes.*Limits\.total_bytes"):
        load_checkpoint(folder, limits=replace(DEFAULT_LIMITS, total_bytes=total - 1))


def test_a_checkpoint_can_be_moved(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert load_checkpoint(tmp_path / "elsewhere").documents == EXAMPLE.documents


def test_one_set_aside_by_a_replacement_that_was_cut_off_is_found(folder: Path) -> None:
    folder.rename(folder.with_name(ASIDE_PREFIX + folder.name))
    assert load_checkpoint(folder).documents == EXAMPLE.documents
    assert verify_checkpoint(folder).step == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not the manifest of a Ludus checkpoint"),
        ({"version": 2}, "has version 2; this Ludus reads 1; install a newer one"),
        ({"files": []}, "lists no files"),
        ({"files": {"a.json": {"bytes": 1}}}, "must have bytes and sha256"),
        ({"files": {"a.json": {"bytes": 1, "sha256": "0"}}}, "not 64 hexadecimal digits"),
        ({"files": {"a.json": {"bytes": -1, "sha256": "0" * 64}}}, r"size of a\.json is -1"),
        ({"files": {"a.json": {"bytes": True, "sha256": "0" * 64}}}, r"size of a\.json is True"),
        ({"step": 12.0}, "the step is 12.0"),
        ({"step": 13}, "its own SHA-256 or its form is wrong"),
        ({"extra": 1}, "its own SHA-256 or its form is wrong"),
    ],
)
def test_bad_manifests_are_refused(folder: Path, change: dict[str, object], message: str) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=rf"manifest\.json: .*{message}"):
        read_manifest(folder)
