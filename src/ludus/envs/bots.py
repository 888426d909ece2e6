"""Bots by name: those of a world, and those that users write in Python.

A bot in Python is a function over a batch of rows, or a class that plays one game:

    @ludus.register_bot("brawl", "counter")
    def counter(observation, state):
        return actions, state  # (rows, ...) each

    @ludus.register_bot("brawl", "simple")
    class Simple:
        def reset(self): ...
        def act(self, observation): ...  # returns one action

`ludus.envs.bot_roster` plays them.
"""

import inspect
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeAlias, TypeVar

from torch import Tensor

from ludus.core.errors import ConfigError, UnknownNameError, did_you_mean
from ludus.core.faults import let_pass
from ludus.core.random import mix, uniform
from ludus.core.text import blame, plain_text
from ludus.envs.base import EnvSpec
from ludus.envs.world import find_world

GROUP = "ludus.bots"  # of entry points: modules that register bots when they are imported
RESERVED = ("self", "mirror")  # what a mix of opponents calls snapshots, and games against oneself
MAX_DELAY = 32  # steps, exclusive
FROM_PLUGIN = "or a bot that --plugin FILE registers"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

logger = logging.getLogger(__name__)
_REGISTERED: "dict[tuple[str, str], PythonBot]" = {}


@dataclass(frozen=True, slots=True)
class PythonBot:
    """A bot that a user wrote.

    Attributes:
        name: How it is called, without settings.
        code: The function, or the class.
        delay: Steps between seeing and acting.
        noise: Share of the time, 0 to 1, in which it holds random actions.
    """

    name: str
    code: Callable[..., Any]
    delay: int = 0
    noise: float = 0.0

    @property
    def is_class(self) -> bool:
        """Whether each game has an object of its own."""
        return inspect.isclass(self.code)

    @property
    def place(self) -> str:
        """File and line of its definition."""
        try:
            return f"{inspect.getsourcefile(self.code)}:{inspect.getsourcelines(self.code)[1]}"
        except (TypeError, OSError):
            return getattr(self.code, "__module__", "unknown file")

    def __str__(self) -> str:
        return plain_text(f"bot {self.name!r} ({self.place})")


def register_bot(world: str, name: str, *, delay: int = 0, noise: float = 0.0) -> Callable[[Decorated], Decorated]:
    """Register a function or a class as a bot of a world, to be used by name wherever the world's own bots are.

    A function is called with the rows that the bot plays, any number of them at once: `bot(observation, state)`
    returns the actions `(rows, ...)` of the world's action space and its next state: a tensor or a dict of tensors
    with the rows first, or None. In the first step of an episode the state is None. A class is instantiated without
    arguments for every seat that it plays; `reset()` is called when an episode begins, and `act(observation)` returns
    one action. See `BotObservation` for what they see.

    Args:
        world: A world, such as `brawl`; every version of it.
        name: Name of the bot: lower-case letters, digits, `-` and `_`.
        delay: Steps between seeing and acting, unless the user says otherwise, as in `counter:delay=8`.
        noise: Share of the time, 0 to 1, in which random actions are held, unless the user says otherwise.

    Raises:
        UnknownNameError: There is no such world.
        ConfigError: The name or a number cannot be used, another file has registered it, or it is no bot.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name in RESERVED:
        raise ConfigError(
            f"bot name {name!r} must be lower-case letters, digits, '-' and '_', and not {' or '.join(RESERVED)}"
        )
    _check_number(name, "delay", delay, MAX_DELAY - 1)
    _check_number(name, "noise", noise, 1)
    key = find_world(world).name, name

    def register(code: Decorated) -> Decorated:
        bot = as_bot(code, name, delay=delay, noise=noise)
        other = _REGISTERED.get(key)
        if other is not None and other.place.rpartition(":")[0] != bot.place.rpartition(":")[0]:
            raise ConfigError(f"{other} is registered for {world} already; choose another name")
        _REGISTERED[key] = bot  # the same file may define it again, as notebooks do
        return code

    return register


def as_bot(code: Callable[..., Any], name: str = "", *, delay: int = 0, noise: float = 0.0) -> PythonBot:
    """Return a function or a class as a bot, without registering it.

    Raises:
        ConfigError: It is neither a function nor a class with `reset` and `act`.
    """
    bot = PythonBot(name or getattr(code, "__name__", "bot"), code, delay, noise)
    if not callable(code):
        raise ConfigError(f"bot {name!r} must be a function or a class, got {code!r}")
    missing = [method for method in ("reset", "act") if not callable(getattr(code, method, None))]
    if bot.is_class and missing:
        raise ConfigError(
            f"{bot} is a class without {' and '.join(missing)}; define reset(self), act(self, observation)"
        )
    return bot


def registered_bots(spec: EnvSpec) -> tuple[str, ...]:
    """Return the names of the Python bots of a world, those of installed packages among them.

    Raises:
        ConfigError: One has the name of a bot of the world's own.
    """
    _load_entry_points()
    names = tuple(sorted(name for world, name in _REGISTERED if world == spec.name))
    for name in names:
        if name in spec.bots:
            raise ConfigError(f"{_REGISTERED[spec.name, name]} has the name of a bot of {spec.id}; choose another name")
    return names


def bot_names(spec: EnvSpec) -> tuple[str, ...]:
    """Return the names of all bots of a world: its own, and then those that users registered."""
    return (*spec.bots, *registered_bots(spec))


def is_bot(name: str, spec: EnvSpec) -> bool:
    """Return whether a name, which may carry settings as in `counter:delay=8`, is that of a bot of the world."""
    return name.partition(":")[0] in (*bot_names(spec), *spec.bot_families)


def find_bot(bot: str | PythonBot, spec: EnvSpec) -> PythonBot | None:
    """Return a Python bot with the settings of its name; None for a bot of the world's own."""
    if isinstance(bot, PythonBot):
        return bot
    name, _, settings = bot.partition(":")
    if name in spec.bots or name in spec.bot_families:
        return None
    if name not in registered_bots(spec):
        raise UnknownNameError(f"bot of {spec.id}", name, (*bot_names(spec), FROM_PLUGIN))
    code = _REGISTERED[spec.name, name]
    values = bot_settings(bot, settings, {"delay": "STEPS", "noise": "SHARE"})
    delay, noise = code.delay, code.noise
    if "delay" in values:
        delay = whole_setting(bot, "delay", values["delay"], MAX_DELAY - 1, "steps")
    if "noise" in values:
        noise = number_setting(bot, "noise", values["noise"], 0, 1)
    return replace(code, delay=delay, noise=noise)


