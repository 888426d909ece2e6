"""Fused LSTM recurrences: compiled by Warp for the CPU, by Triton for CUDA.

On a CPU calling an operation costs more than doing it. Warp brings a compiler with it, so nothing else has to be
installed; a machine compiles once, in a few seconds.
"""

from pathlib import Path


def cpp_source(module: str, *names: str) -> str:
    """Return C++ from the folder `cpp` beside a module's file, in the shape of Warp's native functions: statements."""
    folder = Path(module).parent / "cpp"
    return "\n".join((folder / f"{name}.cpp").read_text(encoding="utf-8") for name in names)
