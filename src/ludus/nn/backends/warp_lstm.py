"""LSTMs over whole sequences in compiled CPU functions, with their input projections and as part of autograd.

Weight gradients are matrix products over all `(time, batch)` at once, which the libraries do well. The kernels are in
`warp_kernels`, the same recurrence in torch in `nn.recurrent`.
"""

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import Function

_NOTHING = torch.empty(0)
_KEPT = 8  # free tensors that wait for their next use

# The states of so many rows stay in a core's first cache beside the weights in use; threads find work in small parts.
_BLOCK_ROWS = 16
_TILE_ROWS = 4  # rows that the compiled function works on together
_WORTH_A_THREAD = 1 << 21  # multiplications; with fewer, handing a part over costs more than it brings
_HEADER = 6  # places of the table before those of the networks: steps, rows, size, rows and number of blocks, keep
_PLACES = 8  # of a network
_COLUMNS = 16  # of the weights that are transposed together
_Table: TypeAlias = NDArray[np.int64]

_LANES = 16  # sizes are whole multiples, so that no processor's vectors leave a rest


class Buffers:
    """Float32 tensors on the CPU; what they hold is whatever the last user left. Not safe to share between threads."""

    def __init__(self) -> None:
        self._scratch: dict[tuple[str, int], tuple[Tensor, Tensor]] = {}
        self._free: dict[int, Tensor] = {}

    def scratch(self, name: str, index: int, *shape: int) -> Tensor:
        """Return memory until the next call with the same name and index."""
        flat, view = self._scratch.get((name, index), (_NOTHING, _NOTHING))
        if view.shape != shape:
            count = math.prod(shape)
            flat = flat if flat.numel() >= count else torch.empty(count)
            view = flat[:count].view(shape)
            self._scratch[name, index] = (flat, view)
        return view

    def take(self, *shape: int) -> Tensor:
        """Return memory until it is given back; memory that never comes back is freed as usual.

        Taking counts as a change of the tensor, so that autograd refuses to go back through it after that.
        """
        for address, tensor in self._free.items():
            if tensor.shape == shape:
                del self._free[address]
                tensor[:0].zero_()
                return tensor
        return torch.empty(shape)

    def give(self, tensor: Tensor) -> None:
        """Return a tensor that is no longer needed to the pool; a second call does nothing."""
        self._free.setdefault(tensor.data_ptr(), tensor)
        if len(self._free) > _KEPT:
            del self._free[next(iter(self._free))]


