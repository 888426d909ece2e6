"""Watches the memory and the disk that a run uses, so that it saves and stops before the system ends it."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from ludus.training.config import GuardConfig

GIB = 1024.0**3
_SHARE_OF_MACHINE = 0.9


class Shortage(NamedTuple):
    """A limit that is reached, in words, and whether deleting old checkpoints could help."""

    text: str
    is_disk: bool


class ResourceWatch:
    """Looks at the memory of the process with all that it started, the run folder's size and its disk's free space."""

    def __init__(self, config: GuardConfig, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._config, self._folder, self._clock = config, folder, clock
        self._process = psutil.Process()
        self._next_s = -1.0

    def look(self) -> Shortage | None:
        """Return the first limit that is reached; look at most every `every_s` seconds."""
        now_s = self._clock()
        if now_s < self._next_s:
            return None
        self._next_s = now_s + self._config.every_s
        return self.memory() or self.disk()

    def memory(self) -> Shortage | None:
        """Compare the resident memory of the whole process tree with its limit."""
        limit_gib = self._config.memory_gib
        if limit_gib is None:
            limit_gib = _SHARE_OF_MACHINE * psutil.virtual_memory().total / GIB
        used_gib = tree_bytes(self._process) / GIB
        if used_gib <= limit_gib:
            return None
        return Shortage(
            f"the process and its children use {used_gib:.2f} GiB of memory, guard.memory_gib allows {limit_gib:.2f}; "
            "use fewer games, shorter rollouts or a smaller league.keep",
            is_disk=False,
        )

    def disk(self) -> Shortage | None:
        """Compare the run folder's size and the free space with their limits."""
        allowed_gib, least_gib = self._config.folder_gib, self._config.free_disk_gib
        if allowed_gib is not None and (size_gib := folder_bytes(self._folder) / GIB) > allowed_gib:
            text = f"the run folder holds {size_gib:.2f} GiB, guard.folder_gib allows {allowed_gib:.2f}"
            return Shortage(text, is_disk=True)
        if least_gib is not None and (free_gib := shutil.disk_usage(self._folder).free / GIB) < least_gib:
            text = f"the disk has {free_gib:.2f} GiB left, guard.free_disk_gib asks for {least_gib:.2f}"
            return Shortage(text, is_disk=True)
        return None


def tree_bytes(process: psutil.Process) -> int:
    """Return the resident memory of a process and of all that it started: workers, screens, games.

    Pages that a child shares with others count once, with the process itself. A child that ends meanwhile does not.
    """
    total = int(process.memory_info().rss)
    for child in process.children(recursive=True):
        try:
            memory = child.memory_info()
        except psutil.Error:
            continue
        total += int(memory.rss) - int(getattr(memory, "shared", 0))
    return total


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder; one that vanishes meanwhile does not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - thousands of files a look
            except FileNotFoundError:
                continue
    return total
