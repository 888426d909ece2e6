"""Checks of an installation that is not in order: versions, extras, folders, disk and libraries that fail."""

import os
import shutil
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement

from ludus.cli import installation
from ludus.cli.installation import check_installation, check_requirement, check_versions
from ludus.core import distribution
from ludus.core.distribution import install_command, read_required

Usage = namedtuple("Usage", "total used free")


def installed(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    def find(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(installation, "version", find)


@pytest.mark.parametrize(
    ("versions", "extra", "level", "text"),
    [
        ({"torch": "2.13.0+cpu"}, "", "OK", "2.13.0+cpu (needed: <2.14,>=2.10)"),
        ({"torch": "2.14.0"}, "", "ERROR", '2.14.0, but <2.14,>=2.10 is needed; use: pip install "torch<2.14,>=2.10"'),
        ({"torch": "2.9.1"}, "fast", "ERROR", '2.9.1, but <2.14,>=2.10 is needed; use: pip install -e ".[fast]"'),
        ({}, "", "ERROR", 'not installed; use: pip install "torch<2.14,>=2.10"'),
        ({}, "fast", "WARN", 'not installed; use: pip install -e ".[fast]"'),
    ],
)
def test_a_library_is_compared_with_what_is_required(
    versions: dict[str, str], extra: str, level: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, versions)
    check = check_requirement(Requirement("torch>=2.10,<2.14"), extra)
    assert (check.level, check.text) == (level, text)


def test_what_is_required_is_what_the_project_file_says() -> None:
    required = read_required()
    assert required is not None
    assert "3.11.7" in required.python
    assert "3.13.0" not in required.python
    assert {"torch", "warp-lang", "mujoco", "numpy"} <= {requirement.name for requirement in required.libraries}
    assert {requirement.name for requirement in required.extras["window"]} == {"pygame-ce", "imageio-ffmpeg"}
    assert "dev" not in required.extras


def test_an_installed_package_says_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_checkout = read_required()
    monkeypatch.setattr(distribution, "__file__", str(tmp_path / "site" / "ludus" / "core" / "distribution.py"))
    required = read_required()
    assert required is not None
    assert in_checkout is not None
    assert required.python == in_checkout.python
    assert {"torch", "numpy"} <= {requirement.name for requirement in required.libraries}
    assert "pygame-ce" not in {requirement.name for requirement in required.libraries}
    assert {requirement.name for requirement in required.extras["window"]} == {"pygame-ce", "imageio-ffmpeg"}
    assert install_command("window") == 'pip install "pygame-ce>=2.5" "imageio-ffmpeg>=0.6"'


def test_elsewhere_the_command_names_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert install_command("sb3") == 'pip install -e ".[sb3]"'
    root = Path.cwd()
    monkeypatch.chdir(tmp_path)
    assert install_command("sb3") == f'pip install -e "{root}[sb3]"'


def test_a_package_that_is_not_installed_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "read_required", lambda: None)
    assert [(check.name, check.level) for check in check_versions()] == [("versions", "WARN")]


def levels(folder: Path) -> dict[str, tuple[str, str]]:
    return {check.name: (check.level, check.text) for check in check_installation(folder)}


def test_one_check_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("driver\nis gone")

    monkeypatch.setattr(installation, "_check_torch", fail)
    monkeypatch.setattr(installation, "_check_worlds", lambda: iter(()))
    found = levels(tmp_path)
    assert found["torch devices"] == ("ERROR", "RuntimeError: driver is gone")
    assert found["torch"][0] == "OK"  # its version
    assert found["write test"] == ("OK", f"runs can be written to {tmp_path / 'runs'}")


def test_a_full_disk_and_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installation, "_check_worlds", lambda: iter(()))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12, 2 * 10**8))

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    found = levels(tmp_path)
    assert found["disk"][0] == "ERROR"
    assert "0.2 GiB free" in found["disk"][1]
    assert found["write test"][0] == "ERROR"
    assert "No space left on device; name another folder with --run-dir" in found["write test"][1]
    assert found["Warp kernel cache"][0] == "ERROR"
    assert list(tmp_path.iterdir()) == []


def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installation, "_check_worlds", lambda: iter(()))
    monkeypatch.setattr(psutil, "getloadavg", lambda: (64.0, 1.0, 1.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert levels(tmp_path)["processor"] == ("WARN", "4 cores, load 64.0; other programs slow a run down")
