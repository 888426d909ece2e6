"""LSTM: `step` for one frame, `unroll` for sequences with episode starts inside.

The recurrence is a custom autograd function over whole sequences with state resets. The input projection of all steps
is done in one matrix product; only `hidden @ weight` runs step by step. The backward pass computes every factor that
does not depend on later steps for all steps at once, walks back with one matrix product per step, and forms the weight
gradient in one product over all `(time, batch)`. Shapes are static and nothing is read back to the host, so a CUDA
graph can hold it. On the CPU LSTMs run in `backends.warp_lstm`, in bfloat16 on CUDA in `backends.triton_lstm`; all
three compute the same recurrence.

Gates are laid out input, forget, output, candidate.
"""

import functools
import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.autograd import Function

from ludus.core.schedules import MAX_FACTOR, Width
from ludus.nn.backends.warp_lstm import Network, run_lstms, supports
from ludus.nn.mlp import linear, orthogonal

RecurrentState: TypeAlias = dict[str, Tensor]  # tensors with the rows first, `(rows, ...)`; empty without memory

_FEW_ROWS = 32
_MANY_STEPS = 4


def reset_recurrent_state(memory: RecurrentState, initial: RecurrentState, mask: Tensor) -> RecurrentState:
    """Return the memory with the rows of `mask` `(rows,)` set back to `initial`."""
    return {
        name: torch.where(mask.view(-1, *(1,) * (tensor.dim() - 1)), initial[name], tensor)
        for name, tensor in memory.items()
    }


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
            input_gate, forget_gate, output_gate, candidate = gate.chunk(4, dim=1)
            cell = torch.addcmul(forget_gate * cell, input_gate, candidate)
            torch.tanh(cell, out=squashed[t])
            hidden = torch.mul(output_gate, squashed[t], out=outputs[t])
        ctx.save_for_backward(weight, keep, gates, hidden_before, cell_before, squashed)
        return outputs, cell

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # noqa: ANN401
        weight, keep, gates, hidden_before, cell_before, squashed = ctx.saved_tensors
        grad_outputs, grad_cell = gradients
        steps, rows, size = squashed.shape
        sigmoids, candidate = gates[..., : 3 * size], gates[..., 3 * size :]
        input_gate, forget_gate, output_gate = sigmoids.unflatten(-1, (3, size)).unbind(2)
        # d(gate before its activation) = factor * (gradient of the cell, or of the hidden state for the output gate)
        slopes = (sigmoids * (1.0 - sigmoids)).unflatten(-1, (3, size))
        factors = torch.stack(
            (
                slopes[:, :, 0] * candidate,
                slopes[:, :, 1] * cell_before,
                slopes[:, :, 2] * squashed,
                input_gate * (1.0 - candidate * candidate),
            ),
            dim=2,
        )
        into_cell = output_gate * (1.0 - squashed * squashed)
        carried = forget_gate * keep
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


def _transposed(weight: Tensor, steps: int, rows: int) -> Tensor:
    """Return the transposed weights, copied where few rows meet them often: there products are up to twice as fast."""
    return weight.t().contiguous() if rows <= _FEW_ROWS and steps >= _MANY_STEPS else weight.t()


def lstm_sequence(
    projected: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, keep: Tensor
) -> tuple[Tensor, Tensor]:
    """Run an LSTM over a batch of sequences.

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
    """Return the Triton kernels, or None where Triton is missing."""
    return importlib.import_module("ludus.nn.backends.triton_lstm") if importlib.util.find_spec("triton") else None


class RecurrentConfig(BaseModel):
    """The LSTM, and how large it is.

    Attributes:
        size: Units of the hidden state.
        critic: Whether actor and critic share the memory, or the critic has its own of the same size.
        skip: Whether actor and critic also see the input of the memory: what needs no memory is then learned as fast as
            without one.
        memory_feature_scale: With `skip`, factor of the LSTM's features before they reach actor and critic. Adam moves
            every weight alike, so hundreds of features that change with each update drown those of the observation.
            Below 1, actor and critic also start without them, and without the strategy latent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    removed_keys: ClassVar[Mapping[str, str]] = {
        "kind": "strategy.md#options-of-the-encoder-that-were-removed",
        "chrono_init": "strategy.md#copies-that-guess-predictably-in-clashes",
    }

    size: Width = 256
    critic: Literal["shared", "separate"] = "shared"
    skip: bool = False
    memory_feature_scale: float = Field(default=1.0, gt=0.0, le=MAX_FACTOR)


