"""A file of lines, appended and flushed; cut back on resume to what the checkpoint knows."""

import errno
import logging
import os
from pathlib import Path

from ludus.core.errors import StoreError, StoreFullError

logger = logging.getLogger(__name__)


class AppendLog:
    """An append-only file of lines; it comes into being with the first one.

    Lines that a full disk refuses wait in memory for the next one; `sync` fails while there are any, so no
    checkpoint is ahead of the file.
    """

    def __init__(self, path: Path) -> None:
        """Takes the file's place; a file that is there already is opened."""
        self._path = path
        self._descriptor = -1
        self._waiting = bytearray()
        if path.exists():
            self._open()

    @property
    def offset(self) -> int:
        """Size of the file in bytes; 0 if there is none."""
        return os.fstat(self._descriptor).st_size if self._descriptor >= 0 else 0

    @property
    def is_empty(self) -> bool:
        """Whether no line was written or waits to be."""
        return not self._waiting and self.offset == 0

    def append(self, lines: str) -> None:
        """Writes whole lines, which reach the operating system before this returns unless the disk is full."""
        late = bool(self._waiting)
        self._waiting += lines.encode("utf-8")
        try:
            self._flush()
        except OSError as error:
            if not late:  # says it once, not with every line
                logger.warning(
                    "[WARN] %s cannot be written: %s; its lines wait in memory and training goes on",
                    self._path, error.strerror,
                )  # fmt: skip

    def sync(self) -> int:
        """Brings all lines to the disk and returns the offset, for the checkpoint that is saved next.

        Raises:
            StoreFullError: The disk is full.
            StoreError: Writing failed for another reason.
        """
        try:
            self._flush()
            if self._descriptor >= 0:
                os.fsync(self._descriptor)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
            message = f"{self._path} could not be written: {error.strerror}; free some space or check the disk"
            raise (StoreFullError if full else StoreError)(error.errno, message) from error
        return self.offset

    def cut_back(self, offset: int) -> None:
        """Drops the lines after `offset`: the iterations that wrote them are repeated."""
        self._waiting.clear()
        size = self.offset
        if self._descriptor < 0 and offset == 0:
            return
        if self._descriptor < 0:
            self._open()
        if size < offset:
            logger.warning(
                "[WARN] %s has %d bytes, the checkpoint knew of %d: earlier lines are lost; training goes on",
                self._path, size, offset,
            )  # fmt: skip
            offset = self._path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._descriptor, offset)
        os.fsync(self._descriptor)

    def text(self) -> str:
        """Returns what is in the file."""
        return self._path.read_text(encoding="utf-8") if self._descriptor >= 0 else ""

    def close(self) -> None:
        """Closes the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self._path, flags, 0o666)

    def _flush(self) -> None:
        if self._waiting and self._descriptor < 0:
            self._open()
        while self._waiting:  # one call writes less than asked for when the disk is nearly full
            del self._waiting[: os.write(self._descriptor, self._waiting)]
