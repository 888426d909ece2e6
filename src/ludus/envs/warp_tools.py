"""What simulators written in Warp share: quiet set-up, struct tensors and threaded launches."""

import logging
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import numpy as np
import torch
import warp as wp
from torch import Tensor

from ludus.core.errors import UnsupportedError

logger = logging.getLogger(__name__)

# Loading compiled kernels takes less; a longer wait is a compilation, and people want to know what they wait for.
COMPILE_NOTE_AFTER_S = 0.8

wp.config.log_level = wp.LOG_ERROR  # the command line says what the user needs to know
wp.config.enable_backward = False  # nothing is differentiated; compiles a third faster


def _start_quietly() -> None:
    """Starts Warp without its warning that there is no CUDA driver: on a machine without a GPU that is no news."""
    saved = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            start: Callable[[], None] = wp.init  # Warp leaves it untyped
            start()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        said.seek(0)
        other = [line for line in said.readlines() if b"CUDA driver" not in line]
    sys.stderr.write(b"".join(other).decode(errors="replace"))


_start_quietly()

# Kernels use +, -, *, / alone and no fused multiply-add, so that every CPU and every GPU computes the same bits.
EXACT = {"fuse_fp": False, "enable_backward": False}


def copy_quietly(into: Tensor, source: Tensor) -> None:
    """Copies a tensor without waking torch's own threads.

    On a CPU those wait for more work by spinning, on the very cores that the simulation threads are about to need:
    with `Tensor.copy_` two threads ran 4,096 games 1.2 times as fast as one, without it 1.5 times.
    """
    if into.device.type == "cpu":
        np.copyto(into.numpy(), source.numpy(), casting="unsafe")
    else:
        into.copy_(source)


def struct_fields(struct: Any) -> tuple[str, ...]:  # noqa: ANN401 - a Warp struct has no static type
    """Names of the fields of a Warp struct."""
    return tuple(struct.vars)


def struct_words(struct: Any) -> int:  # noqa: ANN401 - a Warp struct has no static type
    """Number of 32-bit words of a Warp struct whose fields are all 32 bits wide."""
    return len(struct.vars)


def struct_array(tensor: Tensor, struct: Any) -> Any:  # noqa: ANN401 - Warp arrays of structs have no static type
    """Views an int32 tensor `(..., words)` as a Warp array `(...)` of structs; both share the memory."""
    if tensor.dtype != torch.int32 or tensor.shape[-1] != struct_words(struct) or not tensor.is_contiguous():
        raise TypeError(f"expected a contiguous int32 tensor (..., {struct_words(struct)}), got {tuple(tensor.shape)}")
    return wp.array(
        ptr=tensor.data_ptr(), dtype=struct, shape=tuple(tensor.shape[:-1]), device=str(tensor.device), copy=False
    )


def struct_views(tensor: Tensor, struct: Any) -> dict[str, Tensor]:  # noqa: ANN401 - a Warp struct has no static type
    """Gives each field of an int32 struct tensor `(..., words)` as a view `(...)` of its own type."""
    floats = tensor.view(torch.float32)
    return {
        name: (floats if field.type is wp.float32 else tensor)[..., column]
        for column, (name, field) in enumerate(struct.vars.items())
    }


def fill_struct(instance: Any, values: Mapping[str, float]) -> None:  # noqa: ANN401 - a Warp struct has no static type
    """Sets fields of a Warp struct that is passed to kernels by value."""
    for name, value in values.items():
        setattr(instance, name, value)


def pack_struct(struct: Any, rows: Sequence[dict[str, float]]) -> Tensor:  # noqa: ANN401
    """Packs rows of field values into an int32 tensor `(rows, words)` with the layout of `struct`."""
    packed = torch.zeros((len(rows), struct_words(struct)), dtype=torch.int32)
    floats = packed.view(torch.float32)
    for index, row in enumerate(rows):
        for column, (name, field) in enumerate(struct.vars.items()):
            (floats if field.type is wp.float32 else packed)[index, column] = row[name]
    return packed


