"""The safetensors format, written and read as a stream.

A file is 8 bytes (length of the header, little-endian), the header (JSON: name -> type, shape, byte range) and
the raw data without gaps. It is written here rather than by the safetensors library for three reasons: the data
is hashed in the same pass that reads it, so nothing can change between the check and the use; a full disk is an
OSError rather than a text; and one tensor at a time is in host memory. The library reads these files, and these
functions read the library's.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ludus.core.errors import FormatError, brief
from ludus.core.files import Buffer
from ludus.store.documents import HashedReader, Limits, decode_document

_DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
METADATA = "__metadata__"  # reserved by the format for a mapping of strings


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


def encode_header(tensors: Mapping[str, Tensor], limits: Limits, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the beginning of a file: the length and the table, with `metadata` before it; or raise FormatError."""
    table: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    position = 0
    for name, tensor in _in_file_order(tensors):
        if not isinstance(name, str) or name == METADATA:
            raise FormatError(f"tensor name {brief(name)} is reserved or no string")
        if tensor.dtype not in _NAMES or tensor.layout != torch.strided or tensor.is_meta:
            raise FormatError(
                f"tensor {brief(name)} is {tensor.dtype}, {tensor.layout} on {tensor.device}; "
                f"valid: dense tensors with values of type {', '.join(str(dtype) for dtype in _NAMES)}"
            )
        _check_shape(name, list(tensor.shape), limits)
        stop = position + tensor.numel() * tensor.element_size()
        table[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [position, stop]}
        position = stop
    text = json.dumps(table, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)  # the data starts at a multiple of 8
    if len(text) > limits.header_bytes:
        raise FormatError(f"{len(tensors)} tensors need a header of {len(text)} bytes; at most {limits.header_bytes}")
    return len(text).to_bytes(8, "little") + text


def encode_data(tensors: Mapping[str, Tensor]) -> Iterator[Buffer]:
    """Yield the bytes of each tensor in the order of the header; copy one at a time to the host."""
    for _, tensor in _in_file_order(tensors):
        host = tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
        yield host.flatten().view(torch.uint8).numpy().data


def decode_tensors(reader: HashedReader, limits: Limits) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a file one by one; the caller checks the hash at the end, before any is used.

    The whole header is checked against the file's size before memory for any tensor is taken; or FormatError is raised.
    """
    yield from decode_data(reader, decode_document(read_header(reader, limits), limits), limits)


def read_header(reader: HashedReader, limits: Limits) -> bytes:
    """Return the JSON text at the beginning of a file; raise FormatError if it is too large or not all there."""
    length = int.from_bytes(reader.read(8), "little")
    if length > limits.header_bytes:
        raise FormatError(f"announces a header of {length} bytes; at most {limits.header_bytes} are allowed")
    return reader.read(length)


def decode_data(reader: HashedReader, header: object, limits: Limits) -> Iterator[tuple[str, Tensor]]:
    """Do the work of `decode_tensors` once the header was read."""
    for entry in _check_table(header, reader.rest, limits):
        data = _allocate(entry)
        reader.read_into(data.numpy().data)
        if entry.dtype == torch.bool and bool((data > 1).any()):
            raise FormatError(f"tensor {brief(entry.name)} is BOOL but has bytes other than 0 and 1")
        yield entry.name, data.view(entry.dtype).reshape(entry.shape)


def _allocate(entry: _Entry) -> Tensor:
    try:
        return torch.empty(entry.stop - entry.start, dtype=torch.uint8)
    except (RuntimeError, MemoryError):
        needed = entry.stop - entry.start
        raise FormatError(f"tensor {brief(entry.name)} needs {needed} bytes of memory, which are not free") from None


def _in_file_order(tensors: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Widest types first, so that every tensor starts at a multiple of its element size; then by name."""
    return sorted(tensors.items(), key=lambda item: (-item[1].element_size(), str(item[0])))


def _check_table(header: object, data_bytes: int, limits: Limits) -> list[_Entry]:
    if not isinstance(header, dict):
        raise FormatError("the header is not a mapping")
    entries = [_check_entry(name, raw, limits) for name, raw in header.items() if name != METADATA]
    entries.sort(key=lambda entry: (entry.start, entry.stop))
    position = 0
    for entry in entries:
        if entry.start != position:
            raise FormatError(
                f"tensor {brief(entry.name)} starts at byte {brief(entry.start)}; the one before ends at {position}"
            )
        position = entry.stop
    if position != data_bytes:
        raise FormatError(f"the tensors cover {position} bytes, but the file has {data_bytes} bytes of data")
    return entries


def _check_entry(name: str, raw: Any, limits: Limits) -> _Entry:  # noqa: ANN401 - untrusted, checked here
    if not isinstance(raw, dict) or set(raw) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"tensor {brief(name)} must have exactly dtype, shape and data_offsets")
    if not isinstance(raw["dtype"], str) or raw["dtype"] not in _DTYPES:
        raise FormatError(f"tensor {brief(name)} has the type {brief(raw['dtype'])}; valid: {', '.join(_DTYPES)}")
    shape, offsets = raw["shape"], raw["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise FormatError(f"tensor {brief(name)} must have whole numbers >= 0 as shape and as its two data_offsets")
    _check_shape(name, shape, limits)
    dtype = _DTYPES[raw["dtype"]]
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise FormatError(f"tensor {brief(name)} of shape {brief(shape)} does not fill the bytes {brief(offsets)}")
    return _Entry(name, dtype, tuple(shape), offsets[0], offsets[1])


def _check_shape(name: str, shape: list[int], limits: Limits) -> None:
    if len(shape) > limits.tensor_axes:
        raise FormatError(f"tensor {brief(name)} has {len(shape)} axes; at most {limits.tensor_axes} are allowed")
    # Axes of 0 must not hide absurd others: torch multiplies them all.
    if math.prod(max(axis, 1) for axis in shape) > limits.tensor_elements:
        raise FormatError(f"tensor {brief(name)} has the absurd shape {brief(shape)}")


def _are_sizes(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