@cache
def _load_entry_points() -> None:
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except BaseException as error:  # a package of others can raise anything; all else still works
            let_pass(error)
            logger.warning("[WARN] bots of %s (%s) cannot be loaded: %s", entry.name, entry.value, blame(error))


def bot_settings(name: str, text: str, valid: Mapping[str, str]) -> dict[str, str]:
    """Read the settings behind the colon of a bot's name, such as `delay=8,noise=0.1`.

    Args:
        name: The whole name, for errors.
        text: What is behind the colon.
        valid: For each setting, what is written behind its `=`, for errors.

    Raises:
        ConfigError: A setting is unknown or comes twice.
    """
    values: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, separator, value = part.partition("=")
        if key not in valid or not separator:
            shown = ", ".join(f"{each}={unit}" for each, unit in valid.items())
            raise ConfigError(
                f"bot {name!r}: {part!r} is not a setting{did_you_mean(key, tuple(valid))}; valid: {shown}"
            )
        if key in values:
            raise ConfigError(f"bot {name!r}: {key} is given twice")
        values[key] = value
    return values


def number_setting(name: str, key: str, text: str, low: float, high: float) -> float:
    """Read a number of a bot's settings, or raise ConfigError if it is none or out of range."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not low <= float(text) <= high:
        raise ConfigError(f"bot {name!r}: {key} must be a number from {low} to {high}, got {text!r}")
    return float(text)


def whole_setting(name: str, key: str, text: str, high: int, unit: str) -> int:
    """Read a whole number from 0 to `high`, or raise ConfigError; `unit` says of what."""
    value = number_setting(name, key, text, 0, high)
    if value != int(value):
        raise ConfigError(f"bot {name!r}: {key} must be a whole number of {unit}, got {value}")
    return int(value)


def _check_number(name: str, key: str, value: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"bot {name!r}: {key} must be a number from 0 to {high}, got {value!r}")
    if not 0 <= value <= high or (key == "delay" and value != int(value)):
        raise ConfigError(
            f"bot {name!r}: {key} must be {'a whole number ' * (key == 'delay')}from 0 to {high}, got {value}"
        )


Tree: TypeAlias = "dict[str, Tree | tuple[str, int | slice]]"


def field_tree(spec: EnvSpec) -> Tree:
    """Return where each named value of an observation is: entry and column, by the parts of its name.

    Entries whose fields have no names give the blocks of the spec.
    """
    tree: Tree = {}
    for entry in spec.observation_space.spaces:
        for column, name in enumerate(spec.fields.get(entry, ())):
            *groups, last = name.split(".")
            below: Any = tree
            for group in groups:
                below = below.setdefault(group, {})
            below[last] = (entry, column)
        if entry not in spec.fields:
            tree |= {name: (entry, slice(*ends)) for name, ends in spec.blocks.get(entry, {}).items()}
    return tree


class ObservationView:
    """Named values of an observation: `observation.opponent.x` instead of `observation["vector"][..., 47]`.

    The names are those of the world's field table (`EnvSpec.fields`); values are as a policy sees them.
    """

    __slots__ = ("_entries", "_tree")

    def __init__(self, entries: Mapping[str, Tensor], tree: Tree) -> None:
        self._entries, self._tree = entries, tree

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a tensor, or another view
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._tree:
            raise AttributeError(f"no field {name!r}{did_you_mean(name, self._tree)}; valid: {', '.join(self._tree)}")
        place = self._tree[name]
        if isinstance(place, dict):
            return ObservationView(self._entries, place)
        entry, column = place
        return self._entries[entry][..., column]

    def __getitem__(self, entry: str) -> Tensor:
        """Return an entry of the observation as a whole."""
        return self._entries[entry]

    def __dir__(self) -> list[str]:
        return sorted(self._tree)


class BotObservation(ObservationView):
    """What a bot sees: the named values of its rows, `(rows,)` each; of one game, tensors without a dimension.

    Attributes:
        frame: `(rows,)` int64, steps since the episode began.
    """

    __slots__ = ("_chances", "_drawn", "frame")

    def __init__(
        self, entries: Mapping[str, Tensor], tree: Tree, frame: Tensor, chances: Tensor, drawn: Tensor
    ) -> None:
        super().__init__(entries, tree)
        self.frame, self._chances, self._drawn = frame, chances, drawn

    def uniform(self, number: int = 0) -> Tensor:
        """Return random numbers in [0, 1), one per row: the same in every run of the same seed.

        Args:
            number: Other numbers give other, independent draws of the same step.
        """
        return uniform(mix(self._chances, number + 1))

    def parameter(self, number: int = 0) -> Tensor:
        """Return random numbers in [0, 1), one per row, that stay the same in all steps of an episode.

        A bot that draws its parameters from these is the same opponent in all matches of a set
        (`matches_per_episode`).

        Args:
            number: Other numbers give other, independent draws.
        """
        return uniform(mix(self._drawn, number + 1))