class Lstm(nn.Module):
    """Long short-term memory: orthogonal weights for every gate and zero bias, but 1 in the forget gates.

    That is a time scale of about four steps. Longer ones (chrono initialization) did not clearly pay.
    """

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.size = self.output_size = size
        self.input_weight = nn.Parameter(torch.empty(4 * size, inputs))
        self.hidden_weight = nn.Parameter(torch.empty(4 * size, size))
        self.bias = nn.Parameter(torch.zeros(4 * size))
        for weight in (self.input_weight, self.hidden_weight):
            for gate in weight.data.chunk(4):
                orthogonal(gate)
        with torch.no_grad():
            self.bias[size : 2 * size] = 1.0

    def project(self, inputs: Tensor) -> Tensor:
        """Map inputs `(..., inputs)` to their part in all gates `(..., 4 * size)`, with the bias."""
        return linear(inputs, self.input_weight, self.bias)

    def initial(self, rows: int, device: torch.device) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing."""
        return {name: self.bias.new_zeros(rows, self.size, device=device) for name in ("hidden", "cell")}

    def step(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> tuple[Tensor, RecurrentState]:
        """Map one frame `(rows, inputs)` with episode starts `(rows,)` bool to outputs `(rows, size)` and state."""
        return step_all((self,), inputs, (memory,), episode_starts)[0]

    def unroll(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Map segments `(steps, rows, inputs)` with episode starts `(steps, rows)` bool to `(steps, rows, size)`."""
        return unroll_all((self,), inputs, (memory,), episode_starts)[0].to(memory["cell"].dtype)


def step_all(
    cells: Sequence[Lstm], inputs: Tensor, memories: Sequence[RecurrentState], episode_starts: Tensor
) -> list[tuple[Tensor, RecurrentState]]:
    """Advance LSTMs of one size by the same frame, side by side; see their `step`.

    What stands for an LSTM, in stacked policies and in files, has a `step` of its own.
    """
    lstms = [cell for cell in cells if isinstance(cell, Lstm)]
    if len(lstms) < len(cells):
        return [cell.step(inputs, memory, episode_starts) for cell, memory in zip(cells, memories, strict=True)]
    ran = _run_lstms(lstms, inputs.unsqueeze(0), memories, episode_starts.unsqueeze(0))
    after = [(outputs.squeeze(0).to(last_cell.dtype), last_cell) for outputs, last_cell in ran]
    return [(hidden, {"hidden": hidden, "cell": last_cell}) for hidden, last_cell in after]


def unroll_all(
    lstms: Sequence[Lstm], inputs: Tensor, memories: Sequence[RecurrentState], episode_starts: Tensor
) -> list[Tensor]:
    """Run LSTMs of one size over the same segments, side by side; see their `unroll`.

    Under autocast, what they give stays in its type.
    """
    return [outputs for outputs, _ in _run_lstms(lstms, inputs, memories, episode_starts)]


def _run_lstms(
    lstms: Sequence[Lstm], inputs: Tensor, memories: Sequence[RecurrentState], episode_starts: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Return outputs `(steps, rows, size)`, in autocast's type, and the last cell state `(rows, size)` of each."""
    networks = [
        Network(lstm.input_weight, lstm.bias, lstm.hidden_weight, memory["hidden"], memory["cell"])
        for lstm, memory in zip(lstms, memories, strict=True)
    ]
    keep = (~episode_starts).unsqueeze(-1)
    if supports(inputs, networks[0]):
        return run_lstms(inputs, networks, keep.to(inputs.dtype))
    projected = [lstm.project(inputs) for lstm in lstms]
    dtype = projected[0].dtype
    with _full_precision(inputs.device.type):
        # The cell stays in full precision under autocast: it is a sum over many steps.
        return [
            lstm_sequence(given, network.weight.to(dtype), network.hidden.to(dtype), network.cell, keep.to(dtype))
            for given, network in zip(projected, networks, strict=True)
        ]


def _full_precision(device_type: str) -> AbstractContextManager[object]:
    """Return a context without autocast; entering one costs as much as a small operation, so only where needed."""
    if not torch.is_autocast_enabled(device_type):
        return nullcontext()
    return torch.autocast(device_type, enabled=False)
