"""What simulators written in Warp share: quiet set-up, struct tensors and threaded launches."""

import ctypes
import logging
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import numpy as np
import torch
import warp as wp
from torch import Tensor
from warp.types import type_size_in_bytes

from ludus.core.errors import SnapshotError, UnsupportedError
from ludus.core.files import temporary_file, wrap_disk_errors
from ludus.core.state import Range, check_range
from ludus.envs.settings import host_threads

logger = logging.getLogger(__name__)

# Loading compiled kernels takes less; a longer wait is a compilation, and people want to know what they wait for.
COMPILE_NOTE_AFTER_S = 0.8
LIBRARY_NOTE_AFTER_S = 4.0  # the same for a library with a hundred modules
BLOCK = 256  # threads of a block on a CUDA device, unless a launch says otherwise

wp.config.log_level = wp.LOG_ERROR  # the command line says what the user needs to know
wp.config.enable_backward = False  # nothing is differentiated; compiles a third faster

_CACHE = "Warp's cache of compiled kernels, which WARP_CACHE_PATH can put into another folder,"


def _start_quietly() -> None:
    """Start Warp without its warning that there is no CUDA driver: on a machine without a GPU that is no news."""
    saved = os.dup(2)
    with temporary_file() as said:
        os.dup2(said.fileno(), 2)
        try:
            start: Callable[[], None] = wp.init  # Warp leaves it untyped
            with wrap_disk_errors(_CACHE):
                start()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        said.seek(0)
        other = [line for line in said.readlines() if b"CUDA driver" not in line]
    sys.stderr.write(b"".join(other).decode(errors="replace"))


_start_quietly()

# Kernels use +, -, *, / alone and no fused multiply-add, so that every CPU and every GPU computes the same bits.
# The third level of optimisation keeps them too; it makes a step 3 % faster on a CPU.
EXACT = {"fuse_fp": False, "enable_backward": False, "optimization_level": 3}


def copy_quietly(into: Tensor, source: Tensor) -> None:
    """Copy a tensor without waking torch's own threads.

    On a CPU those wait for more work by spinning, on the very cores that the simulation threads are about to need:
    with `Tensor.copy_` two threads ran 4,096 games 1.2 times as fast as one, without it 1.5 times.
    """
    if into.device.type == "cpu":
        np.copyto(into.numpy(), source.numpy(), casting="unsafe")
    else:
        into.copy_(source)


def struct_fields(struct: Any) -> tuple[str, ...]:  # noqa: ANN401 - a Warp struct has no static type
    """Return the names of the fields of a Warp struct."""
    return tuple(struct.vars)


def struct_words(struct: Any) -> int:  # noqa: ANN401 - a Warp struct has no static type
    """Number of 32-bit words of a Warp struct whose fields are numbers, vectors or quaternions of 32 bits each."""
    return type_size_in_bytes(struct) // 4


def struct_array(tensor: Tensor, struct: Any) -> Any:  # noqa: ANN401 - Warp arrays of structs have no static type
    """View a tensor `(..., words)` of 32-bit numbers as a Warp array `(...)` of structs; both share the memory."""
    words = struct_words(struct)
    if tensor.element_size() != 4 or tensor.shape[-1] != words or not tensor.is_contiguous():
        raise TypeError(f"expected a contiguous 32-bit tensor (..., {words}), got {tensor.dtype} {tuple(tensor.shape)}")
    return wp.array(
        ptr=tensor.data_ptr(), dtype=struct, shape=tuple(tensor.shape[:-1]), device=str(tensor.device), copy=False
    )


def struct_views(tensor: Tensor, struct: Any) -> dict[str, Tensor]:  # noqa: ANN401 - a Warp struct has no static type
    """Return a view of each field of an int32 struct tensor `(..., words)`: a number `(...)`, a vector `(..., n)`."""
    floats, views, column = tensor.view(torch.float32), {}, 0
    for name, field in struct.vars.items():
        words = type_size_in_bytes(field.type) // 4
        source = floats if getattr(field.type, "_wp_scalar_type_", field.type) is wp.float32 else tensor
        is_vector = hasattr(field.type, "_wp_scalar_type_")
        views[name] = source[..., column : column + words] if is_vector else source[..., column]
        column += words
    return views


