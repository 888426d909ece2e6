"""LSTM and GRU as modules with a memory: `step` for one frame, `unroll` for segments with episode starts inside."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional

from ludus.networks.compiled.lstm import Network, run_lstms, supports
from ludus.networks.recurrence import gru_sequence, lstm_sequence


class RecurrentConfig(BaseModel):
    """Which recurrent memory, and how large.

    Attributes:
        kind: The cell.
        size: Units of the hidden state.
        critic: Whether actor and critic share the memory or the critic has its own of the same size.
        skip: Whether actor and critic also see what goes into the memory, beside what comes out: then what needs no
            memory is learned as fast as without one.
        skip_scale: With `skip`, what the features of memory and strategy encoder are multiplied by before they reach
            actor and critic. Adam moves every weight alike, so that hundreds of features that change with each update
            drown the observation's. Below 1 actor and critic also start without them, as if there were no memory, and
            come to use it as far as it helps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["lstm", "gru"] = "lstm"
    size: int = Field(default=256, ge=1)
    critic: Literal["shared", "separate"] = "shared"
    skip: bool = False
    skip_scale: float = Field(default=1.0, gt=0.0)


class _Cell(nn.Module):
    """Weights common to both cells: orthogonal for every gate, zero bias."""

    def __init__(self, inputs: int, size: int, gates: int) -> None:
        super().__init__()
        self.size = self.output_size = size
        self.input_weight = nn.Parameter(torch.empty(gates * size, inputs))
        self.hidden_weight = nn.Parameter(torch.empty(gates * size, size))
        self.bias = nn.Parameter(torch.zeros(gates * size))
        for weight in (self.input_weight, self.hidden_weight):
            for gate in weight.data.chunk(gates):
                nn.init.orthogonal_(gate)

    def project(self, inputs: Tensor) -> Tensor:
        """Maps inputs `(..., inputs)` to their part in all gates `(..., gates * size)`, with the bias."""
        return functional.linear(inputs, self.input_weight, self.bias)


class Lstm(_Cell):
    """Long short-term memory whose forget gates start open (bias 1)."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size, gates=4)
        with torch.no_grad():
            self.bias[size : 2 * size] = 1.0

    def initial(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        """Returns the memory of `rows` rows that have seen nothing."""
        return {name: self.bias.new_zeros(rows, self.size, device=device) for name in ("hidden", "cell")}

    def step(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Advances by one frame: inputs `(rows, inputs)`, starts `(rows,)` bool; gives `(rows, size)` and memory."""
        return step_all((self,), inputs, (memory,), starts)[0]

    def unroll(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> Tensor:
        """Maps segments `(steps, rows, inputs)` with starts `(steps, rows)` bool to `(steps, rows, size)`."""
        return unroll_all((self,), inputs, (memory,), starts)[0]


class Gru(_Cell):
    """Gated recurrent unit with the reset gate applied after the recurrent product."""

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__(inputs, size, gates=3)
        self.hidden_bias = nn.Parameter(torch.zeros(3 * size))

    def initial(self, rows: int, device: torch.device) -> dict[str, Tensor]:
        """Returns the memory of `rows` rows that have seen nothing."""
        return {"hidden": self.bias.new_zeros(rows, self.size, device=device)}

    def step(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Advances by one frame: inputs `(rows, inputs)`, starts `(rows,)` bool; gives `(rows, size)` and memory."""
        outputs = self.unroll(inputs.unsqueeze(0), memory, starts.unsqueeze(0))[0]
        return outputs, {"hidden": outputs}

    def unroll(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> Tensor:
        """Maps segments `(steps, rows, inputs)` with starts `(steps, rows)` bool to `(steps, rows, size)`."""
        projected = self.project(inputs)
        weight = self.hidden_weight.to(projected.dtype)
        keep = (~starts).unsqueeze(-1).to(projected.dtype)
        with _full_precision(inputs.device.type):
            hidden, bias = memory["hidden"].to(projected.dtype), self.hidden_bias.to(projected.dtype)
            outputs = gru_sequence(projected, weight, bias, hidden, keep)
        return outputs.to(memory["hidden"].dtype)


def make_recurrent(inputs: int, config: RecurrentConfig) -> Lstm | Gru:
    """Makes the cell that `config` names."""
    return Lstm(inputs, config.size) if config.kind == "lstm" else Gru(inputs, config.size)


def step_all(
    cells: Sequence[Lstm | Gru], inputs: Tensor, memories: Sequence[dict[str, Tensor]], starts: Tensor
) -> list[tuple[Tensor, dict[str, Tensor]]]:
    """Advances several cells of one kind and size by the same frame; see their `step`. LSTMs run side by side."""
    lstms = [cell for cell in cells if isinstance(cell, Lstm)]
    if len(lstms) < len(cells):
        return [cell.step(inputs, memory, starts) for cell, memory in zip(cells, memories, strict=True)]
    ran = _run_lstms(lstms, inputs.unsqueeze(0), memories, starts.unsqueeze(0))
    after = [(outputs.squeeze(0), last_cell) for outputs, last_cell in ran]
    return [(hidden, {"hidden": hidden, "cell": last_cell}) for hidden, last_cell in after]


def unroll_all(
    cells: Sequence[Lstm | Gru], inputs: Tensor, memories: Sequence[dict[str, Tensor]], starts: Tensor
) -> list[Tensor]:
    """Runs several cells of one kind and size over the same segments; see their `unroll`. LSTMs run side by side."""
    lstms = [cell for cell in cells if isinstance(cell, Lstm)]
    if len(lstms) < len(cells):
        return [cell.unroll(inputs, memory, starts) for cell, memory in zip(cells, memories, strict=True)]
    return [outputs for outputs, _ in _run_lstms(lstms, inputs, memories, starts)]


def _run_lstms(
    lstms: Sequence[Lstm], inputs: Tensor, memories: Sequence[dict[str, Tensor]], starts: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Returns outputs `(steps, rows, size)` and the last cell state `(rows, size)` of each."""
    networks = [
        Network(lstm.input_weight, lstm.bias, lstm.hidden_weight, memory["hidden"], memory["cell"])
        for lstm, memory in zip(lstms, memories, strict=True)
    ]
    keep = (~starts).unsqueeze(-1)
    if supports(inputs, networks[0]):
        return run_lstms(inputs, networks, keep.to(inputs.dtype))
    projected = [lstm.project(inputs) for lstm in lstms]
    dtype = projected[0].dtype
    with _full_precision(inputs.device.type):
        # The cell stays in full precision under autocast: it is a sum over many steps.
        ran = [
            lstm_sequence(given, network.weight.to(dtype), network.hidden.to(dtype), network.cell, keep.to(dtype))
            for given, network in zip(projected, networks, strict=True)
        ]
    return [(outputs.to(cell.dtype), cell) for outputs, cell in ran]


def _full_precision(device_type: str) -> AbstractContextManager[object]:
    """Returns a context without autocast; entering one costs as much as a small operation, so only where needed."""
    if not torch.is_autocast_enabled(device_type):
        return nullcontext()
    return torch.autocast(device_type, enabled=False)
