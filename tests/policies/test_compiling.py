"""Compiled functions: what a killed run left half written in the compiler's cache is made anew."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ludus.policies import modules
from ludus.policies.modules import compiled

PROGRAM = """
import torch
from ludus.policies.modules import compiled

def curve(x):
    return x.sin() * 2.0 + x.exp()

x = torch.linspace(-1.0, 1.0, 64)
assert torch.allclose(compiled(curve)(x), curve(x))
"""


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "a half": lambda data: data[: len(data) // 2],
    "all of its space without a byte written": lambda data: bytes(len(data)),
}


def run(cache: Path) -> None:
    surroundings = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=surroundings, check=True, timeout=300)


def tear(library: Path, damage: Callable[[bytes], bytes]) -> None:
    library.write_bytes(damage(library.read_bytes()))
    os.utime(library, (0, 0))


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiler's cache after one whole run; compiling takes long, so tests change copies of it."""
    folder = tmp_path_factory.mktemp("compiled") / "cache"
    run(folder)
    return folder


@pytest.fixture
def cache(compiled_once: Path, tmp_path: Path) -> Path:
    shutil.copytree(compiled_once, tmp_path / "cache")
    return tmp_path / "cache"


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_half_written_library_is_removed(damage: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = list(cache.rglob("*.so"))
    others = {path for path in cache.rglob("*") if path.suffix != ".so"}
    assert libraries
    for library in libraries:
        tear(library, DAMAGE[damage])
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    modules._remove_torn_libraries.__wrapped__()
    assert set(cache.rglob("*")) == others


def test_half_written_libraries_are_made_anew(cache: Path) -> None:
    sizes = {library: library.stat().st_size for library in sorted(cache.rglob("*.so"))}
    for library, damage in zip(sizes, cycle(DAMAGE.values())):
        tear(library, damage)
    run(cache)
    # The library by which the compiler tells what the processor can do is among them: if it stayed torn,
    # the compiler would write code without vectors.
    for library, size in sizes.items():
        assert library.stat().st_size == pytest.approx(size, rel=0.05)  # its path, which is in it, is another one now
    assert all(library.read_bytes().startswith(b"\x7fELF") for library in sizes)


def test_libraries_that_are_whole_or_being_written_stay(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {library: library.stat().st_ino for library in cache.rglob("*.so")}
    (cache / "linking.so").write_bytes(b"")
    os.utime(cache / "linking.so", (time.time() + 60, time.time() + 60))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    modules._remove_torn_libraries.__wrapped__()
    assert {library: library.stat().st_ino for library in before} == before
    assert (cache / "linking.so").exists()


def test_errors_of_the_function_stay_as_they_are() -> None:
    def wrong(x: Tensor) -> Tensor:
        return x @ x

    with pytest.raises(RuntimeError, match="size"):
        compiled(wrong)(torch.zeros(2, 3))
