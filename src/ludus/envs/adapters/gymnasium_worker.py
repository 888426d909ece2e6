"""Steps a slice of Gymnasium games: in our own process, or as the program that a worker process runs.

This file imports nothing of the package and is started by its path, so that a worker needs no torch: it is small and
up in a fraction of a second. The parent and its workers share one block of memory for observations, actions, rewards
and flags; over a socket go only short messages: a header (kind, slot, size) and, rarely, JSON.
"""

import contextlib
import faulthandler
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

HEADER = struct.Struct("<BBI")
MAX_MESSAGE_BYTES = 1 << 24
_ALIGNMENT_BYTES = 64
_PARENT_POLL_S = 0.5


class Kind(IntEnum):
    """Kinds of messages."""

    PLAN = 1  # parent: what to host, as JSON
    RESET = 2  # parent: start the games that are marked in `resets`
    STEP = 3  # parent: play the actions
    CLOSE = 4  # parent: end
    DONE = 5  # worker: the last request is done
    ERROR = 6  # worker: it raised; the game and the traceback as JSON


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

    @property
    def block_bytes(self) -> int:
        """Size of the block."""
        return sum(_padded_bytes(shape, dtype) for shape, dtype in self.fields().values())


def _padded_bytes(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> int:
    return -(-int(np.prod(shape)) * dtype.itemsize // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


class Block:
    """The batch's memory as arrays with the games first."""

    def __init__(self, plan: Plan, memory: NDArray[np.uint8]) -> None:
        """Takes `memory`, `(plan.block_bytes,)`, which may be shared with other processes."""
        views: dict[str, NDArray[Any]] = {}
        offset = 0
        for name, (shape, dtype) in plan.fields().items():
            size = int(np.prod(shape)) * dtype.itemsize
            views[name] = memory[offset : offset + size].view(dtype).reshape(shape)
            offset += _padded_bytes(shape, dtype)
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


def receive(connection: socket.socket) -> tuple[Kind, int, bytes]:
    """Reads one message: kind, slot and payload; EOFError if the other side is gone."""
    kind, slot, size = HEADER.unpack(_receive_bytes(connection, HEADER.size))
    if size > MAX_MESSAGE_BYTES:
        raise EOFError(f"a message of {size} bytes is longer than {MAX_MESSAGE_BYTES}")
    return Kind(kind), slot, _receive_bytes(connection, size) if size else b""


def _receive_bytes(connection: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            raise EOFError("the other side has closed the connection")
        parts += part
    return parts


def send(connection: socket.socket, kind: Kind, slot: int = 0, payload: bytes = b"") -> None:
    """Writes one message."""
    connection.sendall(HEADER.pack(kind, slot, len(payload)) + payload)


def _serve(connection: socket.socket, memory_file: int) -> None:
    """Answers the parent's messages until it closes the connection."""
    games: Games | None = None
    try:
        while True:
            kind, slot, payload = receive(connection)
            if kind is Kind.CLOSE:
                return
            if kind is Kind.PLAN:
                data = json.loads(payload)
                sys.path[:] = data["path"]
                plan = Plan.from_json(data["plan"])
                memory = np.frombuffer(mmap.mmap(memory_file, plan.block_bytes), np.uint8)
                games = Games(plan, Block(plan, memory), data["first"], data["last"])
            elif games is not None and kind is Kind.RESET:
                games.reset(slot)
            elif games is not None:
                games.step(slot)
            send(connection, Kind.DONE)
    except EOFError:
        return
    except Exception:  # whatever an environment raises is reported, then the parent starts another worker
        report = {"game": games.current if games is not None else None, "traceback": traceback.format_exc()}
        with contextlib.suppress(OSError):  # a parent that broke off a step is not there to be told
            send(connection, Kind.ERROR, payload=json.dumps(report).encode())


def _leave_with_parent(parent: int) -> None:
    """Ends this process when the parent is gone, also in the middle of a step that never returns."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_S)
    os._exit(1)


def main(arguments: list[str]) -> None:
    """Runs a worker; the arguments are file descriptors (socket, memory, crash report) and the parent's id."""
    connection_file, memory_file, report_file, parent = map(int, arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    faulthandler.enable(file=report_file)
    faulthandler.register(signal.SIGUSR1, file=report_file, all_threads=True)
    threading.Thread(target=_leave_with_parent, args=(parent,), daemon=True).start()
    with socket.socket(fileno=connection_file) as connection:
        _serve(connection, memory_file)
    # Not sys.exit: an environment's own threads or exit handlers must not keep a worker alive.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
