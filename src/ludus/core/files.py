"""Atomic files and folders: whatever happens in the middle, a reader finds the old content or the new.

Everything that Ludus writes goes through here, or through `wrap_disk_errors`: a disk that is full or read-only is a
typed error that names the file, the reason and the next step.

The order is always: write under a temporary name in the same folder, fsync, rename, fsync of the parent folder.
Temporary names start with `.ludus-tmp-` and say which process wrote them, so leftovers of a killed process can
be told from work in progress. A folder that is being replaced waits under a name that starts with `.ludus-old-`
until its successor is in place, because a rename cannot replace a folder that has content.

Only regular files are opened: a folder, FIFO, socket or device in place of a file is an error, never a hang. Opening
some devices has side effects (closing `/dev/watchdog` reboots the machine), so the kind is checked before the file is
opened, and once more on the open descriptor, because the name may have changed hands in between.
"""

import contextlib
import errno
import hashlib
import itertools
import json
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from ludus.core.errors import FormatError, StoreError, StoreFullError

logger = logging.getLogger(__name__)

# Flags that a platform lacks (Windows) guard against something that it lacks too.
_NO_WAITING = (
    getattr(os, "O_NONBLOCK", 0)  # opening a FIFO would otherwise wait for its other end
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}
_CHUNK_BYTES = 1 << 20
MAX_TABLE_BYTES = 1 << 30  # size of one table of a run, such as `monitor.csv`: some 20 million rows
_MOST_LINES = 5_000_000  # of a file of JSON lines; an empty object takes thirty times its bytes in memory
MAX_DOCUMENT_BYTES = 64 << 20  # size of one JSON document of a run, such as `run.json`

Buffer: TypeAlias = bytes | bytearray | memoryview
JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

TEMPORARY_PREFIX = ".ludus-tmp-"
ASIDE_PREFIX = ".ludus-old-"

_TEMPORARY_NAME = re.compile(re.escape(TEMPORARY_PREFIX) + r"(\d{1,10})-\d+-.+")
_counter = itertools.count()
_active: set[str] = set()  # temporary paths that this process is writing now
_FULL_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
DISK_ERRORS = (*_FULL_ERRORS, errno.EROFS)  # error numbers of a disk that takes nothing: it is full or read-only

RUNS_FOLDER = Path("runs")
EXPORT_SUFFIX = ".ludus"  # of an agent in one file, as `ludus export` writes it
LATEST = "latest"  # link beside the runs that points to the newest one


def open_regular(path: Path, flags: int = os.O_RDONLY, *, follow_links: bool = True) -> int:
    """Open a regular file without waiting and return its descriptor; `flags` are those of `os.open`.

    Raise OSError, whose `strerror` says why, if it is no regular file or, unless `follow_links`, a link to one.
    """
    try:
        _check_kind(path, path.stat(follow_symlinks=follow_links))
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags | _NO_WAITING, 0o666)
    try:
        _check_kind(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, *, limit: int, follow_links: bool = True) -> bytes:
    """Return the content of a regular file, or behind a link to one, of at most `limit` bytes; or raise FormatError."""
    try:
        descriptor = open_regular(path, follow_links=follow_links)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            content = bytearray()
            # The size is only announced: a file under /proc announces 0 bytes, and a log may grow meanwhile.
            while size <= limit and (chunk := file.read(min(_CHUNK_BYTES, limit + 1 - len(content)))):
                content += chunk
                size = max(size, len(content))
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a path with a null character
        raise FormatError(f"{str(path)!r} cannot be read: {error}") from error
    if size > limit:
        raise FormatError(f"{path} has {size} bytes or more; at most {limit} are read")
    return bytes(content)


def read_if_possible(path: Path, *, limit: int) -> bytes | None:
    """Return the content of a regular file; None if it is missing, or if it cannot be read, which is warned of."""
    if not os.path.lexists(path):
        return None
    try:
        return read_regular(path, limit=limit)
    except FormatError as error:
        logger.warning("[WARN] %s; it is left out", error)
        return None


def read_small(path: Path, limit: int) -> bytes | None:
    """Return the content of a file; None if it is missing, a link, too large or unreadable."""
    try:
        return read_regular(path, limit=limit, follow_links=False)
    except FormatError:
        return None


def read_end(path: Path, size: int) -> list[str]:
    """Return the complete lines in the last bytes of a file; nothing if it is missing, a link or unreadable."""
    try:
        descriptor = open_regular(path, follow_links=False)
        with os.fdopen(descriptor, "rb"):
            start = max(os.fstat(descriptor).st_size - size, 0)
            text = read_at(descriptor, size, start)
    except OSError:
        return []
    if start:
        text = text[text.find(b"\n") + 1 :]
    return text[: text.rfind(b"\n") + 1].decode("utf-8", errors="replace").splitlines()