def check_struct(tensor: Tensor, struct: Any, ranges: Mapping[str, Range], what: str) -> None:  # noqa: ANN401
    """Raise SnapshotError unless every field of the structs in a tensor `(..., words)` int32 lies within its range.

    All fields have a range: a kernel checks nothing. `what` names the struct in the error, such as `brawl: player`.
    """
    for name, values in struct_views(tensor.contiguous(), struct).items():
        check_state_range(values, *ranges[name], f"{what} {name}")


def check_state_range(values: Tensor, low: float, high: float, what: str) -> None:
    """Raise SnapshotError unless all values of a snapshot lie within a range; `what` says of what they are."""
    advice = "restore it in an environment with the settings it was taken with"
    check_range(values, low, high, f"snapshot of {what}", advice=advice, error=SnapshotError)


def fill_struct(instance: Any, values: Mapping[str, Any]) -> None:  # noqa: ANN401 - a Warp struct has no static type
    """Set fields of a Warp struct that is passed to kernels by value."""
    for name, value in values.items():
        setattr(instance, name, value)


def pack_struct(struct: Any, rows: Sequence[dict[str, float]]) -> Tensor:  # noqa: ANN401
    """Pack rows of field values into an int32 tensor `(rows, words)` with the layout of `struct`."""
    # By column and in NumPy: one assignment per element costs 7 us in torch, 25 ms for the moves of brawl.
    packed = np.zeros((len(rows), struct_words(struct)), np.int32)
    floats = packed.view(np.float32)
    for column, (name, field) in enumerate(struct.vars.items()):
        (floats if field.type is wp.float32 else packed)[:, column] = [row[name] for row in rows]
    return torch.from_numpy(packed)


def load_kernels(
    modules: ModuleType | Sequence[ModuleType],
    device: torch.device,
    *,
    blocks: Mapping[ModuleType, Sequence[int]] | None = None,
    soon: Sequence[ModuleType] = (),
) -> None:
    """Load the kernels of Python modules; log a message if they must be compiled first, once per machine.

    Compiling takes seconds per module, outside of the interpreter lock, so that threads compile modules side by side.
    Each of them compiles Warp's headers for itself, 3 s on one core, so a machine with few cores does it one by one.

    Args:
        modules: The modules.
        device: Where their kernels will run.
        blocks: For modules whose kernels are launched in blocks of other sizes than `BLOCK` on a CUDA device, all
            sizes. Warp compiles a module once for each, and otherwise does so at the first launch, one after the other.
        soon: Modules that will be loaded next. If anything has to be compiled, and cores are left, they are compiled at
            the same time.
    """
    wanted = [modules] if isinstance(modules, ModuleType) else list(modules)
    sizes = (blocks or {}) if device.type == "cuda" else {}
    jobs = [(module, block) for module in wanted for block in sizes.get(module, (BLOCK,))]
    _wait_for_background([module.__name__ for module in wanted])
    note = threading.Timer(COMPILE_NOTE_AFTER_S, _begin_compiling, ([module for module, _ in jobs], device, soon))
    note.start()
    try:
        with wrap_disk_errors(_CACHE):
            if min(len(jobs), _compilers()) == 1:
                for job in jobs:
                    _load(*job, device)
            else:
                with ThreadPoolExecutor(min(len(jobs), _compilers()), "ludus-kernels") as pool:
                    for loaded in [pool.submit(_load, *job, device) for job in jobs]:
                        loaded.result()
    finally:
        note.cancel()


