"""LSTM and GRU as modules with a memory: `step` for one frame, `unroll` for segments with episode starts inside."""

from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional

from ludus.networks.recurrence import gru_sequence, lstm_sequence


class RecurrentConfig(BaseModel):
    """Which recurrent memory, and how large.

    Attributes:
        kind: The cell.
        size: Units of the hidden state.
        critic: Whether actor and critic share the memory or the critic has its own of the same size.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["lstm", "gru"] = "lstm"
    size: int = Field(default=256, ge=1)
    critic: Literal["shared", "separate"] = "shared"


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

    def _project(self, inputs: Tensor) -> Tensor:
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
        outputs, cell = self._run(inputs.unsqueeze(0), memory, starts.unsqueeze(0))
        return outputs[0], {"hidden": outputs[0], "cell": cell}

    def unroll(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> Tensor:
        """Maps segments `(steps, rows, inputs)` with starts `(steps, rows)` bool to `(steps, rows, size)`."""
        return self._run(inputs, memory, starts)[0]

    def _run(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> tuple[Tensor, Tensor]:
        projected = self._project(inputs)
        weight = self.hidden_weight.to(projected.dtype)
        keep = (~starts).unsqueeze(-1).to(projected.dtype)
        with torch.autocast(inputs.device.type, enabled=False):
            # The cell stays in full precision under autocast: it is a sum over many steps.
            outputs, cell = lstm_sequence(projected, weight, memory["hidden"].to(projected.dtype), memory["cell"], keep)
        return outputs.to(cell.dtype), cell


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
        projected = self._project(inputs)
        weight = self.hidden_weight.to(projected.dtype)
        keep = (~starts).unsqueeze(-1).to(projected.dtype)
        with torch.autocast(inputs.device.type, enabled=False):
            hidden, bias = memory["hidden"].to(projected.dtype), self.hidden_bias.to(projected.dtype)
            outputs = gru_sequence(projected, weight, bias, hidden, keep)
        return outputs.to(memory["hidden"].dtype)


def make_recurrent(inputs: int, config: RecurrentConfig) -> Lstm | Gru:
    """Makes the cell that `config` names."""
    return Lstm(inputs, config.size) if config.kind == "lstm" else Gru(inputs, config.size)
