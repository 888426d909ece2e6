"""Writes the gait of the package as a motion file: an example of the format, and what `motion show normal` shows."""

from pathlib import Path

import numpy as np
import torch

from ludus.core.errors import ConfigError
from ludus.core.files import write_atomic
from ludus.worlds.mimic.gait import SPEED_RANGE_M_S, Floats
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.files import csv_text, npz_bytes
from ludus.worlds.mimic.motion.library import normal_stride
from ludus.worlds.mimic.motion.motion import Motion, motion_of_table
from ludus.worlds.mimic.motion.table import RATE_RANGE_HZ, ROOT_ANGLES, Faults, Table, read_columns
from ludus.worlds.mimic.reference import Reference, normal_reference, reference_of_strides

_STRIDES = 6
_SPEED_RANGE_M_S = (0.4, 2.0)
_FORMATS = (".csv", ".npz")


def export_gait(path: Path, walker: Walker, speed_m_s: float, rate_hz: float, *, velocities: bool = False) -> int:
    """Write some strides of the normal gait into a `.csv` or `.npz` file; return the number of frames.

    Raises ConfigError if the file is of another kind, or speed or rate is out of range.
    """
    if path.suffix.lower() not in _FORMATS:
        raise ConfigError(f"motion file {path} ends with {path.suffix or 'nothing'}; valid: {', '.join(_FORMATS)}")
    names, angles, speeds = _sampled(walker, speed_m_s, rate_hz)
    if path.suffix.lower() == ".npz":
        data = npz_bytes(angles, names, rate_hz, speeds if velocities else None)
    else:
        columns = {f"{name}_deg": angles[:, index] for index, name in enumerate(names)}
        if velocities:
            columns |= {f"{name}_vel_deg_s": speeds[:, index] for index, name in enumerate(names)}
        said = f"normal gait at {speed_m_s:g} m/s on a body of {walker.height_m:g} m; flexion is positive"
        data = csv_text(columns, rate_hz, (said,)).encode()
    write_atomic(path, data)
    return len(angles)


def normal_motion(walker: Walker, speed_m_s: float, rate_hz: float) -> Motion:
    """Return the normal gait as if it had been loaded; raise ConfigError if speed or rate is out of range."""
    names, angles, _ = _sampled(walker, speed_m_s, rate_hz)
    source = Path("normal")
    columns = read_columns([f"{name}_deg" for name in names], "names", Faults(source))
    return motion_of_table(Table(source, columns, angles, tuple(range(len(angles))), "frame", rate_hz))


def _reference(walker: Walker, speed_m_s: float) -> Reference:
    """Return the normal gait at a speed, also beyond those of its own reference."""
    if SPEED_RANGE_M_S[0] <= speed_m_s <= SPEED_RANGE_M_S[1]:
        return normal_reference(walker)
    stride, period_s = normal_stride(walker, speed_m_s)
    return reference_of_strides(walker, [stride], [period_s], (speed_m_s, speed_m_s))


def _sampled(walker: Walker, speed_m_s: float, rate_hz: float) -> tuple[list[str], Floats, Floats]:
    """Return names, angles `(frames, names)` in degrees and velocities in degrees per second."""
    for name, value, (low, high) in (("speed", speed_m_s, _SPEED_RANGE_M_S), ("rate", rate_hz, RATE_RANGE_HZ)):
        if not low <= value <= high:
            raise ConfigError(f"{name} must be from {low:g} to {high:g}, got {value:g}")
    reference = _reference(walker, speed_m_s)
    speed = torch.tensor([speed_m_s])
    period_s = float(reference.at(speed, torch.zeros(1)).period_s)
    frames = int(_STRIDES * period_s * rate_hz) + 1
    phases = torch.from_numpy(np.arange(frames) / (rate_hz * period_s) % 1.0).float()
    motion = reference.at(speed.expand(frames), phases)
    names = [*(joint.name for joint in walker.joints), *ROOT_ANGLES]
    angles = torch.cat((motion.angles, motion.root[:, 1:]), dim=1)
    velocities = torch.cat((motion.velocities, motion.root_velocity[:, 3:]), dim=1)
    return names, np.rad2deg(angles.double().numpy()), np.rad2deg(velocities.double().numpy())
