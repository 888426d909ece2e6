"""Capture what an environment of kernels does as a program: its memory, and the launches of each operation.

A `KernelEnv` with one game on the CPU holds prepared launches whose arguments are packed already: arrays, structs by
value and numbers. Capturing these describes the game completely, so that any world of kernels can be built for another
machine (see `ludus.share.wasm`) without a second description of it.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import warp as wp
from gymnasium import spaces
from torch import Tensor
from warp.types import type_size_in_bytes

from ludus.core.errors import LudusError, UnsupportedError
from ludus.core.files import JSON, temporary_folder
from ludus.core.random import stream_hash
from ludus.envs.base import BatchedEnv, EnvSpec, action_dtypes
from ludus.envs.kernel_env import KernelBots, KernelEnv
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import Prepared, named_arguments
from ludus.envs.world import World, find_world, registered_worlds, resolve

SEED = "seed"  # name of the tensor of the state that holds the seed
# Two seeds whose hashes show which words of the structs depend on the seed, and that no others do.
_PROBES = (0x1B873593CC9E2D51, 0x2127599BF4325C37)
_GAMES_ON = "cpu"


@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a struct in an array: a number, or a vector of `count` numbers."""

    name: str
    dtype: str
    word: int  # place of its first 32-bit word in the struct
    count: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that launches share."""

    name: str
    data: bytes  # what it holds before a game begins
    dtype: str  # of the numbers in it, as NumPy calls it
    shape: tuple[int, ...]
    fields: tuple[StructField, ...] = ()  # of its last axis, where that is a struct
    is_reset: bool = False  # whether a new game begins with `data` again


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array in a buffer."""

    buffer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes


@dataclass(frozen=True, slots=True)
class StructArgument:
    """A struct without arrays, passed by value: all launches share the one copy in a buffer."""

    buffer: int


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """A number, as it lies in memory."""

    data: bytes


@dataclass(frozen=True, slots=True)
class RecordArgument:
    """A struct with arrays among its fields."""

    fields: tuple[tuple[str, "Argument"], ...]


