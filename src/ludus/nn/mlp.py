"""The multi-layer perceptron, and its parts: activations by name and linear layers with orthogonal initialisation."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import UnknownNameError

ActivationName = Literal["tanh", "relu", "elu", "gelu", "silu"]
Activation = Callable[[Tensor], Tensor]

_ACTIVATIONS: dict[str, Activation] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}
ACTIVATION_NAMES: tuple[str, ...] = get_args(ActivationName)

HIDDEN_GAIN = math.sqrt(2.0)


def activation_function(name: str) -> Activation:
    """Return the activation called `name`."""
    if name not in _ACTIVATIONS:
        raise UnknownNameError("activation", name, ACTIVATION_NAMES)
    return _ACTIVATIONS[name]


def make_linear(inputs: int, outputs: int, gain: float | None) -> nn.Linear:
    """Make a linear layer with zero bias and orthogonal weights of the given gain; torch's own start if None."""
    layer = nn.Linear(inputs, outputs)
    if gain is not None:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layer


class Mlp(nn.Module):
    """Linear layers, each followed by the activation and dropout; with no layers it passes its input on."""

    def __init__(
        self, inputs: int, hidden: Sequence[int], activation: str, *, orthogonal: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        sizes = (inputs, *hidden)
        self.output_size = sizes[-1]
        self.activation_name = activation
        self._activation = activation_function(activation)
        gain = HIDDEN_GAIN if orthogonal else None
        self.layers = nn.ModuleList(make_linear(sizes[i], sizes[i + 1], gain) for i in range(len(hidden)))
        self.dropout = nn.Dropout(dropout) if dropout > 0.0 else None

    def forward(self, inputs: Tensor) -> Tensor:
        """Map `(..., inputs)` to `(..., output_size)`."""
        for layer in self.layers:
            inputs = self._activation(layer(inputs))
            if self.dropout is not None:
                inputs = self.dropout(inputs)
        return inputs
