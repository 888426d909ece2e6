"""What a policy remembers: the strategy encoder and the LSTMs of actor and critic, and their recurrent state.

The recurrent state of a whole policy is one dict of tensors with the rows first, `{part}.{name}` each.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ludus.core.errors import ConfigError, did_you_mean, listed
from ludus.core.state import MAX_COUNT, Range
from ludus.envs.base import EnvSpec
from ludus.nn.mlp import HIDDEN_GAIN, Mlp, make_linear
from ludus.nn.recurrent import Lstm, RecurrentState, step_all, unroll_all
from ludus.nn.strategy import StrategyConfig, StreamingEncoder
from ludus.policies.config import PolicyConfig
from ludus.policies.modules import compiled

STRATEGY = "strategy"  # prefix of the encoder's recurrent state
NETWORK = "network"  # of that of the user's own network, which may remember too


def clone_recurrent_state(memory: Mapping[str, Tensor]) -> RecurrentState:
    """Return a copy that later steps do not touch."""
    return {name: tensor.clone() for name, tensor in memory.items()}


def memory_ranges(memory: Mapping[str, Tensor]) -> dict[str, Range]:
    """Return the valid range of every whole number in a memory: positions in rings, and frames seen.

    Those of a user's own network can be anything.
    """
    return {
        name: (0, MAX_COUNT)
        for name, tensor in memory.items()
        if tensor.dtype == torch.int64 and NETWORK not in name.split(".")
    }


def with_prefix(prefix: str, memory: Mapping[str, Tensor]) -> RecurrentState:
    """Return the memory with `prefix.` before each name."""
    return {f"{prefix}.{name}": tensor for name, tensor in memory.items()}


def part_of(memory: Mapping[str, Tensor], prefix: str) -> RecurrentState:
    """Return the entries under `prefix.` without it."""
    start = len(prefix) + 1
    return {name[start:]: tensor for name, tensor in memory.items() if name.startswith(f"{prefix}.")}


class Remembered(NamedTuple):
    """What the memory gives actor and critic; the same tensor where they share it."""

    actor: Tensor  # `(..., output_size)`
    critic: Tensor  # likewise
    latent: Tensor | None  # `(..., latent)`, what the strategy encoder gave; None without one


class Memory(nn.Module):
    """Reads features of observations and adds what is remembered; without any part it passes them on.

    Attributes:
        strategy: The strategy encoder, or None.
        recurrent: The LSTM of the actor, and of the critic if they share it; or None.
        critic_recurrent: The critic's own LSTM, or None.
        output_size: Features that it gives.
        strategy_step: The encoder's `step`, compiled or replaced for analysis.
    """

    def __init__(
        self, spec: EnvSpec, config: PolicyConfig, sizes: Mapping[str, int], features: int, *, bfloat16: bool
    ) -> None:
        """Make the parts.

        Args:
            spec: The world.
            config: Settings of the policy.
            sizes: Length of every flat observation entry.
            features: Features of the observation.
            bfloat16: Whether caches, and what goes on without an LSTM, are bfloat16.

        Raises:
            ConfigError: The strategy encoder asks for what the world does not show.
        """
        super().__init__()
        self._config, self._recurrent_config, self._features = config.strategy, config.recurrent, features
        self._bfloat16 = bfloat16
        self._blocks = [] if config.strategy is None else _find_blocks(config.strategy, spec, sizes)
        self.strategy: StreamingEncoder | None = None
        if config.strategy is not None:
            events = _find_events(config.strategy, spec, self.columns)
            self.strategy = StreamingEncoder(len(self.columns), config.strategy, config.dropout, events)
            self.strategy.cache_dtype = torch.bfloat16 if bfloat16 else torch.float32
            self.strategy_step, self._strategy_unroll = self.strategy.step, self.strategy.unroll
        size = features + (config.strategy.latent if config.strategy is not None else 0)
        settings = config.recurrent
        self.recurrent = Lstm(size, settings.size) if settings is not None else None
        separate = settings is not None and settings.critic == "separate"
        self.critic_recurrent = Lstm(size, settings.size) if separate and settings is not None else None
        if settings is not None:
            size = settings.size + (size if settings.skip else 0)
        self.output_size = size

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered from step to step."""
        return self.strategy is None and self.recurrent is None

    @property
    def columns(self) -> tuple[int, ...]:
        """The numbers of its observation entry that the strategy encoder reads, in order; none without one."""
        return tuple(column for start, stop in self._blocks for column in range(start, stop))

    def use_compiler(self) -> None:
        """Let `torch.compile` take the strategy encoder, whose many small operations it joins into few kernels."""
        if self.strategy is not None:
            self.strategy_step, self._strategy_unroll = compiled(self.strategy.step), compiled(self.strategy.unroll)

    def initial(self, rows: int, device: torch.device) -> RecurrentState:
        """Return the memory of `rows` rows that have seen nothing; empty without any part."""
        memory: RecurrentState = {}
        for name, part in ((STRATEGY, self.strategy), *self._cells().items()):
            if part is not None:
                memory |= with_prefix(name, part.initial(rows, device))
        return memory

    def step(
        self, flat: Mapping[str, Tensor], features: Tensor, memory: RecurrentState, episode_starts: Tensor
    ) -> tuple[Remembered, RecurrentState]:
        """Read one frame: flat entries, and the features of the observation `(rows, features)`."""
        latent: Tensor | None = None
        following: RecurrentState = {}
        if self.strategy is not None:
            latent, part = self.strategy_step(self.opponent(flat), part_of(memory, STRATEGY), episode_starts)
            features = torch.cat((features, latent), dim=-1)
            following = with_prefix(STRATEGY, part)
        cells = self._cells()
        if not cells:
            return self._without_lstm(features, latent), following
        steps = step_all(list(cells.values()), features, [part_of(memory, name) for name in cells], episode_starts)
        for name, (_, part) in zip(cells, steps, strict=True):
            following |= with_prefix(name, part)
        return self._beside(features, Remembered(steps[0][0], steps[-1][0], latent)), following

    def unroll(
        self, flat: Mapping[str, Tensor], features: Tensor, memory: RecurrentState, episode_starts: Tensor
    ) -> Remembered:
        """Read whole segments, `(steps, rows, features)`, from the memory before their first frames."""
        latent: Tensor | None = None
        if self.strategy is not None:
            latent = self._strategy_unroll(self.opponent(flat), part_of(memory, STRATEGY), episode_starts)
            features = torch.cat((features, self.without_gradient(latent)), dim=-1)
        cells = self._cells()
        if not cells:
            return self._without_lstm(features, latent)
        outputs = unroll_all(list(cells.values()), features, [part_of(memory, name) for name in cells], episode_starts)
        return self._beside(features, Remembered(outputs[0], outputs[-1], latent))

    def opponent(self, flat: Mapping[str, Tensor]) -> Tensor:
        """Return what the strategy encoder reads of flat entries, `(..., inputs)`."""
        if self._config is None:
            raise ConfigError("this policy has no strategy encoder; set policy.strategy")
        parts = [flat[self._config.entry][..., start:stop] for start, stop in self._blocks]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def without_gradient(self, latent: Tensor) -> Tensor:
        """Return the latent as LSTMs, actor and critic see it: detached where the config asks for that."""
        return latent.detach() if self._config is not None and self._config.stop_gradient else latent

    def begin_alone(self, network: Mlp, *, orthogonal: bool) -> None:
        """Let actor or critic start as those of a policy without memory, and grow to use it as far as it helps.

        What comes out of the memory and of the strategy encoder changes with every update. With random weights on these
        many features beside few of the observation, most of what actor and critic see at first is noise.
        """
        layer = next(iter(network.layers), None)
        if self.recurrent is not None and isinstance(layer, nn.Linear):
            first = self.recurrent.output_size
            alone = make_linear(self._features, layer.out_features, HIDDEN_GAIN if orthogonal else None)
            with torch.no_grad():
                layer.weight.zero_()
                layer.weight[:, first : first + self._features] = alone.weight
                layer.bias.copy_(alone.bias)

    def _cells(self) -> dict[str, Lstm]:
        """Return the LSTMs of actor and critic, or the one that they share, by name."""
        cells = {"recurrent": self.recurrent, "critic_recurrent": self.critic_recurrent}
        return {name: cell for name, cell in cells.items() if cell is not None}

    def _without_lstm(self, features: Tensor, latent: Tensor | None) -> Remembered:
        """Return what actor and critic see without an LSTM; in bfloat16 once, instead of once by each."""
        shared = features.to(torch.bfloat16) if self._bfloat16 else features
        return Remembered(shared, shared, latent)

    def _beside(self, features: Tensor, remembered: Remembered) -> Remembered:
        """Return what is remembered, with what went into the LSTM beside it where the config asks for that."""
        settings = self._recurrent_config
        if settings is None or not settings.skip:
            return remembered
        scale = settings.memory_feature_scale
        parts = (part if scale == 1.0 else part * scale for part in (remembered.actor, remembered.critic))
        actor, critic = (torch.cat((part, features), dim=-1) for part in parts)
        return Remembered(actor, critic, remembered.latent)


