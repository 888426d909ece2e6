"""Atomic files and folders: content, durability calls in order, leftovers, cut-off replacements."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ludus.core import files
from ludus.core.errors import FormatError
from ludus.core.files import open_regular, read_json_object, read_regular


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def make_folder(parent: Path, name: str, content: str) -> Path:
    target = parent / name
    temporary = files.make_temporary_folder(target)
    (temporary / "file.txt").write_text(content)
    files.replace_folder(temporary, target)
    return target


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writers_give_the_content_and_leave_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    files.write_text_atomic(path, "gr\u00fc\u00df")
    assert path.read_bytes() == b"gr\xc3\xbc\xc3\x9f"
    assert names(tmp_path) == ["file"]


def test_the_order_is_write_fsync_rename_fsync_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def watch(name: str) -> None:
        original = getattr(os, name)

        def wrapper(*arguments: Any, **options: Any) -> Any:
            is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            calls.append(name + (" folder" if is_folder else ""))
            return original(*arguments, **options)

        monkeypatch.setattr(os, name, wrapper)

    for name in ("write", "fsync", "replace"):
        watch(name)
    files.write_atomic(tmp_path / "file", b"x")
    assert calls == ["write", "fsync", "replace", "fsync folder"]


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_a_fault_leaves_the_old_file_and_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "file"
    files.write_atomic(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(OSError, match="no space"):
            files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_new_files_are_hashed_and_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    digest, size = files.write_new_file(tmp_path / "file", [b"abcdefgh", memoryview(b"ij")])
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"abcdefghij"
    assert (digest, size) == (hashlib.sha256(b"abcdefghij").hexdigest(), 10)
    assert files.sha256_file(tmp_path / "file") == digest
    with pytest.raises(FileExistsError):
        files.write_new_file(tmp_path / "file", [b"x"])


def test_a_folder_is_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    target = make_folder(tmp_path, "best", "old")
    make_folder(tmp_path, "best", "new")
    assert (target / "file.txt").read_text() == "new"
    assert names(tmp_path) == ["best"]


def test_a_file_in_the_place_of_a_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "best").write_text("mine")
    with pytest.raises(OSError, match="best"):
        make_folder(tmp_path, "best", "new")
    assert (tmp_path / "best").read_text() == "mine"


def test_a_replacement_cut_off_between_the_renames_is_found_and_undone(tmp_path: Path) -> None:
    target = make_folder(tmp_path, "best", "old")
    aside = tmp_path / f"{files.ASIDE_PREFIX}best"
    target.rename(aside)
    assert files.existing_folder(target) == aside
    files.recover_folder(target)
    assert names(tmp_path) == ["best"]
    assert files.existing_folder(target) == target


def test_an_old_folder_is_removed_once_its_successor_is_there(tmp_path: Path) -> None:
    make_folder(tmp_path, "best", "old").rename(tmp_path / f"{files.ASIDE_PREFIX}best")
    (tmp_path / "best").mkdir()
    assert files.existing_folder(tmp_path / "best") == tmp_path / "best"
    files.recover_folder(tmp_path / "best")
    assert names(tmp_path) == ["best"]


def test_a_failed_second_rename_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = make_folder(tmp_path, "best", "old")
    rename, calls = os.rename, 0

    def fail_second(source: Path, destination: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(errno.EIO, "input/output error")
        rename(source, destination)

    monkeypatch.setattr(os, "rename", fail_second)
    with pytest.raises(OSError, match="input/output"):
        make_folder(tmp_path, "best", "new")
    assert (target / "file.txt").read_text() == "old"


def test_only_leftovers_of_dead_processes_are_cleaned(tmp_path: Path) -> None:
    dead = dead_process()
    leftover = tmp_path / f"{files.TEMPORARY_PREFIX}{dead}-0-file"
    leftover.write_text("half")
    folder = tmp_path / f"{files.TEMPORARY_PREFIX}{os.getpid()}-123456789-best"  # an earlier process, same number
    folder.mkdir()
    (folder / "file.txt").write_text("half")
    impossible = tmp_path / f"{files.TEMPORARY_PREFIX}9999999999-0-file"
    impossible.write_text("half")
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / f"{files.TEMPORARY_PREFIX}{dead}-1-link"
    link.symlink_to(outside)
    alive = tmp_path / f"{files.TEMPORARY_PREFIX}{os.getppid()}-0-file"
    alive.write_text("at work")
    foreign = tmp_path / f"{files.TEMPORARY_PREFIX}not-ours"
    foreign.write_text("mine")
    mine = files.make_temporary_folder(tmp_path / "best")
    assert set(files.clean_temporaries(tmp_path)) == {leftover, folder, impossible, link}
    assert set(tmp_path.iterdir()) == {outside, alive, foreign, mine}
    files.discard_temporary(mine)
    assert not mine.exists()


def test_odd_files_are_refused_by_path_and_reason(tmp_path: Path, make_odd_file: Callable[[Path], None]) -> None:
    path = tmp_path / "odd.json"
    make_odd_file(path)
    reason = (
        r"(cannot be read: (it is a .*, not a regular file|Too many levels)|has \d+ bytes or more|is n(ot UTF-8|ested))"
    )
    with pytest.raises(FormatError, match=r"odd\.json " + reason):
        read_json_object(path, limit=1 << 20)


def test_a_file_and_a_link_to_it_are_read_up_to_the_limit(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"12345")
    link.symlink_to("file")
    assert read_regular(path, limit=5) == read_regular(link, limit=5) == b"12345"
    with pytest.raises(FormatError, match=r"file.*5 bytes.*4"):
        read_regular(path, limit=4)


@pytest.mark.skipif(not Path("/proc/version").is_file(), reason="there is no /proc here")
def test_a_file_that_announces_no_size_is_read_up_to_the_limit() -> None:
    assert read_regular(Path("/proc/version"), limit=1 << 16) == Path("/proc/version").read_bytes()
    with pytest.raises(FormatError, match="at most 3"):
        read_regular(Path("/proc/version"), limit=3)


def test_a_file_that_is_missing_or_cannot_be_named_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"gone.*No such file"):
        read_regular(tmp_path / "gone", limit=1)
    with pytest.raises(FormatError, match=r"a\\x00b' .*null byte"):
        read_regular(tmp_path / "a\0b", limit=1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[" * 100_000, "nested too deeply"), ("{", "is not valid JSON"), ("[1]", "must hold a JSON object, got list")],
)
def test_json_that_is_no_object_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(FormatError, match=rf"file\.json {reason}|file\.json is {reason}"):
        read_json_object(tmp_path / "file.json", limit=1 << 20)


def test_a_file_is_created_on_request_and_a_fifo_is_not_opened_for_writing(tmp_path: Path) -> None:
    os.close(open_regular(tmp_path / "new", os.O_RDWR | os.O_CREAT))
    assert (tmp_path / "new").read_bytes() == b""
    os.mkfifo(tmp_path / "fifo")
    for flags in (os.O_RDWR | os.O_CREAT, os.O_WRONLY):
        with pytest.raises(OSError, match="FIFO"):
            open_regular(tmp_path / "fifo", flags)
    (tmp_path / "link").symlink_to("new")
    with pytest.raises(OSError, match="symbolic link"):
        open_regular(tmp_path / "link", follow_links=False)
