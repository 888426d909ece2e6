"""Ray: started in this process's own machine and bound to loopback, or a cluster that the user names.

Ray sends pickles between the processes of its cluster, so whoever reaches its ports can run code. A cluster of our own
listens on 127.0.0.1 alone, asks for a token (Ray's default), has its files in a private folder and ends with us, also
if we are killed (see `ludus.scale.leftovers`).
"""

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from ludus.core.distribution import install_command
from ludus.core.errors import (
    ConfigError,
    LudusError,
    MissingDependencyError,
    UnsupportedError,
    WorkerError,
    brief,
)
from ludus.core.files import wrap_disk_errors
from ludus.core.text import blame, plain_text
from ludus.scale import leftovers

logger = logging.getLogger(__name__)

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anyone
}
# On macOS and Windows Ray takes 127.0.0.1 for the address of the machine, and its servers then listen there alone.
# This is the only switch for that: `_node_ip_address="127.0.0.1"` is replaced by the outside address.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
LOOPBACK = "127.0.0.1"
_OBJECT_STORE_BYTES = 80_000_000  # runs exchange files, not objects; Ray wants 75 MB at least
_CONNECT_S = 5.0
_LONGEST_REASON = 2_000


def describe_loss(error: Exception) -> str:
    """Return an error of a process in one line: our own as it is, one of Ray without its advice."""
    cause = getattr(error, "cause", None)
    text = str(cause) if isinstance(cause, WorkerError) else f"{type(error).__name__}: {error}"
    return plain_text(text.strip().split("\n")[0])[:_LONGEST_REASON]


@contextmanager
def worker_errors(what: str = "") -> Iterator[None]:
    """Turn what a process raises into a WorkerError: most of our own errors, and those of users, cannot be pickled."""
    try:
        yield
    except Exception as error:
        text = f"{type(error).__name__}: {error}" if isinstance(error, LudusError) else blame(error)
        raise WorkerError(f"{what}: {text}" if what else text) from None


def kill(actor: Any) -> None:  # noqa: ANN401 - Ray's handle
    """End the process of an actor, also where the cluster is gone."""
    with suppress(Exception):
        import_ray().kill(actor)


def gpus_of(asked: float | None, device: str) -> float:
    """Return the GPUs that a process occupies: what is asked for, or else 1 if the cluster has one and may use it."""
    if asked is None:
        return float(device != "cpu" and import_ray().cluster_resources().get("GPU", 0.0) >= 1.0)
    return asked


def require_ray(what: str = "ludus sweep", *, libraries: Sequence[str] = ("ray", "optuna")) -> None:
    """Raise MissingDependencyError if Ray, or another library that a command needs with it, is not installed."""
    for library in libraries:
        if find_spec(library) is None:
            raise MissingDependencyError(library, "scale", what)


@contextmanager
def ray_session(address: str | None = None, *, min_cpus: float = 0.0) -> Iterator[None]:
    """Connect to a cluster, or start one of this machine's own for as long as the context is open.

    A session that is open already is used, and left open.

    Args:
        address: Address of a cluster; None starts one.
        min_cpus: Cores that a cluster of our own has at least: more processes than the machine has cores share them.

    Raises:
        MissingDependencyError: Ray is not installed.
        ConfigError: The cluster cannot be reached.
        UnsupportedError: Ray cannot be imported or started, or would listen on more than loopback.
    """
    require_ray(libraries=("ray",))
    for name, value in (_SETTINGS if address else _SETTINGS | _LOOPBACK).items():
        os.environ.setdefault(name, value)
    ray = import_ray()
    logging.getLogger("ray").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    cpus = math.ceil(min_cpus) if min_cpus > (os.cpu_count() or 1) else None
    with _own_cluster(cpus) if address is None else _connected(address):
        yield


def import_ray() -> Any:  # noqa: ANN401 - Ray is not followed
    """Return Ray, or raise UnsupportedError if the installed package is damaged."""
    try:
        found = import_module("ray")
        _ = found.init  # of a folder that was left behind there is nothing
    except Exception as error:  # one that was built for another Python raises anything
        raise UnsupportedError(
            f"the installed Ray cannot be imported: {describe_loss(error)}; install it again with: "
            f"{install_command('scale')}"
        ) from error
    return found


@contextmanager
def _own_cluster(cpus: int | None) -> Iterator[None]:
    """Run a cluster of this machine's own; a process beside it ends what is left of it, however this one ends."""
    leftovers.end_leftovers()
    with wrap_disk_errors("a temporary folder"):
        folder = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))
        lock = leftovers.lock_cluster(folder, is_new=True)
        watcher = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-P", leftovers.__file__, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,  # which neither Ctrl-C nor the end of a terminal reaches
        )  # fmt: skip
    assert watcher.stdin is not None  # noqa: S101 - both are pipes
    assert watcher.stdout is not None  # noqa: S101
    try:
        os.environ[leftovers.MARK] = str(folder)  # which everything that Ray starts inherits
        try:
            _start(folder, cpus)
        finally:
            del os.environ[leftovers.MARK]
        with suppress(OSError):  # it was killed: the next driver comes after it
            watcher.stdin.write(b".")
            watcher.stdin.flush()
            watcher.stdout.read(1)  # when it knows all processes
        yield
    finally:
        import_ray().shutdown()
        with suppress(OSError):
            watcher.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            watcher.wait(2.0 * leftovers.LIMIT_S)
        watcher.stdout.close()
        os.close(lock)


def _start(folder: Path, cpus: int | None) -> None:
    try:
        started = import_ray().init(
            address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
            object_store_memory=_OBJECT_STORE_BYTES, _temp_dir=str(folder),
        )  # fmt: skip
    except Exception as error:  # Ray raises ordinary exceptions too
        raise UnsupportedError(
            f"Ray cannot start on this machine: {describe_loss(error)}; it needs free memory and ports, and room in "
            f"{brief(str(folder.parent))}, a path that TMPDIR names and that must be short"
        ) from error
    listens_at = started.address_info["node_ip_address"]
    if listens_at != LOOPBACK:  # a program that imported Ray before has decided otherwise
        raise UnsupportedError(
            f"Ray listens at {listens_at} instead of {LOOPBACK}, where others may reach it: set "
            f"{next(iter(_LOOPBACK))}=0 before Ray is imported, or name your own cluster with --address"
        )


@contextmanager
def _connected(address: str) -> Iterator[None]:
    ray = import_ray()
    advice = "start one with `ray start --head` and the same RAY_AUTH_TOKEN, or leave --address out"
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        if parts.hostname and parts.port:  # Ray itself would try for minutes, without a word
            socket.create_connection((parts.hostname, parts.port), _CONNECT_S).close()
        logger.warning("[OK] connecting to the Ray cluster at %s", address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise ConfigError(f"no Ray cluster answers at {brief(address)}: {describe_loss(error)}; {advice}") from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def first_signal(take: Callable[[int, str], None]) -> Iterator[None]:
    """Pass the first SIGTERM or Ctrl-C on, with its number and in words; the second one ends the process.

    Python lets the main thread alone handle signals: in any other nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> None:
        restore()
        take(number, f"{signal.Signals(number).name} came")

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
