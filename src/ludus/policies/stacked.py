"""Many policies of one architecture in one call: parameters stacked over slots, each row choosing its own."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import ConfigError, StateError, UnsupportedError
from ludus.core.state import check_tensors
from ludus.nn.distributions import VARIANCE_FLOOR, GaussianHead, StateDependentGaussianHead
from ludus.nn.mlp import Activation, Mlp, activation_function, film_parts, modulate
from ludus.nn.normalizer import Normalizer
from ludus.nn.recurrent import Lstm
from ludus.policies.grouping import Grouping, StackedMatrix, make_grouping
from ludus.policies.policy import Entries, Policy, RecurrentState, Step, part_of


class Twin(Protocol):
    """A module whose parameters are stacked over slots."""

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """Take the parameters or statistics of the module it stands for into a slot."""


class StackedLinear(nn.Module):
    """Stacked `nn.Linear`."""

    def __init__(self, layer: nn.Linear, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        self.matrix = StackedMatrix(grouping, layer.in_features, layer.out_features, bias=layer.bias is not None)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self.matrix.load(slot, tensors)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map `(rows, ..., inputs)` to `(rows, ..., outputs)`."""
        return self._grouping.leave(self.matrix(self._grouping.enter(inputs)))


class StackedMlp(nn.Module):
    """Stacked `Mlp`: all layers in the grouping's layout, which is entered and left once."""

    def __init__(self, mlp: Mlp, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        self._activation, self._hidden = _activation(mlp.activation_name, grouping.device), mlp.hidden
        layers = [layer for layer in mlp.layers if isinstance(layer, nn.Linear)]
        self.matrices = [StackedMatrix(grouping, layer.in_features, layer.out_features, bias=True) for layer in layers]

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        for i, matrix in enumerate(self.matrices):
            matrix.load(slot, part_of(tensors, f"layers.{i}"))

    def forward(self, inputs: Tensor, film: Tensor | None = None) -> Tensor:
        """Map `(rows, ..., inputs)` to `(rows, ..., output_size)`; see `Mlp.forward`."""
        if not self.matrices:
            return inputs
        inputs = self._grouping.enter(inputs)
        changes = None if film is None else self._grouping.enter(film)
        for matrix, change in zip(self.matrices, film_parts(changes, self._hidden), strict=True):
            inputs = modulate(self._activation(matrix(inputs)), change)
        return self._grouping.leave(inputs)


class StackedConvolution(StackedLinear):
    """Stacked `nn.Conv2d`, as a linear layer over the patches that the kernel covers."""

    def __init__(self, layer: nn.Conv2d, grouping: Grouping) -> None:
        nn.Module.__init__(self)
        self._grouping = grouping
        self._kernel, self._stride, self._padding = layer.kernel_size, layer.stride, layer.padding
        patch = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
        self.matrix = StackedMatrix(grouping, patch, layer.out_channels, bias=layer.bias is not None)

    def forward(self, pictures: Tensor) -> Tensor:
        """Map `(rows, channels, height, width)` to the same of the convolution's output."""
        pad = tuple(int(edge) for edge in self._padding)
        sizes = [(pictures.shape[2 + i] + 2 * pad[i] - self._kernel[i]) // self._stride[i] + 1 for i in range(2)]
        patches = functional.unfold(pictures, self._kernel, padding=pad, stride=self._stride).transpose(1, 2)
        outputs = super().forward(patches)
        return outputs.transpose(1, 2).reshape(outputs.shape[0], outputs.shape[2], *sizes)


class StackedLayerNorm(nn.Module):
    """Stacked `nn.LayerNorm` over the last axis."""

    def __init__(self, layer: nn.LayerNorm, grouping: Grouping) -> None:
        super().__init__()
        self._grouping, self._shape, self._epsilon = grouping, layer.normalized_shape, layer.eps
        self.weight, self.bias = (torch.zeros(grouping.slots, *self._shape, device=grouping.device) for _ in range(2))

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self.weight[slot].copy_(tensors["weight"])
        self.bias[slot].copy_(tensors["bias"])

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise `(rows, ..., size)`."""
        normed = functional.layer_norm(inputs, self._shape, eps=self._epsilon)
        vectors = self._grouping.vectors
        return torch.addcmul(vectors(self.bias, inputs), normed, vectors(self.weight, inputs))


class StackedNormalizer(nn.Module):
    """Stacked `Normalizer` with frozen statistics."""

    def __init__(self, normaliser: Normalizer, grouping: Grouping) -> None:
        super().__init__()
        self._grouping = grouping
        features = normaliser.features
        self._one = Normalizer(features, normaliser.clip, grouping.device)
        self.shift, self.scale = (torch.zeros(grouping.slots, features, device=grouping.device) for _ in range(2))

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        self._one.load_state(tensors)
        self.shift[slot].copy_(self._one.shift)
        self.scale[slot].copy_(self._one.scale)

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise `(rows, ..., features)`."""
        vectors, clip = self._grouping.vectors, self._one.clip
        return ((inputs - vectors(self.shift, inputs)) * vectors(self.scale, inputs)).clamp(-clip, clip)


class StackedLstm(nn.Module):
    """Stacked step of `Lstm`: one product for inputs and hidden state side by side."""

    def __init__(self, cell: Lstm, grouping: Grouping) -> None:
        super().__init__()
        self._grouping, self._tanh = grouping, _activation("tanh", grouping.device)
        self._linear = StackedMatrix(grouping, cell.input_weight.shape[1] + cell.size, 4 * cell.size, bias=True)

    def load(self, slot: int, tensors: Mapping[str, Tensor]) -> None:
        """See `Twin`."""
        weight = torch.cat((tensors["input_weight"], tensors["hidden_weight"]), dim=1)
        self._linear.load(slot, {"weight": weight, "bias": tensors["bias"]})

    def step(self, inputs: Tensor, memory: RecurrentState, episode_starts: Tensor) -> tuple[Tensor, RecurrentState]:
        """See `Lstm.step`."""
        start = episode_starts.unsqueeze(1)
        hidden, cell = memory["hidden"].masked_fill(start, 0.0), memory["cell"].masked_fill(start, 0.0)
        joined = self._grouping.enter(torch.cat((inputs.to(hidden.dtype), hidden), dim=1))
        gates = self._grouping.leave(self._linear(joined))
        size = cell.shape[1]
        enter, stay, leave = gates[:, : 3 * size].sigmoid().chunk(3, dim=1)
        cell = torch.addcmul(stay * cell, enter, self._tanh(gates[:, 3 * size :].contiguous()))
        hidden = (leave * self._tanh(cell.clone())).to(cell.dtype)
        return hidden, {"hidden": hidden, "cell": cell}


class StackedGaussianHead(GaussianHead):
    """Stacked `GaussianHead`."""

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
        """Map latents `(rows, latent)` to means and log standard deviations."""
        mean = self.linear(latent)
        return torch.cat((mean, self._row_log_stds().to(mean.dtype)), dim=-1)


class StackedStateDependentGaussianHead(StackedGaussianHead):
    """Stacked `StateDependentGaussianHead`."""

    hold_noise = True

    def forward(self, latent: Tensor) -> Tensor:
        """Map latents `(rows, latent)` to means and the log standard deviations that their sizes give."""
        mean = self.linear(latent)
        variances = torch.exp(2.0 * self._row_log_stds())
        variance = torch.bmm(latent.float().square().unsqueeze(1), variances).squeeze(1)
        return torch.cat((mean, 0.5 * torch.log(variance + VARIANCE_FLOOR).to(mean.dtype)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Add the latent times the row's own exploration matrix."""
        exploration = torch.bmm(latent.unsqueeze(1).to(noise.dtype), noise * self._row_log_stds().exp()).squeeze(1)
        return self.mode(parameters) + exploration


def _activation(name: str, device: torch.device) -> Activation:
    """Return an activation that may overwrite its input.

    On an ARM core torch takes 10 ns for a tanh and 3 for a sigmoid; tanh(x) is 2 sigmoid(2 x) - 1.
    """
    if name != "tanh" or device.type != "cpu":
        return activation_function(name)
    return lambda x: x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


_TWINS: dict[type[nn.Module], Callable[[Any, Grouping], nn.Module]] = {
    nn.Linear: StackedLinear,
    nn.Conv2d: StackedConvolution,
    nn.LayerNorm: StackedLayerNorm,
    Mlp: StackedMlp,
    Normalizer: StackedNormalizer,
    Lstm: StackedLstm,
    GaussianHead: StackedGaussianHead,
    StateDependentGaussianHead: StackedStateDependentGaussianHead,
}


class StackedPolicy:
    """Snapshots of a policy that play side by side; its entrances for rollouts are those of `Policy`.

    Inside is a `Policy` in which every module with parameters has been replaced by its stacked twin. All tensors are
    fixed and changed in place, so that a CUDA graph may hold the step; the number of rows must then stay the same.
    Without `values`, `step` and `value` give zeros, which saves the critic's work.
    """

    allows_cuda_graphs = True

    def __init__(self, policy: Policy, slots: int, *, values: bool = True, grouping: Grouping | None = None) -> None:
        """Make room for `slots` snapshots of a policy; raise UnsupportedError if a part has no stacked twin."""
        self.slots, self.device, self.values = slots, policy.device, values
        self._source = policy
        self._template = policy.initial(1)
        self._forms = {name: tensor.to("meta") for name, tensor in policy.state().items()}
        self._grouping = grouping or make_grouping(slots, policy.device, bfloat16=policy.uses_bfloat16)
        with torch.random.fork_rng(devices=[]):  # drawing parameters that are replaced at once must not show
            self._network = Policy(policy.spec, policy.config, policy.device)
        self._network.returns = None  # a snapshot plays, it does not learn
        if not values:
            self._network.memory.critic_recurrent = self._network.critic_film = None
            self._template = {n: t for n, t in self._template.items() if not n.startswith("critic_recurrent.")}
            for name in ("critic", "value_head"):
                self._network.add_module(name, _Zeros())
        self._twins = _replace(self._network, self._grouping)
        self._rows = 0

    @property
    def holds_noise(self) -> bool:
        """Whether the noise of a row stays the same over many steps."""
        return self._network.head.hold_noise

    @torch.no_grad()
    def load(self, slot: int, state: Mapping[str, Tensor]) -> None:
        """Take what `Policy.state` gave, from any device, into a slot; raise StateError if it does not fit."""
        if not 0 <= slot < self.slots:
            raise ConfigError(f"slot {slot} was asked for; valid: 0 to {self.slots - 1}")
        check_tensors(state, self._forms, "the snapshot", advice="use the same policy config")
        for name, twin in self._twins.items():
            kind = "normaliser" if isinstance(twin, StackedNormalizer) else "parameter"
            twin.load(slot, part_of(state, f"{kind}.{name}"))

    @torch.no_grad()
    def choose(self, slots: Tensor) -> None:
        """Take the slot of every row, `(rows,)` int64; needed before the first step, and whenever one changes.

        Unused rows, -1, get any actions and memory, but finite ones.
        """
        self._rows = slots.numel()
        self._grouping.choose(slots)

    def initial(self, rows: int) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing; empty without memory."""
        return {name: tensor.repeat(rows, *(1,) * (tensor.dim() - 1)) for name, tensor in self._template.items()}

    def step(
        self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, noise: Tensor | None = None
    ) -> Step:
        """Act on one frame; see `Policy.step`. Every row uses the parameters of its slot."""
        self._check(episode_starts)
        if self._source.is_compiled and not self._network.is_compiled and self.device.type == "cuda":
            self._network.use_compiler()  # on a CPU the groups' sizes change with every choice
        return self._network.step(observations, memory, episode_starts, noise)

    def value(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return values `(rows,)` of a frame without moving on; see `Policy.value`."""
        self._check(episode_starts)
        return self._network.value(observations, memory, episode_starts)

    def draw_noise(self, steps: int, rows: int, generator: torch.Generator) -> Tensor:
        """Draw noise `(steps, rows, *head.noise_shape)`."""
        return self._network.draw_noise(steps, rows, generator)

    def clip_actions(self, actions: Tensor) -> Tensor:
        """Return what goes to the world: continuous actions cut to the action space's bounds."""
        return self._network.clip_actions(actions)

    def _check(self, episode_starts: Tensor) -> None:
        if episode_starts.numel() != self._rows:
            raise StateError(
                f"a step has {episode_starts.numel()} rows, but slots were chosen for {self._rows}; call choose"
            )


class _Zeros(nn.Module):
    """Takes the place of a value head that is not needed."""

    def forward(self, features: Tensor, film: Tensor | None = None) -> Tensor:
        """Map `(rows, features)` to zeros `(rows, 1)`."""
        return features.new_zeros(features.shape[0], 1)


def _replace(parent: nn.Module, grouping: Grouping, prefix: str = "") -> dict[str, Twin]:
    """Put twins in the places of all modules with parameters or statistics; return them by their path."""
    twins: dict[str, Twin] = {}
    for name, child in list(parent.named_children()):
        path = f"{prefix}{name}"
        if type(child) in _TWINS:
            twin = _TWINS[type(child)](child, grouping)
            parent.add_module(name, twin)
            twins[path] = cast("Twin", twin)
        elif next(child.parameters(recurse=False), None) is not None:
            known = ", ".join(sorted(kind.__name__ for kind in _TWINS))
            raise UnsupportedError(
                f"{path} is a {type(child).__name__}, whose parameters cannot be stacked; valid: {known}; "
                "train without snapshots as opponents, or with another architecture"
            )
        else:
            twins |= _replace(child, grouping, f"{path}.")
    return twins
