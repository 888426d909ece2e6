"""Promise 1: `kill -9` at random moments, also inside a save; resumed until done, the run ends byte-equal."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.fault

DRIVER = Path(__file__).with_name("kill_and_resume.py")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: what a killed process wrote is there on either, and a disk is slow."""
    if not Path("/dev/shm").is_dir():  # noqa: S108 - a mount point, and the folder in it gets a random name
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def run_driver(root: Path, kills: int, seed: int, timeout_s: float) -> dict[str, int]:
    result = subprocess.run(
        [sys.executable, str(DRIVER), str(root), str(kills), str(seed), "plain"],
        capture_output=True, text=True, timeout=timeout_s, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-4000:]
    counts: dict[str, int] = json.loads(result.stdout)
    return counts


def check(counts: dict[str, int], kills: int) -> None:
    assert counts["early"] + counts["working"] + counts["saving"] >= kills
    assert counts["runs"] >= 4, "every kind of run has its turn"
    assert counts["saving"] >= kills // 10, "too few kills fell inside a save to prove anything"
    assert counts["working"] + counts["early"] >= kills // 10, "too few kills fell outside of a save"


def test_killed_runs_end_with_the_same_bytes(root: Path) -> None:
    check(run_driver(root, kills=51, seed=1, timeout_s=300), kills=51)


@pytest.mark.slow
def test_killed_runs_end_with_the_same_bytes_five_hundred_times(root: Path) -> None:
    check(run_driver(root, kills=510, seed=2, timeout_s=3000), kills=510)
