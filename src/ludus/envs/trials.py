"""The trials of a world: in which circumstances an agent is put to the test where nobody plays against it.

A world's package may have a module `trials` whose `TRIALS` maps names to settings of the world, which are laid over
those of the run: `{"walk": {}, "pushes": {"pushes": {"every_s": 2.0}}}`. The first one is what an agent is judged by.
A world without one is played with the run's own settings.
"""

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.registry import world_package

Settings: TypeAlias = Mapping[str, Any]

_MODULE = "trials"


def trials_of(world: str) -> Mapping[str, Settings]:
    """Finds the trials of a world by name; one that is not registered has none.

    Args:
        world: Name with or without version, or `gym:ID`.
    """
    try:
        package = world_package(world)
    except UnknownNameError:
        package = ""
    name = f"{package}.{_MODULE}"
    if not package or importlib.util.find_spec(name) is None:
        return MappingProxyType({})
    trials: Mapping[str, Settings] = importlib.import_module(name).TRIALS
    return trials


def choose_trials(world: str, names: Sequence[str] | None) -> dict[str, Settings]:
    """Returns the named trials of a world in the given order; all of them if `names` is None.

    Raises:
        UnknownNameError: A name is not among the world's trials.
        ConfigError: The world has no trials, or a name comes twice.
    """
    known = trials_of(world)
    if names is None:
        return dict(known)
    if names and not known:
        raise ConfigError(f"{world} has no trials, got {', '.join(names)}; leave them out")
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ConfigError(f"named more than once: {', '.join(twice)}; name every trial once")
    for name in names:
        if name not in known:
            raise UnknownNameError("trial", name, known)
    return {name: known[name] for name in names}


def laid_over(settings: Settings | None, trial: Settings) -> dict[str, Any]:
    """Returns settings with those of a trial in their place, level by level: what the trial does not name stays."""
    merged = dict(settings or {})
    for name, value in trial.items():
        below = merged.get(name)
        merged[name] = laid_over(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
