"""Steps a slice of Gymnasium games: in our own process, or hosted by a worker process.

This file imports nothing of the package and is loaded by its path, so that a worker needs no torch: it is small and up
in a fraction of a second. The parent and its workers share observations, actions, rewards and flags.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class Ask(IntEnum):
    """What a worker is asked for; codes of messages."""

    RESET = 16  # start the games that are marked in `resets`
    STEP = 17  # play the actions


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the observations and how it is filled.

    Attributes:
        name: Its name in our observation space.
        key: Its key in the environment's dict observation, or None if the observation is no dict.
        shape: Shape of one observation.
        dtype: Type it is stored as.
        one_hot_start: Smallest value of a Discrete space, which is stored one-hot; None for arrays.
    """

    name: str
    key: str | None
    shape: tuple[int, ...]
    dtype: str
    one_hot_start: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What games to host and how the memory is laid out; it travels to the workers as JSON.

    Attributes:
        env_id: Gymnasium id, also of the form `module:Name-v0`.
        env_kwargs: Arguments of `gymnasium.make`.
        num_games: Games of the whole batch.
        slots: Sets of observations, written in turn, so that a worker that dies leaves the last ones whole.
        entries: Observation entries.
        action_shape: Shape of one action.
        action_dtype: Type that actions are stored as.
    """

    env_id: str
    env_kwargs: dict[str, Any]
    num_games: int
    slots: int
    entries: tuple[Entry, ...]
    action_shape: tuple[int, ...]
    action_dtype: str

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Plan":
        """Returns the plan that `to_json` described."""
        entries = tuple(Entry(**(entry | {"shape": tuple(entry["shape"])})) for entry in data["entries"])
        return cls(**(data | {"entries": entries, "action_shape": tuple(data["action_shape"])}))

    def fields(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Returns shape and type of every array of the block, in order."""
        games = self.num_games
        fields = {
            "actions": ((games, *self.action_shape), np.dtype(self.action_dtype)),
            "rewards": ((games, 1), np.dtype(np.float32)),
            "terminated": ((games,), np.dtype(np.bool_)),
            "truncated": ((games,), np.dtype(np.bool_)),
            "resets": ((games,), np.dtype(np.bool_)),
            "next_seeds": ((games,), np.dtype(np.int64)),
        }
        for entry in self.entries:
            for part in (*map(str, range(self.slots)), "final"):
                fields[f"{part}/{entry.name}"] = ((games, 1, *entry.shape), np.dtype(entry.dtype))
        return fields


class Block:
    """The batch's memory as arrays with the games first."""

    def __init__(self, plan: Plan, views: Mapping[str, NDArray[Any]]) -> None:
        """Takes arrays of the shapes and types of `plan.fields()`, which may be shared with other processes."""
        self.actions, self.rewards = views["actions"], views["rewards"]
        self.terminated, self.truncated = views["terminated"], views["truncated"]
        self.resets, self.next_seeds = views["resets"], views["next_seeds"]
        names = [entry.name for entry in plan.entries]
        self.slots = [{name: views[f"{slot}/{name}"] for name in names} for slot in range(plan.slots)]
        self.final = {name: views[f"final/{name}"] for name in names}


class Games:
    """Games `first ... last - 1` of a batch, played one after another.

    This is the hot path of small environments: no dict, no tensor and no allocation a game.
    """

    def __init__(self, plan: Plan, block: Block, first: int, last: int) -> None:
        self.current = first  # the game that is being played, for error messages
        self.envs: list[gym.Env[Any, Any]] = []
        for game in range(first, last):
            self.current = game
            # The checker only warns, and costs more than a small environment's step.
            self.envs.append(gym.make(plan.env_id, disable_env_checker=True, **plan.env_kwargs))
        self._first = first
        self._steps = [env.step for env in self.envs]
        self._entries = plan.entries
        self._plain = len(plan.entries) == 1 and plan.entries[0].key is None and plan.entries[0].one_hot_start is None
        part = slice(first, last)
        self._actions, self._resets, self._seeds = block.actions[part], block.resets[part], block.next_seeds[part]
        self._rewards, self._terminated = block.rewards[part, 0], block.terminated[part]
        self._truncated = block.truncated[part]
        self._seen = [[slot[entry.name][part, 0] for entry in plan.entries] for slot in block.slots]
        self._final = [block.final[entry.name][part, 0] for entry in plan.entries]
        self._space = self.envs[0].action_space

    def reset(self, slot: int) -> None:
        """Starts the games that are marked, each with its next seed, and writes what they see into a slot."""
        for index in np.flatnonzero(self._resets).tolist():
            self.current = self._first + index
            self._write(self._seen[slot], index, self._start(index))

    def step(self, slot: int) -> list[int]:
        """Plays the block's actions; games that end start anew with their next seed.

        Returns:
            The games that ended, counted from 0 in this slice.
        """
        ended: list[int] = []
        seen, plain, rewards = self._seen[slot], self._plain, self._rewards
        target = seen[0]
        self._terminated.fill(False)
        self._truncated.fill(False)
        for index, (step, action) in enumerate(zip(self._steps, self._decoded(), strict=True)):
            self.current = self._first + index
            observation, rewards[index], terminated, truncated, _ = step(action)
            if terminated or truncated:
                ended.append(index)
                self._terminated[index] = terminated
                self._truncated[index] = not terminated  # ended by its own rules counts, if both are said
                self._write(self._final, index, observation)
                observation = self._start(index)
            if plain:
                target[index] = observation
            else:
                self._write(seen, index, observation)
        return ended

    def close(self) -> None:
        """Closes all games."""
        for env in self.envs:
            env.close()

    def _start(self, index: int) -> Any:  # noqa: ANN401 - an observation of any kind
        observation, _ = self.envs[index].reset(seed=int(self._seeds[index]))
        return observation

    def _write(self, targets: list[NDArray[Any]], index: int, observation: Any) -> None:  # noqa: ANN401
        for entry, target in zip(self._entries, targets, strict=True):
            value = observation if entry.key is None else observation[entry.key]
            if entry.one_hot_start is None:
                target[index] = value
            else:
                target[index] = 0
                target[index, int(value) - entry.one_hot_start] = 1

    def _decoded(self) -> Iterable[Any]:
        """Returns each game's action in the form that its environment expects, safe to keep."""
        space = self._space
        if isinstance(space, spaces.Discrete):
            # Numbers of numpy's own type: many environments ask `Discrete.contains`, which is slower for an int.
            return list(self._actions if space.start == 0 else self._actions + space.start)
        if isinstance(space, spaces.MultiDiscrete):
            return list(self._actions.astype(space.dtype) + space.start)
        if isinstance(space, spaces.Box):
            return list(np.clip(self._actions, space.low, space.high).astype(space.dtype, copy=False))
        return list(self._actions.astype(space.dtype))


class HostedGames:
    """Games of a worker process; see `ludus.envs.worker_program.Host`."""

    def __init__(self, games: Games) -> None:
        self._games = games

    @property
    def current(self) -> int:
        """The game that is being played."""
        return self._games.current

    def answer(self, code: int, slot: int, _payload: bytes) -> bytes:
        """Starts or steps games."""
        if code == Ask.RESET:
            self._games.reset(slot)
        else:
            self._games.step(slot)
        return b""


def host(plan: dict[str, Any], arrays: Mapping[str, NDArray[Any]], first: int, last: int) -> HostedGames:
    """Makes games `first ... last - 1` of a plan."""
    whole = Plan.from_json(plan)
    return HostedGames(Games(whole, Block(whole, arrays), first, last))
