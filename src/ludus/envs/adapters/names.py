"""Names of other libraries' worlds: `gym:ID`, `gym:module:ID` and `pettingzoo:MODULE`; without torch or Gymnasium."""

import re
import sys
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from ludus.envs.world import World, resolve

if TYPE_CHECKING:
    from ludus.envs.base import BatchedEnv, EnvRequest

GYMNASIUM_PREFIX = "gym:"  # before the id of any Gymnasium environment
PETTINGZOO_PREFIX = "pettingzoo:"  # before the module of a PettingZoo game
_FAMILIES = ("atari", "butterfly", "classic", "magent", "sisl")  # of games in PettingZoo's own package


def gymnasium_world(name: str) -> World:
    """Return the record of `gym:ID` or `gym:module:ID`."""
    package = "ludus.envs.adapters"
    # Only of Gymnasium's own environments: one of another module or namespace may have the same name.
    own = re.fullmatch(r"gym:(\w+)-v\d+", name)
    tuned = own and (files(package) / "presets" / f"{own[1]}.yaml").is_file()

    def make(request: "EnvRequest") -> "BatchedEnv":
        make_games: Callable[[str, EnvRequest], BatchedEnv] = resolve("ludus.envs.adapters.gymnasium_factory:make")
        return make_games(name, request)

    return World(
        id=name,
        env=make,
        config="ludus.envs.adapters.game_batch:GymnasiumSettings",
        package=package,
        default_preset=own[1] if own is not None and tuned else "default",
        display="ludus.envs.display:GYMNASIUM_DISPLAY",
    )


def gymnasium_module(name: str) -> str:
    """Return the module that making `gym:module:ID` imports; empty for `gym:ID`."""
    return name.removeprefix(GYMNASIUM_PREFIX).rpartition(":")[0]


def pettingzoo_module(name: str) -> str:
    """Return the module of `pettingzoo:sisl.multiwalker_v9`, also by its versioned name `...multiwalker-v9`.

    Families of PettingZoo's own games are found in its package, those of `mpe` in `mpe2`, where they moved to. Any
    other module is named in full.
    """
    path, _, version = name.removeprefix(PETTINGZOO_PREFIX).partition("-v")
    family, _, rest = path.partition(".")
    if family in _FAMILIES:
        path = f"pettingzoo.{path}"
    elif family == "mpe":
        path = f"mpe2.{rest}"
    # A module without a version has version 0.
    return f"{path}_v{version}" if version not in ("", "0") or f"{path}_v0" in sys.modules else path


def is_pettingzoo_imported(name: str) -> bool:
    """Return whether the module of `pettingzoo:MODULE` is imported already."""
    return pettingzoo_module(name) in sys.modules
