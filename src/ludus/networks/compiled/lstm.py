"""Drives the compiled LSTM: which tensors it takes, its table, its threads."""

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_Table: TypeAlias = NDArray[np.int64]

_LANES = 16  # sizes are whole multiples, so that no processor's vectors leave a rest
_BLOCK_ROWS = 32  # their hidden states fit into a core's first cache beside the weights in use
_TILE_ROWS = 4  # rows that the compiled function works on together
_WORTH_A_THREAD = 1 << 21  # multiplications; with fewer, handing a part over costs more than it brings
_HEADER = 6  # places of the table before those of the networks: steps, rows, size, rows and number of blocks, keep
_PLACES = 10  # of a network


class Inputs(NamedTuple):
    """One network's part of `forward`; see `lstm_sequence` for the shapes."""

    projected: Tensor
    weight: Tensor
    hidden: Tensor
    cell: Tensor


class Trace(NamedTuple):
    """What `backward` needs of `forward`, `(steps, rows, ...)`.

    The gates are those after their activations; hidden and cell states before a step are those after its reset.
    """

    gates: Tensor
    hidden_before: Tensor
    cell_before: Tensor
    squashed: Tensor


class Result(NamedTuple):
    """What `forward` gives: outputs `(steps, rows, size)`, the last cell state `(rows, size)` and the trace."""

    outputs: Tensor
    last_cell: Tensor
    trace: Trace


class Gradients(NamedTuple):
    """What `backward` computed: the gradients of a network's `Inputs` without the weight's."""

    projected: Tensor
    hidden: Tensor
    cell: Tensor


def supports(inputs: Inputs) -> bool:
    """Says whether the compiled LSTM takes such tensors: float32 on the CPU, and sizes in whole lanes."""
    return (
        inputs.projected.device.type == "cpu"
        and inputs.projected.dtype == inputs.cell.dtype == torch.float32
        and inputs.cell.shape[-1] % _LANES == 0
    )


def forward(networks: Sequence[Inputs], keep: Tensor) -> list[Result]:
    """Runs several networks of the same shape over the same steps and rows.

    Args:
        networks: What each is given.
        keep: `(steps, rows, 1)`, 0 where the state is forgotten before the step, else 1.
    """
    steps, rows, width = networks[0].projected.shape
    size = width // 4
    results = []
    for inputs in networks:
        gates = inputs.projected.new_empty(steps, rows, width)
        states = inputs.projected.new_empty(4, steps, rows, size)
        *before, outputs = states.unbind()
        results.append(Result(outputs, inputs.projected.new_empty(rows, size), Trace(gates, *before)))
    _run(
        "forward_kernel",
        (steps, rows, size),
        keep,
        [
            (*(tensor.contiguous() for tensor in inputs), *result.trace, result.outputs, result.last_cell)
            for inputs, result in zip(networks, results, strict=True)
        ],
    )
    return results


def backward(
    weights: Sequence[Tensor],
    traces: Sequence[Trace],
    keep: Tensor,
    gradients: Sequence[tuple[Tensor | None, Tensor | None]],
) -> list[Gradients]:
    """Runs the networks back from the gradients of their outputs and last cell states.

    Args:
        weights: Recurrent weights.
        traces: What `forward` left of each.
        keep: As it was given to `forward`.
        gradients: Of the outputs and the last cell state of each network; None is 0.
    """
    found, places = [], []
    for weight, trace, (of_outputs, of_cell) in zip(weights, traces, gradients, strict=True):
        states = trace.squashed.new_zeros(2, *trace.squashed.shape[1:])
        if of_cell is not None:
            states[1].copy_(of_cell)
        of_outputs = torch.zeros_like(trace.squashed) if of_outputs is None else of_outputs.contiguous()
        own = Gradients(torch.empty_like(trace.gates), *states.unbind())
        found.append(own)
        places.append((of_outputs, weight.t().contiguous(), own.hidden, own.cell, *trace, own.projected))
    _run("backward_kernel", tuple(traces[0].squashed.shape), keep, places)
    return found


def _run(kernel: str, shape: tuple[int, ...], keep: Tensor, networks: Sequence[tuple[Tensor, ...]]) -> None:
    """Runs a kernel over all rows of the given steps, rows and size; the networks' tensors are contiguous."""
    steps, rows, size = shape
    work = len(networks) * steps * rows * 4 * size * size
    _runner(torch.get_num_threads() if work >= _WORTH_A_THREAD else 1).run(kernel, shape, keep.contiguous(), networks)


class _Runner:
    """Fills the table and runs blocks of rows on several threads; one call at a time."""

    def __init__(self, threads: int) -> None:
        from ludus.envs.warp_tools import Launcher, load_kernels
        from ludus.networks.compiled import kernels

        class BlockLauncher(Launcher):
            """Hands over single blocks of rows."""

            MIN_SLICE = 1

        load_kernels(kernels, torch.device("cpu"))
        self._kernels, self._lock = kernels, threading.Lock()
        self._launcher = BlockLauncher(torch.device("cpu"), threads)
        self._prepared: dict[tuple[str, int, int], tuple[_Table, Callable[[], None]]] = {}

    def run(self, kernel: str, shape: tuple[int, ...], keep: Tensor, networks: Sequence[tuple[Tensor, ...]]) -> None:
        """Runs a kernel; see `_run`."""
        block_rows = rows_of_block(shape[1], len(networks), self._launcher.threads)
        key = (kernel, len(networks), -(-shape[1] // block_rows))
        with self._lock:
            if key not in self._prepared:
                self._prepared[key] = self._prepare(*key)
            table, launch = self._prepared[key]
            table[:_HEADER] = (*shape, block_rows, key[-1], keep.data_ptr())
            for network, tensors in enumerate(networks):
                start = _HEADER + network * _PLACES
                table[start : start + len(tensors)] = [tensor.data_ptr() for tensor in tensors]
            launch()

    def _prepare(self, kernel: str, networks: int, blocks: int) -> tuple[_Table, Callable[[], None]]:
        import warp as wp

        table = np.zeros(_HEADER + networks * _PLACES, dtype=np.int64)
        address = wp.uint64(table.ctypes.data)
        return table, self._launcher.prepare(networks * blocks, (getattr(self._kernels, kernel), [address]))


def rows_of_block(rows: int, networks: int, threads: int) -> int:
    """Returns how many rows a block has: few enough for the cache, and as many blocks as keep all threads busy."""
    turns = -(-rows * networks // (_BLOCK_ROWS * threads))  # of every thread
    share = -(-rows * networks // (turns * threads))
    return -(-share // _TILE_ROWS) * _TILE_ROWS


@cache
def _runner(threads: int) -> _Runner:
    """Makes the runner on first use, so that whoever has no use for it never loads Warp."""
    return _Runner(threads)
