"""The LSTM recurrence on a CUDA device as Triton kernels: one per step forward and one per step backward.

A step is a small matrix product and many small elementwise operations, each of which costs a launch; here they share
one kernel. Gates are computed in float32 from bfloat16 factors and kept in bfloat16, cell states in float32. See
`nn.recurrent` for the meaning of everything.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from ludus.nn.backends.triton_kernels import backward_step, forward_step

_DIVISOR = 64  # of sizes that are supported, and what blocks have at most: units, and inner numbers forward


class Blocks(NamedTuple):
    """How a kernel divides its work."""

    rows: int
    units: int
    warps: int
    stages: int
    inner: int

    def grid(self, rows: int, size: int) -> tuple[int, int]:
        """Return the number of blocks along rows and units."""
        return -(-rows // self.rows), size // self.units

    def options(self) -> dict[str, int]:
        """Return the keyword arguments of a launch."""
        shape = {"block_rows": self.rows, "block_units": self.units, "inner_size": self.inner}
        return {**shape, "num_warps": self.warps, "num_stages": self.stages}


# Those that were fastest on an H200 with 8,192 rows of 256 units.
_FORWARD = Blocks(64, 32, 4, 4, 64)
_BACKWARD = Blocks(64, 32, 4, 3, 128)
_FEW_ROWS = 256  # up to here smaller blocks, so that there are enough of them for the chip
_SMALL = {"rows": 32, "units": 16}


def supports(projected: Tensor, cell: Tensor) -> bool:
    """Return whether the kernels can run it: in bfloat16, with float32 cells and a size that blocks divide evenly."""
    precise = projected.dtype == torch.bfloat16 and cell.dtype == torch.float32
    return precise and projected.is_cuda and cell.shape[-1] % _DIVISOR == 0


def lstm_sequence(
    projected: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor]:
    """Run an LSTM over a batch of sequences; see `nn.recurrent.lstm_sequence`."""
    outputs, last_cell = _FusedLstm.apply(projected, weight, hidden, cell, keep)  # type: ignore[no-untyped-call]
    return outputs, last_cell


class _FusedLstm(Function):
    """The recurrence with its gradient."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor) -> Any:  # noqa: ANN401
        steps, rows, size = projected.shape[0], projected.shape[1], hidden.shape[-1]
        projected, weight, keep = projected.contiguous(), weight.contiguous(), keep.contiguous()
        hidden, cell = hidden.contiguous(), cell.contiguous()
        gates = torch.empty_like(projected)
        outputs = projected.new_empty(steps, rows, size)
        cells = cell.new_empty(steps, rows, size)
        blocks = _blocks(_FORWARD, rows)
        grid, options = blocks.grid(rows, size), blocks.options()
        for t in range(steps):
            before = (hidden, cell) if t == 0 else (outputs[t - 1], cells[t - 1])
            forward_step[grid](
                projected[t], weight, *before, keep[t], gates[t], outputs[t], cells[t], rows, size=size, **options
            )  # fmt: skip
        ctx.save_for_backward(weight, hidden, cell, keep, gates, outputs, cells)
        return outputs, cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # noqa: ANN401
        weight, hidden, cell, keep, gates, outputs, cells = ctx.saved_tensors
        grad_outputs, grad_cell = gradients[0].contiguous(), gradients[1].float().clone()
        steps, rows, size = cells.shape
        grad_gates = torch.empty_like(gates)
        blocks = _blocks(_BACKWARD, rows)
        grid, options = blocks.grid(rows, size), blocks.options()
        for t in range(steps - 1, -1, -1):
            after = t + 1 if t + 1 < steps else t  # where there is none, nothing of it is read
            backward_step[grid](
                grad_outputs[t], grad_gates[after], weight, keep[after], keep[t], gates[t], cells[t],
                cells[t - 1] if t else cell, grad_cell, grad_gates[t], rows, is_last=t + 1 == steps,
                size=size, **options,
            )  # fmt: skip
        before = torch.cat((hidden.unsqueeze(0), outputs[:-1])) * keep
        grad_weight = torch.mm(grad_gates.view(-1, 4 * size).t(), before.view(-1, size))
        grad_hidden = torch.mm(grad_gates[0], weight) * keep[0] if ctx.needs_input_grad[2] else None
        return grad_gates, grad_weight, grad_hidden, grad_cell, None


def _blocks(usual: Blocks, rows: int) -> Blocks:
    return usual if rows > _FEW_ROWS else usual._replace(**_SMALL)
