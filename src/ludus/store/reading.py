"""Reading untrusted files: no links, no pipes, no more bytes than announced, hashed while they are read."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ludus.core.errors import FormatError

# Where a flag does not exist (Windows) neither does what it guards against.
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe would otherwise wait for ever
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK)  # what O_NOFOLLOW gives on Linux and macOS, and on FreeBSD


class HashedReader:
    """Reads a regular file front to back and hashes the very bytes that it hands out."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self.position = 0
        self._descriptor = descriptor
        self._digest = hashlib.sha256()

    @property
    def rest(self) -> int:
        """Bytes that have not been read yet."""
        return self.size - self.position

    def check_size(self, expected: int) -> None:
        """Raises FormatError unless the file has exactly the expected size in bytes."""
        if self.size != expected:
            raise FormatError(f"has {self.size} bytes; the manifest says {expected}")

    def check_limit(self, limit: int) -> None:
        """Raises FormatError if the file is larger than `limit` bytes."""
        if self.size > limit:
            raise FormatError(f"has {self.size} bytes; at most {limit} are allowed")

    def read(self, count: int) -> bytes:
        """Returns the next `count` bytes; raises FormatError if there are fewer."""
        if count > self.rest:
            raise FormatError(f"ends after {self.size} bytes; {self.position + count} are needed")
        buffer = bytearray(count)
        self.read_into(memoryview(buffer))
        return bytes(buffer)

    def read_into(self, buffer: memoryview) -> None:
        """Fills a flat buffer of bytes; raises FormatError if the file is shorter than when it was opened."""
        rest = buffer
        while rest.nbytes:
            count = os.readv(self._descriptor, [rest]) if hasattr(os, "readv") else self._read_copy(rest)
            if count == 0:
                raise FormatError(f"became shorter while it was read, at byte {self.position}")
            self._digest.update(rest[:count])
            self.position += count
            rest = rest[count:]

    def hash_as(self, begun: bytes) -> None:
        """Lets the hash be that of `begun` in the place of what was read so far, and of all that follows."""
        self._digest = hashlib.sha256(begun)

    def check_end(self, sha256: str) -> None:
        """Raises FormatError unless everything was read and has the given SHA-256."""
        if self.rest:
            raise FormatError(f"{self.rest} bytes follow the content")
        if self._digest.hexdigest() != sha256:
            raise FormatError("its SHA-256 is not the recorded one: it was changed after it was written")

    def _read_copy(self, buffer: memoryview) -> int:
        data = os.read(self._descriptor, min(buffer.nbytes, 1 << 24))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_untrusted(path: Path) -> Iterator[HashedReader]:
    """Opens a regular file for reading.

    Raises:
        FormatError: It is missing, a link, a folder, a pipe or a device, or cannot be read.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        raise FormatError("is missing") from None
    except OSError as error:
        fault = "is a symbolic link" if error.errno in _LINK_ERRORS else f"cannot be opened: {error.strerror}"
        raise FormatError(fault) from None
    try:
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise FormatError("is not a regular file")
            yield HashedReader(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}") from error
