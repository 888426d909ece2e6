"""Copies of a game's data: plain files within limits are copied; pseudo files, links out and too much are refused."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ludus.core.errors import ConfigError
from ludus.worlds.city.drivers import game_data
from ludus.worlds.city.drivers.game_data import copy_data

pytestmark = pytest.mark.skipif(os.name != "posix", reason="games on a virtual screen need Linux")


def test_files_folders_modes_and_links_inside_are_copied(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "res" / "deep").mkdir(parents=True)
    (data / "res" / "tiles.png").write_bytes(bytes(range(256)) * 10_000)
    (data / "res" / "empty").touch()
    (data / "start").write_text("#!/bin/sh\n")
    (data / "start").chmod(0o755)
    (data / "link.png").symlink_to("res/tiles.png")
    (data / "again").symlink_to("res")
    copy_data(data, tmp_path / "copy")
    copied = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")}
    assert copied == {"res", "res/deep", "res/tiles.png", "res/empty", "start", "link.png", "again", "again/deep",
                      "again/tiles.png", "again/empty"}  # fmt: skip
    assert not any(path.is_symlink() for path in (tmp_path / "copy").rglob("*"))
    assert (tmp_path / "copy" / "link.png").read_bytes() == (data / "res" / "tiles.png").read_bytes()
    assert (tmp_path / "copy" / "start").stat().st_mode & 0o777 == 0o755


def test_links_to_the_data_of_other_packages_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_data, "_SHARED", tmp_path / "share")
    (tmp_path / "share" / "fonts").mkdir(parents=True)
    (tmp_path / "share" / "fonts" / "sans.ttf").write_bytes(b"font")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "own.ttf").symlink_to("../share/fonts/sans.ttf")
    copy_data(tmp_path / "data", tmp_path / "copy")
    assert (tmp_path / "copy" / "own.ttf").read_bytes() == b"font"


def endless(folder: Path) -> None:
    (folder / "again").symlink_to(folder)


def sparse(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)


def crowded(folder: Path) -> None:
    for number in range(300):
        (folder / str(number)).touch()


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link to a secret": (lambda folder: (folder / "a").symlink_to("/etc/passwd"), "outside of the folder"),
    "a link to a folder": (lambda folder: (folder / "a").symlink_to("/etc"), "outside of the folder"),
    "a link to a device": (lambda folder: (folder / "a").symlink_to("/dev/zero"), "outside of the folder"),
    "a link to nothing": (lambda folder: (folder / "a").symlink_to("nowhere"), "cannot be read"),
    "a link to itself": (lambda folder: (folder / "a").symlink_to("a"), "cannot be read"),
    "folders in a circle": (endless, "more than 200 files|cannot be read"),
    "a pipe": (lambda folder: os.mkfifo(folder / "a"), "neither a regular file nor a folder"),
    "a terabyte of nothing": (sparse, "more than 200 files and folders, or 1073741824 bytes"),
    "many files": (crowded, "more than 200 files"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_plain_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(game_data, "MAX_ENTRIES", 200)
    make, said = HOSTILE[name]
    (tmp_path / "data").mkdir()
    make(tmp_path / "data")
    with pytest.raises(ConfigError, match=rf"launch\.copy: .*({said})"):
        copy_data(tmp_path / "data", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("folder", ["/proc", "/proc/self", "/proc/self/fd", "/sys", "/dev"])
def test_pseudo_file_systems_are_refused_at_once(tmp_path: Path, folder: str) -> None:
    if not Path(folder).is_dir():
        pytest.skip(f"there is no {folder} here")
    started = time.process_time()
    with pytest.raises(ConfigError, match=r"launch\.copy"):
        copy_data(Path(folder), tmp_path / "copy")
    assert time.process_time() - started < 5.0
    assert not (tmp_path / "copy").exists()


def test_a_file_that_grows_while_it_is_copied_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    log = tmp_path / "data" / "log"
    log.write_bytes(b"one")

    def open_later(path: Path) -> int:
        path.write_bytes(b"one and more")
        return os.open(path, os.O_RDONLY)

    monkeypatch.setattr(game_data, "open_regular", open_later)
    with pytest.raises(ConfigError, match="has not the 3 bytes"):
        copy_data(tmp_path / "data", tmp_path / "copy")
