"""Copy a game's data folder: regular files alone, counted before and while they are copied.

A profile names the folder (`launch.copy`), and may name one that never ends (`/proc`), is larger than the disk, or
links to files that are no data of a game.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from ludus.core.errors import ConfigError, brief
from ludus.core.files import open_regular, wrap_disk_errors

MAX_ENTRIES = 20_000  # files and folders; Micropolis has about 600
MAX_BYTES = 1 << 30
_SHARED = Path("/usr/share")  # data of installed packages; Micropolis links to fonts there
_CHUNK_BYTES = 1 << 20


class _Entry(NamedTuple):
    inner: Path  # path below the folder
    status: os.stat_result


def copy_data(source: Path, target: Path) -> None:
    """Copy a folder to `target`, which must not exist; raise ConfigError if it is not one of plain, bounded data."""
    try:
        source = source.resolve(strict=True)
        entries = _list(source)
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError before Python 3.13
        raise _fault(source, f"cannot be read: {brief(str(error))}") from error
    with wrap_disk_errors(target):
        target.mkdir()
        for inner, status in entries:
            if stat.S_ISDIR(status.st_mode):
                (target / inner).mkdir()
            else:
                _copy_file(source / inner, target / inner, status)


def _list(source: Path) -> list[_Entry]:
    """Return all files and folders, each behind the folder that it is in."""
    entries, total, pending = list[_Entry](), 0, [Path()]
    while pending:
        folder = pending.pop()
        # Pseudo file systems (proc, sysfs ...) have no blocks, and regular files whose sizes say nothing.
        if not os.statvfs(source / folder).f_blocks:
            raise _fault(source / folder, "is on no disk; name a folder with the game's data")
        with os.scandir(source / folder) as found:
            for each in found:
                path = source / folder / each.name
                target = path.resolve(strict=True) if each.is_symlink() else path
                if not (target.is_relative_to(source) or target.is_relative_to(_SHARED)):
                    raise _fault(path, f"is a link to {brief(str(target))}, outside of the folder and of {_SHARED}")
                status = target.stat()
                entries.append(_Entry(folder / each.name, status))
                if stat.S_ISDIR(status.st_mode):
                    pending.append(folder / each.name)
                elif stat.S_ISREG(status.st_mode):
                    total += status.st_size
                else:
                    raise _fault(path, "is neither a regular file nor a folder")
                if len(entries) > MAX_ENTRIES or total > MAX_BYTES:
                    raise _fault(source, f"has more than {MAX_ENTRIES} files and folders, or {MAX_BYTES} bytes")
    return entries


def _copy_file(source: Path, target: Path, status: os.stat_result) -> None:
    with wrap_disk_errors(target), os.fdopen(open_regular(source), "rb") as old, target.open("xb") as new:
        left = status.st_size
        while left and (chunk := old.read(min(left, _CHUNK_BYTES))):
            new.write(chunk)
            left -= len(chunk)
        if left or old.read(1):
            raise _fault(source, f"has not the {status.st_size} bytes that it announced")
    target.chmod(stat.S_IMODE(status.st_mode) & 0o777)


def _fault(path: Path, text: str) -> ConfigError:
    return ConfigError(f"launch.copy: {brief(str(path))} {text}")
