"""One checkpoint: a folder of tensors and JSON documents, written atomically and verified before use."""

import errno
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from torch import Tensor

from ludus.core.errors import CheckpointError, FormatError, StoreError, StoreFullError
from ludus.core.files import (
    JSON,
    Buffer,
    discard_temporary,
    existing_folder,
    make_temporary_folder,
    replace_folder,
    write_new_file,
)
from ludus.store.documents import decode_document, encode_document
from ludus.store.limits import DEFAULT_LIMITS, Limits
from ludus.store.manifest import (
    DOCUMENT_SUFFIX,
    MANIFEST_NAME,
    TENSOR_SUFFIX,
    FileRecord,
    Manifest,
    check_file_name,
    read_manifest,
)
from ludus.store.reading import HashedReader, open_untrusted
from ludus.store.tensors import decode_tensors, encode_data, encode_header

_FULL_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


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
    """Writes a checkpoint in the place of `folder`; after any fault the old or the new one is there, whole.

    Raises:
        FormatError: A name, value or tensor cannot be stored; nothing was written.
        StoreFullError: The disk is full; the old checkpoint is intact and saving can be tried again.
        StoreError: Writing failed for another reason; the old or the new checkpoint is intact.
    """
    manifest = Manifest(step, sequence, {})
    contents = list(_encode(checkpoint))  # finds every fault of the content before anything is written
    with naming_disk_faults(f"checkpoint {folder}"):
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


@contextmanager
def naming_disk_faults(what: str) -> Iterator[None]:
    """Turns an OSError into a StoreError, or into a StoreFullError where the disk is full, that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL_ERRORS
        advice = "free some space; saving can be tried again" if full else "check the disk and its permissions"
        message = f"{what} could not be written: {error.strerror or error}; {advice}"
        raise (StoreFullError if full else StoreError)(error.errno, message) from error


def load_checkpoint(
    folder: Path, *, parts: Collection[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Checkpoint:
    """Reads a checkpoint into host memory; every byte has been verified when this returns.

    Args:
        folder: Where the checkpoint is.
        parts: Groups and documents to read, such as `("policy",)`; everything if None.
        limits: What the files may ask of this machine.

    Raises:
        CheckpointError: A file is missing, damaged, hostile or of another version; names the file and the fault.
    """
    return load_with_manifest(folder, parts, limits)[1]


def load_with_manifest(folder: Path, parts: Collection[str] | None, limits: Limits) -> tuple[Manifest, Checkpoint]:
    """Does the work of `load_checkpoint`, and also returns the manifest that the content was checked against."""
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
    """Checks everything that `load_checkpoint` checks, with one tensor at a time in memory; returns the manifest.

    Raises:
        CheckpointError: As in `load_checkpoint`.
    """
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
    """Yields the name and the content of each file; tensors are brought to the host only when they are written."""
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
    """Returns the files that belong to `parts`, once it is sure that they exist and are not too large together."""
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
    """Opens a file that must have the recorded size, and gives every fault of its content a name."""
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
