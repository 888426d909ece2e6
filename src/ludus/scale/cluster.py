"""Ray: started in this process's own machine and bound to loopback, or a cluster that the user names.

Ray sends pickles between the processes of its cluster, so whoever reaches its ports can run code. A cluster of our own
listens on 127.0.0.1 alone, asks for a token (Ray's default), has its files in a private folder and ends with us.
"""

import logging
import math
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType

from ludus.core.errors import ConfigError, MissingDependencyError, UnsupportedError
from ludus.core.files import wrap_disk_errors

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anyone
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # paths in configurations are relative to where the sweep was started
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # runs have their own logs
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # signals are ours
    "TUNE_DISABLE_AUTO_INIT": "1",
    "TUNE_RESULT_BUFFER_LENGTH": "1",  # decisions come after every report
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}
# On macOS and Windows Ray takes 127.0.0.1 for the address of the machine, and its servers then listen there alone.
# This is the only switch for that: `_node_ip_address="127.0.0.1"` is replaced by the outside address.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
LOOPBACK = "127.0.0.1"
_OBJECT_STORE_BYTES = 80_000_000  # runs exchange files, not objects; Ray wants 75 MB at least
_LOGGERS = ("ray", "ray.tune", "ray.train")


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
        UnsupportedError: A cluster of our own would listen on more than loopback.
    """
    require_ray(libraries=("ray",))
    for name, value in (_SETTINGS if address else _SETTINGS | _LOOPBACK).items():
        os.environ.setdefault(name, value)
    import ray

    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    with wrap_disk_errors("a temporary folder"):
        folder = tempfile.mkdtemp(prefix="ludus-ray-")
    try:
        if address is not None:
            _connect(address)
        else:
            _start(folder, math.ceil(min_cpus) if min_cpus > (os.cpu_count() or 1) else None)
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: str, cpus: int | None) -> None:
    import ray

    started = ray.init(
        address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
        object_store_memory=_OBJECT_STORE_BYTES, _temp_dir=folder,
    )  # fmt: skip
    listens_at = started.address_info["node_ip_address"]
    if listens_at != LOOPBACK:  # a program that imported Ray before has decided otherwise
        raise UnsupportedError(
            f"Ray listens at {listens_at} instead of {LOOPBACK}, where others may reach it: set "
            f"{next(iter(_LOOPBACK))}=0 before Ray is imported, or name your own cluster with --address"
        )


def _connect(address: str) -> None:
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address}: {error}; start one with `ray start --head` and the same "
            "RAY_AUTH_TOKEN, or leave --address out"
        ) from error


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