def load_kernels(module: ModuleType, device: torch.device) -> None:
    """Loads the kernels of a Python module; says so if they have to be compiled first, which a machine does once."""
    name = module.__name__.rpartition(".")[2]
    note = threading.Timer(
        COMPILE_NOTE_AFTER_S,
        logger.warning,
        ("Compiling the kernels %r for %s; this happens once on a machine and takes some seconds ...", name, device),
    )
    note.start()
    try:
        wp.load_module(module, device=str(device))
    finally:
        note.cancel()


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """A kernel whose threads work together in tiles of `block` elements.

    Attributes:
        kernel: The kernel; `wp.tid()` gives it tile and lane.
        inputs: Its arguments.
        elements: How many elements there are; the last tile may be partly empty.
        block: Threads in a tile.
    """

    kernel: Any
    inputs: Sequence[Any]
    elements: int
    block: int

    def record(self, device: torch.device) -> Any:  # noqa: ANN401 - a Warp launch has no static type
        """Records the launch."""
        return _launch_tiled(
            self.kernel,
            dim=-(-self.elements // self.block),
            inputs=list(self.inputs),
            device=str(device),
            block_dim=self.block,
            record_cmd=True,
        )


# Warp's stubs leave these two untyped.
_stream_from_torch: Callable[[torch.cuda.Stream], Any] = wp.stream_from_torch
_launch_tiled: Callable[..., Any] = wp.launch_tiled


class Launcher:
    """Prepares kernel launches over all games: one launch on a GPU, slices on several host threads on a CPU.

    A CPU launch uses one thread but releases the interpreter lock, so threads over parts of the batch scale.
    Every kernel takes the index of its first game as its last argument.
    """

    # Below this many games a thread, handing the work over costs more than it saves.
    MIN_SLICE = 256

    def __init__(self, device: torch.device, threads: int | None = None) -> None:
        self.device = device
        self.threads = max(1, threads or os.cpu_count() or 1) if device.type == "cpu" else 1
        self._workers = [_Worker() for _ in range(self.threads - 1)]

    def prepare(self, games: int, *kernels: tuple[Any, Sequence[Any]] | TiledKernel) -> Callable[[], None]:
        """Returns a function that runs kernels, each given with its arguments, one after the other over all games.

        The function returns when the work is done (CPU) or queued on torch's current stream (CUDA). Tiled kernels are
        for CUDA devices alone.
        """

        def record(first: int, last: int) -> list[Any]:
            return [
                launch.record(self.device)
                if isinstance(launch, TiledKernel)
                else wp.launch(
                    launch[0], last - first, inputs=[*launch[1], first], device=str(self.device), record_cmd=True
                )
                for launch in kernels
            ]

        if self.device.type == "cuda":
            commands = record(0, games)

            def run_cuda() -> None:
                stream = _stream_from_torch(torch.cuda.current_stream(self.device))
                for command in commands:
                    command.launch(stream)

            return run_cuda

        slices = max(1, min(self.threads, games // self.MIN_SLICE))
        bounds = [games * part // slices for part in range(slices + 1)]
        plans = [record(first, last) for first, last in pairwise(bounds)]
        workers = self._workers[: slices - 1]

        def run_cpu() -> None:
            for worker, plan in zip(workers, plans[1:], strict=True):
                worker.begin(plan)
            _run_all(plans[0])
            for worker in workers:
                worker.finish()

        return run_cpu

    def close(self) -> None:
        """Ends the threads; may be called twice, and nothing can be run any more on several threads."""
        for worker in self._workers:
            worker.end()


class _Worker:
    """A host thread that runs commands on request; two queues cost a tenth of what a thread pool's futures do."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Sequence[Any] | None] = SimpleQueue()
        self._outbox: SimpleQueue[BaseException | None] = SimpleQueue()
        self._ended = False
        threading.Thread(target=self._serve, name="ludus-sim", daemon=True).start()

    def begin(self, commands: Sequence[Any]) -> None:
        """Hands commands over."""
        if self._ended:
            raise UnsupportedError("this environment is closed; make a new one")
        self._inbox.put(commands)

    def finish(self) -> None:
        """Waits until the commands are done and raises what went wrong in them."""
        error = self._outbox.get()
        if error is not None:
            raise error

    def end(self) -> None:
        """Lets the thread end."""
        self._ended = True
        self._inbox.put(None)

    def _serve(self) -> None:
        while (commands := self._inbox.get()) is not None:
            try:
                _run_all(commands)
            except BaseException as error:
                self._outbox.put(error)
            else:
                self._outbox.put(None)


def _run_all(commands: Sequence[Any]) -> None:
    for command in commands:
        command.launch()
