"""One checkpoint: a folder of tensors, JSON documents and a manifest, or one file; written atomically and verified.

The manifest says which files belong to a checkpoint, their sizes and hashes, and a hash of itself. It has exactly one
valid form (sorted keys, fixed spacing), so that any changed byte is found, also one that would mean the same to a JSON
reader.

A checkpoint in one file is safetensors whose metadata hold the JSON documents and a SHA-256 of the whole file: that of
the file with 64 zeros in the place of the hash itself. Every reader of safetensors takes such a file.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torch import Tensor

from ludus.core.errors import CheckpointError, FormatError, brief
from ludus.core.files import (
    JSON,
    Buffer,
    discard_temporary,
    existing_folder,
    make_temporary_folder,
    replace_folder,
    wrap_disk_errors,
    write_chunks_atomic,
    write_new_file,
)
from ludus.store.documents import (
    DEFAULT_LIMITS,
    HashedReader,
    Limits,
    check_document,
    decode_document,
    encode_document,
    open_untrusted,
)
from ludus.store.tensors import METADATA, decode_data, decode_tensors, encode_data, encode_header, read_header

MANIFEST_NAME = "manifest.json"
TENSOR_SUFFIX = ".safetensors"
DOCUMENT_SUFFIX = ".json"

_FORMAT = "ludus-checkpoint"
_VERSION = 1
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}(\.safetensors|\.json)")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_FILE_FORMAT = "ludus-single-file"
_FILE_VERSION = "1"
_KEYS = ("documents", "format", "sha256", "version")
_SEPARATOR = "/"  # between group and name of a tensor
_BLANK = "0" * 64


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size and SHA-256 (hex) of one file."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint consists of."""

    step: int  # environment steps at which it was taken
    sequence: int  # position in the order in which a store saved its checkpoints
    files: Mapping[str, FileRecord]  # record of each file by name

    def __post_init__(self) -> None:
        _check_count(self.step, "step")
        _check_count(self.sequence, "sequence")

    def encode(self) -> bytes:
        """Return the one valid form of this manifest."""
        body: dict[str, object] = {
            "format": _FORMAT,
            "version": _VERSION,
            "step": self.step,
            "sequence": self.sequence,
            "files": {name: {"bytes": file.size, "sha256": file.sha256} for name, file in self.files.items()},
        }
        return _canonical({**body, "sha256": hashlib.sha256(_canonical(body)).hexdigest()})


def read_manifest(folder: Path, limits: Limits = DEFAULT_LIMITS) -> Manifest:
    """Read and check the manifest of the checkpoint in `folder` alone; raise CheckpointError if it is wrong."""
    try:
        with open_untrusted(folder / MANIFEST_NAME) as reader:
            reader.check_limit(limits.manifest_bytes)
            return _decode(reader.read(reader.size), limits)
    except FormatError as error:
        raise CheckpointError(folder, MANIFEST_NAME, str(error)) from None


def check_file_name(name: str) -> None:
    """Raise FormatError unless `name` is a plain file name that a checkpoint may contain."""
    if not _FILE_NAME.fullmatch(name) or name == MANIFEST_NAME:
        raise FormatError(
            f"the file name {brief(name)} is not allowed; valid: lower-case letters, digits, - and _, "
            f"then {TENSOR_SUFFIX} or {DOCUMENT_SUFFIX}, and not {MANIFEST_NAME}"
        )


# Each save reads the manifests of all checkpoints several times. What the same bytes mean never changes.
@lru_cache(maxsize=32)
def _decode(raw: bytes, limits: Limits) -> Manifest:
    document = decode_document(raw, limits)
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise FormatError("is not the manifest of a Ludus checkpoint")
    if document.get("version") != _VERSION:
        version = brief(document.get("version"))
        raise FormatError(f"has version {version}; this Ludus reads {_VERSION}; install a newer one")
    files = document.get("files")
    if not isinstance(files, dict):
        raise FormatError("lists no files")
    manifest = Manifest(
        step=_check_count(document.get("step"), "step"),
        sequence=_check_count(document.get("sequence"), "sequence"),
        files=MappingProxyType({name: _decode_record(name, record) for name, record in files.items()}),
    )
    if manifest.encode() != raw:
        raise FormatError("its own SHA-256 or its form is wrong: it was changed after it was written")
    return manifest