def launch(kernel: str, shape: tuple[int, int, int], keep: Tensor, networks: Sequence[Sequence[Tensor]]) -> None:
    """Run a kernel of `warp_kernels` over all rows of all networks; one call at a time.

    `shape` is steps, rows and size, `keep` is `(steps, rows, 1)`; each network's contiguous tensors come in the order
    in which the kernel reads their addresses.
    """
    steps, rows, size = shape
    work = len(networks) * steps * rows * 4 * size * size
    runner = _runner(torch.get_num_threads() if work >= _WORTH_A_THREAD else 1)
    if kernel == "backward_kernel":
        runner.run("transpose_kernel", (*shape, _COLUMNS, size // _COLUMNS, 0), networks)
    block_rows = rows_of_block(rows, len(networks), runner.threads)
    runner.run(kernel, (*shape, block_rows, -(-rows // block_rows), keep.data_ptr()), networks)


def rows_of_block(rows: int, networks: int, threads: int) -> int:
    """Return the rows per block: few enough for the cache, and as many blocks as keep all threads busy."""
    turns = -(-rows * networks // (_BLOCK_ROWS * threads))  # of every thread
    share = -(-rows * networks // (turns * threads))
    return -(-share // _TILE_ROWS) * _TILE_ROWS


class _Runner:
    """Fills tables and runs blocks of rows on so many threads."""

    def __init__(self, threads: int) -> None:
        from ludus.envs.warp_tools import Launcher, load_kernels
        from ludus.nn.backends import warp_kernels as kernels

        class BlockLauncher(Launcher):
            """Hands over single blocks of rows."""

            MIN_SLICE = 1

        load_kernels(kernels, torch.device("cpu"))
        self.threads = threads
        self._kernels, self._launcher = kernels, BlockLauncher(torch.device("cpu"), threads)
        self._prepared: dict[tuple[str, int, int], tuple[_Table, Callable[[], None]]] = {}

    def run(self, kernel: str, header: tuple[int, ...], networks: Sequence[Sequence[Tensor]]) -> None:
        """Run a kernel over all blocks, whose number per network is the last but one of the header."""
        key = (kernel, len(networks), header[-2])
        if key not in self._prepared:
            self._prepared[key] = self._prepare(*key)
        table, run = self._prepared[key]
        table[:] = (*header, *(tensor.data_ptr() for tensors in networks for tensor in tensors))
        run()

    def _prepare(self, kernel: str, networks: int, blocks: int) -> tuple[_Table, Callable[[], None]]:
        import warp as wp

        table = np.zeros(_HEADER + networks * _PLACES, dtype=np.int64)
        address = wp.uint64(table.ctypes.data)
        return table, self._launcher.prepare(networks * blocks, (getattr(self._kernels, kernel), [address]))


@cache
def _runner(threads: int) -> _Runner:
    """Make the runner on first use, so that code that does not use it never loads Warp."""
    return _Runner(threads)


_LOCK, _BUFFERS = threading.Lock(), Buffers()


class Network(NamedTuple):
    """One LSTM: its weights `(4 * size, inputs)`, `(4 * size,)`, `(4 * size, size)` and states `(rows, size)`."""

    input_weight: Tensor
    bias: Tensor
    weight: Tensor
    hidden: Tensor
    cell: Tensor


class Trace(NamedTuple):
    """What the way back needs."""

    gates: Tensor  # `(steps, rows, 4 * size)`, after their activations
    states: Tensor  # `(3, steps, rows, size)`: hidden and cell state before each step, after its reset, and tanh(cell)


class Result(NamedTuple):
    """What the way forward gives: outputs `(steps, rows, size)`, the last cell state `(rows, size)`, the trace."""

    outputs: Tensor
    last_cell: Tensor
    trace: Trace


def supports(inputs: Tensor, network: Network) -> bool:
    """Return whether the compiled functions take such tensors: float32 on the CPU, and sizes in whole lanes."""
    return (
        inputs.device.type == "cpu"
        and inputs.dtype == network.weight.dtype == network.cell.dtype == torch.float32
        and network.cell.shape[-1] % _LANES == 0
        and not torch.is_autocast_enabled("cpu")
    )


def run_lstms(inputs: Tensor, networks: Sequence[Network], keep: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Run LSTMs of one size over the same sequences, side by side on several cores.

    Args:
        inputs: `(steps, rows, inputs)`.
        networks: Weights and states before the first step.
        keep: `(steps, rows, 1)`, 0 where the state is forgotten before the step, else 1.

    Returns:
        Hidden states after every step `(steps, rows, size)` and the last cell state `(rows, size)` of each.
    """
    if torch.is_grad_enabled():
        flat = _Lstms.apply(inputs, keep, *(tensor for network in networks for tensor in network))  # type: ignore[no-untyped-call]
        return list(zip(flat[::2], flat[1::2], strict=True))
    results = _forward(inputs, networks, keep, traced=False)
    return [(result.outputs, result.last_cell) for result in results]


class _Lstms(Function):
    """`run_lstms` for autograd; every network brings five tensors and gets two back."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, keep: Tensor, *tensors: Tensor) -> Any:  # noqa: ANN401
        networks = [Network(*tensors[i : i + 5]) for i in range(0, len(tensors), 5)]
        results = _forward(inputs, networks, keep, traced=True)
        ctx.set_materialize_grads(False)  # a network that a loss does not use gets no gradient, rather than zeros
        pairs = zip(networks, results, strict=True)
        ctx.save_for_backward(
            inputs, keep, *(x for network, made in pairs for x in (network.input_weight, network.weight, *made.trace))
        )
        return tuple(tensor for result in results for tensor in (result.outputs, result.last_cell))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:  # noqa: ANN401
        inputs, keep, *saved = ctx.saved_tensors
        found: list[Tensor | None] = [None] * (2 + 5 * (len(gradients) // 2))
        used = [i for i in range(len(gradients) // 2) if any(part is not None for part in gradients[2 * i : 2 * i + 2])]
        weights, traces = [saved[4 * i + 1] for i in used], [Trace(*saved[4 * i + 2 : 4 * i + 4]) for i in used]
        flat_inputs = inputs.flatten(0, 1)
        grad_inputs = torch.zeros_like(flat_inputs) if ctx.needs_input_grad[0] else None
        with _LOCK:
            pairs = [(gradients[2 * i], gradients[2 * i + 1]) for i in used]
            back = _backward(weights, traces, keep, pairs)
            for i, trace, (grad_gates, states) in zip(used, traces, back, strict=True):
                flat = grad_gates.flatten(0, 1)
                if grad_inputs is not None:
                    grad_inputs.addmm_(flat, saved[4 * i])
                found[2 + 5 * i : 7 + 5 * i] = (
                    torch.mm(flat.t(), flat_inputs),
                    flat.sum(0),
                    torch.mm(flat.t(), trace.states[0].flatten(0, 1)),
                    *states,
                )
            for tensor in (tensor for trace in traces for tensor in trace):
                _BUFFERS.give(tensor)
        found[0] = None if grad_inputs is None else grad_inputs.view_as(inputs)
        return tuple(found)


def _forward(inputs: Tensor, networks: Sequence[Network], keep: Tensor, *, traced: bool) -> list[Result]:
    """Run all networks; without `traced` their traces are scratch memory."""
    (steps, rows), size = inputs.shape[:2], networks[0].hidden.shape[-1]
    flat_inputs = inputs.flatten(0, 1)
    results, places = [], []
    with _LOCK:
        for i, network in enumerate(networks):
            projected = _BUFFERS.scratch("projected", i, steps * rows, 4 * size)
            torch.addmm(network.bias, flat_inputs, network.input_weight.t(), out=projected)
            if traced:
                trace = Trace(_BUFFERS.take(steps, rows, 4 * size), _BUFFERS.take(3, steps, rows, size))
            else:
                states = _BUFFERS.scratch("states", i, 3, steps, rows, size)
                trace = Trace(_BUFFERS.scratch("gates", i, steps, rows, 4 * size), states)
            result = Result(inputs.new_empty(steps, rows, size), inputs.new_empty(rows, size), trace)
            results.append(result)
            given = (tensor.contiguous() for tensor in (network.weight, network.hidden, network.cell))
            places.append((projected, *given, *trace, result.outputs, result.last_cell))
        launch("forward_kernel", (steps, rows, size), keep.contiguous(), places)
    return results


def _backward(
    weights: Sequence[Tensor],
    traces: Sequence[Trace],
    keep: Tensor,
    gradients: Sequence[tuple[Tensor | None, Tensor | None]],
) -> list[tuple[Tensor, Tensor]]:
    """Return the gradients of the gates before their activations, in scratch memory, and of the first states."""
    found, places = [], []
    steps, rows, size = traces[0].states.shape[1:]
    for i, (weight, trace, (of_outputs, of_cell)) in enumerate(zip(weights, traces, gradients, strict=True)):
        states = trace.states.new_zeros(2, rows, size)
        if of_cell is not None:
            states[1].copy_(of_cell)
        if of_outputs is None:
            of_outputs = trace.states.new_zeros(steps, rows, size)
        transposed = _BUFFERS.scratch("transposed", i, size, 4 * size)
        grad_gates = _BUFFERS.scratch("grad_gates", i, steps, rows, 4 * size)
        found.append((grad_gates, states))
        places.append((of_outputs.contiguous(), transposed, states, weight.contiguous(), *trace, grad_gates, states))
    launch("backward_kernel", (steps, rows, size), keep.contiguous(), places)
    return found
