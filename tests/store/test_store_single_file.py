"""One file for a whole checkpoint: it comes back equal, any changed byte is found, and nothing in it is dangerous."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file

from ludus.core.errors import CheckpointError, FormatError, StoreError
from ludus.store import Checkpoint, Limits, read_single_file, write_single_file

CONTENT = Checkpoint(
    {"policy": {"weight": torch.arange(6.0).reshape(2, 3), "count": torch.tensor(7)}, "more": {"a/b": torch.ones(1)}},
    {"agent": {"world": "rps-v1", "zeros": '"sha256":"' + "0" * 64 + '"', "list": [1, 2.5, None, True]}},
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "agent.ludus"
    write_single_file(path, CONTENT)
    return path


def test_comes_back_equal(file: Path) -> None:
    found = read_single_file(file)
    assert found.documents == CONTENT.documents
    assert {group: set(tensors) for group, tensors in found.tensors.items()} == {
        "policy": {"weight", "count"},
        "more": {"a/b"},
    }
    for group, tensors in CONTENT.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(found.tensors[group][name], tensor)
    assert [path.name for path in file.parent.iterdir()] == ["agent.ludus"]


def test_the_safetensors_library_reads_it(file: Path) -> None:
    with safe_open(file, "pt") as opened:
        assert json.loads(opened.metadata()["documents"]) == CONTENT.documents
        assert torch.equal(opened.get_tensor("policy/weight"), torch.arange(6.0).reshape(2, 3))


def test_equal_content_gives_equal_bytes_and_the_hash_that_is_returned(tmp_path: Path, file: Path) -> None:
    sha256 = write_single_file(tmp_path / "again", CONTENT)
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert sha256.encode() in file.read_bytes()


@settings(max_examples=60)
@given(place=st.integers(min_value=0), bit=st.integers(0, 7))
def test_every_changed_bit_is_found(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    path = tmp_path_factory.mktemp("flip") / "a.ludus"
    write_single_file(path, CONTENT)
    raw = bytearray(path.read_bytes())
    raw[place % len(raw)] ^= 1 << bit
    path.write_bytes(raw)
    with pytest.raises(CheckpointError, match=r"a\.ludus"):
        read_single_file(path)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, -1])
def test_a_file_that_was_cut_off_is_refused(file: Path, length: int) -> None:
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(CheckpointError):
        read_single_file(file)


def test_bytes_after_the_end_are_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(CheckpointError, match="bytes of data"):
        read_single_file(file)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pickle.pt").write_bytes(b"\x80\x04cos\nsystem\n(S'echo'\ntR.")
    (tmp_path / "zip.pt").write_bytes(b"PK\x03\x04" + bytes(100))
    save_file({"weight": torch.ones(2)}, tmp_path / "other.safetensors")
    for name, fault in (("pickle.pt", "header"), ("zip.pt", "header"), ("other.safetensors", "not of Ludus")):
        with pytest.raises(CheckpointError, match=fault):
            read_single_file(tmp_path / name)
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(CheckpointError):
            read_single_file(path)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="regular file"):
        read_single_file(tmp_path / "pipe")


def test_large_files_are_refused_before_they_are_read(file: Path) -> None:
    with pytest.raises(CheckpointError, match="at most 100"):
        read_single_file(file, limits=Limits(total_bytes=100))


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("version", "2", "this Ludus reads 1"),
        ("sha256", "x", "64 hexadecimal"),
        ("documents", 7, "must be the texts"),
        ("extra", "x", "must be the texts"),
        ("documents", "[1]", "SHA-256 is not the recorded"),
    ],
)
def test_wrong_metadata_are_named(file: Path, key: str, value: object, fault: str) -> None:
    raw = file.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header: dict[str, Any] = json.loads(raw[8 : 8 + length])
    header["__metadata__"][key] = value
    text = json.dumps(header, separators=(",", ":")).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    with pytest.raises(CheckpointError, match=fault):
        read_single_file(file)


def test_what_is_no_json_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        write_single_file(tmp_path / "a", Checkpoint({}, {"agent": float("nan")}))
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="written"):
        write_single_file(tmp_path / "file" / "a.ludus", CONTENT)
