"""The multi-layer perceptron."""

import math
from collections.abc import Sequence

from torch import Tensor, nn

from ludus.networks.layers import activation_function, make_linear

HIDDEN_GAIN = math.sqrt(2.0)


class Mlp(nn.Module):
    """Linear layers, each followed by the activation; with no layers it passes its input on.

    Attributes:
        output_size: Features that come out.
        activation_name: Name of the activation after every layer.
    """

    def __init__(self, inputs: int, hidden: Sequence[int], activation: str, *, orthogonal: bool = True) -> None:
        super().__init__()
        sizes = (inputs, *hidden)
        self.output_size = sizes[-1]
        self.activation_name = activation
        self._activation = activation_function(activation)
        gain = HIDDEN_GAIN if orthogonal else None
        self.layers = nn.ModuleList(make_linear(sizes[i], sizes[i + 1], gain) for i in range(len(hidden)))

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `(..., inputs)` to `(..., output_size)`."""
        for layer in self.layers:
            inputs = self._activation(layer(inputs))
        return inputs