@contextmanager
def announce_compilation(what: str, device: torch.device, duration: str) -> Iterator[None]:
    """Log that the kernels of a library are being compiled if the work within takes longer than loading them."""
    message = "Compiling the kernels of %s for %s; this happens once on a machine and takes %s ..."
    note = threading.Timer(LIBRARY_NOTE_AFTER_S, logger.warning, (message, what, device, duration))
    note.start()
    try:
        with wrap_disk_errors(_CACHE):
            yield
    finally:
        note.cancel()


def load_launched(work: Callable[[], None], device: torch.device) -> None:
    """Load the kernels that `work` launches by `wp.launch`, several at the same time, without running them.

    Libraries make kernels for the sizes that they are called with, so only calling them tells which there are; Warp
    would then compile them one after the other. `work` must not wait for what its kernels compute.
    """
    wanted: dict[tuple[Any, int], None] = {}

    def collect(kernel: Any, dim: Any, *_: Any, block_dim: int | None = None, **__: Any) -> None:  # noqa: ANN401
        if np.prod(dim) > 0 and not kernel.is_generic:
            wanted[kernel.module, (block_dim or BLOCK) if device.type == "cuda" else 1] = None

    names = ("launch", "launch_tiled")
    saved = [getattr(wp, name) for name in names]
    try:
        for name in names:
            setattr(wp, name, collect)
        work()
    finally:
        for name, launch in zip(names, saved, strict=True):
            setattr(wp, name, launch)
    place = wp.get_device(str(device))
    with wrap_disk_errors(_CACHE), ThreadPoolExecutor(_compilers(), "ludus-kernels") as pool:
        for loaded in [pool.submit(module.load, place, block) for module, block in wanted]:
            loaded.result()


