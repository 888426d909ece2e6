"""The smallest parts: activations by name and linear layers with orthogonal initialisation."""

from collections.abc import Callable
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


def activation_function(name: str) -> Activation:
    """Returns the activation called `name`."""
    if name not in _ACTIVATIONS:
        raise UnknownNameError("activation", name, ACTIVATION_NAMES)
    return _ACTIVATIONS[name]


def make_linear(inputs: int, outputs: int, gain: float | None) -> nn.Linear:
    """Makes a linear layer with zero bias and orthogonal weights of the given gain; torch's own start if None."""
    layer = nn.Linear(inputs, outputs)
    if gain is not None:
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return layer
