"""`ludus mimic motion import`: from a recorded file to a motion file for a walker, with what was found out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ludus.core.errors import ConfigError, FormatError
from ludus.core.files import write_atomic
from ludus.worlds.mimic.capture.amass import read_amass
from ludus.worlds.mimic.capture.bvh import read_bvh
from ludus.worlds.mimic.capture.c3d import read_c3d
from ludus.worlds.mimic.capture.markers import with_joint_centres
from ludus.worlds.mimic.capture.person import Person, person_of
from ludus.worlds.mimic.capture.retarget import retarget
from ludus.worlds.mimic.capture.roles import MapConfig, check_roles, find_roles
from ludus.worlds.mimic.capture.skeleton import Capture
from ludus.worlds.mimic.model import Walker
from ludus.worlds.mimic.motion.clip import Clip, Quality, check_clip
from ludus.worlds.mimic.motion.files import csv_text
from ludus.worlds.mimic.motion.motion import read_content
from ludus.worlds.mimic.motion.table import RATE_RANGE_HZ, ROOT_ANGLES

_READERS: Mapping[str, Callable[[Path, bytes], Capture]] = MappingProxyType(
    {".bvh": read_bvh, ".npz": read_amass, ".c3d": read_c3d}
)
_LEAST_FRAMES = 10
_MOST_FRAMES = 50_000  # 14 minutes at 60 Hz; finding where the feet stand takes up to 0.13 ms per frame


@dataclass(frozen=True, slots=True)
class Imported:
    """A recording, and the motion that a walker makes of it."""

    capture: Capture
    roles: Mapping[str, int]  # joint of the file by part of the body
    person: Person
    clip: Clip
    quality: Quality


def load_capture(path: Path) -> Capture:
    """Read a `.bvh`, `.npz` (AMASS) or `.c3d` file.

    Raises ConfigError if there is no such file, and FormatError, which names the line or frame, if it cannot be used.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(
            f"motion file {path} ends with {path.suffix or 'nothing'}; valid: {', '.join(_READERS)}. Files of joint "
            "angles (.csv) are used as they are: see `ludus mimic motion show`"
        )
    return reader(path, read_content(path))


def cut_capture(capture: Capture, start_s: float, stop_s: float | None) -> Capture:
    """Return the part of a recording between two times; raise ConfigError if there is nothing between them."""
    end_s = capture.frames / capture.rate_hz
    times = (start_s, end_s if stop_s is None else stop_s)
    # Times far outside are not turned into frames: infinity and NaN have no number.
    start, stop = (round(min(time, end_s) * capture.rate_hz) if time >= 0.0 else -1 for time in times)
    if start < 0 or stop - start < _LEAST_FRAMES:
        raise ConfigError(
            f"from {start_s:g} s to {'its end' if stop_s is None else f'{stop_s:g} s'} there are "
            f"{max(0, stop - start) if start >= 0 else 0} frames of {capture.source}, which lasts {end_s:.2f} s; "
            f"at least {_LEAST_FRAMES} are needed"
        )
    return capture.cut(start, stop)


def prepare(path: Path, settings: MapConfig, start_s: float = 0.0, stop_s: float | None = None) -> Capture:
    """Read a recording, cut it, and find the joints of a set of markers."""
    capture = load_capture(path)
    if settings.rate_hz is not None:
        capture = replace(capture, rate_hz=settings.rate_hz)
    low, high = RATE_RANGE_HZ
    if not low <= capture.rate_hz <= high:
        raise FormatError(
            f"motion file {path} has {capture.rate_hz:g} frames per second; valid: {low:g} to {high:g}. If the file is "
            "wrong, give rate_hz in a map (--map)"
        )
    capture = cut_capture(capture, start_s, stop_s)
    if capture.frames > _MOST_FRAMES:
        raise FormatError(
            f"motion file {path} has {capture.frames} frames; at most {_MOST_FRAMES} are put onto a walker: cut it "
            "with --start and --stop"
        )
    return with_joint_centres(capture) if capture.rotations is None else capture


def import_capture(capture: Capture, walker: Walker, settings: MapConfig) -> Imported:
    """Put a recording onto a walker; raise FormatError or ConfigError, which say what to correct, if it cannot be."""
    roles = find_roles(capture, settings.joints)
    check_roles(capture, roles)
    person = person_of(capture, roles, settings)
    clip = retarget(person, walker, capture.rate_hz, capture.source.name)
    return Imported(capture, roles, person, clip, check_clip(walker, clip))


def write_clip(clip: Clip, path: Path, comment: str) -> None:
    """Write the angles of a motion as a `.csv` file; raise ConfigError if the file is of another kind."""
    if path.suffix.lower() != ".csv":
        raise ConfigError(f"motion file {path} ends with {path.suffix or 'nothing'}; valid: .csv")
    names = [*clip.joints, *ROOT_ANGLES]
    angles = np.rad2deg(np.concatenate((clip.angles, clip.turns), axis=1))
    columns = {f"{name}_deg": angles[:, index] for index, name in enumerate(names)}
    plain = comment.encode("ascii", "backslashreplace").decode()
    write_atomic(path, csv_text(columns, clip.rate_hz, (plain,)).encode())