def _compilers() -> int:
    """Return the number of threads that compile at the same time."""
    return max(host_threads(None) // 2, 1)


def _load(module: ModuleType, block: int, device: torch.device) -> None:
    wp.load_module(module, device=str(device), block_dim=block if device.type == "cuda" else None)


_background: dict[str, threading.Thread] = {}  # by name of the module


def _begin_compiling(modules: Sequence[ModuleType], device: torch.device, soon: Sequence[ModuleType]) -> None:
    """Say that modules are being compiled, and compile those that come next in the background."""
    names = ", ".join(dict.fromkeys(repr(module.__name__.rpartition(".")[2]) for module in modules))
    logger.warning(
        "Compiling the kernels %s for %s; this happens once on a machine and takes some seconds ...", names, device
    )
    for module in soon if _compilers() > len(modules) else ():

        def load(module: ModuleType = module) -> None:
            with suppress(Exception):  # whoever needs the module loads it again, and gets the error
                _load(module, BLOCK, device)

        if module.__name__ not in _background:
            # A daemon: a run that ends before does not wait for it.
            _background[module.__name__] = threading.Thread(target=load, name="ludus-kernels", daemon=True)
            _background[module.__name__].start()


def _wait_for_background(names: Iterable[str]) -> None:
    for name in names:
        thread = _background.pop(name, None)
        if thread is not None:
            thread.join()


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """A kernel whose threads work together in tiles of `block` elements."""

    kernel: Any  # the kernel; `wp.tid()` gives it tile and lane
    inputs: Sequence[Any]  # its arguments
    elements: int  # how many elements there are; the last tile may be partly empty
    block: int  # threads in a tile

    def record(self, device: torch.device) -> Any:  # noqa: ANN401 - a Warp launch has no static type
        """Record the launch."""
        return _launch_tiled(
            self.kernel,
            dim=-(-self.elements // self.block),
            inputs=list(self.inputs),
            device=str(device),
            block_dim=self.block,
            record_cmd=True,
        )


@dataclass(frozen=True, slots=True)
class SizedKernel:
    """A kernel over any number of elements, such as the cars of all games."""

    kernel: Any  # the kernel; its last argument is the index of its first element
    inputs: Sequence[Any]  # its other arguments
    elements: int  # how many elements there are
    block: int = BLOCK  # threads that a multiprocessor starts and ends together

    def record(self, device: torch.device) -> Any:  # noqa: ANN401 - a Warp launch has no static type
        """Record the launch."""
        inputs = [*self.inputs, 0]
        return wp.launch(
            self.kernel, self.elements, inputs=inputs, device=str(device), block_dim=self.block, record_cmd=True
        )


# Warp's stubs leave these two untyped.
stream_from_torch: Callable[[torch.cuda.Stream], Any] = wp.stream_from_torch
_launch_tiled: Callable[..., Any] = wp.launch_tiled


class Prepared(ABC):
    """Kernels that are ready to run over all games, made by `Launcher.prepare`; calling it runs them."""

    def __init__(self, commands: Sequence[Any], arguments: Iterable[tuple[str, Any]]) -> None:
        """Note the recorded launches, and where each argument of each of them lies, by name."""
        self.commands = tuple(commands)  # kernels stay loaded as long as their recorded launches live
        self._places: dict[str, list[Any]] = {}
        for name, place in arguments:
            self._places.setdefault(name, []).append(place)
        self._addresses: dict[str, int] = {}

    def point(self, argument: str, tensor: Tensor) -> None:
        """Let an array argument use the memory of another contiguous tensor of the same shape and element size.

        Takes about a microsecond, so that the tensors of a caller need neither a copy nor a launch prepared again.
        """
        address = tensor.data_ptr()
        if self._addresses.get(argument) != address:
            for place in self._places[argument]:
                place.data = address
            self._addresses[argument] = address

    @abstractmethod
    def __call__(self) -> None:
        """Run the kernels; return when the work is done (CPU) or queued on torch's current stream (CUDA)."""


class Launcher:
    """Prepares kernel launches over all games: one launch on a GPU, parts for several host threads on a CPU.

    A CPU launch uses one thread but releases the interpreter lock, so threads over parts of the batch scale.
    Every kernel takes the index of its first game as its last argument.
    """

    # Fewest games that are worth a thread of their own: below, handing the work over costs more than it saves.
    MIN_SLICE = 256

    def __init__(self, device: torch.device, threads: int | None = None) -> None:
        self.device = device
        self.threads = host_threads(threads) if device.type == "cpu" else 1
        self._team = _Team(self.threads - 1)

    def prepare(
        self, games: int, *kernels: tuple[Any, Sequence[Any]] | SizedKernel | TiledKernel, min_slice: int | None = None
    ) -> Prepared:
        """Make kernels ready to run one after the other over all games.

        Args:
            games: How many games there are.
            kernels: Kernels, each with its arguments. Sized kernels are not shared among threads of
                a CPU, tiled kernels are for CUDA devices alone.
            min_slice: In place of `MIN_SLICE`, for kernels that take much more or less time per game than others.
        """

        def record(first: int, last: int) -> list[Any]:
            return [
                launch.record(self.device)
                if isinstance(launch, (SizedKernel, TiledKernel))
                else wp.launch(
                    launch[0], last - first, inputs=[*launch[1], first], device=str(self.device), record_cmd=True
                )
                for launch in kernels
            ]

        if self.device.type == "cuda":
            return _CudaPrepared(self.device, record(0, games))
        alone = self.MIN_SLICE if min_slice is None else min_slice
        is_whole = any(isinstance(launch, SizedKernel) for launch in kernels)
        sharers = 1 if is_whole else max(1, min(self.threads, games // alone))
        bounds = shrinking_parts(games, sharers, max(1, alone // 4))
        return _HostPrepared([record(first, last) for first, last in pairwise(bounds)], self._team, sharers - 1)

    def close(self) -> None:
        """End the threads; may be called twice, and nothing can be run any more on several threads."""
        self._team.end()


def shrinking_parts(games: int, sharers: int, smallest: int) -> list[int]:
    """Return bounds of parts for the next free thread: large at first, small at the end, so that all end together."""
    bounds = [0, games] if sharers == 1 else [0]
    while bounds[-1] < games:
        left = games - bounds[-1]
        bounds.append(bounds[-1] + min(left, max(smallest, left // (2 * sharers))))
    return bounds


class _CudaPrepared(Prepared):
    """Launches on torch's current stream."""

    def __init__(self, device: torch.device, commands: Sequence[Any]) -> None:
        super().__init__(commands, (named for command in commands for named in named_arguments(command)))
        self._device = device

    def __call__(self) -> None:
        stream = stream_from_torch(torch.cuda.current_stream(self._device))
        for command in self.commands:
            command.launch(stream)


class _HostPrepared(Prepared):
    """Launches of parts, by the calling thread and helpers.

    Warp repacks the arguments of a CPU launch every time, which takes longer than to advance ten games; here they
    are packed once.
    """

    def __init__(self, parts: Sequence[Sequence[Any]], team: "_Team", helpers: int) -> None:
        places: list[tuple[str, Any]] = []
        self._parts: list[list[Callable[[], None]]] = []
        for commands in parts:
            launches: list[Callable[[], None]] = []
            for command in commands:
                named = named_arguments(command)
                layout = {"_fields_": [(name, type(value)) for name, value in named]}
                packed = type("Arguments", (ctypes.Structure,), layout)(*(value for _, value in named))
                places += [(name, getattr(packed, name)) for name, _ in named]
                launches.append(partial(command.hooks.forward, ctypes.byref(command.bounds), ctypes.byref(packed)))
            self._parts.append(launches)
        super().__init__([command for commands in parts for command in commands], places)
        self._team, self._helpers = team, helpers

    def __call__(self) -> None:
        if self._helpers:
            self._team.share(self._parts, self._helpers)
        else:
            _run_parts(self._parts)


def named_arguments(command: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - a Warp launch has no static type
    """Return the arguments of a recorded launch as Warp packed them; the first value is the size of the launch."""
    return [
        (argument.label, value) for argument, value in zip(command.kernel.adj.args, command.params[1:], strict=True)
    ]


def _run_parts(parts: Iterable[Sequence[Callable[[], None]]]) -> None:
    for part in parts:
        for launch in part:
            launch()


class _Job:
    """Parts of work that several threads take from one iterator: each free thread takes the next."""

    def __init__(self, parts: Sequence[Sequence[Callable[[], None]]], helpers: int) -> None:
        self.parts, self.places = iter(parts), iter(range(helpers))
        self.replies: SimpleQueue[BaseException | None] = SimpleQueue()


class _Team:
    """Threads that help with a job; two queues cost a tenth of what a thread pool's futures do."""

    def __init__(self, helpers: int) -> None:
        self._inboxes: list[SimpleQueue[_Job | None]] = [SimpleQueue() for _ in range(helpers)]
        self._ended = False
        self._threads = [
            threading.Thread(target=_help, args=(inbox,), name="ludus-sim", daemon=True) for inbox in self._inboxes
        ]
        for thread in self._threads:
            thread.start()

    def share(self, parts: Sequence[Sequence[Callable[[], None]]], helpers: int) -> None:
        """Run all parts together with so many helpers; return when all are done and raise what went wrong."""
        if self._ended:
            raise UnsupportedError("this environment is closed; make a new one")
        job = _Job(parts, helpers)
        for inbox in self._inboxes[:helpers]:
            inbox.put(job)
        try:
            _run_parts(job.parts)
        finally:
            late = sum(1 for _ in job.places)  # their places are gone: no one waits for a thread that was not woken yet
            errors = [job.replies.get() for _ in range(helpers - late)]
        for error in errors:
            if error is not None:
                raise error

    def end(self) -> None:
        """End the threads."""
        self._ended = True
        for inbox, thread in zip(self._inboxes, self._threads, strict=True):
            inbox.put(None)
            thread.join()


def _help(inbox: "SimpleQueue[_Job | None]") -> None:
    while (job := inbox.get()) is not None:
        if next(job.places, None) is None:
            continue
        try:
            _run_parts(job.parts)
        except BaseException as error:
            job.replies.put(error)
        else:
            job.replies.put(None)