def _decode_record(name: str, record: Any) -> FileRecord:  # noqa: ANN401 - untrusted, checked here
    check_file_name(name)
    if not isinstance(record, dict) or not isinstance(record.get("sha256"), str):
        raise FormatError(f"the entry of {name} must have bytes and sha256")
    if not _SHA256.fullmatch(record["sha256"]):
        raise FormatError(f"the SHA-256 of {name} is not 64 hexadecimal digits")
    return FileRecord(_check_count(record.get("bytes"), f"size of {name}"), record["sha256"])


def _check_count(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise FormatError(f"the {what} is {brief(value)}; valid: a whole number >= 0")
    return value


def _canonical(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode("ascii") + b"\n"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint holds.

    Attributes:
        tensors: Groups of named tensors; the group `policy` becomes the file `policy.safetensors`.
        documents: JSON values; the document `league` becomes the file `league.json`.
    """

    tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    documents: Mapping[str, JSON] = field(default_factory=dict)


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, step: int = 0, sequence: int = 0) -> None:
    """Write a checkpoint in the place of `folder`; after any fault the old or the new one is there, whole.

    Raises:
        FormatError: A name, value or tensor cannot be stored; nothing was written.
        StoreFullError: The disk is full; the old checkpoint is intact and saving can be tried again.
        StoreError: Writing failed for another reason; the old or the new checkpoint is intact.
    """
    manifest = Manifest(step, sequence, {})
    contents = list(_encode(checkpoint))  # finds every fault of the content before anything is written
    with wrap_disk_errors(f"checkpoint {folder}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = make_temporary_folder(folder)
        try:
            files = {}
            for name, chunks in contents:
                sha256, size = write_new_file(temporary / name, chunks)
                files[name] = FileRecord(size, sha256)
            write_new_file(temporary / MANIFEST_NAME, [replace(manifest, files=files).encode()])
            replace_folder(temporary, folder)
        finally:
            discard_temporary(temporary)


def load_checkpoint(
    folder: Path, *, parts: Collection[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Checkpoint:
    """Read a checkpoint, or only the parts of these names, into host memory; every byte has been verified then.

    Raise CheckpointError, which names the file and the fault: one is missing, damaged, hostile or of another version.
    """
    return load_with_manifest(folder, parts, limits)[1]


def load_with_manifest(folder: Path, parts: Collection[str] | None, limits: Limits) -> tuple[Manifest, Checkpoint]:
    """Do the work of `load_checkpoint`, and also returns the manifest that the content was checked against."""
    folder = existing_folder(folder)
    manifest = read_manifest(folder, limits)
    tensors: dict[str, dict[str, Tensor]] = {}
    documents: dict[str, JSON] = {}
    for name, record in _select(folder, manifest, parts, limits):
        with _open_recorded(folder, name, record) as reader:
            part = name.partition(".")[0]
            if name.endswith(TENSOR_SUFFIX):
                tensors[part] = dict(decode_tensors(reader, limits))
                reader.check_end(record.sha256)
            else:
                documents[part] = _read_document(reader, record, limits)
    return manifest, Checkpoint(tensors, documents)


def verify_checkpoint(folder: Path, *, limits: Limits = DEFAULT_LIMITS) -> Manifest:
    """Check all that `load_checkpoint` checks, with one tensor at a time in memory; return the manifest."""
    folder = existing_folder(folder)
    manifest = read_manifest(folder, limits)
    for name, record in _select(folder, manifest, None, limits):
        with _open_recorded(folder, name, record) as reader:
            if name.endswith(TENSOR_SUFFIX):
                for _ in decode_tensors(reader, limits):
                    pass
                reader.check_end(record.sha256)
            else:
                _read_document(reader, record, limits)
    return manifest


def _encode(checkpoint: Checkpoint) -> Iterator[tuple[str, Iterable[Buffer]]]:
    """Yield the name and the content of each file; tensors are brought to the host only when they are written."""
    for part, tensors in checkpoint.tensors.items():
        name = part + TENSOR_SUFFIX
        with _naming(name):
            check_file_name(name)
            yield name, chain([encode_header(tensors, DEFAULT_LIMITS)], encode_data(tensors))
    for part, document in checkpoint.documents.items():
        name = part + DOCUMENT_SUFFIX
        with _naming(name):
            check_file_name(name)
            yield name, [encode_document(document, DEFAULT_LIMITS)]


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{name} cannot be saved: {error}") from None


def _select(
    folder: Path, manifest: Manifest, parts: Collection[str] | None, limits: Limits
) -> list[tuple[str, FileRecord]]:
    """Return the files that belong to `parts`, once it is sure that they exist and are not too large together."""
    known = {name.partition(".")[0] for name in manifest.files}
    missing = sorted(set(parts or ()) - known)
    if missing:
        fault = f"has no part {', '.join(missing)}; valid: {', '.join(sorted(known))}"
        raise CheckpointError(folder, MANIFEST_NAME, fault)
    selected = [
        (name, record) for name, record in manifest.files.items() if parts is None or name.partition(".")[0] in parts
    ]
    total = sum(record.size for _, record in selected)
    if total > limits.total_bytes:
        fault = f"announces {total} bytes; the limit is {limits.total_bytes}; raise Limits.total_bytes if you trust it"
        raise CheckpointError(folder, MANIFEST_NAME, fault)
    return selected


@contextmanager
def _open_recorded(folder: Path, name: str, record: FileRecord) -> Iterator[HashedReader]:
    """Open a file that must have the recorded size, and give every fault of its content a name."""
    try:
        with open_untrusted(folder / name) as reader:
            reader.check_size(record.size)
            yield reader
    except FormatError as error:
        raise CheckpointError(folder, name, str(error)) from None


def _read_document(reader: HashedReader, record: FileRecord, limits: Limits) -> JSON:
    reader.check_limit(limits.document_bytes)
    raw = reader.read(reader.size)
    reader.check_end(record.sha256)
    return decode_document(raw, limits)


def write_single_file(path: Path, checkpoint: Checkpoint) -> str:
    """Write everything to one file, atomically, and return its SHA-256; raise as `save_checkpoint` does."""
    documents = dict(checkpoint.documents)
    check_document(documents, DEFAULT_LIMITS)
    tensors = {
        f"{group}{_SEPARATOR}{name}": tensor
        for group, tensors in checkpoint.tensors.items()
        for name, tensor in tensors.items()
    }
    metadata = {
        "format": _FILE_FORMAT,
        "version": _FILE_VERSION,
        "sha256": _BLANK,
        "documents": json.dumps(documents, allow_nan=False, separators=(",", ":")),
    }
    header = encode_header(tensors, DEFAULT_LIMITS, metadata)
    digest = hashlib.sha256(header)
    for chunk in encode_data(tensors):
        digest.update(chunk)
    sha256 = digest.hexdigest()
    header = _with_hash(header, _BLANK, sha256)
    write_chunks_atomic(path, chain([header], encode_data(tensors)))
    return sha256


def read_single_file(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Read such a file, every byte verified, so that nothing in it can run; raise CheckpointError if it is wrong."""
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
    """Return the metadata once it is sure that they are ours."""
    if not isinstance(metadata, dict) or metadata.get("format") != _FILE_FORMAT:
        raise FormatError("is safetensors, but not of Ludus")
    if metadata.get("version") != _FILE_VERSION:
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
    """Replace the hash in a header, where it stands once: in the documents and in names all quotes are escaped."""
    before, after = (f'"sha256":"{digest}"'.encode("ascii") for digest in (old, new))
    if header.count(before) != 1:
        raise FormatError("its SHA-256 is not written as Ludus writes it")
    return header.replace(before, after)
