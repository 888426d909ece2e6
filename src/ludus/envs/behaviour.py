"""Behaviour numbers: what a world says of how a seat played an episode, beside its reward.

A world's package may have a module `behaviour` with

- `per_step(moment)`: quantities whose sums over an episode are wanted, element by element in any leading shape;
- `per_episode(sums, lengths, rate_hz)`: the numbers of each episode, made of those sums;
- `RATIOS`, optional: numbers that are a quotient of two others, `{"damage_ratio": ("damage_dealt", "damage_taken")}`;
- `EXTREMES`, optional: the lowest, highest or total number of many episodes beside its mean,
  `{"distance_min_m": ("distance_m", "min"), "stable_walks": ("stable", "sum")}`.

A world without one has no behaviour numbers, and everything goes on without them.
"""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.registry import world_package
from ludus.rewards.moment import Moment

Numbers: TypeAlias = Mapping[str, NDArray[np.float64]]
PerStep: TypeAlias = Callable[[Moment], dict[str, Tensor]]
PerEpisode: TypeAlias = Callable[[Numbers, NDArray[np.int64], float], dict[str, NDArray[np.float64]]]
Extreme: TypeAlias = Literal["min", "max", "sum"]

_MODULE = "behaviour"
_EXTREMES: Mapping[str, Callable[[NDArray[np.float64]], np.float64]] = {"min": np.min, "max": np.max, "sum": np.sum}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A world's behaviour numbers; see the module for what the functions take.

    Attributes:
        per_step: Quantities of steps. It may return the moment's own tensors: read them, do not write.
        per_episode: Numbers of episodes.
        ratios: For each number that is a quotient, the numbers above and below the line.
        extremes: For each number of many episodes that is not a mean, the number of an episode that it is made of, and
            how.

    Raises:
        ConfigError: An extreme is made in a way that does not exist.
    """

    per_step: PerStep = lambda _: {}
    per_episode: PerEpisode = lambda _sums, _lengths, _rate_hz: {}
    ratios: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    extremes: Mapping[str, tuple[str, Extreme]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, (_, how) in self.extremes.items():
            if how not in _EXTREMES:
                raise ConfigError(f"the extreme {name!r} is made by {how!r}; valid: {', '.join(_EXTREMES)}")

    def summarise(self, episodes: Numbers) -> dict[str, float]:
        """Returns one number for many episodes; nothing if there are none.

        It is their mean, but for ratios the quotient of the totals: a mean of quotients would be ruled by the few
        episodes in which the lower number is near 0. As in an episode, what is below the line counts at least 1.
        Extremes come beside it.

        Args:
            episodes: What `per_episode` gave, `(episodes,)` each.
        """
        if not episodes or len(next(iter(episodes.values()))) == 0:
            return {}
        summary = {name: float(values.mean()) for name, values in episodes.items()}
        for name, (above, below) in self.ratios.items():
            summary[name] = float(episodes[above].sum() / max(episodes[below].sum(), 1.0))
        for name, (source, how) in self.extremes.items():
            summary[name] = float(_EXTREMES[how](episodes[source]))
        return summary


def behaviour_of(world: str) -> Behaviour:
    """Finds the behaviour numbers of a world; one that is not registered has none.

    Args:
        world: Name with or without version, or `gym:ID`.
    """
    try:
        package = world_package(world)
    except UnknownNameError:
        return Behaviour()
    name = f"{package}.{_MODULE}"
    if not package or importlib.util.find_spec(name) is None:
        return Behaviour()
    module = importlib.import_module(name)
    ratios: Mapping[str, tuple[str, str]] = getattr(module, "RATIOS", MappingProxyType({}))
    extremes: Mapping[str, tuple[str, Extreme]] = getattr(module, "EXTREMES", MappingProxyType({}))
    return Behaviour(module.per_step, module.per_episode, ratios, extremes)
