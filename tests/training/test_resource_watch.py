"""The resource watch counts the memory of the whole process tree."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ludus.training.config import GuardConfig
from ludus.training.resources import GIB, ResourceWatch, tree_bytes

_MIB = 2**20
# A child that holds 64 MiB, and starts one that holds 64 MiB more.
_HOLDER = """
import subprocess, sys
held = bytearray(b"x" * (64 << 20))
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE) if len(sys.argv) > 1 else None
if child is not None:
    child.stdout.readline()
print("holding", flush=True)
sys.stdin.readline()
if child is not None:
    child.kill()
    child.wait()
"""
_GRANDCHILD = 'held = bytearray(b"x" * (64 << 20)); print("holding", flush=True); import time; time.sleep(60)'


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, _GRANDCHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_counts_children_and_theirs(holder: subprocess.Popen[bytes]) -> None:
    me = psutil.Process()
    counted = tree_bytes(psutil.Process(holder.pid))
    assert holder.poll() is None
    assert 128 * _MIB <= counted <= 256 * _MIB
    assert tree_bytes(me) >= me.memory_info().rss + 128 * _MIB


def test_memory_of_children_reaches_the_limit(holder: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert holder.poll() is None
    # Other children of this process may live too: those of tests that ran before.
    alone_gib = (tree_bytes(psutil.Process()) - tree_bytes(psutil.Process(holder.pid))) / GIB
    shortage = ResourceWatch(GuardConfig(memory_gib=alone_gib + 100 * _MIB / GIB), tmp_path).memory()
    assert shortage is not None
    assert "the process and its children use" in shortage.text
    assert ResourceWatch(GuardConfig(memory_gib=alone_gib + 1.0), tmp_path).memory() is None
