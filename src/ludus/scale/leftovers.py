"""What a Ray of our own leaves behind if its driver is killed: processes and its folder. As a program, ends them.

Ray's processes end with the driver, except for two agents that notice it after a minute, and whatever a worker had
started; its folder stays for ever. So each cluster has a process beside it in a session of its own, which waits at a
pipe from the driver: it reads a byte when Ray has started, which it answers, and the end however the driver ends. What
it cannot do, such as after a loss of power, the next driver does, by the folder's lock.

Imports nothing of Ludus, so that it starts at once.
"""

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import lock_descriptor

MARK = "LUDUS_RAY_FOLDER"  # in the environment of all processes of a cluster: its folder
PREFIX = "ludus-ray-"
LIMIT_S = 20.0
_LOCK = "driver.lock"


def lock_cluster(folder: Path, *, is_new: bool) -> int:
    """Lock the folder of a cluster and return a descriptor that holds it as long as this process lives.

    The lock is the system's: a driver that was killed holds none, whatever process has its number now.

    Raises:
        OSError: A driver holds it, or it is not the folder of a cluster.
    """
    descriptor = -1
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | (os.O_CREAT | os.O_EXCL if is_new else 0), 0o600)
        is_ours = lock_descriptor(descriptor, blocking=False)
    except OSError:
        if descriptor < 0:
            raise
        is_ours = is_new  # where there are no locks, no folder is taken for a killed driver's
    if not is_ours:
        os.close(descriptor)
        raise BlockingIOError(f"{folder} is in use")
    return descriptor


def end_leftovers() -> None:
    """End what killed drivers of this user have left behind on this machine."""
    own = os.getuid() if hasattr(os, "getuid") else 0
    try:
        place = Path(tempfile.gettempdir())
    except OSError:  # there is none, as the cluster will say
        return
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == own:
                descriptor = lock_cluster(folder, is_new=False)
                end_cluster(folder)
                os.close(descriptor)


def end_cluster(folder: Path, agents: Collection[psutil.Process] = ()) -> None:
    """Kill all processes of a cluster and delete its folder; agents are those that show no environment."""
    limit_s = time.monotonic() + LIMIT_S
    while time.monotonic() < limit_s:  # one that is killed may just have started another one
        left = [*filter(_is_alive, agents), *(each for each in psutil.process_iter() if _is_marked(each, folder))]
        if not left:
            break
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=1.0)
    shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _is_marked(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.environ().get(MARK) == str(folder) and _is_alive(process)
    except (psutil.Error, OSError):  # ended, or not ours
        return False


def _family(driver: psutil.Process, folder: Path) -> list[psutil.Process]:
    """Return the processes of a cluster that has just started."""
    found = []
    with suppress(psutil.Error):
        for child in driver.children():
            if _is_marked(child, folder):
                found += child.children(recursive=True)
    return found


def _wait_and_end(folder: Path) -> None:
    driver = psutil.Process(os.getppid())
    agents: list[psutil.Process] = []
    while os.read(0, 1):
        agents = _family(driver, folder)
        os.write(1, b".")
    end_cluster(folder, agents)


if __name__ == "__main__":
    _wait_and_end(Path(sys.argv[1]))
