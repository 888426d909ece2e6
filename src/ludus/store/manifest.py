"""The manifest of a checkpoint: which files belong to it, their sizes and hashes, and a hash of itself.

It has exactly one valid form (sorted keys, fixed spacing), so that any changed byte is found, also one that
would mean the same to a JSON reader.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.core.errors import CheckpointError, FormatError
from ludus.store.documents import brief, decode_document
from ludus.store.limits import DEFAULT_LIMITS, Limits
from ludus.store.reading import open_untrusted

MANIFEST_NAME = "manifest.json"
TENSOR_SUFFIX = ".safetensors"
DOCUMENT_SUFFIX = ".json"

_FORMAT = "ludus-checkpoint"
_VERSION = 1
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}(\.safetensors|\.json)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size and SHA-256 (hex) of one file."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint consists of.

    Attributes:
        step: Environment steps at which it was taken.
        sequence: Position in the order in which a store saved its checkpoints.
        files: Record of each file by name.
    """

    step: int
    sequence: int
    files: Mapping[str, FileRecord]

    def __post_init__(self) -> None:
        _check_count(self.step, "step")
        _check_count(self.sequence, "sequence")

    def encode(self) -> bytes:
        """Returns the one valid form of this manifest."""
        body: dict[str, object] = {
            "format": _FORMAT,
            "version": _VERSION,
            "step": self.step,
            "sequence": self.sequence,
            "files": {name: {"bytes": file.size, "sha256": file.sha256} for name, file in self.files.items()},
        }
        return _canonical({**body, "sha256": hashlib.sha256(_canonical(body)).hexdigest()})


def read_manifest(folder: Path, limits: Limits = DEFAULT_LIMITS) -> Manifest:
    """Reads and checks the manifest of the checkpoint in `folder`; opens no other file.

    Raises:
        CheckpointError: It is missing, damaged, hostile or of another version.
    """
    try:
        with open_untrusted(folder / MANIFEST_NAME) as reader:
            reader.check_limit(limits.manifest_bytes)
            return _decode(reader.read(reader.size), limits)
    except FormatError as error:
        raise CheckpointError(folder, MANIFEST_NAME, str(error)) from None


def check_file_name(name: str) -> None:
    """Raises FormatError unless `name` is a plain file name that a checkpoint may contain."""
    if not _FILE_NAME.fullmatch(name) or name == MANIFEST_NAME:
        raise FormatError(
            f"the file name {brief(name)} is not allowed; valid: lower-case letters, digits, - and _, "
            f"then {TENSOR_SUFFIX} or {DOCUMENT_SUFFIX}, and not {MANIFEST_NAME}"
        )


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
        files={name: _decode_record(name, record) for name, record in files.items()},
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
