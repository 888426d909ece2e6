"""What tests of screens look for when a screen is gone: its lock, its socket, its folder and its processes."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from ludus.worlds.city.screen.session import VirtualScreen

LOCKS, SOCKETS = "/tmp/.X{}-lock", "/tmp/.X11-unix/X{}"  # noqa: S108 - where X servers put them
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108


def wait_until(is_true: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Waits for something, and fails if it does not come."""
    give_up = time.monotonic() + timeout_s
    while not is_true():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def leftovers(display: str, folder: Path, pids: list[int]) -> list[str]:
    """What is still there of a screen; its number may be another's by now, whose lock and socket are not counted."""
    number = display.removeprefix(":")
    there = [file for file in (Path(name.format(number)) for name in (LOCKS, SOCKETS)) if file.exists()]
    # Asked after the files were seen. A server that starts takes the socket first and the lock later: ask for both.
    owner = _owner(Path(LOCKS.format(number)))
    if (owner and owner not in pids and psutil.pid_exists(owner)) or _is_bound(Path(SOCKETS.format(number))):
        there = []
    there += [folder] if folder.exists() else []
    shared = [file.name for pid in pids for file in SHARED_MEMORY.glob(f"*_{pid}")]
    return [*map(str, there), *shared, *(f"process {pid}" for pid in pids if is_there(pid))]


def is_there(pid: int) -> bool:
    """Whether a process is left; one that has ended and that the first process of the machine inherited is not ours."""
    try:
        process = psutil.Process(pid)
        return not (process.status() == psutil.STATUS_ZOMBIE and process.ppid() == 1)
    except psutil.NoSuchProcess:
        return False


def tree(pid: int) -> list[int]:
    """All processes below one."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def resource_use(screen: VirtualScreen) -> tuple[int, int]:
    """Number and resident memory in bytes of the processes of a screen: its supervisor, its server and its programs."""
    root = psutil.Process(screen._supervisor.pid)
    count, memory_bytes = 0, 0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            memory_bytes += process.memory_info().rss
            count += 1
    return count, memory_bytes


def _owner(lock: Path) -> int:
    """The process that a lock names; 0 if there is no lock."""
    try:
        return int(lock.read_text())
    except (OSError, ValueError):
        return 0


def _is_bound(file: Path) -> bool:
    """Whether a living process holds a socket of this name, listening or about to."""
    return any(line.endswith(f" {file}") for line in Path("/proc/net/unix").read_text().splitlines())
