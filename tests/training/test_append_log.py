"""Logs: lines reach the file at once, survive a full disk in memory, and are cut back to an offset."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ludus.core.errors import StoreFullError
from ludus.training.loggers.csv_logger import AppendLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AppendLog]:
    log = AppendLog(tmp_path / "run" / "metrics.jsonl")
    yield log
    log.close()


def test_lines_are_there_at_once_and_can_be_cut_back(log: AppendLog, tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    log.append('{"iteration": 1, "loss": 0.5}\n')
    offset = log.flush()
    log.append('{"iteration": 2, "loss": null}\n')
    assert path.read_text() == '{"iteration": 1, "loss": 0.5}\n{"iteration": 2, "loss": null}\n'
    log.cut_back(offset)
    log.append('{"iteration": 2, "loss": 0.25}\n')
    assert path.read_text() == '{"iteration": 1, "loss": 0.5}\n{"iteration": 2, "loss": 0.25}\n'


def test_a_file_that_lost_its_end_keeps_its_whole_lines(
    log: AppendLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    path.parent.mkdir()
    path.write_text('{"iteration": 1}\n{"itera')
    log.cut_back(40)
    assert path.read_text() == '{"iteration": 1}\n'
    assert "earlier lines are lost" in caplog.text


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("one\n", "one\n"), ("one\ntw", "one\n"), ("on", ""), ("x" * (3 << 20), "x" * (3 << 20) + "\n")],
    ids=["empty", "whole", "torn", "only torn", "huge"],
)
def test_a_torn_line_is_dropped(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "run.log"
    path.write_text(before)
    log = AppendLog(path)
    log.drop_torn_line()
    log.append("next\n")
    log.close()
    assert path.read_text() == after + "next\n"


def test_lines_that_a_full_disk_refuses_wait(
    log: AppendLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, room = os.write, [10]

    def write(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken, room[0] = real(descriptor, bytes(data[: room[0]])), 0
        return taken

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        log.append('{"iteration": 1}\n')  # 10 bytes fit
        log.append('{"iteration": 2}\n')
        with pytest.raises(StoreFullError, match="No space left"):
            log.flush()
    assert caplog.text.count("No space left") == 1, "said once, not with every line"
    assert log.offset == 10
    assert log.flush() == 34
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == '{"iteration": 1}\n{"iteration": 2}\n'


def test_a_file_comes_into_being_with_its_first_line(log: AppendLog, tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    log.cut_back(0)
    assert log.flush() == 0
    assert not path.exists()
    log.append("a\n")
    assert path.read_text() == "a\n"
