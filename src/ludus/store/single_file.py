"""A checkpoint in one file: safetensors whose metadata hold the JSON documents and a SHA-256 of the whole file.

The hash is that of the file with 64 zeros in the place of the hash itself, so any changed byte is found. Every reader
of safetensors takes such a file.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from torch import Tensor

from ludus.core.errors import CheckpointError, FormatError
from ludus.core.files import JSON, discard_temporary, sync_folder, temporary_path, write_new_file
from ludus.store.checkpoint import Checkpoint, naming_disk_faults
from ludus.store.documents import brief, check_document, decode_document
from ludus.store.limits import DEFAULT_LIMITS, Limits
from ludus.store.reading import HashedReader, open_untrusted
from ludus.store.tensors import METADATA, decode_data, encode_data, encode_header, read_header

_FORMAT = "ludus-single-file"
_VERSION = "1"
_KEYS = ("documents", "format", "sha256", "version")
_SEPARATOR = "/"  # between group and name of a tensor
_BLANK = "0" * 64
_SHA256 = re.compile(r"[0-9a-f]{64}")


def write_single_file(path: Path, checkpoint: Checkpoint) -> str:
    """Writes everything to one file, atomically, and returns the SHA-256 that it holds.

    Raises:
        FormatError: A name, value or tensor cannot be stored; nothing was written.
        StoreFullError: The disk is full; what was at `path` before is intact.
        StoreError: Writing failed for another reason.
    """
    documents = dict(checkpoint.documents)
    check_document(documents, DEFAULT_LIMITS)
    tensors = {
        f"{group}{_SEPARATOR}{name}": tensor
        for group, tensors in checkpoint.tensors.items()
        for name, tensor in tensors.items()
    }
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "sha256": _BLANK,
        "documents": json.dumps(documents, allow_nan=False, separators=(",", ":")),
    }
    header = encode_header(tensors, DEFAULT_LIMITS, metadata)
    digest = hashlib.sha256(header)
    for chunk in encode_data(tensors):
        digest.update(chunk)
    sha256 = digest.hexdigest()
    header = _with_hash(header, _BLANK, sha256)
    with naming_disk_faults(f"file {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(path)
        try:
            write_new_file(temporary, chain([header], encode_data(tensors)))
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            discard_temporary(temporary)
    return sha256


def read_single_file(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Reads such a file; every byte has been verified when this returns, and nothing in it can run.

    Raises:
        CheckpointError: It is missing, damaged, hostile, of another version or another kind of file.
    """
    try:
        with open_untrusted(path.resolve()) as reader:
            reader.check_limit(limits.total_bytes)
            return _read(reader, limits)
    except FormatError as error:
        raise CheckpointError(path.parent, path.name, f"{error}; expected a file of `ludus export`") from None


def _read(reader: HashedReader, limits: Limits) -> Checkpoint:
    raw = read_header(reader, limits)
    header = decode_document(raw, limits)
    metadata = _check_metadata(header.get(METADATA) if isinstance(header, dict) else None)
    reader.hash_as(_with_hash(len(raw).to_bytes(8, "little") + raw, metadata["sha256"], _BLANK))
    groups: dict[str, dict[str, Tensor]] = {}
    for name, tensor in decode_data(reader, header, limits):
        group, separator, rest = name.partition(_SEPARATOR)
        if not separator:
            raise FormatError(f"tensor {brief(name)} belongs to no group")
        groups.setdefault(group, {})[rest] = tensor
    reader.check_end(metadata["sha256"])
    return Checkpoint(groups, _decode_documents(metadata["documents"], limits))


def _check_metadata(metadata: JSON) -> Mapping[str, str]:
    """Returns the metadata once it is sure that they are ours."""
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise FormatError("is safetensors, but not of Ludus")
    if metadata.get("version") != _VERSION:
        raise FormatError(f"has version {brief(metadata.get('version'))}; this Ludus reads {_VERSION}")
    texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
    if sorted(metadata) != list(_KEYS) or len(texts) != len(_KEYS):
        raise FormatError(f"its metadata must be the texts {', '.join(_KEYS)}, got {brief(sorted(metadata))}")
    if not _SHA256.fullmatch(texts["sha256"]):
        raise FormatError("its SHA-256 is not 64 hexadecimal digits")
    return texts


def _decode_documents(text: str, limits: Limits) -> dict[str, JSON]:
    documents = decode_document(text.encode("utf-8", "surrogatepass"), limits)
    if not isinstance(documents, dict):
        raise FormatError("its documents are no mapping")
    return documents


def _with_hash(header: bytes, old: str, new: str) -> bytes:
    """Replaces the hash in a header, where it stands once: in the documents and in names all quotes are escaped."""
    before, after = (f'"sha256":"{digest}"'.encode("ascii") for digest in (old, new))
    if header.count(before) != 1:
        raise FormatError("its SHA-256 is not written as Ludus writes it")
    return header.replace(before, after)
