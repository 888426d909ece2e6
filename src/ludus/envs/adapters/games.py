"""Step a slice of games of another library: in our own process, or hosted by a worker process.

`Games` is what the drivers of all libraries share; `GymnasiumGames` drives Gymnasium's. This file imports nothing of
the package and is loaded by its path, so that a worker needs no torch: it is small and up in a fraction of a second.
The parent and its workers share observations, actions, rewards and flags.
"""

import importlib
import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

# Types that need no closer look, which costs more than the step of a small environment.
_NUMBERS: frozenset[Any] = frozenset({float, int, bool, np.float32, np.float64})
_FLAGS = frozenset({bool, np.bool_, int})
Maker: TypeAlias = Callable[..., Any]  # makes an environment from `env_kwargs`


class ContractError(Exception):
    """An environment returned what its API does not allow."""


class Ask(IntEnum):
    """What a worker is asked for; codes of messages."""

    RESET = 16  # start the games that are marked in `resets`
    STEP = 17  # play the actions
    REPLAY = 18  # play the actions in the games that are marked in `resets` alone


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the observations and how it is filled."""

    name: str  # its name in our observation space
    key: str | None  # its key in the environment's dict observation, or None if the observation is no dict
    shape: tuple[int, ...]  # shape of one observation
    dtype: str  # type it is stored as
    one_hot_start: int | None = None  # smallest value of a Discrete space, which is stored one-hot; None for arrays


@dataclass(frozen=True, slots=True)
class Source:
    """Where a process finds what makes its environments: one of an id, an attribute of a module, or a world."""

    gym_id: str | None = None  # id of `gymnasium.make`
    module: str = ""  # module that holds a class or function ...
    name: str = ""  # ... of this name
    plugin: str = ""  # file of that module, if it was loaded by its path
    world: str = ""  # world that a plugin registers, where its class or function has no name of its own

    def load(self) -> Maker:
        """Return what makes an environment; plugins are loaded already."""
        if self.gym_id is not None:
            # The checker only warns, and costs more than a small environment's step.
            return partial(gym.make, self.gym_id, disable_env_checker=True)
        if self.world:
            from ludus.envs.own_games import factory_of

            return factory_of(self.world)
        if self.plugin:
            from ludus.rewards.plugins import plugin_module

            found: Any = plugin_module(self.plugin)
        else:
            found = importlib.import_module(self.module)
        for part in self.name.split("."):
            found = getattr(found, part)
        maker: Maker = found
        return maker


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat of a game of several agents: one of them."""

    agent: str  # its name in the game
    team: int  # number of its team
    entries: tuple[Entry, ...]  # what it sees, in its own shapes; the rest of the observation stays 0
    allowed: tuple[int, ...] = ()  # 1 for alternatives that its own action space has, else 0; empty without a mask


@dataclass(frozen=True, slots=True)
class Plan:
    """What games to host and how the memory is laid out; it travels to the workers as JSON."""

    source: Source  # what makes an environment
    env_kwargs: dict[str, Any]  # its arguments
    num_envs: int  # games of the whole batch
    slots: int  # sets of observations, written in turn, so that a worker that dies leaves the last ones whole
    entries: tuple[Entry, ...]  # observation entries, as they lie in memory
    action_shape: tuple[int, ...]  # shape of one action
    action_dtype: str  # type that actions are stored as
    events: tuple[str, ...] = ("reward",)  # names of the events, the reward first
    seats: tuple[Seat, ...] = ()  # who sits where, in games of several agents

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the plan whose fields came as JSON values."""
        read = {
            "source": Source(**data["source"]),
            "entries": _read_entries(data["entries"]),
            "action_shape": tuple(data["action_shape"]),
            "events": tuple(data["events"]),
            "seats": tuple(
                Seat(seat["agent"], seat["team"], _read_entries(seat["entries"]), tuple(seat["allowed"]))
                for seat in data["seats"]
            ),
        }
        return cls(**(data | read))

    def fields(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Return shape and type of every array of the block, in order."""
        games, seats = self.num_envs, len(self.seats) or 1
        fields = {
            "actions": ((games, seats, *self.action_shape), np.dtype(self.action_dtype)),
            "terminated": ((games,), np.dtype(np.bool_)),
            "truncated": ((games,), np.dtype(np.bool_)),
            "resets": ((games,), np.dtype(np.bool_)),
            "next_seeds": ((games,), np.dtype(np.int64)),
        }
        fields |= {f"event/{name}": ((games, seats), np.dtype(np.float32)) for name in self.events}
        for entry in self.entries:
            for part in (*map(str, range(self.slots)), "final"):
                fields[f"{part}/{entry.name}"] = ((games, seats, *entry.shape), np.dtype(entry.dtype))
        return fields


