"""Checks an installation: versions, devices, kernel cache, drawing, disk, memory and processor; nothing is trained.

Libraries are imported by the check that needs them: one that is broken is a check that failed.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from ludus.cli.requirements import Check, check_versions
from ludus.config import read_user_defaults
from ludus.core.errors import LudusError

_GIB = 1024.0**3
_LITTLE_DISK_GIB, _NO_DISK_GIB = 5.0, 0.5
_LITTLE_MEMORY_GIB = 1.0


def check_installation(folder: Path) -> Iterator[Check]:
    """Goes through all checks; one that fails does not keep the others from being made.

    Args:
        folder: The working folder, in which new runs get their folders unless the user's defaults name another one.
    """
    runs = _runs_folder(folder)
    yield from _guarded("versions", check_versions)
    yield from _guarded("torch devices", _check_torch)
    yield from _guarded("Warp kernel cache", _check_kernel_cache)
    yield from _guarded("OpenGL", _check_gl)
    yield from _guarded("ffmpeg", _check_ffmpeg)
    yield from _guarded("disk", lambda: _check_disk(runs))
    yield from _guarded("write test", lambda: _check_writing(runs))
    yield from _guarded("machine", _check_machine)


def _guarded(name: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Turns whatever a library or driver raises into a check that failed."""
    try:
        yield from look()
    except Exception as error:  # a broken library can raise anything, and finding that out is the point
        yield Check(name, "ERROR", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


def _check_torch() -> Iterator[Check]:
    import torch

    yield Check("torch on the CPU", "OK", f"{torch.get_num_threads()} threads; {_product('cpu')}")
    if not torch.cuda.is_available():
        is_built = torch.version.cuda is not None
        text = "torch is built for it, but finds no device: check the driver with nvidia-smi" if is_built else "none"
        yield Check("CUDA", "WARN" if is_built else "OK", text)
        return
    for number in range(torch.cuda.device_count()):
        device = f"cuda:{number}"
        total_gib = torch.cuda.get_device_properties(number).total_memory / _GIB
        text = f"{torch.cuda.get_device_name(number)}, {total_gib:.0f} GiB; {_product(device)}"
        yield Check(f"CUDA device {number}", "OK", text)


def _product(device: str) -> str:
    """Multiplies two matrices on a device, which fails where driver and library do not fit together."""
    import torch

    ones = torch.ones(64, 64, device=device)
    if float((ones @ ones).sum()) != 64.0**3:
        raise ArithmeticError(f"a product of matrices on {device} is wrong")
    return "a product of matrices is right"


def _check_kernel_cache() -> Iterator[Check]:
    import warp as wp

    import ludus.envs.warp_tools  # noqa: F401 - starts Warp without a word

    cache = Path(str(wp.config.kernel_cache_dir))
    fault = _write_fault(cache)
    if fault:
        text = f"{cache} cannot be written ({fault}), so kernels cannot be compiled; set WARP_CACHE_PATH"
        yield Check("Warp kernel cache", "ERROR", text)
    else:
        yield Check("Warp kernel cache", "OK", f"{cache} can be written")


def _check_gl() -> Iterator[Check]:
    from ludus.envs.mimic.rendering.gl import SETTING, open_context

    try:
        open_context(16, 16).free()
    except LudusError as error:
        yield Check("OpenGL", "WARN", f"{error}. Training goes without it")
    else:
        yield Check("OpenGL", "OK", f"walkers can be drawn ({SETTING}={os.environ.get(SETTING, '') or 'not set'})")


def _check_ffmpeg() -> Iterator[Check]:
    try:
        import imageio_ffmpeg
    except ImportError:
        yield Check("ffmpeg", "WARN", 'videos cannot be written; use: pip install "ludus[window]"')
        return
    yield Check("ffmpeg", "OK", str(imageio_ffmpeg.get_ffmpeg_exe()))


def _check_disk(runs: Path) -> Iterator[Check]:
    free_gib = shutil.disk_usage(_nearest(runs)).free / _GIB
    text = f"{free_gib:.1f} GiB free at {runs}"
    if free_gib < _NO_DISK_GIB:
        yield Check("disk", "ERROR", f"{text}; a run needs {_NO_DISK_GIB:g} GiB and stops below (guard.free_disk_gib)")
    else:
        yield Check("disk", "WARN" if free_gib < _LITTLE_DISK_GIB else "OK", text)


def _check_writing(runs: Path) -> Iterator[Check]:
    place = _nearest(runs)
    fault = _write_fault(place)
    if fault:
        yield Check("write test", "ERROR", f"{place} cannot be written: {fault}; name another folder with --run-dir")
    else:
        yield Check("write test", "OK", f"runs can be written to {runs}")


def _check_machine() -> Iterator[Check]:
    import psutil

    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    text = f"{cores} cores, load {load:.1f}"
    is_busy = load > 0.75 * cores
    yield Check(
        "processor", "WARN" if is_busy else "OK", text + ("; other programs slow a run down" if is_busy else "")
    )
    memory = psutil.virtual_memory()
    free_gib, total_gib = memory.available / _GIB, memory.total / _GIB
    level: Literal["OK", "WARN"] = "WARN" if free_gib < _LITTLE_MEMORY_GIB else "OK"
    yield Check("memory", level, f"{free_gib:.1f} of {total_gib:.1f} GiB free")


def _runs_folder(folder: Path) -> Path:
    try:
        return folder / (read_user_defaults().runs_folder or "runs")
    except LudusError:
        return folder / "runs"


def _nearest(folder: Path) -> Path:
    """Returns the folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _write_fault(folder: Path) -> str:
    """Returns why a file cannot be written to a folder; empty if it can."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ludus-doctor-") as file:
            file.write(b"a line that must reach the disk\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
