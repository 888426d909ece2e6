"""What scripted players that are Warp kernels share: names with settings, checks, and the roster that runs them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError, did_you_mean
from ludus.envs.base import EnvSpec, action_dtypes
from ludus.envs.warp_tools import Prepared, copy_quietly


def bot_settings(name: str, text: str, valid: Mapping[str, str]) -> dict[str, str]:
    """Reads the settings behind the colon of a bot's name, such as `delay=8,noise=0.1`.

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
    """Reads a number of a bot's settings, or raises ConfigError if it is none or out of range."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not low <= float(text) <= high:
        raise ConfigError(f"bot {name!r}: {key} must be a number from {low} to {high}, got {text!r}")
    return float(text)


def whole_setting(name: str, key: str, text: str, high: int, unit: str) -> int:
    """Reads a whole number from 0 to `high`, or raises ConfigError; `unit` says of what."""
    value = number_setting(name, key, text, 0, high)
    if value != int(value):
        raise ConfigError(f"bot {name!r}: {key} must be a whole number of {unit}, got {value}")
    return int(value)


class Arena(Protocol):
    """What a roster needs of the environment that it plays in."""

    spec: EnvSpec
    num_games: int
    device: torch.device

    @property
    def rules(self) -> object:
        """A Warp struct; another object after every change of the seed."""


class KernelBots(ABC):
    """A roster of scripted players whose kernels read an assignment and write actions; see `ludus.envs.base.Bots`.

    A subclass prepares a launch with array arguments `assignment` and `actions`, over `self._assignment` and
    `self._actions`; it is prepared anew when the environment's rules are other ones.
    """

    def __init__(self, env: Arena, names: Sequence[str]) -> None:
        self.names = tuple(names)
        shape = (env.num_games, env.spec.seats)
        space = env.spec.action_space
        self._action_types = action_dtypes(space)
        self._arena = env
        self._assignment = torch.full(shape, -1, dtype=torch.int32, device=env.device)
        full_shape = (*shape, *(space.shape or ()))
        self._actions = torch.zeros(full_shape, dtype=self._action_types[0], device=env.device)
        self._checked: tuple[Tensor | None, int] = (None, -1)  # assignment of the last call, and its version
        self._rules: object = None
        self._run: Prepared | None = None

    @abstractmethod
    def _prepare(self) -> Prepared:
        """Prepares the launch."""

    def act(self, assignment: Tensor, actions: Tensor) -> None:
        """Writes the bots' actions for the current state; see `ludus.envs.base.Bots.act`."""
        self._check(assignment, actions)
        if self._run is None or self._rules is not self._arena.rules:  # the environment got another seed
            self._rules = self._arena.rules
            self._run = self._prepare()
        direct = assignment.dtype == torch.int32 and assignment.is_contiguous()
        if not direct:
            copy_quietly(self._assignment, assignment)
        self._run.point("assignment", assignment if direct else self._assignment)
        if actions.is_contiguous() and actions.element_size() == self._actions.element_size():
            self._run.point("actions", actions)
            self._run()
        else:
            copy_quietly(self._actions, actions)
            self._run.point("actions", self._actions)
            self._run()
            copy_quietly(actions, self._actions)

    def _check(self, assignment: Tensor, actions: Tensor) -> None:
        _check_form("assignment", assignment, self._assignment, (torch.int32, torch.int64))
        _check_form("actions", actions, self._actions, self._action_types)
        if assignment.device.type == "cpu":  # on a GPU looking at values would wait for the device
            self._check_names(assignment)

    def _check_names(self, assignment: Tensor) -> None:
        """Looks at the values, unless they are those of the last call; the kernel passes over a bot that is not."""
        version = -1 if assignment.is_inference() else assignment._version  # noqa: SLF001 - torch names it so
        if self._checked[0] is assignment and self._checked[1] == version >= 0:
            return
        highest = int(assignment.numpy().max())
        if highest >= len(self.names):
            raise ActionError(
                f"assignment names bot {highest}; valid: -1 for no bot, or 0 to {len(self.names) - 1}: "
                f"{', '.join(self.names)}"
            )
        self._checked = (assignment, version)


def _check_form(name: str, given: Tensor, like: Tensor, types: tuple[torch.dtype, ...]) -> None:
    """Raises ActionError unless a tensor has the shape and device of another and one of the types."""
    if not isinstance(given, Tensor):
        raise ActionError(f"{name} must be a torch.Tensor, got {type(given).__name__}")
    if given.shape != like.shape or given.dtype not in types or given.device != like.device:
        valid = " or ".join(str(dtype) for dtype in types)
        raise ActionError(
            f"{name} must be {valid} of shape {tuple(like.shape)} on {like.device}, "
            f"got {given.dtype} of shape {tuple(given.shape)} on {given.device}"
        )
