"""Every module can be imported on a system without POSIX: nothing that only POSIX has is used at import time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ludus.core.errors import RunLockedError
from ludus.training.loggers.csv_logger import AppendLog
from ludus.training.run_folder import RunLock

pytestmark = pytest.mark.package

# What Windows lacks. Libraries are imported before it is hidden, since theirs decide by the system that they run on.
PROGRAM = """
import gc, importlib, json, os, pkgutil, signal, socket, sys
gc.disable()  # modules are no garbage, and it would visit all of them again and again
LIBRARIES = ("torch", "torch.utils.tensorboard", "torch.distributed", "warp", "psutil", "typer", "subprocess",
             "multiprocessing.pool", "concurrent.futures.process", "asyncio", "pty", "getpass", "sb3_contrib",
             "ray.tune")
for name in LIBRARIES:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
assert not any(name.partition(".")[0] == "ludus" for name in sys.modules)
HIDDEN = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "crypt", "spwd")
for name in HIDDEN:
    sys.modules[name] = None
for module, names in {
    signal: "SIGKILL SIGUSR1 SIGUSR2 SIGHUP SIGCONT SIGSTOP SIGPIPE SIGALRM SIGCHLD SIGQUIT pthread_sigmask".split(),
    os: "fork openpty getuid geteuid getgid getloadavg sched_getaffinity pread pwrite killpg getpgid setsid mkfifo "
        "O_NONBLOCK O_NOCTTY O_CLOEXEC O_NOFOLLOW WNOHANG uname memfd_create".split(),
    socket: ["AF_UNIX", "SOCK_SEQPACKET"],
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
import ludus
failures, count = {}, 0
for info in pkgutil.walk_packages(ludus.__path__, "ludus.", onerror=lambda name: None):
    if info.name == "ludus.__main__":
        continue
    count += 1
    try:
        importlib.import_module(info.name)
    except ModuleNotFoundError as error:
        if error.name in HIDDEN:
            failures[info.name] = str(error)  # another optional library may be missing here
    except BaseException as error:
        failures[info.name] = f"{type(error).__name__}: {error}"
print(json.dumps([count, failures]))
"""


def test_every_module_is_importable_without_posix() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    count, failures = json.loads(done.stdout.splitlines()[-1])
    assert count > 200
    assert failures == {}


def test_locks_and_tables_do_without_pread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread")
    monkeypatch.delattr(os, "pwrite")
    with RunLock(tmp_path), pytest.raises(RunLockedError, match=rf"another process \(pid {os.getpid()} on "):
        RunLock(tmp_path)
    log = AppendLog(tmp_path / "table.csv")
    log.append("1,2\n3,4\n")
    log.cut_back(6)  # in the middle of the second line
    log.append("5,6\n")
    assert log.text() == "1,2\n5,6\n"
    log.close()
