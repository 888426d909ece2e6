"""Many policies of one architecture in one call: parameters stacked over slots, each row choosing its own."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from ludus.core.errors import ConfigError, StateError, UnsupportedError
from ludus.networks.gaussian import GaussianHead, StateDependentGaussianHead
from ludus.networks.mlp import Mlp
from ludus.networks.normaliser import Normaliser
from ludus.networks.recurrent import Gru, Lstm
from ludus.policies.grouping import Grouping, make_grouping
from ludus.policies.memory import Memory, part_of
from ludus.policies.policy import Policy, Step
from ludus.policies.stacked_modules import (
    StackedConvolution,
    StackedGaussianHead,
    StackedGru,
    StackedLayerNorm,
    StackedLinear,
    StackedLstm,
    StackedMlp,
    StackedNormaliser,
    StackedStateDependentGaussianHead,
    Twin,
)

_TWINS: dict[type[nn.Module], Callable[[Any, Grouping], nn.Module]] = {
    nn.Linear: StackedLinear,
    nn.Conv2d: StackedConvolution,
    nn.LayerNorm: StackedLayerNorm,
    Mlp: StackedMlp,
    Normaliser: StackedNormaliser,
    Lstm: StackedLstm,
    Gru: StackedGru,
    GaussianHead: StackedGaussianHead,
    StateDependentGaussianHead: StackedStateDependentGaussianHead,
}


class StackedPolicy:
    """Snapshots of a policy that play side by side; its entrances for rollouts are those of `Policy`.

    Inside is a `Policy` in which every module with parameters has been replaced by its stacked twin. All tensors are
    fixed and changed in place, so that a CUDA graph may hold the step; the number of rows must then stay the same.

    Attributes:
        slots: How many snapshots there is room for.
        device: Where it lives.
        values: Whether `step` and `value` give values; zeros otherwise, which saves the critic's work.
    """

    def __init__(self, policy: Policy, slots: int, *, values: bool = True, grouping: Grouping | None = None) -> None:
        """Makes room; nothing is loaded yet.

        Args:
            policy: Whose architecture it is.
            slots: How many snapshots.
            values: Whether values are wanted.
            grouping: How rows of one slot come together; what suits the device and the precision if None.

        Raises:
            UnsupportedError: A part of the architecture has no stacked twin.
        """
        self.slots, self.device, self.values = slots, policy.device, values
        self._source = policy
        self._template = policy.initial(1)
        self._shapes = {name: tuple(tensor.shape) for name, tensor in policy.state().items()}
        self._grouping = grouping or make_grouping(slots, policy.device, bfloat16=policy.uses_bfloat16)
        with torch.random.fork_rng(devices=[]):  # drawing parameters that are replaced at once must not show
            self._network = Policy(policy.spec, policy.config, policy.device)
        self._network.returns = None  # a snapshot plays, it does not learn
        if not values:
            self._network.critic_recurrent = None
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
        """Takes what `Policy.state` gave, from any device, into a slot.

        Raises:
            ConfigError: There is no such slot.
            StateError: A name is missing or superfluous, or a shape differs.
        """
        if not 0 <= slot < self.slots:
            raise ConfigError(f"slot {slot} was asked for; valid: 0 to {self.slots - 1}")
        given = {name: tuple(tensor.shape) for name, tensor in state.items()}
        if given != self._shapes:
            wrong = sorted(n for n in {*given, *self._shapes} if given.get(n) != self._shapes.get(n))
            raise StateError(f"the snapshot's state does not fit: {', '.join(wrong[:5])}; use the same policy config")
        for name, twin in self._twins.items():
            kind = "normaliser" if isinstance(twin, StackedNormaliser) else "parameter"
            twin.load(slot, part_of(state, f"{kind}.{name}"))

    @torch.no_grad()
    def choose(self, slots: Tensor) -> None:
        """Takes the slot of every row; needed before the first step, and again whenever one changes.

        Args:
            slots: `(rows,)` int64; -1 for rows that nobody asks for, which get any actions and memory, but finite ones.
        """
        self._rows = slots.numel()
        self._grouping.choose(slots)

    def initial(self, rows: int) -> Memory:
        """Returns the memory of `rows` rows that have seen nothing; empty without memory."""
        return {name: tensor.repeat(rows, *(1,) * (tensor.dim() - 1)) for name, tensor in self._template.items()}

    def step(
        self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor, noise: Tensor | None = None
    ) -> Step:
        """Acts on one frame; see `Policy.step`. Every row uses the parameters of its slot."""
        self._check(starts)
        if self._source.is_compiled and not self._network.is_compiled and self.device.type == "cuda":
            self._network.use_compiler()  # on a CPU the groups' sizes change with every choice
        return self._network.step(observations, memory, starts, noise)

    def value(self, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor) -> Tensor:
        """Returns values `(rows,)` of a frame without moving on; see `Policy.value`."""
        self._check(starts)
        return self._network.value(observations, memory, starts)

    def draw_noise(self, steps: int, rows: int, generator: torch.Generator) -> Tensor:
        """Draws noise `(steps, rows, *head.noise_shape)`."""
        return self._network.draw_noise(steps, rows, generator)

    def clip_actions(self, actions: Tensor) -> Tensor:
        """Returns what goes to the world: continuous actions cut to the action space's bounds."""
        return self._network.clip_actions(actions)

    def _check(self, starts: Tensor) -> None:
        if starts.numel() != self._rows:
            raise StateError(f"a step has {starts.numel()} rows, but slots were chosen for {self._rows}; call choose")


class _Zeros(nn.Module):
    """Stands where nobody asks for values."""

    def forward(self, features: Tensor) -> Tensor:
        """Maps `(rows, features)` to zeros `(rows, 1)`."""
        return features.new_zeros(features.shape[0], 1)


def _replace(parent: nn.Module, grouping: Grouping, prefix: str = "") -> dict[str, Twin]:
    """Puts twins in the places of all modules with parameters or statistics; returns them by their path."""
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
                "train without past selves as opponents, or with another architecture"
            )
        else:
            twins |= _replace(child, grouping, f"{path}.")
    return twins