def _find_blocks(config: StrategyConfig, spec: EnvSpec, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return the ranges of its entry that the strategy encoder reads."""
    if config.entry not in sizes:
        raise ConfigError(
            f"the strategy encoder reads entry {config.entry!r}, which {spec.id} has not as a vector; "
            f"valid: {listed(sizes)}"
        )
    if config.block is None:
        return [(0, sizes[config.entry])]
    blocks = spec.blocks.get(config.entry, {})
    names = (config.block,) if isinstance(config.block, str) else config.block
    for name in names:
        if name not in blocks:
            raise ConfigError(
                f"the strategy encoder reads block {name!r} of {config.entry!r}, which {spec.id} has "
                f"not; valid: {listed(blocks)}, or null for the whole entry"
            )
    return [blocks[name] for name in names]


def _find_events(config: StrategyConfig, spec: EnvSpec, columns: tuple[int, ...]) -> tuple[int, ...]:
    """Return where the strategy encoder finds the fields of events among its inputs."""
    names = spec.fields.get(config.entry, ())
    read = [names[column] for column in columns] if names else []
    for name in config.events:
        if name not in read:
            raise ConfigError(
                f"policy.strategy.events: {spec.id} has no field {name!r}{did_you_mean(name, read)} in what "
                f"the strategy encoder reads (entry {config.entry!r}, block {config.block!r}); valid: "
                f"{listed(read) if read else 'none, its fields have no names'}"
            )
    return tuple(read.index(name) for name in config.events)
