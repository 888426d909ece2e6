"""Atomic files and folders: whatever happens in the middle, a reader finds the old content or the new.

The order is always: write under a temporary name in the same folder, fsync, rename, fsync of the parent folder.
Temporary names start with `.ludus-tmp-` and say which process wrote them, so leftovers of a killed process can
be told from work in progress. A folder that is being replaced waits under a name that starts with `.ludus-old-`
until its successor is in place, because a rename cannot replace a folder that has content.
"""

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

TEMPORARY_PREFIX = ".ludus-tmp-"
ASIDE_PREFIX = ".ludus-old-"

_TEMPORARY_NAME = re.compile(re.escape(TEMPORARY_PREFIX) + r"(\d{1,10})-\d+-.+")
_counter = itertools.count()
_active: set[str] = set()  # temporary paths that this process is writing now
_CHUNK_BYTES = 1 << 20


def write_atomic(path: Path, data: Buffer) -> None:
    """Writes a file so that after any fault it has either its old content or `data`."""
    temporary = temporary_path(path)
    try:
        write_new_file(temporary, [data])
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        discard_temporary(temporary)


def write_text_atomic(path: Path, text: str) -> None:
    """Writes UTF-8 text like `write_atomic`."""
    write_atomic(path, text.encode("utf-8"))


def write_json_atomic(path: Path, document: JSON) -> None:
    """Writes indented standard JSON (no NaN, no infinity) like `write_atomic`."""
    write_text_atomic(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def write_new_file(path: Path, chunks: Iterable[Buffer]) -> tuple[str, int]:
    """Writes and fsyncs a file that must not exist yet; returns its SHA-256 (hex) and its size in bytes."""
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        for chunk in chunks:
            rest = memoryview(chunk).cast("B")
            digest.update(rest)
            size += rest.nbytes
            while rest.nbytes:  # one call writes at most 2 GiB, and less when the disk is nearly full
                rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return digest.hexdigest(), size


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable; Windows offers no such call and orders its journal by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_temporary_folder(target: Path) -> Path:
    """Makes an empty folder beside `target`, to be filled and then given to `replace_folder`."""
    temporary = temporary_path(target)
    temporary.mkdir()
    return temporary


def replace_folder(temporary: Path, target: Path) -> None:
    """Puts a flat, finished folder in the place of `target`, which may exist; both are in the same parent.

    Every file, the folder and the parent are fsynced. If the process dies in the middle, `existing_folder` finds
    the old or the new content.
    """
    for file in sorted(temporary.iterdir()):
        _sync_file(file)
    sync_folder(temporary)
    recover_folder(target)
    aside = _aside_path(target)
    if target.is_dir():
        target.rename(aside)
    try:
        temporary.rename(target)
    except OSError:
        recover_folder(target)
        raise
    sync_folder(target.parent)
    _active.discard(str(temporary))
    with contextlib.suppress(OSError):  # the new folder is safe; the next replacement removes the old one
        remove_folder(aside)


def recover_folder(target: Path) -> None:
    """Ends a replacement that was cut off: puts the old folder back if the new one never came, else removes it."""
    aside = _aside_path(target)
    if not aside.is_dir():
        return
    if target.exists():
        remove_folder(aside)
    else:
        aside.rename(target)
        sync_folder(target.parent)


def existing_folder(target: Path) -> Path:
    """Returns where the content of `target` is: set aside if a replacement was cut off, else under its own name."""
    aside = _aside_path(target)
    return aside if not target.exists() and aside.is_dir() else target


def remove_folder(folder: Path) -> None:
    """Removes a folder if it exists; renames it first, so that no half-emptied folder keeps a valid name."""
    if not folder.exists():
        return
    doomed = temporary_path(folder)
    try:
        folder.rename(doomed)
        shutil.rmtree(doomed)
    finally:
        _active.discard(str(doomed))


def temporary_path(target: Path) -> Path:
    """Returns an unused temporary name beside `target`; `clean_temporaries` spares it while this process lives."""
    name = f"{TEMPORARY_PREFIX}{os.getpid()}-{next(_counter)}-{target.name.removeprefix(ASIDE_PREFIX)}"
    path = target.with_name(name)
    _active.add(str(path))
    return path


def discard_temporary(path: Path) -> None:
    """Removes a temporary file or folder if it is still there, and forgets its name."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    finally:
        _active.discard(str(path))


def clean_temporaries(folder: Path) -> list[Path]:
    """Removes what killed processes left behind in `folder`, and returns the paths that were removed.

    Work in progress of this or another living process stays.
    """
    leftovers = [path for path in sorted(folder.glob(f"{TEMPORARY_PREFIX}*")) if _is_leftover(path)]
    for path in leftovers:
        discard_temporary(path)
    return leftovers


def sha256_file(path: Path) -> str:
    """Returns the SHA-256 of a file's content in hex, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _aside_path(target: Path) -> Path:
    return target.with_name(ASIDE_PREFIX + target.name)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)  # Windows refuses to fsync a file that is open for reading only
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_leftover(path: Path) -> bool:
    match = _TEMPORARY_NAME.fullmatch(path.name)
    if match is None:
        return False
    process = int(match.group(1))
    if process == os.getpid():  # also an earlier process with the same number, as in a restarted container
        return str(path) not in _active
    return not _is_alive(process)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end the process there
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it lives, and belongs to someone else
        return True
    return True
