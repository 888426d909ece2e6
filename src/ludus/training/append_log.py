"""`metrics.jsonl`: one line an iteration, appended and flushed; cut back on resume to what the checkpoint knows."""

import errno
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ludus.core.errors import StoreError, StoreFullError

logger = logging.getLogger(__name__)


class MetricsLog:
    """An append-only file of JSON lines; equal runs write equal bytes, so times of day and durations stay out.

    Lines that a full disk refuses wait in memory for the next one; `sync` fails while there are any, so no
    checkpoint is ahead of the file.
    """

    def __init__(self, path: Path) -> None:
        """Opens the file, which is made if it is not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        self._waiting = bytearray()

    @property
    def offset(self) -> int:
        """Size of the file in bytes."""
        return os.fstat(self._descriptor).st_size

    def append(self, record: Mapping[str, float | int | str | None]) -> None:
        """Writes one line, which reaches the operating system before this returns unless the disk is full."""
        late = bool(self._waiting)
        self._waiting += json.dumps(dict(record), allow_nan=False).encode("ascii") + b"\n"
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
        if size < offset:
            logger.warning(
                "[WARN] %s has %d bytes, the checkpoint knew of %d: earlier metrics are lost; training goes on",
                self._path, size, offset,
            )  # fmt: skip
            offset = self._path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._descriptor, offset)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _flush(self) -> None:
        while self._waiting:  # one call writes less than asked for when the disk is nearly full
            del self._waiting[: os.write(self._descriptor, self._waiting)]
