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


class Film(nn.Module):
    """Feature-wise linear modulation: a scale and a shift of every hidden unit of an `Mlp`, made of a condition.

    h' = h (1 + gamma) + beta after each activation. The layer that gives gamma and beta starts at 0: nothing changes at
    first (Perez et al. 2018, arXiv 1709.07871).
    """

    def __init__(self, condition: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.linear = nn.Linear(condition, 2 * sum(hidden))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, condition: Tensor) -> Tensor:
        """Map conditions `(..., condition)` to `(..., 2 * units)`: gamma and beta of each layer in turn."""
        changes: Tensor = self.linear(condition)
        return changes


def film_parts(film: Tensor | None, hidden: Sequence[int]) -> list[Tensor | None]:
    """Divide what `Film` gives among layers of the given sizes; None for every layer if there is nothing."""
    return [None] * len(hidden) if film is None else list(torch.split(film, [2 * size for size in hidden], dim=-1))


def modulate(outputs: Tensor, film: Tensor | None) -> Tensor:
    """Scale and shift a layer's outputs `(..., units)` by its part `(..., 2 * units)` of what `Film` gives."""
    if film is None:
        return outputs
    gamma, beta = film.chunk(2, dim=-1)
    return torch.addcmul(outputs + beta, outputs, gamma)


class Mlp(nn.Module):
    """Linear layers, each followed by the activation and dropout; with no layers it passes its input on."""

    def __init__(
        self, inputs: int, hidden: Sequence[int], activation: str, *, orthogonal: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        sizes = (inputs, *hidden)
        self.hidden = tuple(hidden)
        self.output_size = sizes[-1]
        self.activation_name = activation
        self._activation = activation_function(activation)
        gain = HIDDEN_GAIN if orthogonal else None
        self.layers = nn.ModuleList(make_linear(sizes[i], sizes[i + 1], gain) for i in range(len(hidden)))
        self.dropout = nn.Dropout(dropout) if dropout > 0.0 else None

    def forward(self, inputs: Tensor, film: Tensor | None = None) -> Tensor:
        """Map `(..., inputs)` to `(..., output_size)`; `film` is what `Film` gives for these layers."""
        films = film_parts(film, self.hidden)
        for layer, change in zip(self.layers, films, strict=True):
            inputs = modulate(self._activation(layer(inputs)), change)
            if self.dropout is not None:
                inputs = self.dropout(inputs)
        return inputs
