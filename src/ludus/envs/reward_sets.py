"""The reward terms and named sets of weights that a world ships, found by its name.

A world's package may have a module `rewards`: importing it registers its terms (see `ludus.rewards.terms`), and its
`SETS` maps names to weights. A world without one is rewarded by its events.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from types import MappingProxyType

from ludus.envs.registry import world_package
from ludus.rewards.manager import Sets

_MODULE = "rewards"


def reward_sets(world: str) -> Sets:
    """Registers a world's reward terms and returns its sets of weights.

    Args:
        world: Name with or without version, or `gym:ID`.

    Raises:
        UnknownNameError: No such world.
    """
    package = world_package(world)
    name = f"{package}.{_MODULE}"
    if not package or importlib.util.find_spec(name) is None:
        return MappingProxyType({})
    sets: Mapping[str, Mapping[str, float]] = importlib.import_module(name).SETS
    return sets
