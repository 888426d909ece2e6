"""One process a run folder: a lock that the operating system gives back when its holder is gone."""

import fcntl
import json
import logging
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from ludus.core.errors import RunLockedError

logger = logging.getLogger(__name__)

LOCK_FILE = "run.lock"


class RunLock:
    """Holds a run folder for this process.

    The lock is the kernel's, not the file's: it ends with the process, however that ends, so a file that was left
    behind holds nobody up. What is in the file is for people. On a file system without locks a run is only warned of.
    """

    def __init__(self, folder: Path) -> None:
        """Takes the lock.

        Raises:
            RunLockedError: Another process holds it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / LOCK_FILE
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _read(self._descriptor)
            os.close(self._descriptor)
            raise RunLockedError(
                f"another process{holder} is training in {folder}; wait for it, stop it, or use another folder"
            ) from error
        except OSError as error:
            logger.warning("[WARN] %s cannot be locked (%s): keep other processes out of it", folder, error.strerror)
        os.ftruncate(self._descriptor, 0)
        note = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
        os.pwrite(self._descriptor, note.encode(), 0)

    def release(self) -> None:
        """Gives the lock back; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _read(descriptor: int) -> str:
    try:
        note = json.loads(os.pread(descriptor, 1000, 0))
        return f" (pid {int(note['pid'])} on {str(note['host'])[:60]})"
    except (ValueError, KeyError, TypeError):
        return ""
