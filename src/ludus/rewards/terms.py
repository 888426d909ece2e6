"""The registry of reward terms: one decorated function is one term, and so is an event that is given a meaning."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.rewards.step_info import StepInfo

RewardTerm: TypeAlias = Callable[[StepInfo], Tensor]

_TERMS: dict[str, dict[str, RewardTerm]] = {}


def reward_term(world: str, name: str | None = None) -> Callable[[RewardTerm], RewardTerm]:
    """Register the function below it as a reward term.

    The term is a pure function of a step: it gives one number for every element of the step's tensors, at weight
    1, and keeps nothing, so nothing can survive an episode's end.

    Args:
        world: Name of the world without version, such as `brawl`.
        name: Of the term; the function's own name by default.

    Raises:
        ConfigError: The world has a term of this name already.
    """

    def register(function: RewardTerm) -> RewardTerm:
        term = name or str(getattr(function, "__name__", ""))
        terms = _TERMS.setdefault(world, {})
        if term in terms:
            raise ConfigError(f"{world} has a reward term {term!r} already; choose another name")
        terms[term] = function
        return function

    return register


def event_term(world: str, name: str, event: str, meaning: str, most: float | None = None) -> None:
    """Register an event of a world, clipped to `-most ... most` if given, as a reward term with a name of its own.

    `meaning` says what the term is at weight 1, as the docstring of a function does; see `reward_term` for the rest.
    """

    def term(info: StepInfo) -> Tensor:
        value = info.events[event]
        return value if most is None else value.clamp(-most, most)

    term.__doc__ = meaning
    reward_term(world, name)(term)


def terms_of(world: str) -> Mapping[str, RewardTerm]:
    """Return the terms that are registered for a world, by name."""
    return MappingProxyType(_TERMS.get(world, {}))


def find_terms(world: str, names: tuple[str, ...], events: tuple[str, ...]) -> dict[str, RewardTerm]:
    """Return the terms of the given names: registered ones, or else events of the world, which are terms too.

    Raises:
        UnknownNameError: A name is neither.
    """
    known = _TERMS.get(world, {})
    found: dict[str, RewardTerm] = {}
    for name in names:
        if name not in known and name not in events:
            raise UnknownNameError(f"reward term of {world}", name, tuple(sorted({*known, *events})))
        found[name] = known[name] if name in known else _event(name)
    return found


def _event(name: str) -> RewardTerm:
    return lambda info: info.events[name]
