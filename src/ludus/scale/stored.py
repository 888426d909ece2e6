"""Folders of sweeps and leagues as they may come from a stranger: nothing in them leads anywhere else.

Runs append to files in place, so a link in the folder of one that resumes would let it write to what the link names.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ludus.config import read_document
from ludus.config.layers import EXTENDS
from ludus.core.errors import ConfigError, FormatError
from ludus.core.files import write_text_atomic
from ludus.envs.stored import remember_own_config
from ludus.training.destinations import remember
from ludus.training.run_folder import LOCK_FILE, RunLock

if TYPE_CHECKING:
    from ludus.scale.config import SweepPlan
    from ludus.scale.population import LeaguePlan

_SKIPPED = "wandb"  # of a run: Ludus reads nothing in it, and that library links to its own files


def check_stored(file: Path) -> None:
    """Raise ConfigError if the configuration of a sweep or league folder needs another file, which ours never does."""
    check_kind(file, stat.S_IFREG)
    if read_document(file).root.child(EXTENDS) is not None:
        raise ConfigError(f"{file} extends another file, which Ludus never writes: put its settings into this one")


def write_stored(file: Path, plan: "SweepPlan | LeaguePlan") -> None:
    """Write the configuration of a sweep or league, and remember that what it names outside is the user's choice.

    Raises:
        StoreError: It cannot be written.
    """
    content = plan.to_yaml()
    remember_own_config(content, [*plan.base.outside_names()])
    remember(plan.base.monitoring)
    write_text_atomic(file, content)


def lock_folder(folder: Path, files: Iterable[str], folders: Iterable[str]) -> RunLock:
    """Take the lock of a sweep or league, whose files and folders must be what they are called if they exist.

    Raises:
        FormatError: Something is a link, or not of its kind.
        RunLockedError: Another process works on it.
        StoreError: The folder cannot be written.
    """
    for name in (LOCK_FILE, *files):
        check_kind(folder / name, stat.S_IFREG)
    for name in folders:
        check_kind(folder / name, stat.S_IFDIR)
    return RunLock(folder)


def check_kind(path: Path, *kinds: int) -> int:
    """Return the kind of a file or folder, as of `stat.S_IFMT`; 0 if there is none, FormatError if it is of another."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}") from error
    if kind not in kinds:
        wanted = " or ".join("a folder" if each == stat.S_IFDIR else "a file" for each in kinds)
        raise FormatError(f"{path} is not {wanted}; links and the like are not followed: replace it")
    return kind


def check_run_files(folder: Path) -> None:
    """Raise FormatError if a folder is none, or if anything in it is neither a file nor a folder; it may be missing."""
    left = [folder] if check_kind(folder, stat.S_IFDIR) else []
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and entry.name != _SKIPPED:
                    left.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    check_kind(Path(entry.path), stat.S_IFREG, stat.S_IFDIR)
