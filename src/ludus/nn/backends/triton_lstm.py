"""The LSTM recurrence on a CUDA device as Triton kernels: one per step forward and one per step backward.

A step is a small matrix product and many small elementwise operations, each of which costs a launch; here they share
one kernel. Gates are computed in float32 from bfloat16 factors and kept in bfloat16, cell states in float32. See
`nn.recurrent` for the meaning of everything.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from ludus.nn.backends.triton_kernels import backward_step, forward_step

_INNER = 64  # by which the size has to be divisible
_FEW_ROWS = 256  # up to here smaller blocks, so that there are enough of them for the chip


def supports(projected: Tensor, cell: Tensor) -> bool:
    """Return whether the kernels can run it: in bfloat16, with float32 cells and a size that blocks divide evenly."""
    precise = projected.dtype == torch.bfloat16 and cell.dtype == torch.float32
    return precise and projected.is_cuda and cell.shape[-1] % _INNER == 0


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
        blocks, grid = _blocks(rows, size)
        for t in range(steps):
            before = (hidden, cell) if t == 0 else (outputs[t - 1], cells[t - 1])
            forward_step[grid](
                projected[t], weight, *before, keep[t], gates[t], outputs[t], cells[t], rows, size=size,
                inner_size=_INNER, **blocks, num_warps=4, num_stages=4,
            )  # fmt: skip
        ctx.save_for_backward(weight, hidden, cell, keep, gates, outputs, cells)
        return outputs, cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # noqa: ANN401
        weight, hidden, cell, keep, gates, outputs, cells = ctx.saved_tensors
        grad_outputs, grad_cell = gradients[0].contiguous(), gradients[1].float().clone()
        steps, rows, size = cells.shape
        grad_gates = torch.empty_like(gates)
        blocks, grid = _blocks(rows, size)
        for t in range(steps - 1, -1, -1):
            after = t + 1 if t + 1 < steps else t  # where there is none, nothing of it is read
            backward_step[grid](
                grad_outputs[t], grad_gates[after], weight, keep[after], keep[t], gates[t], cells[t],
                cells[t - 1] if t else cell, grad_cell, grad_gates[t], rows, is_last=t + 1 == steps,
                size=size, inner_size=2 * _INNER, **blocks, num_warps=4, num_stages=3,
            )  # fmt: skip
        before = torch.cat((hidden.unsqueeze(0), outputs[:-1])) * keep
        grad_weight = torch.mm(grad_gates.view(-1, 4 * size).t(), before.view(-1, size))
        grad_hidden = torch.mm(grad_gates[0], weight) * keep[0] if ctx.needs_input_grad[2] else None
        return grad_gates, grad_weight, grad_hidden, grad_cell, None


def _blocks(rows: int, size: int) -> tuple[dict[str, int], tuple[int, int]]:
    """Return the sizes of a block and how many blocks there are along rows and units."""
    block_rows, block_units = (32, 16) if rows <= _FEW_ROWS else (64, 32)
    return {"block_rows": block_rows, "block_units": block_units}, (-(-rows // block_rows), size // block_units)
