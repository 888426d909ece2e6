"""A folder for runs that are killed; commands in processes of their own are those of `tests.commands`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory where there is one: what a killed process wrote is there on either, and a disk is slow."""
    if not Path("/dev/shm").is_dir():  # noqa: S108 - a mount point, and the folder in it gets a random name
        yield tmp_path_factory.mktemp("runs")
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
