"""What a killed driver leaves behind, clusters that do not answer, and a Ray that cannot start; all without Ray."""

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.scale import leftovers
from ludus.scale.cluster import ray_session

LIMIT_S = 60.0
DRIVER = """\
import os, subprocess, sys, tempfile
from pathlib import Path
from ludus.scale import cluster, leftovers

def start(folder, cpus):
    sleep = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"]
    child = "import subprocess, sys; subprocess.Popen(sys.argv[1:], env={}); import time; time.sleep(600)"
    quiet = subprocess.Popen([sys.executable, "-c", child, *sleep], stdout=subprocess.PIPE)
    quiet.stdout.readline()
    (folder / "session").mkdir()
    print(quiet.pid, folder, flush=True)

class Ray:
    init = shutdown = staticmethod(lambda **_: None)
    is_initialized = staticmethod(lambda: False)

cluster._start, cluster.require_ray, cluster.import_ray = start, lambda **_: None, lambda *_: Ray
with cluster.ray_session():
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def driver(temporary: Path) -> Iterator["subprocess.Popen[str]"]:
    """A driver with a cluster that consists of a process, and of a child of it that shows no environment."""
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        process.kill()


def family_of(driver: "subprocess.Popen[str]") -> tuple[list[psutil.Process], Path]:
    """The processes of its cluster and the one beside them, and its folder."""
    assert driver.stdout is not None
    parent, folder = driver.stdout.readline().split()
    assert driver.stdout.readline() == "open\n"
    quiet = psutil.Process(int(parent)).children()
    assert len(quiet) == 1
    assert leftovers.MARK not in quiet[0].environ()
    found = psutil.Process(driver.pid).children(recursive=True)
    assert len(found) == 3
    return found, Path(folder)


@pytest.mark.parametrize("ends", ["by itself", "killed"])
def test_nothing_of_a_cluster_outlives_its_driver(driver: "subprocess.Popen[str]", ends: str) -> None:
    family, folder = family_of(driver)
    assert driver.stdin is not None
    if ends == "killed":
        os.kill(driver.pid, signal.SIGKILL)
    else:
        driver.stdin.close()
    assert driver.wait(LIMIT_S) == (-signal.SIGKILL if ends == "killed" else 0)
    assert psutil.wait_procs(family, timeout=LIMIT_S)[1] == []
    assert not folder.exists()


def test_the_next_driver_removes_what_nobody_else_did(driver: "subprocess.Popen[str]", temporary: Path) -> None:
    family, folder = family_of(driver)
    beside = next(each for each in family if str(folder) in each.cmdline())
    marked = [each for each in family if each is not beside and each.environ().get(leftovers.MARK)]
    foreign = [temporary / f"{leftovers.PREFIX}{name}" for name in ("without-a-lock", "link", "file", "\x1b[31m")]
    foreign[0].mkdir()
    foreign[1].symlink_to(folder)
    foreign[2].write_text("")
    foreign[3].mkdir()
    leftovers.end_leftovers()  # the driver lives
    assert folder.is_dir()
    assert all(each.is_running() for each in family)
    beside.kill()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(LIMIT_S)
    leftovers.end_leftovers()
    assert psutil.wait_procs(marked, timeout=LIMIT_S)[1] == []
    assert not folder.exists()
    assert all(os.path.lexists(each) for each in foreign)
    for each in family:
        if each.is_running():
            each.kill()


@pytest.mark.parametrize(
    "address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "localhost:{port}", "127.0.0.1:99999"]
)
def test_a_wrong_address_is_named_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise AssertionError("Ray itself tries for minutes")

    fake = SimpleNamespace(init=init, is_initialized=lambda: False, shutdown=lambda: None)
    monkeypatch.setattr("ludus.scale.cluster.import_ray", lambda *_: fake)
    monkeypatch.setattr("ludus.scale.cluster.require_ray", lambda **_: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        shown = address.format(port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match="ray start --head") as caught, ray_session(shown):
            pass
    assert shown in str(caught.value)


def test_a_connection_is_announced(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Any] = []
    fake = SimpleNamespace(
        init=lambda **options: asked.append(options["address"]), is_initialized=lambda: False, shutdown=lambda: None
    )
    monkeypatch.setattr("ludus.scale.cluster.import_ray", lambda *_: fake)
    monkeypatch.setattr("ludus.scale.cluster.require_ray", lambda **_: None)
    with socket.socket() as server, caplog.at_level(logging.WARNING):
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with ray_session(address):
            pass
    assert asked == [address]
    assert f"connecting to the Ray cluster at {address}" in caplog.text


@pytest.mark.parametrize("content", ["", "raise OSError('libray.so: wrong ELF class')", "import no_such_module", "("])
def test_a_damaged_ray_is_named(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "__init__.py").write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnsupportedError, match="install it again"), ray_session():
        pass
    sys.modules.pop("ray", None)


@pytest.mark.parametrize(
    "error", [OSError("AF_UNIX path length"), Exception("timed out\nadvice"), ValueError("no memory"), RuntimeError()]
)
def test_a_ray_that_cannot_start_says_why_and_leaves_nothing(
    error: Exception, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: object) -> None:
        raise error

    fake = SimpleNamespace(init=init, is_initialized=lambda: False, shutdown=lambda: None)
    monkeypatch.setattr("ludus.scale.cluster.import_ray", lambda *_: fake)
    monkeypatch.setattr("ludus.scale.cluster.require_ray", lambda **_: None)
    with pytest.raises(UnsupportedError, match="TMPDIR") as caught, ray_session():
        pass
    assert str(error).partition("\n")[0] in str(caught.value)
    assert "advice" not in str(caught.value)
    assert not [*temporary.glob(f"{leftovers.PREFIX}*")]
    assert leftovers.MARK not in os.environ
