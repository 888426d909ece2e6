"""Families of worlds: those of another library, which are named by it, as in `gym:CartPole-v1`.

An adapter registers its family when its package is imported; `ludus.envs.world` and `ludus.envs.registry` find worlds
by this table and know no adapter. This module imports nothing, since `import ludus` needs it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """What the registry asks about the worlds of a family: functions of a world's name, as `package.module:name`."""

    find: str  # return the world's record
    module: str  # return the module that making its games imports, or nothing
    is_registered: str  # return whether its games can be made without importing a module


_FAMILIES: dict[str, Family] = {}  # by what is before the colon of a name


def register_family(prefix: str, family: Family) -> None:
    """Add a family whose worlds are named `prefix:...`."""
    _FAMILIES[prefix] = family


def family_of(name: str) -> Family | None:
    """Return the family that a world's name belongs to; None for a world of its own name."""
    prefix, colon, _ = name.partition(":")
    return _FAMILIES.get(prefix) if colon else None
