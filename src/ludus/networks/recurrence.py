"""LSTM and GRU over whole sequences with state resets inside, as custom autograd functions.

The input projection of all steps is done by the caller in one matrix product; only `hidden @ weight` runs step by
step. The backward pass computes every factor that does not depend on later steps for all steps at once, walks back
with one matrix product a step, and forms the weight gradient in one product over all `(time, batch)`. Shapes are
static and nothing is read back to the host, so a CUDA graph can hold it.

Gates are laid out input, forget, output, candidate (LSTM) and reset, update, candidate (GRU).
"""

import functools
import importlib.util
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

_FEW_ROWS = 32
_MANY_STEPS = 4


class _LstmRecurrence(Function):
    """The LSTM recurrence; see `lstm_sequence`."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor) -> Any:  # noqa: ANN401
        steps, rows, size = projected.shape[0], projected.shape[1], hidden.shape[-1]
        gates = torch.empty_like(projected)
        hidden_before = projected.new_empty(steps, rows, size)
        cell_before = cell.new_empty(steps, rows, size)
        squashed = torch.empty_like(cell_before)
        outputs = torch.empty_like(hidden_before)
        transposed = _transposed(weight, steps, rows)
        for t in range(steps):
            hidden = torch.mul(hidden, keep[t], out=hidden_before[t])
            cell = torch.mul(cell, keep[t], out=cell_before[t])
            gate = torch.addmm(projected[t], hidden, transposed, out=gates[t])
            gate[:, : 3 * size].sigmoid_()
            gate[:, 3 * size :].tanh_()
            enter, stay, leave, candidate = gate.chunk(4, dim=1)
            cell = torch.addcmul(stay * cell, enter, candidate)
            torch.tanh(cell, out=squashed[t])
            hidden = torch.mul(leave, squashed[t], out=outputs[t])
        ctx.save_for_backward(weight, keep, gates, hidden_before, cell_before, squashed)
        return outputs, cell

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # noqa: ANN401
        weight, keep, gates, hidden_before, cell_before, squashed = ctx.saved_tensors
        grad_outputs, grad_cell = gradients
        steps, rows, size = squashed.shape
        sigmoids, candidate = gates[..., : 3 * size], gates[..., 3 * size :]
        enter, stay, leave = sigmoids.unflatten(-1, (3, size)).unbind(2)
        # d(gate before its activation) = factor * (gradient of the cell, or of the hidden state for the output gate)
        slopes = (sigmoids * (1.0 - sigmoids)).unflatten(-1, (3, size))
        factors = torch.stack(
            (
                slopes[:, :, 0] * candidate,
                slopes[:, :, 1] * cell_before,
                slopes[:, :, 2] * squashed,
                enter * (1.0 - candidate * candidate),
            ),
            dim=2,
        )
        into_cell = leave * (1.0 - squashed * squashed)
        carried = stay * keep
        grad_gates = torch.empty_like(gates)
        split = grad_gates.view(steps, rows, 4, size)
        grad_hidden = torch.zeros_like(hidden_before[0])
        for t in range(steps - 1, -1, -1):
            grad_hidden = grad_hidden + grad_outputs[t]
            grad_cell = torch.addcmul(grad_cell, grad_hidden, into_cell[t])
            torch.mul(factors[t, :, :2], grad_cell.unsqueeze(1), out=split[t, :, :2])
            torch.mul(factors[t, :, 2], grad_hidden, out=split[t, :, 2])
            torch.mul(factors[t, :, 3], grad_cell, out=split[t, :, 3])
            grad_hidden = torch.mm(grad_gates[t], weight).mul_(keep[t])
            grad_cell = grad_cell * carried[t]
        grad_weight = torch.mm(grad_gates.view(-1, 4 * size).t(), hidden_before.view(-1, size))
        return grad_gates, grad_weight, grad_hidden, grad_cell, None


class _GruRecurrence(Function):
    """The GRU recurrence; see `gru_sequence`."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, keep: Tensor) -> Any:  # noqa: ANN401
        steps, rows, size = projected.shape[0], projected.shape[1], hidden.shape[-1]
        gates = torch.empty_like(projected)
        hidden_before = projected.new_empty(steps, rows, size)
        inner = torch.empty_like(hidden_before)
        outputs = torch.empty_like(hidden_before)
        transposed = _transposed(weight, steps, rows)
        for t in range(steps):
            hidden = torch.mul(hidden, keep[t], out=hidden_before[t])
            recurrent = torch.addmm(bias, hidden, transposed)
            inner[t].copy_(recurrent[:, 2 * size :])
            gate = gates[t]
            torch.add(projected[t, :, : 2 * size], recurrent[:, : 2 * size], out=gate[:, : 2 * size])
            gate[:, : 2 * size].sigmoid_()
            reset, update, candidate = gate.chunk(3, dim=1)
            torch.addcmul(projected[t, :, 2 * size :], reset, inner[t], out=candidate)
            candidate.tanh_()
            hidden = torch.lerp(candidate, hidden, update, out=outputs[t])
        ctx.save_for_backward(weight, keep, gates, hidden_before, inner)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # noqa: ANN401
        weight, keep, gates, hidden_before, inner = ctx.saved_tensors
        (grad_outputs,) = gradients
        steps, rows, size = inner.shape
        reset, update, candidate = gates.unflatten(-1, (3, size)).unbind(2)
        # Factors of the hidden state's gradient for the three gates' sums (before their activations).
        into_candidate = (1.0 - update) * (1.0 - candidate * candidate)
        factors = torch.stack(
            (
                into_candidate * inner * reset * (1.0 - reset),
                (hidden_before - candidate) * update * (1.0 - update),
                into_candidate * reset,
            ),
            dim=2,
        )
        grad_recurrent = torch.empty_like(gates)
        split = grad_recurrent.view(steps, rows, 3, size)
        grad_hidden = torch.zeros_like(hidden_before[0])
        hidden_gradients = torch.empty_like(hidden_before)
        for t in range(steps - 1, -1, -1):
            grad_hidden = torch.add(grad_hidden, grad_outputs[t], out=hidden_gradients[t])
            torch.mul(factors[t], grad_hidden.unsqueeze(1), out=split[t])
            grad_hidden = torch.addmm(grad_hidden * update[t], grad_recurrent[t], weight).mul_(keep[t])
        flat = grad_recurrent.view(-1, 3 * size)
        grad_weight = torch.mm(flat.t(), hidden_before.view(-1, size))
        grad_projected = torch.cat((grad_recurrent[..., : 2 * size], into_candidate * hidden_gradients), dim=-1)
        return grad_projected, grad_weight, flat.sum(0), grad_hidden, None


