"""The multi-layer perceptron, and its parts: activations by name and linear layers with orthogonal initialisation."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.autograd import Function
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
_ALIGNMENT = 8  # numbers: 16 bytes


def activation_function(name: str) -> Activation:
    """Return the activation called `name`."""
    if name not in _ACTIVATIONS:
        raise UnknownNameError("activation", name, ACTIVATION_NAMES)
    return _ACTIVATIONS[name]


_IS_DRAWING: ContextVar[bool] = ContextVar("_IS_DRAWING", default=True)


@contextmanager
def undrawn() -> Iterator[None]:
    """Draw no orthogonal weights in this context: a file gives others, and those of 5,000 x 5,000 take a minute."""
    before = _IS_DRAWING.set(False)
    try:
        yield
    finally:
        _IS_DRAWING.reset(before)


def orthogonal(weight: Tensor, gain: float = 1.0) -> None:
    """Draw orthogonal weights; nothing on the meta device, where older versions of torch import their compiler."""
    if not weight.is_meta and _IS_DRAWING.get():
        nn.init.orthogonal_(weight, gain)


class ProductLinear(Function):
    """A linear layer whose bias gradient is a matrix product.

    Over the hundred thousand rows of a minibatch on a GPU, torch's own sum takes five times as long: as long as the
    gradient of the weights.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Any:  # noqa: ANN401
        """Map `(..., inputs)` to `(..., outputs)`."""
        ctx.save_for_backward(inputs, weight)
        return functional.linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # noqa: ANN401
        """Return the gradients of inputs, weight and bias."""
        inputs, weight = ctx.saved_tensors
        (grad,) = gradients
        rows = grad.reshape(-1, grad.shape[-1])
        to_inputs = (rows @ weight).view_as(inputs) if ctx.needs_input_grad[0] else None
        to_weight = rows.t() @ inputs.reshape(-1, inputs.shape[-1])
        return to_inputs, to_weight, torch.mv(rows.t(), rows.new_ones(rows.shape[0]))


def aligned(size: int) -> int:
    """Return the next width at which a GPU's tensor cores read bfloat16 rows at full speed."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Do what `torch.nn.functional.linear` does, also under autocast, by `ProductLinear` where a GPU learns.

    Inputs may end with zeros up to their `aligned` width.
    """
    if inputs.shape[-1] == aligned(weight.shape[-1]) > weight.shape[-1]:
        weight = functional.pad(weight, (0, inputs.shape[-1] - weight.shape[-1]))
    if not inputs.is_cuda or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return functional.linear(inputs, weight, bias)
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        inputs, weight, bias = inputs.to(dtype), weight.to(dtype), bias.to(dtype)
    outputs: Tensor = ProductLinear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return outputs


def make_linear(inputs: int, outputs: int, gain: float | None) -> nn.Linear:
    """Make a linear layer with zero bias and orthogonal weights of the given gain; torch's own start if None."""
    layer = nn.Linear(inputs, outputs)
    if gain is not None:
        orthogonal(layer.weight, gain)
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

    @property
    def _linears(self) -> Iterator[nn.Linear]:
        return (layer for layer in self.layers if isinstance(layer, nn.Linear))

    def forward(self, inputs: Tensor, film: Tensor | None = None) -> Tensor:
        """Map `(..., inputs)` to `(..., output_size)`; `film` is what `Film` gives for these layers."""
        films = film_parts(film, self.hidden)
        for layer, change in zip(self._linears, films, strict=True):
            inputs = modulate(self._activation(linear(inputs, layer.weight, layer.bias)), change)
            if self.dropout is not None:
                inputs = self.dropout(inputs)
        return inputs
