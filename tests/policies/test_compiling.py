"""Compiled functions: what a killed run left half written in the compiler's cache is made anew."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ludus.policies import modules
from ludus.policies.modules import compiled

pytestmark = pytest.mark.compile

# Compiles a function with the cache in each folder that it is told, in a fork that knows nothing of those before it:
# it takes seconds to import the compiler.
PROGRAM = """
import os
import sys

import torch
import torch._inductor.compile_fx
from ludus.policies.modules import compiled
from torch._inductor import cpu_vec_isa

# Each is tried by compiling a library of its own, which takes four seconds.
del cpu_vec_isa.supported_vec_isa_list[:-1]

def curve(x):
    return x.sin() * 2.0 + x.exp()

for line in sys.stdin:
    process = os.fork()
    if process == 0:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = line.rstrip()
        x = torch.linspace(-1.0, 1.0, 64)
        os._exit(0 if torch.allclose(compiled(curve)(x), curve(x)) else 1)
    print(os.waitpid(process, 0)[1], flush=True)
"""
# Without its cache of graphs the compiler always asks what the processor can do; with it, not on every processor.
# Headers compiled in advance are no part of the cache that is torn, and take thirteen seconds of a core.
COMPILER = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}
Compile = Callable[[Path], None]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "a half": lambda data: data[: len(data) // 2],
    "all of its space without a byte written": lambda data: bytes(len(data)),
}


@pytest.fixture(scope="module")
def compile_into() -> Iterator[Compile]:
    """Compile a function in a process of its own, with the compiler's cache in a folder."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=os.environ | COMPILER, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as program:  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        told, said = program.stdin, program.stdout

        def run(cache: Path) -> None:
            told.write(f"{cache}\n")
            told.flush()
            assert said.readline() == "0\n"

        yield run


def tear(library: Path, damage: Callable[[bytes], bytes]) -> None:
    library.write_bytes(damage(library.read_bytes()))
    os.utime(library, (0, 0))


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory, compile_into: Compile) -> Path:
    """The compiler's cache after one whole run; compiling takes long, so tests change copies of it."""
    folder = tmp_path_factory.mktemp("compiled") / "cache"
    compile_into(folder)
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


def test_half_written_libraries_are_made_anew(cache: Path, compile_into: Compile) -> None:
    sizes = {library: library.stat().st_size for library in sorted(cache.rglob("*.so"))}
    for library, damage in zip(sizes, cycle(DAMAGE.values())):
        tear(library, damage)
    compile_into(cache)
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
