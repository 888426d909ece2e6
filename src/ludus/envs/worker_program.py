"""The program that a worker process runs, and what it shares with its parent: messages and a block of memory.

This file is started by its path and imports nothing of the package, except to load plugins, so that a worker of small
games is up in a fraction of a second. What it hosts is the business of another file, which the parent names and which
has a function `host` (see `Host`). Large arrays lie in memory that both have mapped. Messages go over a socket: a
header (code, slot, size) and a payload, which is mostly empty.
"""

import contextlib
import faulthandler
import gc
import importlib.util
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

HEADER = struct.Struct("<BBI")
_MAX_MESSAGE_BYTES = 1 << 31
_ALIGNMENT_BYTES = 64
_PARENT_POLL_S = 0.5
_MOST_LETTERS = 500  # of an exception's message, like that of `ludus.core.text.blame`
_MOST_TRACEBACK = 4096  # letters

Fields = Mapping[str, tuple[tuple[int, ...], "np.dtype[Any]"]]


class Code(IntEnum):
    """Messages that every worker knows; codes of a host's own begin at 16."""

    PLAN = 1  # parent: what to host, as JSON
    CLOSE = 2  # parent: end
    DONE = 3  # worker: the last request is done
    ERROR = 4  # worker: it raised; the game, the exception and the traceback as JSON


class DisconnectedError(EOFError):
    """The other side is gone; games may raise EOFError too, say by asking for input."""


class Host(Protocol):
    """Games of a worker; `host(plan, arrays, first, last)` of the file that is hosted makes them."""

    @property
    def current(self) -> int | None:
        """The game that is being played, for error messages; None if that is not known."""

    def answer(self, code: int, slot: int, payload: bytes) -> bytes:
        """Do what a message with its own code asks for, and return what to answer."""


def block_bytes(fields: Fields) -> int:
    """Return how much memory arrays of these shapes and types take, one after another."""
    return sum(_padded_bytes(shape, dtype) for shape, dtype in fields.values())


def block_arrays(fields: Fields, memory: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return arrays of these shapes and types that lie in `memory`, `(block_bytes(fields),)`."""
    arrays: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, (shape, dtype) in fields.items():
        size = int(np.prod(shape)) * dtype.itemsize
        arrays[name] = memory[offset : offset + size].view(dtype).reshape(shape)
        offset += _padded_bytes(shape, dtype)
    return arrays


def map_block(fields: Fields, memory_file: int) -> dict[str, NDArray[Any]]:
    """Return arrays of these shapes and types that lie in a file, shared with all who map it."""
    return block_arrays(fields, np.frombuffer(mmap.mmap(memory_file, block_bytes(fields)), np.uint8))


def _padded_bytes(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> int:
    return -(-int(np.prod(shape)) * dtype.itemsize // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def receive(connection: socket.socket) -> tuple[int, int, bytes]:
    """Read one message: code, slot and payload; DisconnectedError if the other side is gone."""
    code, slot, size = HEADER.unpack(_receive_bytes(connection, HEADER.size))
    if size > _MAX_MESSAGE_BYTES:
        raise DisconnectedError(f"a message of {size} bytes is longer than {_MAX_MESSAGE_BYTES}")
    return code, slot, _receive_bytes(connection, size) if size else b""


def send(connection: socket.socket, code: int, slot: int = 0, payload: bytes = b"") -> None:
    """Write one message."""
    connection.sendall(HEADER.pack(code, slot, len(payload)) + payload)


def _receive_bytes(connection: socket.socket, count: int) -> bytes:
    buffer = bytearray(count)
    rest = memoryview(buffer)
    while rest:
        received = connection.recv_into(rest)
        if not received:
            raise DisconnectedError("the other side has closed the connection")
        rest = rest[received:]
    return bytes(buffer)


def _open(job: dict[str, Any], memory_file: int) -> Host:
    """Load the file that is to be hosted and let it make its games."""
    sys.path[:] = job["path"]
    if job["plugins"]:
        from ludus.rewards.plugins import load_plugin  # the one import of the package, and only for those who need it

        for plugin in job["plugins"]:
            load_plugin(plugin)
    file = Path(job["file"])
    spec = importlib.util.spec_from_file_location(f"hosted_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    fields = {name: (tuple(shape), np.dtype(dtype)) for name, (shape, dtype) in job["fields"].items()}
    hosted: Host = module.host(job["plan"], map_block(fields, memory_file), job["first"], job["last"])
    return hosted


def _serve(connection: socket.socket, memory_file: int) -> None:
    """Answer the parent's messages until it closes the connection."""
    hosted: Host | None = None
    try:
        _, _, payload = receive(connection)  # the plan is always the first
        hosted = _open(json.loads(payload), memory_file)
        send(connection, Code.DONE)
        while True:
            code, slot, payload = receive(connection)
            if code == Code.CLOSE:
                return
            send(connection, Code.DONE, payload=hosted.answer(code, slot, payload))
    except DisconnectedError:
        return
    except BaseException as error:  # whatever a game raises is reported; what becomes of it is up to the parent
        report = {
            "game": hosted.current if hosted is not None else None,
            "reason": "".join(map(short, traceback.format_exception_only(error)[-1:])).strip(),
            "traceback": short_traceback(error),
        }
        with contextlib.suppress(OSError):  # a parent that broke off a step is not there to be told
            send(connection, Code.ERROR, payload=json.dumps(report).encode())


def short(text: str) -> str:
    """Return a text, cut to what is shown of an exception's message."""
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]} ...\n"


def short_traceback(error: BaseException, most: int = _MOST_TRACEBACK) -> str:
    """Return the last letters of an exception's traceback, in which every message and line of code is cut."""
    text = "".join(map(short, traceback.format_exception(error)))
    return text if len(text) <= most else f"... {text[-most:]}"


def _leave_with_parent(parent: int) -> None:
    """End this process when the parent is gone, also in the middle of a step that never returns."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(1)


def main(arguments: list[str]) -> None:
    """Run a worker; the arguments are descriptors or handles (socket, memory, crash report) and the parent's id."""
    connection_file, memory_file, report_file, parent = map(int, arguments)
    if sys.platform == "win32":  # there, handles are inherited
        import msvcrt

        memory_file, report_file = (msvcrt.open_osfhandle(handle, os.O_RDWR) for handle in (memory_file, report_file))
    # As in commands. Imports make objects that stay, and Python looks for garbage after every 700 of them, by default:
    # 0.5 of the 4.5 CPU seconds in which a worker of City comes up.
    gc.set_threshold(20_000, 10, 10)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    faulthandler.enable(file=report_file)
    if hasattr(faulthandler, "register"):  # not on Windows
        faulthandler.register(signal.SIGUSR1, file=report_file, all_threads=True)
    threading.Thread(target=_leave_with_parent, args=(parent,), daemon=True).start()
    with socket.socket(fileno=connection_file) as connection:
        _serve(connection, memory_file)
    # Not sys.exit: an environment's own threads or exit handlers must not keep a worker alive.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
