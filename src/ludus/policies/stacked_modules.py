"""Stacked twins of the modules that have parameters: the same function, with parameters that each row chooses.

A twin takes rows in their own order, `(rows, ..., features)`, and gives them back in it.
"""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from ludus.networks.gaussian import VARIANCE_FLOOR, GaussianHead
from ludus.networks.layers import Activation, activation_function
from ludus.networks.mlp import Mlp
from ludus.networks.normaliser import Normaliser
from ludus.networks.recurrent import Gru, Lstm
from ludus.policies.grouping import Grouping, StackedMatrix
from ludus.policies.memory import part_of


class Twin(Protocol):
    """A module whose parameters are stacked over slots."""

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """Takes the parameters or statistics of the module it stands for into a slot."""


class StackedLinear(nn.Module):
    """Stands for `nn.Linear`."""

    def __init__(self, layer: nn.Linear, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        self.matrix = StackedMatrix(grouping, layer.in_features, layer.out_features, bias=layer.bias is not None)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self.matrix.load(slot, tensors)

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `(rows, ..., inputs)` to `(rows, ..., outputs)`."""
        return self._grouping.leave(self.matrix(self._grouping.enter(inputs)))


class StackedMlp(nn.Module):
    """Stands for `Mlp`: all layers in the grouping's layout, which is entered and left once."""

    def __init__(self, mlp: Mlp, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        self._activation = _activation(mlp.activation_name, grouping.device)
        layers = [layer for layer in mlp.layers if isinstance(layer, nn.Linear)]
        self.matrices = [StackedMatrix(grouping, layer.in_features, layer.out_features, bias=True) for layer in layers]

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        for i, matrix in enumerate(self.matrices):
            matrix.load(slot, part_of(tensors, f"layers.{i}"))

    def forward(self, inputs: Tensor) -> Tensor:
        """Maps `(rows, ..., inputs)` to `(rows, ..., output_size)`."""
        if not self.matrices:
            return inputs
        inputs = self._grouping.enter(inputs)
        for matrix in self.matrices:
            inputs = self._activation(matrix(inputs))
        return self._grouping.leave(inputs)


class StackedConvolution(nn.Module):
    """Stands for `nn.Conv2d`, as a linear layer over the patches that the kernel covers."""

    def __init__(self, layer: nn.Conv2d, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        self._kernel, self._stride, self._padding = layer.kernel_size, layer.stride, layer.padding
        patch = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
        self.matrix = StackedMatrix(grouping, patch, layer.out_channels, bias=layer.bias is not None)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self.matrix.load(slot, tensors)

    def forward(self, pictures: Tensor) -> Tensor:
        """Maps `(rows, channels, height, width)` to the same of the convolution's output."""
        pad = tuple(int(edge) for edge in self._padding)
        sizes = [(pictures.shape[2 + i] + 2 * pad[i] - self._kernel[i]) // self._stride[i] + 1 for i in range(2)]
        patches = functional.unfold(pictures, self._kernel, padding=pad, stride=self._stride).transpose(1, 2)
        outputs = self._grouping.leave(self.matrix(self._grouping.enter(patches)))
        return outputs.transpose(1, 2).reshape(outputs.shape[0], outputs.shape[2], *sizes)


class StackedLayerNorm(nn.Module):
    """Stands for `nn.LayerNorm` over the last axis."""

    def __init__(self, layer: nn.LayerNorm, grouping: Grouping) -> None:
        super().__init__()
        self._grouping, self._shape, self._epsilon = grouping, layer.normalized_shape, layer.eps
        self.weight, self.bias = (torch.zeros(grouping.slots, *self._shape, device=grouping.device) for _ in range(2))

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self.weight[slot].copy_(tensors["weight"])
        self.bias[slot].copy_(tensors["bias"])

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalises `(rows, ..., size)`."""
        normed = functional.layer_norm(inputs, self._shape, eps=self._epsilon)
        vectors = self._grouping.vectors
        return torch.addcmul(vectors(self.bias, inputs), normed, vectors(self.weight, inputs))


class StackedNormaliser(nn.Module):
    """Stands for `Normaliser`, whose statistics stand still."""

    def __init__(self, normaliser: Normaliser, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        features = normaliser.moments.features
        self._one = Normaliser(features, normaliser.clip, grouping.device)
        self.shift, self.scale = (torch.zeros(grouping.slots, features, device=grouping.device) for _ in range(2))

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self._one.load_state(tensors)
        self.shift[slot].copy_(self._one.shift)
        self.scale[slot].copy_(self._one.scale)

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalises `(rows, ..., features)`."""
        vectors, clip = self._grouping.vectors, self._one.clip
        return ((inputs - vectors(self.shift, inputs)) * vectors(self.scale, inputs)).clamp(-clip, clip)


class StackedLstm(nn.Module):
    """Stands for the step of `Lstm`: one product for inputs and hidden state side by side."""

    def __init__(self, cell: Lstm, grouping: Grouping) -> None:
        super().__init__()
        self._grouping, self._tanh = grouping, _activation("tanh", grouping.device)
        self._linear = StackedMatrix(grouping, cell.input_weight.shape[1] + cell.size, 4 * cell.size, bias=True)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        weight = torch.cat((tensors["input_weight"], tensors["hidden_weight"]), dim=1)
        self._linear.load(slot, {"weight": weight, "bias": tensors["bias"]})

    def step(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """See `Lstm.step`."""
        start = starts.unsqueeze(1)
        hidden, cell = memory["hidden"].masked_fill(start, 0.0), memory["cell"].masked_fill(start, 0.0)
        joined = self._grouping.enter(torch.cat((inputs.to(hidden.dtype), hidden), dim=1))
        gates = self._grouping.leave(self._linear(joined))
        size = cell.shape[1]
        enter, stay, leave = gates[:, : 3 * size].sigmoid().chunk(3, dim=1)
        cell = torch.addcmul(stay * cell, enter, self._tanh(gates[:, 3 * size :].contiguous()))
        hidden = (leave * self._tanh(cell.clone())).to(cell.dtype)
        return hidden, {"hidden": hidden, "cell": cell}


class StackedGru(nn.Module):
    """Stands for the step of `Gru`."""

    def __init__(self, cell: Gru, grouping: Grouping) -> None:
        super().__init__()
        self._grouping, self._tanh = grouping, _activation("tanh", grouping.device)
        self._project = StackedMatrix(grouping, cell.input_weight.shape[1], 3 * cell.size, bias=True)
        self._recur = StackedMatrix(grouping, cell.size, 3 * cell.size, bias=True)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self._project.load(slot, {"weight": tensors["input_weight"], "bias": tensors["bias"]})
        self._recur.load(slot, {"weight": tensors["hidden_weight"], "bias": tensors["hidden_bias"]})

    def step(self, inputs: Tensor, memory: dict[str, Tensor], starts: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """See `Gru.step`."""
        grouping, size = self._grouping, memory["hidden"].shape[1]
        hidden = memory["hidden"].masked_fill(starts.unsqueeze(1), 0.0)
        projected = grouping.leave(self._project(grouping.enter(inputs)))
        recurrent = grouping.leave(self._recur(grouping.enter(hidden)))
        reset, update = (projected + recurrent)[:, : 2 * size].sigmoid().chunk(2, dim=1)
        candidate = self._tanh(torch.addcmul(projected[:, 2 * size :], reset, recurrent[:, 2 * size :]))
        hidden = torch.lerp(candidate.to(hidden.dtype), hidden, update.to(hidden.dtype))
        return hidden, {"hidden": hidden}


class StackedGaussianHead(GaussianHead):
    """Stands for `GaussianHead`."""

    def __init__(self, head: GaussianHead, grouping: Grouping) -> None:
        nn.Module.__init__(self)
        self.noise_kind, self.noise_shape, self.action_shape = head.noise_kind, head.noise_shape, head.action_shape
        self.action_dtype, self._grouping = head.action_dtype, grouping
        self.linear = StackedLinear(head.linear, grouping)  # type: ignore[assignment]
        self.log_stds = torch.zeros(grouping.slots, *head.log_std.shape, device=grouping.device)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self.linear.load(slot, part_of(tensors, "linear"))  # type: ignore[operator]
        self.log_stds[slot].copy_(tensors["log_std"])

    def _row_log_stds(self) -> Tensor:
        return self.log_stds.index_select(0, self._grouping.row_slots)

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents `(rows, latent)` to means and log standard deviations."""
        mean = self.linear(latent)
        return torch.cat((mean, self._row_log_stds().to(mean.dtype)), dim=-1)


class StackedStateDependentGaussianHead(StackedGaussianHead):
    """Stands for `StateDependentGaussianHead`."""

    hold_noise = True

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents `(rows, latent)` to means and the log standard deviations that their sizes give."""
        mean = self.linear(latent)
        variances = torch.exp(2.0 * self._row_log_stds())
        variance = torch.bmm(latent.float().square().unsqueeze(1), variances).squeeze(1)
        return torch.cat((mean, 0.5 * torch.log(variance + VARIANCE_FLOOR).to(mean.dtype)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Adds the latent times the row's own exploration matrix."""
        exploration = torch.bmm(latent.unsqueeze(1).to(noise.dtype), noise * self._row_log_stds().exp()).squeeze(1)
        return self.mode(parameters) + exploration


def _activation(name: str, device: torch.device) -> Activation:
    """Returns an activation that may overwrite its input.

    On an ARM core torch takes 10 ns for a tanh and 3 for a sigmoid; tanh(x) is 2 sigmoid(2 x) - 1.
    """
    if name != "tanh" or device.type != "cpu":
        return activation_function(name)
    return lambda x: x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)
