"""Compiled functions: what a killed run left half written in the compiler's cache is made anew."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ludus.policies.compiling import compiled

PROGRAM = """
import torch
from ludus.policies.compiling import compiled

def curve(x):
    return x.sin() * 2.0 + x.exp()

x = torch.linspace(-1.0, 1.0, 64)
assert torch.allclose(compiled(curve)(x), curve(x))
"""


def run(cache: Path) -> None:
    surroundings = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", PROGRAM], env=surroundings, check=True, timeout=300)


def test_a_half_written_library_is_made_anew(tmp_path: Path) -> None:
    run(tmp_path)
    libraries = list(tmp_path.rglob("*.so"))
    assert libraries
    for library in libraries:
        library.write_bytes(b"")
    run(tmp_path)
    assert any(library.stat().st_size > 0 for library in libraries)


def test_errors_of_the_function_stay_as_they_are() -> None:
    def wrong(x: Tensor) -> Tensor:
        return x @ x

    with pytest.raises(RuntimeError, match="size"):
        compiled(wrong)(torch.zeros(2, 3))
