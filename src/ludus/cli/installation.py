"""Check an installation: versions, devices, kernel cache, drawing, disk, memory and processor; nothing is trained.

Libraries are imported by the check that needs them: one that is broken is a check that failed.
"""

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from ludus.config import read_user_defaults
from ludus.core.distribution import DISTRIBUTION, install_command, read_required
from ludus.core.errors import LudusError

_GIB = 1024.0**3
_LITTLE_DISK_GIB, _NO_DISK_GIB = 5.0, 0.5
_LITTLE_MEMORY_GIB = 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """What one look at something gave, and what to do about it.

    WARN if something optional or a convenience is missing; ERROR if training will fail.
    """

    name: str
    level: Literal["OK", "WARN", "ERROR"]
    text: str


def check_versions() -> Iterator[Check]:
    """Compare Python and all libraries with what the package requires."""
    required = read_required()
    if required is None:
        yield Check("versions", "WARN", f"{DISTRIBUTION} is not installed; in a checkout use: pip install -e .")
        return
    here = platform.python_version()
    yield _judge("Python", here, required.python, missing="ERROR", install="install a Python of that version")
    for requirement in required.libraries:
        yield check_requirement(requirement)
    for extra, requirements in required.extras.items():
        for requirement in requirements:
            yield check_requirement(requirement, extra)


def check_requirement(requirement: Requirement, extra: str = "") -> Check:
    """Compare one library with what is asked for; one of an extra may be missing."""
    try:
        here = version(requirement.name)
    except PackageNotFoundError:
        here = ""
    install = install_command(extra) if extra else f'pip install "{requirement.name}{requirement.specifier}"'
    name = f"{requirement.name} (extra {extra})" if extra else requirement.name
    return _judge(name, here, requirement.specifier, missing="WARN" if extra else "ERROR", install=install)


def _judge(name: str, here: str, asked: SpecifierSet, *, missing: Literal["WARN", "ERROR"], install: str) -> Check:
    if not here:
        return Check(name, missing, f"not installed; use: {install}")
    if not asked.contains(here, prereleases=True):
        return Check(name, "ERROR", f"{here}, but {asked} is needed; use: {install}")
    return Check(name, "OK", f"{here} (needed: {asked or 'any'})")


def check_installation(folder: Path) -> Iterator[Check]:
    """Go through all checks; one that fails does not keep the others from being made.

    New runs get their folders in the working folder, unless the user's defaults name another one.
    """
    runs = _runs_folder(folder)
    yield from _guarded("versions", check_versions)
    yield from _guarded("torch devices", _check_torch)
    yield from _guarded("Warp kernel cache", _check_kernel_cache)
    yield from _check_worlds()
    yield from _guarded("ffmpeg", _check_ffmpeg)
    yield from _guarded("disk", lambda: _check_disk(runs))
    yield from _guarded("write test", lambda: _check_writing(runs))
    yield from _guarded("machine", _check_machine)


def _guarded(name: str, look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Turn whatever a library or driver raises into a check that failed."""
    try:
        yield from look()
    except Exception as error:  # a broken library can raise anything, and finding that out is the point
        yield _failed(name, error)


def _failed(name: str, error: Exception) -> Check:
    return Check(name, "ERROR", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


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
    """Multiply two matrices on a device, which fails where driver and library do not fit together."""
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


def _check_worlds() -> Iterator[Check]:
    """Run the checks of the worlds; what a world lacks is a warning, since training may do without it."""
    from ludus.envs.world import registered_worlds, resolve

    for world in registered_worlds():
        for name, check in world.checks.items():
            try:
                yield Check(name, "OK", resolve(check)())
            except LudusError as error:
                yield Check(name, "WARN", str(error))
            except Exception as error:  # a broken driver can raise anything
                yield _failed(name, error)


def _check_ffmpeg() -> Iterator[Check]:
    try:
        import imageio_ffmpeg
    except ImportError:
        yield Check("ffmpeg", "WARN", f"videos cannot be written; use: {install_command('window')}")
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

    cores, load = os.cpu_count() or 1, psutil.getloadavg()[0]  # `os` has none on Windows
    is_busy = load > 0.75 * cores
    text = f"{cores} cores, load {load:.1f}" + ("; other programs slow a run down" if is_busy else "")
    yield Check("processor", "WARN" if is_busy else "OK", text)
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
    """Return the folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _write_fault(folder: Path) -> str:
    """Return why a file cannot be written to a folder; empty if it can."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ludus-doctor-") as file:
            file.write(b"a line that must reach the disk\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