def read_regular_text(path: Path, *, limit: int) -> str:
    """Return the UTF-8 text of a regular file, like `read_regular`; raise FormatError also if it is not UTF-8."""
    try:
        return read_regular(path, limit=limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def read_json_object(path: Path, *, limit: int) -> dict[str, Any]:
    """Return the JSON object in a regular file, like `read_regular_text`; raise FormatError also if it holds none."""
    text = read_regular_text(path, limit=limit)
    try:
        document = json.loads(text)
    except RecursionError:
        raise FormatError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise FormatError(f"{path} must hold a JSON object, got {type(document).__name__}")
    return document


def _check_kind(path: Path, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        code = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
        raise OSError(code, f"it is {_KINDS.get(kind, 'something else')}, not a regular file", str(path))


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file, without lines that are none; a file that cannot be read is warned of."""
    records: list[dict[str, Any]] = []
    content = read_if_possible(path, limit=MAX_TABLE_BYTES) or b""
    for line in content.decode("utf-8", errors="replace").split("\n"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
        if len(records) >= _MOST_LINES:
            break
    return records


@contextlib.contextmanager
def wrap_disk_errors(what: object) -> Iterator[None]:
    """Turn an OSError into a StoreError, or into a StoreFullError if the disk is full.

    Args:
        what: What is being written, such as its path; the error names it, the reason and the next step. Of blocks
            inside each other the outermost one names it: a user knows a folder, but not the temporary files in it.
    """
    try:
        yield
    except OSError as error:
        cause = error.__cause__ if isinstance(error, StoreError) and isinstance(error.__cause__, OSError) else error
        full = cause.errno in _FULL_ERRORS
        advice = "free some space and try again" if full else "check the path, the disk and its permissions"
        message = f"{what} could not be written: {cause.strerror or cause}; {advice}"
        raise (StoreFullError if full else StoreError)(cause.errno, message) from cause


def make_folder(folder: Path) -> None:
    """Make a folder and its parents where they are missing; raise StoreError if that fails."""
    with wrap_disk_errors(f"folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder among the system's temporary files, and remove it at the end; raise StoreError if that fails."""
    with wrap_disk_errors("a temporary folder"):
        folder = tempfile.TemporaryDirectory(prefix=prefix)
    with folder as name:
        yield Path(name)


def temporary_file() -> IO[bytes]:
    """Return a nameless temporary file that vanishes when it is closed; raise StoreError if it cannot be made."""
    with wrap_disk_errors("a temporary file"):
        return tempfile.TemporaryFile()


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read up to `size` bytes at `offset`; without `pread` (Windows) this moves the descriptor's position."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def write_atomic(path: Path, data: Buffer) -> None:
    """Write a file, and its folder if missing; after a fault, a StoreError, it has its old content or `data`."""
    write_chunks_atomic(path, [data])


def write_chunks_atomic(path: Path, chunks: Iterable[Buffer]) -> None:
    """Write a file in pieces, like `write_atomic`."""
    with wrap_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(path)
        try:
            write_new_file(temporary, chunks)
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            discard_temporary(temporary)


def write_text_atomic(path: Path, text: str) -> None:
    """Write UTF-8 text like `write_atomic`."""
    write_atomic(path, text.encode("utf-8"))


def write_new_file(path: Path, chunks: Iterable[Buffer]) -> tuple[str, int]:
    """Write and fsync a file that must not exist yet; return its SHA-256 (hex) and its size in bytes."""
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
    """Make the names in a folder durable; Windows offers no such call and orders its journal by itself."""
    if os.name != "nt":
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_temporary_folder(target: Path) -> Path:
    """Make an empty folder beside `target`, to be filled and then given to `replace_folder`."""
    temporary = temporary_path(target)
    temporary.mkdir()
    return temporary


def replace_folder(temporary: Path, target: Path) -> None:
    """Put a flat, finished folder in the place of `target`, which may exist; both are in the same parent.

    Every file, the folder and the parent are fsynced. If the process dies in the middle, `existing_folder` finds
    the old or the new content.
    """
    for file in sorted(temporary.iterdir()):
        _sync(file, os.O_RDWR)  # Windows refuses to fsync a file that is open for reading only
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
    """End a replacement that was cut off: put the old folder back if the new one never came, else remove it."""
    aside = _aside_path(target)
    if not aside.is_dir():
        return
    if target.exists():
        remove_folder(aside)
    else:
        aside.rename(target)
        sync_folder(target.parent)


def existing_folder(target: Path) -> Path:
    """Return where the content of `target` is: set aside if a replacement was cut off, else under its own name."""
    if target.exists():  # also `.` and `/`, which have no name to rename from
        return target
    aside = _aside_path(target)
    return aside if aside.is_dir() else target


def remove_folder(folder: Path) -> None:
    """Remove a folder if it exists; rename it first, so that no half-emptied folder keeps a valid name."""
    if not folder.exists():
        return
    doomed = temporary_path(folder)
    try:
        folder.rename(doomed)
        shutil.rmtree(doomed)
    finally:
        _active.discard(str(doomed))


def temporary_path(target: Path) -> Path:
    """Return an unused temporary name beside `target`; `clean_temporaries` spares it while this process lives."""
    name = f"{TEMPORARY_PREFIX}{os.getpid()}-{next(_counter)}-{target.name.removeprefix(ASIDE_PREFIX)}"
    path = target.with_name(name)
    _active.add(str(path))
    return path


def discard_temporary(path: Path) -> None:
    """Remove a temporary file or folder if it is still there, and forget its name.

    What cannot be removed stays for `clean_temporaries`: the write that failed raises the disk's error.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        pass
    finally:
        _active.discard(str(path))


def clean_temporaries(folder: Path) -> list[Path]:
    """Remove what killed processes left behind in `folder`, not what living ones write; return the removed paths."""
    leftovers = [path for path in sorted(folder.glob(f"{TEMPORARY_PREFIX}*")) if _is_leftover(path)]
    for path in leftovers:
        discard_temporary(path)
    return [path for path in leftovers if not os.path.lexists(path)]


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a regular file's content in hex, read in pieces."""
    digest = hashlib.sha256()
    with os.fdopen(open_regular(path), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _aside_path(target: Path) -> Path:
    return target.with_name(ASIDE_PREFIX + target.name)


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


def suggest_run(folder: Path) -> str:
    """Return the end of an error about a folder that holds no run: the newest run in or near it, or what to pass."""
    for near in (folder, folder / RUNS_FOLDER, folder.parent, RUNS_FOLDER):
        if (near / LATEST).is_dir():
            return f"; did you mean {near / LATEST}?"
    return f"; pass the folder that `ludus train` named, such as {RUNS_FOLDER / LATEST}"