Argument: TypeAlias = ArrayArgument | StructArgument | NumberArgument | RecordArgument


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with its arguments."""

    module: str  # name of the Warp module
    kernel: str  # its name in the generated C++
    threads: int
    arguments: tuple[tuple[str, Argument], ...]


@dataclass(frozen=True, slots=True)
class ActionForm:
    """Actions of one seat, number by number."""

    kind: str  # discrete, multi_discrete, multi_binary or box
    dtype: str  # as kernels read them
    counts: tuple[int, ...]  # alternatives of each number; 0 for a continuous one
    low: tuple[float, ...] = ()  # bounds of continuous ones
    high: tuple[float, ...] = ()

    @classmethod
    def of(cls, space: spaces.Space[Any]) -> "ActionForm":
        """Describe an action space."""
        dtype = str(action_dtypes(space)[0]).removeprefix("torch.")
        if isinstance(space, spaces.Discrete):
            return cls("discrete", dtype, (int(space.n),))
        if isinstance(space, spaces.MultiDiscrete):
            return cls("multi_discrete", dtype, tuple(map(int, space.nvec)))
        if isinstance(space, spaces.MultiBinary):
            return cls("multi_binary", dtype, (2,) * int(space.shape[0]))
        assert isinstance(space, spaces.Box)  # noqa: S101 - `action_dtypes` knows no other; for the type checker
        return cls("box", dtype, (0,) * space.shape[0], tuple(space.low.tolist()), tuple(space.high.tolist()))


@dataclass(frozen=True, slots=True)
class Program:
    """A game: its memory, the launches of its operations, and what these mean."""

    world: str
    rate_hz: float
    seats: int
    action: ActionForm
    sources: Mapping[str, str]  # generated C++ by Warp module
    buffers: tuple[Buffer, ...]
    operations: Mapping[str, tuple[Launch, ...]]  # step, restart, observe and act_bots
    state: tuple[str, ...]  # buffers that are the state, in order
    observations: tuple[str, ...]  # entries of the observation, in order
    events: tuple[str, ...]  # columns of the buffer `events`
    state_metrics: tuple[str, ...]  # columns of the buffer `state_metrics`
    bots: tuple[str, ...]  # scripted players, by their number in the buffer `assignment`
    seed_words: tuple[tuple[int, int], ...]  # buffer and offset in bytes of each copy of the hashed seed
    settings: Mapping[str, Any] = field(default_factory=dict)  # with which the environment was made

    def index(self, name: str) -> int:
        """Return the number of the buffer of this name."""
        return next(number for number, buffer in enumerate(self.buffers) if buffer.name == name)

    def describe(self) -> dict[str, JSON]:
        """Return what `assets/engine.js` has to know."""
        return {
            "world": self.world,
            "rateHz": self.rate_hz,
            "seats": self.seats,
            "action": {
                "kind": self.action.kind,
                "counts": list(self.action.counts),
                "low": list(self.action.low),
                "high": list(self.action.high),
            },
            "buffers": [
                {
                    "name": buffer.name,
                    "dtype": buffer.dtype,
                    "shape": list(buffer.shape),
                    "bytes": len(buffer.data),
                    "fields": [[each.name, each.dtype, each.word, each.count] for each in buffer.fields],
                }
                for buffer in self.buffers
            ],
            "state": list(self.state),
            "observations": list(self.observations),
            "events": list(self.events),
            "stateMetrics": list(self.state_metrics),
            "bots": list(self.bots),
            "settings": dict(self.settings),
        }


def capture_world(world: str, settings: Mapping[str, Any] | None = None, bots: Sequence[str] | None = None) -> Program:
    """Return one game of a world as a program, with the settings that the world declares for web pages.

    Args:
        world: A world, such as `brawl` or `brawl-v1`.
        settings: Settings of the world, such as those that an agent was trained with; the world's own replace them.
        bots: Names of the scripted players that can take a seat, such as `aggressive:delay=8`; the world's if None.

    Raises:
        UnsupportedError: The world cannot be played in a browser.
        UnknownNameError: There is no such bot.
    """
    record = find_world(world)
    chosen = page_settings(record, settings or {})
    env = make_env(record.id, 1, _GAMES_ON, config=chosen)
    try:
        return replace(capture(env, bots), settings=chosen)
    finally:
        env.close()


def page_settings(world: World, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a world's games in a page, made of those that an agent was trained with.

    Raises:
        UnsupportedError: The world cannot be played in a browser.
    """
    if world.browser is None:
        valid = ", ".join(each.name for each in registered_worlds() if each.browser is not None)
        raise UnsupportedError(f"{world.id} cannot be played in a browser; valid: {valid}")
    single = {name: value for name, value in settings.items() if name != "matches_per_episode"}
    return {**single, **resolve(world.browser).settings}


def capture(env: BatchedEnv, bots: Sequence[str] | None = None) -> Program:
    """Return what an environment does as a program, and restart its games.

    Args:
        env: The environment, with one game on the CPU.
        bots: Names of the scripted players that can take a seat; those of the world if None.

    Raises:
        UnsupportedError: It is not an environment of kernels with one game on the CPU, or the seed shows in other ways
            than as its hash.
    """
    if not isinstance(env, KernelEnv) or env.num_envs != 1 or env.device.type != _GAMES_ON:
        raise UnsupportedError(
            f"{env.spec.id} cannot be captured: it takes one game of a world of kernels on the CPU, got "
            f"{env.num_envs} games of {type(env).__name__} on {env.device}"
        )
    names = (*env.spec.bots, *_playable_families(env)) if bots is None else tuple(bots)
    roster = env.bots(names) if names else None
    if roster is not None and not isinstance(roster, KernelBots):
        raise UnsupportedError(f"{env.spec.id} cannot be captured: not all of its bots are kernels: {', '.join(names)}")
    seed = env.seed
    env.reset(seed=_PROBES[1])
    other = _Capture(env, roster).buffers
    env.reset(seed=_PROBES[0])
    env.forget()
    taken = _Capture(env, roster)
    env.reset(seed=seed)
    return Program(
        world=env.spec.id,
        rate_hz=env.spec.rate_hz,
        seats=env.spec.seats,
        action=ActionForm.of(env.spec.action_space),
        sources=taken.sources,
        buffers=tuple(taken.buffers),
        operations=taken.operations,
        state=tuple(env.state_tensors()),
        observations=tuple(env.spec.observation_space),
        events=tuple(env.spec.events),
        state_metrics=tuple(env.spec.state_metrics),
        bots=names,
        seed_words=tuple(_seed_words(env.spec, taken.buffers, other)),
    )


