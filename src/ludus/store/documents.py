"""Untrusted files and strict JSON: bounded in size, depth and number of values, hashed while they are read.

No links, no pipes, no more bytes than announced. What is written comes back equal.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ludus.core.errors import FormatError, brief
from ludus.core.files import JSON, open_regular

_MAX_INTEGER_BITS = 4096  # Python refuses to read numbers of more than 4300 digits


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that are checked before memory is spent; a saved checkpoint keeps to the same ones."""

    manifest_bytes: int = 1 << 20  # size of the manifest; 1 MiB lists some 8,000 files
    document_bytes: int = 8 << 20  # size of one JSON document
    # Values in one JSON document; a million small ones take about 100 MB once they are read.
    document_values: int = 1_000_000
    document_depth: int = 64  # lists and mappings within each other
    header_bytes: int = 4 << 20  # size of the table of tensors in one file; 4 MiB is some 40,000 tensors
    tensor_axes: int = 16  # axes of one tensor
    tensor_elements: int = 1 << 48  # product of a tensor's axes that are not 0
    total_bytes: int = 8 << 30  # size of all files that are read together; a run's own store has no such bound


DEFAULT_LIMITS = Limits()


class HashedReader:
    """Reads a regular file front to back and hashes the very bytes that it hands out."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self.position = 0
        self._descriptor = descriptor
        self._digest = hashlib.sha256()

    @property
    def rest(self) -> int:
        """Bytes that have not been read yet."""
        return self.size - self.position

    def check_size(self, expected: int) -> None:
        """Raise FormatError unless the file has exactly the expected size in bytes."""
        if self.size != expected:
            raise FormatError(f"has {self.size} bytes; the manifest says {expected}")

    def check_limit(self, limit: int) -> None:
        """Raise FormatError if the file is larger than `limit` bytes."""
        if self.size > limit:
            raise FormatError(f"has {self.size} bytes; at most {limit} are allowed")

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes; raise FormatError if there are fewer."""
        if count > self.rest:
            raise FormatError(f"ends after {self.size} bytes; {self.position + count} are needed")
        buffer = bytearray(count)
        self.read_into(memoryview(buffer))
        return bytes(buffer)

    def read_into(self, buffer: memoryview) -> None:
        """Fill a flat buffer of bytes; raise FormatError if the file is shorter than when it was opened."""
        rest = buffer
        while rest.nbytes:
            count = os.readv(self._descriptor, [rest]) if hasattr(os, "readv") else self._read_copy(rest)
            if count == 0:
                raise FormatError(f"became shorter while it was read, at byte {self.position}")
            self._digest.update(rest[:count])
            self.position += count
            rest = rest[count:]

    def hash_as(self, begun: bytes) -> None:
        """Let the hash be that of `begun` in the place of what was read so far, and of all that follows."""
        self._digest = hashlib.sha256(begun)

    def check_end(self, sha256: str) -> None:
        """Raise FormatError unless everything was read and has the given SHA-256."""
        if self.rest:
            raise FormatError(f"{self.rest} bytes follow the content")
        if self._digest.hexdigest() != sha256:
            raise FormatError("its SHA-256 is not the recorded one: it was changed after it was written")

    def _read_copy(self, buffer: memoryview) -> int:
        data = os.read(self._descriptor, min(buffer.nbytes, 1 << 24))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_untrusted(path: Path) -> Iterator[HashedReader]:
    """Open a regular file for reading; raise FormatError if it is missing, of another kind or unreadable."""
    try:
        descriptor = open_regular(path, follow_links=False)
    except FileNotFoundError:
        raise FormatError("is missing") from None
    except OSError as error:
        raise FormatError(f"cannot be opened: {error.strerror}") from None
    try:
        try:
            yield HashedReader(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
    except OSError as error:  # of `close` too
        raise FormatError(f"cannot be read: {error.strerror}") from error


def encode_document(document: JSON, limits: Limits) -> bytes:
    """Return bytes that `decode_document` gives back equal; raise FormatError if a value is not JSON, or too large."""
    check_document(document, limits)
    raw = json.dumps(document, indent=1, allow_nan=False).encode("ascii") + b"\n"
    _check_size(raw, limits)
    return raw


def decode_document(raw: bytes, limits: Limits) -> JSON:
    """Return the document in `raw`; raise FormatError unless it is strict JSON without double keys, in the limits."""
    _check_size(raw, limits)
    try:
        document: JSON = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise FormatError(f"JSON is nested deeper than {limits.document_depth}") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text at byte {error.start}") from None
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"not valid JSON: {error}") from None
    check_document(document, limits)
    return document


def check_document(document: JSON, limits: Limits) -> None:
    """Raise FormatError unless every value is plain, finite JSON within the limits; names where it is not."""
    values = 0
    path: list[object] = []
    # One iterator per level instead of recursion or a list of all values: memory grows with the depth alone.
    levels: list[Iterator[tuple[object, Any]]] = [iter([("document", document)])]
    while levels:
        item = next(levels[-1], None)
        if item is None:
            levels.pop()
            continue
        key, value = item
        path[len(levels) - 1 :] = [key]
        values += 1
        if values > limits.document_values:
            raise FormatError(f"more than {limits.document_values} values; keep large data in tensors")
        if len(levels) > limits.document_depth:
            raise FormatError(f"{_where(path)} is nested deeper than {limits.document_depth}")
        if type(value) is dict:
            if not all(isinstance(inner, str) for inner in value):
                raise FormatError(f"{_where(path)} has a key that is no string")
            levels.append(iter(value.items()))
        elif type(value) is list:
            levels.append(iter(enumerate(value)))
        else:
            _check_leaf(path, value)


def _where(path: list[object]) -> str:
    return "/".join(brief(key).strip("'") for key in path[-6:])


def _check_leaf(path: list[object], value: object) -> None:
    if value is None or isinstance(value, bool | str):
        return
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise FormatError(f"{_where(path)} is a number of more than {_MAX_INTEGER_BITS} bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise FormatError(f"{_where(path)} is {value}; JSON has only finite numbers, use null")
    else:
        kind = type(value).__name__
        raise FormatError(f"{_where(path)} is a {kind}; valid: dict, list, str, int, float, bool, None")


def _check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.document_bytes:
        raise FormatError(f"{len(raw)} bytes of JSON; at most {limits.document_bytes} are allowed")
    # Every value but the first of its container follows a comma, every first one an opening bracket.
    values = raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    if values > limits.document_values:
        raise FormatError(f"more than {limits.document_values} values; keep large data in tensors")


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise FormatError("a JSON mapping has the same key twice")
    return mapping


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is not a JSON number")