def _transposed(weight: Tensor, steps: int, rows: int) -> Tensor:
    """Returns the transposed weights, copied where few rows meet them often: there products are up to twice as fast."""
    return weight.t().contiguous() if rows <= _FEW_ROWS and steps >= _MANY_STEPS else weight.t()


def lstm_sequence(
    projected: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor]:
    """Runs an LSTM over a batch of sequences.

    Args:
        projected: `(steps, rows, 4 * size)`, inputs times input weights plus bias.
        weight: `(4 * size, size)` recurrent weights.
        hidden: `(rows, size)` hidden state before the first step.
        cell: `(rows, size)` cell state before the first step.
        keep: `(steps, rows, 1)`, 0 where an episode starts at that step (the state is forgotten before it), else 1.

    Returns:
        Hidden states after every step `(steps, rows, size)` and the last cell state `(rows, size)`.
    """
    fused = _fused_lstm() if projected.is_cuda else None
    if fused is not None and fused.supports(projected, cell):
        outputs, last_cell = fused.lstm_sequence(projected, weight, hidden, cell, keep)
        return outputs, last_cell
    outputs, last_cell = _LstmRecurrence.apply(projected, weight, hidden, cell, keep)  # type: ignore[no-untyped-call]
    return outputs, last_cell


@functools.cache
def _fused_lstm() -> ModuleType | None:
    """Returns the Triton kernels, or None where Triton is missing."""
    return importlib.import_module("ludus.networks.fused_lstm") if importlib.util.find_spec("triton") else None


def gru_sequence(projected: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, keep: Tensor) -> Tensor:
    """Runs a GRU over a batch of sequences.

    Args:
        projected: `(steps, rows, 3 * size)`, inputs times input weights plus bias.
        weight: `(3 * size, size)` recurrent weights.
        bias: `(3 * size,)` recurrent bias.
        hidden: `(rows, size)` hidden state before the first step.
        keep: `(steps, rows, 1)`, 0 where an episode starts at that step, else 1.

    Returns:
        Hidden states after every step `(steps, rows, size)`.
    """
    outputs: Tensor = _GruRecurrence.apply(projected, weight, bias, hidden, keep)  # type: ignore[no-untyped-call]
    return outputs
