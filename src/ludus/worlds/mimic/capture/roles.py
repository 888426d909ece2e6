"""Which joint of a file is which part of a person: found by name, shown as a table, corrected in a small YAML file.

The conventions of Mixamo, LAFAN, CMU, Biovision, Xsens, Blender's Rigify, SMPL and Plug-in Gait are known.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from ludus.config.yaml import read_yaml
from ludus.core.errors import ConfigError, FormatError, did_you_mean
from ludus.envs.settings import EnvSettings, read_settings
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.capture.skeleton import Capture

_MAX_MAP_BYTES = 100_000
_COMMON = 0.6  # share of the names that begin with the same prefix, where there is one

# Part -> names without side, prefix, case and punctuation, the best first. A name that one part has is not another's.
_LEG_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "hip": ("hjc", "upleg", "upperleg", "thigh", "femur", "hip", "hipjoint", "legupper", "gtr", "troc"),
        "knee": ("kjc", "leg", "lowerleg", "lowleg", "shin", "calf", "knee", "tibia", "leglower"),
        "ankle": ("ajc", "ankle", "foot"),
        "toe": ("toebase", "toe", "toes", "toe0", "ball", "forefoot", "mt2", "foot", "toeend", "footend", "ankleend"),
    }
)
_MIDDLE_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pelvis": ("hips", "pelvis", "hip", "midhip", "root", "abdomen"),
        "chest": (
            *("upperchest", "thorax", "spine3", "spine03", "chest4", "spine2", "spine02", "t8", "chest3", "chest2"),
            *("spine1", "spine01", "chest", "torso", "upperback", "spine"),
        ),
    }
)
ROLES = (*_MIDDLE_NAMES, *(f"{side}_{part}" for side in SIDES for part in _LEG_NAMES))
NEEDED = tuple(f"{side}_{part}" for side in SIDES for part in _LEG_NAMES)
_SIDE_MARKS = MappingProxyType({"right": ("right", "r"), "left": ("left", "l")})


class MapConfig(EnvSettings):
    """What a user can correct.

    Attributes:
        joints: Name in the file of each part of the body; null for none.
        unit_m: Metres of one unit of the file.
        up: Axis of the file that points up, such as `y` or `-z`.
        rate_hz: Frames per second, instead of what the file says.
    """

    joints: dict[str, str | None] = Field(default_factory=dict)
    unit_m: Annotated[float, Field(gt=0.0, le=1000.0)] | None = None
    up: Annotated[str, Field(pattern="^-?[xyz]$")] | None = None
    rate_hz: Annotated[float, Field(ge=20.0, le=2000.0)] | None = None


def load_map(path: Path) -> MapConfig:
    """Read corrections; raise ConfigError with all that is wrong."""
    content = read_yaml(path, "map of joints", _MAX_MAP_BYTES)
    if not isinstance(content, dict):
        raise ConfigError(f"map of joints {path} must be a mapping with the key joints, got {type(content).__name__}")
    settings = read_settings(MapConfig, content, f"map of joints {path}")
    unknown = [role for role in settings.joints if role not in ROLES]
    if unknown:
        raise ConfigError(
            f"map of joints {path}: joints.{unknown[0]} is no part of the body{did_you_mean(unknown[0], ROLES)}; "
            f"valid: {', '.join(ROLES)}"
        )
    return settings


def map_text(capture: Capture, found: Mapping[str, int]) -> str:
    """Return a YAML file with what was found, for a user to correct."""
    lines = [
        f"# Parts of the body -> {'markers' if capture.rotations is None else 'joints'} of the file. Correct what is "
        "wrong; null is for none.",
        "joints:",
        *(f"  {role}: {_quoted(capture.names[found[role]]) if role in found else 'null'}" for role in ROLES),
        "# Detected unless they are given:",
        "# unit_m: 0.01    # metres of one unit",
        "# up: y           # the axis that points up",
        "# rate_hz: 120    # frames per second",
        f"# All names: {', '.join(name.encode('ascii', 'backslashreplace').decode() for name in capture.names)}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    return "'" + name.encode("ascii", "backslashreplace").decode().replace("'", "''") + "'"


def find_roles(capture: Capture, corrections: Mapping[str, str | None]) -> dict[str, int]:
    """Return the joint of each part of the body that was found.

    Raises ConfigError if a correction names a joint that the file does not have.
    """
    found: dict[str, int] = {}
    for role, name in corrections.items():
        if name is None:
            continue
        if name not in capture.names:
            raise ConfigError(
                f"map of joints: {role} is {name!r}, but {capture.source} has no such joint"
                f"{did_you_mean(name, capture.names)}; it has {_listed(capture.names)}"
            )
        found[role] = capture.names.index(name)
    names = _without_prefix(capture.names)
    plain = [_plain(name) for name in names]
    for part, known in _MIDDLE_NAMES.items():
        if part not in corrections:
            _choose(found, part, [plain.index(name) for name in known if name in plain])
    for side in SIDES:
        sided = [_without_side(name, side) for name in names]
        for part, known in _LEG_NAMES.items():
            role = f"{side}_{part}"
            if role not in corrections:
                _choose(found, role, [sided.index(name) for name in known if name in sided])
    return found


def check_roles(capture: Capture, found: Mapping[str, int]) -> None:
    """Raise FormatError, which says how to go on, unless all parts that are needed were found, each in its place."""
    missing = [role for role in NEEDED if role not in found]
    if missing:
        raise FormatError(
            f"motion file {capture.source}: no joint was found for {', '.join(missing)}; it has "
            f"{_listed(capture.names)}. Write a map with --write-map map.yaml, fill it in and pass it with --map"
        )
    for side in SIDES:
        line = [found[f"{side}_{part}"] for part in _LEG_NAMES]
        for upper, lower in pairwise(line):
            if capture.has_rest and not _is_below(capture, upper, lower):
                raise FormatError(
                    f"motion file {capture.source}: joint {capture.names[lower]!r} is not below "
                    f"{capture.names[upper]!r} in the skeleton; correct the {side} leg with --write-map and --map"
                )


def _is_below(capture: Capture, upper: int, lower: int) -> bool:
    while lower > upper:
        lower = capture.parents[lower]
    return lower == upper


def _choose(found: dict[str, int], role: str, candidates: Sequence[int]) -> None:
    free = [index for index in candidates if index not in found.values()]
    if free:
        found[role] = free[0]


def _without_prefix(names: Sequence[str]) -> list[str]:
    """Return names without the prefix that most of them have: `Hips` for `mixamorig:Hips`, `L_Foot` for `Bip01_L_Foot`.

    Namespaces are left out too.
    """
    heads = Counter(found.group() for name in names if (found := re.match(r"[^_:|. -]+[_:|. -]", name)))
    head, count = heads.most_common(1)[0] if heads else ("", 0)
    prefix = head if count > _COMMON * len(names) else ""
    return [re.split(r"[:|]", name.removeprefix(prefix))[-1] for name in names]


def _plain(name: str) -> str:
    """Return a name in lower case without punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _without_side(name: str, side: str) -> str | None:
    """Return a plain name without the mark of its side; None if it is not on that side."""
    plain = _plain(name)
    long, short = _SIDE_MARKS[side]
    if plain.startswith(long) and plain != long:
        return plain.removeprefix(long)
    if plain.endswith(long) and plain != long:
        return plain.removesuffix(long)
    # One letter is a mark where it stands alone, or begins a name in capitals or small letters: R_Hip, hip.R, RKNE.
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    if short in (word.lower() for word in words) and len(words) > 1:
        return "".join(word.lower() for word in words if word.lower() != short)
    capital = name[:1] == short.upper() and name[1:2].isupper()
    small = name[:1] == short and plain[1:] in {part for parts in _LEG_NAMES.values() for part in parts}
    return plain[1:] if capital or small else None


def _listed(names: Sequence[str], most: int = 40) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