def _playable_families(env: KernelEnv) -> Iterator[str]:
    """Yield the families of bots of which one can be asked for without saying more."""
    for family in env.spec.bot_families:
        try:
            roster = env.bots([family])
        except LudusError:
            continue
        if isinstance(roster, KernelBots):
            yield family


def _seed_words(spec: EnvSpec, buffers: Sequence[Buffer], other: Sequence[Buffer]) -> Iterator[tuple[int, int]]:
    """Yield where structs hold the hash of the seed; check that nothing else that lasts depends on it."""
    expected = tuple(stream_hash(seed) for seed in _PROBES)
    for number, buffer in enumerate(buffers):
        if buffer.is_reset:
            continue
        pair = (np.frombuffer(each, np.uint8) for each in (buffer.data, other[number].data))
        for byte in sorted({int(place) // 4 * 4 for place in np.flatnonzero(np.not_equal(*pair))}):
            found = tuple(int.from_bytes(each.data[byte : byte + 4], "little") for each in (buffer, other[number]))
            if found != expected:
                raise UnsupportedError(
                    f"{spec.id} cannot be captured: byte {byte} of {buffer.name} depends on the seed, but is not its "
                    "hash; let kernels read `stream_hash(seed)` alone"
                )
            yield number, byte


class _Capture:
    """Collects buffers and launches."""

    def __init__(self, env: KernelEnv, roster: KernelBots | None) -> None:
        self.buffers: list[Buffer] = []
        self.sources: dict[str, str] = {}
        self._numbers: dict[int, int] = {}  # buffer by address
        self._structs: dict[tuple[str, bytes], int] = {}  # buffer by name and content of a struct
        for name, tensor in env.state_tensors().items():
            self._add_tensor(name, tensor, is_reset=True)
        for name, tensor in env.working_tensors().items():
            self._add_tensor(name, tensor.fill_(name == "chosen"), is_reset=True)
        prepared = dict(env.launches())
        if roster is not None:
            prepared["act_bots"] = roster.launch()
            for name, tensor in roster.tensors().items():
                if name == "actions":  # those of the environment: bots write where the step reads
                    self._numbers[tensor.data_ptr()] = self._numbers[env.working_tensors()["actions"].data_ptr()]
                else:
                    self._add_tensor(name, tensor.fill_(-1), is_reset=False)
        self.operations = {name: tuple(self._launches(each)) for name, each in prepared.items()}

    def _add_tensor(self, name: str, tensor: Tensor, *, is_reset: bool) -> None:
        if not tensor.is_contiguous() or tensor.device.type != _GAMES_ON:
            raise UnsupportedError(f"tensor {name} cannot be captured: it is not contiguous memory of the CPU")
        data = tensor.numpy().tobytes()
        dtype = str(tensor.dtype).removeprefix("torch.")
        buffer = Buffer(name, data, dtype, tuple(tensor.shape), is_reset=is_reset)
        self._numbers[tensor.data_ptr()] = len(self.buffers)
        self.buffers.append(buffer)

    def _launches(self, prepared: Prepared) -> Iterator[Launch]:
        for command in prepared.commands:
            kernel = command.kernel
            module = kernel.module
            if module.name not in self.sources:
                self.sources[module.name] = generated_source(module)
            types = {argument.label: argument.type for argument in kernel.adj.args}
            arguments = tuple(
                (name, self._argument(name, types[name], value)) for name, value in named_arguments(command)
            )
            yield Launch(module.name, kernel.get_mangled_name(), int(command.bounds.size), arguments)

    def _argument(self, name: str, kind: Any, value: Any) -> Argument:  # noqa: ANN401 - Warp's types
        if hasattr(value, "ndim") and hasattr(value, "strides"):
            return self._array(name, kind.dtype, value)
        if hasattr(kind, "vars"):
            return self._struct(kind, value)
        if isinstance(value, ctypes._SimpleCData):  # noqa: SLF001 - which ctypes documents
            return NumberArgument(bytes(value))
        raise UnsupportedError(f"argument {name} of a kernel cannot be captured: {type(value).__name__}")

    def _struct(self, kind: Any, value: Any) -> Argument:  # noqa: ANN401 - Warp's types
        fields = {name: variable.type for name, variable in kind.vars.items()}
        if any(hasattr(getattr(value, name), "strides") for name in fields):
            return RecordArgument(
                tuple((name, self._argument(name, fields[name], getattr(value, name))) for name in fields)
            )
        content = bytes(value)
        key = (kind.key.rpartition(".")[2].lower(), content)
        if key not in self._structs:
            self._structs[key] = len(self.buffers)
            shape = (len(content) // 4,)
            buffer = Buffer(self._free_name(key[0]), content, "int32", shape, _struct_fields(kind))
            self.buffers.append(buffer)
        return StructArgument(self._structs[key])

    def _array(self, name: str, dtype: Any, value: Any) -> ArrayArgument:  # noqa: ANN401 - Warp's types
        shape, strides = tuple(value.shape[: value.ndim]), tuple(value.strides[: value.ndim])
        size = type_size_in_bytes(dtype)
        length = size + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))
        number = self._numbers.get(value.data)
        if number is None:
            number = self._numbers[value.data] = len(self.buffers)
            scalar, inner = _numbers_of(dtype)
            data = ctypes.string_at(value.data, length)
            self.buffers.append(Buffer(self._free_name(name), data, scalar, (*shape, *inner)))
        buffer = self.buffers[number]
        if len(buffer.data) < length:
            raise UnsupportedError(f"array {name} cannot be captured: it reaches beyond tensor {buffer.name}")
        if hasattr(dtype, "vars") and not buffer.fields:
            self.buffers[number] = replace(buffer, fields=_struct_fields(dtype))
        return ArrayArgument(number, shape, strides)

    def _free_name(self, name: str) -> str:
        taken, number, free = {buffer.name for buffer in self.buffers}, 2, name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free


def _numbers_of(dtype: Any) -> tuple[str, tuple[int, ...]]:  # noqa: ANN401 - Warp's types
    """Return the type of the numbers in an element of an array, and the shape of an element."""
    if hasattr(dtype, "vars"):
        return "int32", (type_size_in_bytes(dtype) // 4,)
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    return scalar.__name__, tuple(getattr(dtype, "_shape_", ()))


def _struct_fields(struct: Any) -> tuple[StructField, ...]:  # noqa: ANN401 - Warp's types
    fields, word = [], 0
    for name, variable in struct.vars.items():
        words = type_size_in_bytes(variable.type) // 4
        fields.append(StructField(name, _numbers_of(variable.type)[0], word, words))
        word += words
    return tuple(fields)


def generated_source(module: Any) -> str:  # noqa: ANN401 - a Warp module has no static type
    """Return the C++ that Warp generated for a module on the CPU: from its cache, else by compiling it again."""
    identifier = str(module.get_module_identifier(1))
    cached = Path(str(wp.config.kernel_cache_dir)) / identifier / f"{identifier}.cpp"
    if cached.is_file():
        return cached.read_text(encoding="utf-8")
    with temporary_folder("ludus-share-") as folder:
        compile_module: Any = wp.compile_aot_module
        compile_module(module, device=_GAMES_ON, module_dir=folder)
        return next(Path(folder).rglob("*.cpp")).read_text(encoding="utf-8")
