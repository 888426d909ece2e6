"""Tensor files: every type and shape goes round, the safetensors library agrees both ways, bad headers are refused."""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from ludus.core.errors import FormatError
from ludus.core.files import write_new_file
from ludus.store.documents import DEFAULT_LIMITS, Limits, open_untrusted
from ludus.store.tensors import decode_tensors, encode_data, encode_header

ALL_DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.complex64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16,
    torch.uint8, torch.bool,
]  # fmt: skip


def write(path: Path, tensors: Mapping[str, Tensor]) -> str:
    return write_new_file(path, [encode_header(tensors, DEFAULT_LIMITS), *encode_data(tensors)])[0]


def read(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, Tensor]:
    with open_untrusted(path) as reader:
        tensors = dict(decode_tensors(reader, limits))
        reader.check_end(hashlib.sha256(path.read_bytes()).hexdigest())
    return tensors


def write_raw(path: Path, header: Any, data: bytes = b"") -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8), **extra: Any) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets, **extra}}


def assert_same(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> None:
    assert set(left) == set(right)
    for name, tensor in left.items():
        assert tensor.dtype == right[name].dtype, name
        assert tensor.shape == right[name].shape, name
        # Bytes, because NaN != NaN and some types cannot be compared.
        assert torch.equal(tensor.flatten().view(torch.uint8), right[name].flatten().view(torch.uint8)), name


def many_tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    tensors = {}
    for dtype in ALL_DTYPES:
        high = 2 if dtype == torch.bool else 256
        data = torch.randint(0, high, (6 * dtype.itemsize,), generator=generator, dtype=torch.uint8)
        tensors[f"layer.{dtype}"] = data.view(dtype).reshape(2, 3)
    return {**tensors, "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 4), "nan": torch.tensor([float("nan")])}


def test_every_type_goes_round_and_the_library_agrees(tmp_path: Path) -> None:
    tensors = many_tensors()
    write(tmp_path / "ours", tensors)
    assert_same(read(tmp_path / "ours"), tensors)
    assert_same(safetensors.torch.load_file(tmp_path / "ours"), tensors)
    safetensors.torch.save_file(tensors, tmp_path / "theirs", metadata={"note": "hello"})
    assert_same(read(tmp_path / "theirs"), tensors)


def test_views_transposes_and_parameters_are_stored_by_value(tmp_path: Path) -> None:
    base = torch.arange(6.0).reshape(2, 3)
    tensors = {"turned": base.T, "part": base[:, 1], "conjugated": torch.tensor([1 + 2j]).conj()}
    write(tmp_path / "file", {**tensors, "parameter": torch.nn.Parameter(base)})
    result = read(tmp_path / "file")
    assert result["turned"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert result["part"].tolist() == [1.0, 4.0]
    assert result["conjugated"].tolist() == [1 - 2j]
    assert result["parameter"].tolist() == base.tolist()
    assert not result["parameter"].requires_grad


def test_loaded_tensors_can_be_written_to_and_share_nothing(tmp_path: Path) -> None:
    write(tmp_path / "file", {"a": torch.zeros(4), "b": torch.zeros(4)})
    result = read(tmp_path / "file")
    result["a"] += 1
    assert result["b"].tolist() == [0.0] * 4


def test_equal_tensors_give_equal_bytes(tmp_path: Path) -> None:
    tensors = many_tensors()
    assert write(tmp_path / "one", tensors) == write(tmp_path / "two", dict(reversed(tensors.items())))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"a": torch.zeros(2, device="meta")}, "on meta; valid: dense tensors"),
        ({"a": torch.eye(2).to_sparse()}, "sparse_coo"),
        ({"a": torch.zeros(1, dtype=torch.complex128)}, "complex128"),
        ({"__metadata__": torch.zeros(1)}, "reserved"),
        ({"a": torch.zeros([1] * 17)}, "17 axes"),
        ({"a" * 5_000_000: torch.zeros(1)}, "need a header of 5000"),
    ],
)
def test_what_cannot_be_stored_is_refused(tensors: dict[str, Tensor], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        encode_header(tensors, DEFAULT_LIMITS)


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        ([], b"", "not a mapping"),
        ({"a": 1}, b"", "exactly dtype, shape and data_offsets"),
        (entry(strides=[1]), bytes(8), "exactly dtype, shape and data_offsets"),
        (entry(dtype="F31"), bytes(8), "type 'F31'; valid: F64"),
        (entry(dtype=["F32"]), bytes(8), "type"),
        (entry(shape=[-2]), bytes(8), "whole numbers"),
        (entry(shape=[2.0]), bytes(8), "whole numbers"),
        (entry(shape=[True, 2]), bytes(8), "whole numbers"),
        (entry(shape=2), bytes(8), "whole numbers"),
        (entry(offsets=[0, 8, 8]), bytes(8), "whole numbers"),
        (entry(shape=[3]), bytes(8), "does not fill the bytes"),
        (entry(offsets=[8, 0]), bytes(8), "does not fill the bytes"),
        (entry(shape=[2**62, 2**62, 16]), bytes(8), "absurd shape"),
        (entry(shape=[0, 2**62], offsets=[0, 0]), b"", "absurd shape"),
        (entry(shape=[1] * 17, offsets=[0, 4]), bytes(4), "17 axes"),
        (entry(offsets=[4, 12]), bytes(12), "starts at byte 4; the one before ends at 0"),
        (entry(), bytes(7), "cover 8 bytes, but the file has 7"),
        (entry(), bytes(9), "cover 8 bytes, but the file has 9"),
        (entry(shape=[2**40], offsets=[0, 2**42]), bytes(8), "cover 4398046511104 bytes"),
        ({**entry(), "b": entry()["a"]}, bytes(16), "starts at byte 0; the one before ends at 8"),
        (entry(dtype="BOOL", offsets=[0, 2]), b"\x01\x02", "bytes other than 0 and 1"),
        (b'{"a": 1, "a": 1}', b"", "same key twice"),
        (b"\x80\x04K\x01.", b"", "not UTF-8"),
    ],
)
def test_bad_headers_are_refused(tmp_path: Path, header: Any, data: bytes, message: str) -> None:
    write_raw(tmp_path / "file", header, data)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "file")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "ends after 0 bytes; 8 are needed"),
        (b"\x01\x00\x00", "ends after 3 bytes"),
        (struct.pack("<Q", 100) + b"{}", "ends after 10 bytes; 108 are needed"),
        (struct.pack("<Q", 2**63) + b"{}", "announces a header of 9223372036854775808 bytes"),
        (struct.pack("<Q", (4 << 20) + 1), "at most 4194304 are allowed"),
    ],
)
def test_bad_beginnings_are_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "file")