def _read_entries(data: Iterable[dict[str, Any]]) -> tuple[Entry, ...]:
    """Return the entries whose fields came as JSON values."""
    return tuple(Entry(**(entry | {"shape": tuple(entry["shape"])})) for entry in data)


class Block:
    """The batch's memory as arrays with the games first."""

    def __init__(self, plan: Plan, views: Mapping[str, NDArray[Any]]) -> None:
        """Take arrays of the shapes and types of `plan.fields()`, which may be shared with other processes."""
        self.actions = views["actions"]
        self.events = {name: views[f"event/{name}"] for name in plan.events}
        self.terminated, self.truncated = views["terminated"], views["truncated"]
        self.resets, self.next_seeds = views["resets"], views["next_seeds"]
        names = [entry.name for entry in plan.entries]
        self.slots = [{name: views[f"{slot}/{name}"] for name in names} for slot in range(plan.slots)]
        self.final = {name: views[f"final/{name}"] for name in names}


class Games(ABC):
    """Games `first ... last - 1` of a batch: what the drivers of all libraries share."""

    forms: ClassVar[Mapping[str, str]]  # what the methods of an environment return
    current: int | None  # game that is being played, for errors; None where all are played at once
    calling: str = "__init__"  # method that is being called, likewise
    envs: list[Any]  # the environments that play them

    def __init__(self, plan: Plan, block: Block, first: int, last: int) -> None:
        self.current = self._first = first
        part = slice(first, last)
        self._actions, self._resets, self._seeds = block.actions[part], block.resets[part], block.next_seeds[part]
        self._events = {name: values[part] for name, values in block.events.items()}
        self._terminated, self._truncated = block.terminated[part], block.truncated[part]
        self._seen = [{name: values[part] for name, values in slot.items()} for slot in block.slots]
        self._final = {name: values[part] for name, values in block.final.items()}
        self._entries = plan.entries

    @abstractmethod
    def reset(self, slot: int) -> None:
        """Start the games that are marked, each with its next seed, and write what they see into a slot."""

    @abstractmethod
    def step(self, slot: int) -> list[int]:
        """Play the block's actions, restart games that end, and return these, counted from 0 in this slice."""

    def replay(self, slot: int) -> None:
        """Play the block's actions in the games that are marked; for games that a seed and actions bring back."""
        raise NotImplementedError

    def env_of(self, game: int) -> Any:  # noqa: ANN401 - an environment of any library
        """Return the environment that plays a game of the batch."""
        return self.envs[game - self._first]

    def render(self, game: int) -> object:
        """Return a picture of a game of the batch."""
        return self.env_of(game).render()

    def answer(self, code: int, slot: int, _payload: bytes) -> bytes:
        """Start or step games of a worker process; see `ludus.envs.worker_program.Host`."""
        self.ask(Ask(code), slot)
        return b""

    def ask(self, what: Ask, slot: int) -> list[int]:
        """Start, play or replay games, and return those that ended in a step."""
        if what is Ask.STEP:
            return self.step(slot)
        (self.reset if what is Ask.RESET else self.replay)(slot)
        return []

    def definition(self) -> str:
        """Return file and line where the environment defines the method that is being called."""
        env = self.env_of(self._first if self.current is None else self.current)
        method = getattr(type(getattr(env, "unwrapped", env)), self.calling, None)
        code = getattr(method, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "no Python code"

    def _value(self, entry: Entry, dtypes: frozenset[np.dtype[Any]], observation: Any, of: str) -> NDArray[Any]:  # noqa: ANN401
        """Return what an entry holds of an observation, which `of` names, or raise ContractError."""
        value, name = observation, of
        if entry.key is not None:
            if not isinstance(observation, Mapping) or entry.key not in observation:
                raise self._broken(observation, f"a dict with the key {entry.key!r}", name)
            value, name = observation[entry.key], f"{of}[{entry.key!r}]"
        array = np.asarray(value)
        if entry.one_hot_start is not None:
            choice = array.item() - entry.one_hot_start if array.size == 1 and array.dtype.kind in "biu" else -1
            if not 0 <= choice < entry.shape[0]:
                last = entry.one_hot_start + entry.shape[0] - 1
                raise self._broken(value, f"an integer from {entry.one_hot_start} to {last}", name)
            one_hot = np.zeros(entry.shape, np.float32)
            one_hot[choice] = 1
            return one_hot
        if array.shape != entry.shape or array.dtype not in dtypes:
            kind = "of uint8" if entry.dtype == "uint8" else "of numbers"
            raise self._broken(value, f"an array of shape {entry.shape} {kind}", name)
        if entry.dtype == "float32" and not np.isfinite(array).all():
            raise self._broken(value, "finite numbers, but it holds NaN or Inf", name)
        return array

    def _number(self, reward: Any, name: str = "reward") -> float:  # noqa: ANN401 - whatever an environment returns
        array = np.asarray(reward)
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise self._broken(reward, "a number", name)
        number = float(array.item())
        if not math.isfinite(number):
            raise self._broken(reward, "a finite number", name)
        return number

    def _flag(self, name: str, value: Any) -> bool:  # noqa: ANN401 - likewise
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biu":
            raise self._broken(value, "a bool", name)
        return bool(array.item())

    def _broken(self, returned: object, expected: str, name: str = "") -> ContractError:
        """Return the error for a value that the API does not allow."""
        what = f"{_described(returned)} as {name}" if name else _described(returned)
        return ContractError(f"{self.calling}() returned {what}, expected {expected} ({self.definition()})")


class SingleGames(Games):
    """Games of one environment each, played one after another; a driver says how one starts and plays a step."""

    def __init__(self, plan: Plan, block: Block, first: int, last: int, make: Maker) -> None:
        super().__init__(plan, block, first, last)
        self.envs = []
        for game in range(first, last):
            self.current = game
            self.envs.append(make(**plan.env_kwargs))

    @abstractmethod
    def _start(self, index: int, slot: int) -> None:
        """Start a game with its next seed and write what it sees into a slot."""

    @abstractmethod
    def _play(self, index: int, slot: int) -> bool:
        """Play the block's action in one game, write what it sees, and return whether it is over."""

    def reset(self, slot: int) -> None:
        """See `Games.reset`."""
        for index in np.flatnonzero(self._resets).tolist():
            self.current = self._first + index
            self._start(index, slot)

    def step(self, slot: int) -> list[int]:
        """See `Games.step`."""
        self._terminated.fill(False)
        self._truncated.fill(False)
        for values in self._events.values():
            values.fill(0.0)
        return [index for index in range(len(self.envs)) if self._play_on(index, slot)]

    def replay(self, slot: int) -> None:
        """See `Games.replay`; a game that ends here goes another way than it did: whoever asked compares."""
        for index in np.flatnonzero(self._resets).tolist():
            self._play_on(index, slot)

    def _play_on(self, index: int, slot: int) -> bool:
        """Play one step of a game, restart it if it is over, and return whether it was."""
        self.current, self.calling = self._first + index, "step"
        is_over = self._play(index, slot)
        if is_over:
            self._start(index, slot)
        return is_over

    def _started(self, index: int) -> tuple[Any, Any]:
        """Reset a game with its next seed and return the observation and the info."""
        self.calling = "reset"
        result = self.envs[index].reset(seed=int(self._seeds[index]))
        if not isinstance(result, tuple) or len(result) != 2:
            raise self._broken(result, self.forms["reset"])
        return result


class GymnasiumGames(SingleGames):
    """Gymnasium environments, each a game of one seat."""

    forms: ClassVar[Mapping[str, str]] = {
        "step": "(observation, reward, terminated, truncated, info)",
        "reset": "(observation, info)",
    }

    def __init__(self, plan: Plan, block: Block, first: int, last: int, make: Maker) -> None:
        super().__init__(plan, block, first, last, make)
        self._steps = [env.step for env in self.envs]
        self._plain = len(plan.entries) == 1 and plan.entries[0].key is None and plan.entries[0].one_hot_start is None
        self._dtypes = [dtypes_for(entry) for entry in plan.entries]
        self._actions, self._rewards = self._actions[:, 0], self._events["reward"][:, 0]
        self._targets = [[slot[entry.name][:, 0] for entry in plan.entries] for slot in self._seen]
        self._last = [self._final[entry.name][:, 0] for entry in plan.entries]
        self._is_plain_float = self._plain and self._last[0].dtype.kind == "f"
        self._space = self.envs[0].action_space

    def step(self, slot: int) -> list[int]:
        """See `Games.step`; the hot path of small environments: no dict, no tensor and no allocation per game."""
        ended: list[int] = []
        targets, plain, rewards = self._targets[slot], self._plain, self._rewards
        target, shape, dtypes, array = targets[0], self._entries[0].shape, self._dtypes[0], np.ndarray
        isfinite = math.isfinite
        self._terminated.fill(False)
        self._truncated.fill(False)
        self.calling = "step"
        for index, (step, action) in enumerate(zip(self._steps, self._decoded(self._actions), strict=True)):
            self.current = self._first + index
            result = step(action)
            try:
                observation, reward, terminated, truncated, _ = result
            except (TypeError, ValueError):
                raise self._broken(result, self.forms["step"]) from None
            is_number = reward.__class__ in _NUMBERS and isfinite(reward)
            rewards[index] = reward if is_number else self._number(reward)
            if terminated.__class__ not in _FLAGS or truncated.__class__ not in _FLAGS:
                terminated, truncated = self._flag("terminated", terminated), self._flag("truncated", truncated)
            if terminated or truncated:
                ended.append(index)
                self._terminated[index] = terminated
                self._truncated[index] = not terminated  # ended by its own rules counts, if both are said
                self._write(self._last, index, observation)
                observation = self._started(index)[0]
                self.calling = "step"
            if plain and type(observation) is array and observation.shape == shape and observation.dtype in dtypes:
                target[index] = observation
            else:
                self._write(targets, index, observation)
        if self._is_plain_float and not np.isfinite(target).all():  # one look at all games costs less than one at each
            self._find_not_finite(target)
        return ended

    def _start(self, index: int, slot: int) -> None:
        self._write(self._targets[slot], index, self._started(index)[0])

    def _play(self, index: int, slot: int) -> bool:
        """Play one game alone, as a replay does: only what is seen counts."""
        (action,) = self._decoded(self._actions[index : index + 1])
        observation, _, terminated, truncated, _ = self._steps[index](action)
        self._write(self._targets[slot], index, observation)
        return bool(terminated or truncated)

    def _write(self, targets: list[NDArray[Any]], index: int, observation: Any) -> None:  # noqa: ANN401
        for entry, target, dtypes in zip(self._entries, targets, self._dtypes, strict=True):
            target[index] = self._value(entry, dtypes, observation, "observation")

    def _find_not_finite(self, values: NDArray[Any]) -> NoReturn:
        """Raise ContractError for the first game whose observation holds NaN or Inf."""
        index = int((~np.isfinite(values)).reshape(len(values), -1).any(1).argmax())
        self.current = self._first + index
        raise self._broken(values[index], "finite numbers, but it holds NaN or Inf", "observation")

    def _decoded(self, actions: NDArray[Any]) -> list[Any]:
        """Return actions in the form that the environments expect, safe to keep."""
        space = self._space
        if isinstance(space, spaces.Discrete):
            # Numbers of numpy's own type: many environments ask `Discrete.contains`, which is slower for an int.
            return list(actions if space.start == 0 else actions + space.start)
        return list(decode_rows(space, actions))


def decode_rows(space: spaces.Space[Any], actions: NDArray[Any]) -> NDArray[Any]:
    """Return actions `(games, ...)`, which count from 0, as a new array of an environment's action space."""
    if isinstance(space, spaces.Box):
        clipped: NDArray[Any] = np.clip(actions, space.low, space.high).astype(space.dtype, copy=False)
        return clipped
    counted = actions + space.start if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) else actions
    return counted.astype(space.dtype)


def dtypes_for(entry: Entry) -> frozenset[np.dtype[Any]]:
    """Return the types of arrays that an entry takes: float32 takes all numbers, uint8 only what fits into it."""
    numbers = np.typecodes["AllInteger"] + np.typecodes["Float"]
    return frozenset(np.dtype(code) for code in ("?B" if entry.dtype == "uint8" else f"?{numbers}"))


def _described(value: object) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} of {value.dtype}"
    if isinstance(value, tuple | list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return reprlib.repr(value)
    return f"an object of type {type(value).__name__}"


def host(plan: dict[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> GymnasiumGames:
    """Make games `first ... last - 1` of a plan."""
    whole = Plan.from_json(plan)
    return GymnasiumGames(whole, Block(whole, arrays), first, last, whole.source.load())
