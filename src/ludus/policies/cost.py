"""What an agent costs, computed from its description alone: no space, tensor or module is made for it.

A file of 17 kB can describe observations of gigabytes, and one of 6.6 MB an encoder that remembers 10,000 frames. So a
description is held against limits before anything of it is built. The sums follow the parts of `Policy` one by one;
parameters and recurrent state are exact, and operations count a multiplication and an addition as two, and those of
attention and convolutions likewise. What a user's own network does is unknown: its parameters count.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod

from ludus.core.errors import StateError
from ludus.nn.cnn import CnnConfig
from ludus.nn.heads import SpatialConfig
from ludus.nn.strategy import StrategyConfig
from ludus.policies.auxiliary import auxiliary_losses
from ludus.policies.description import PolicyDescription, SpaceDescription

_FLOAT, _WHOLE = 4, 8  # bytes
_SOFTMAX = 10  # operations for each score: an exponential, and the sums and products around it
# Bytes that Gymnasium takes for a number of a Box, measured while it is made: both bounds and whether each is finite.
_BOX_BYTES = {"float32": 11, "float64": 19}
_SMALL_BOX_BYTES = 5  # of types of one byte
_CHOICE_BYTES = 25  # for a choice of a MultiDiscrete, likewise
_USE_BYTES = 6  # for whether a factor counts for a kind: twice as bool, once as a float

_STEADY = 2e10  # operations of a batched step up to which the time limit of a decision holds as it is


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """What an agent from a file may cost, to load and to play.

    The defaults are at least ten times what the presets need.

    Attributes:
        parameters: Parameters.
        layers: Linear layers and convolutions, and factors of an action: what runs one after the other.
        flops: Floating-point operations of one decision of one seat.
        state_bytes: Recurrent state of one seat.
        working_bytes: Intermediate results of one decision of one seat.
        observation_bytes: What Gymnasium takes for the spaces of observations and actions.
        batch_bytes: State and intermediate results of all seats of a batch; larger batches are divided or refused.
        batch_flops: Operations of a decision of all seats of a batch, likewise.
        load_s: Seconds in which it is built.
        decision_s: Seconds in which it decides for a whole batch; in proportion more if that takes more than 2e10
            operations. An agent that takes longer loses its matches.
    """

    parameters: float = 8e7
    layers: float = 1_000
    flops: float = 2e9
    state_bytes: float = 2 * 2**20
    working_bytes: float = 64 * 2**20
    observation_bytes: float = 64 * 2**20
    batch_bytes: float = 4 * 2**30
    batch_flops: float = 2.5e11
    load_s: float = 60.0
    decision_s: float = 10.0


USUAL_LIMITS = LoadLimits()


@dataclass(slots=True)
class Cost:
    """What one policy costs; for the attributes see `LoadLimits`."""

    observation_bytes: int = 0
    layers: int = 0
    parameters: int = 0
    flops: int = 0
    state_bytes: int = 0
    working_bytes: int = 0

    def check(self, limits: LoadLimits) -> None:
        """Raise StateError if it is above a limit; the error names the quantity, its value and the limit."""
        for field in fields(self):
            value, limit = getattr(self, field.name), getattr(limits, field.name)
            if value > limit:
                raise StateError(_too_much(field.name, value, limit))

    def linear(self, inputs: int, outputs: int, places: int = 1, *, bias: bool = True, runs: bool = True) -> int:
        """Add a linear layer that runs at so many places, or in training alone; return its outputs."""
        self.parameters += outputs * (inputs + bias)
        self.layers += 1
        if runs:
            self.compute(2 * inputs * outputs * places, outputs * places)
        return outputs

    def mlp(self, inputs: int, hidden: Sequence[int], *, runs: bool = True) -> int:
        """Add linear layers one after the other; return the outputs of the last."""
        for width in hidden:
            inputs = self.linear(inputs, width, runs=runs)
        return inputs

    def compute(self, flops: int, numbers: int) -> None:
        """Add operations and the intermediate numbers that they give, all of which may be in memory at once."""
        self.flops += flops
        self.working_bytes += _FLOAT * numbers


@dataclass(slots=True)
class Allowance:
    """What a policy from a file costs and may cost.

    Attributes:
        cost: What it costs.
        limits: What it may cost.
        overdue: Why it is not asked any more, once a decision of it took too long.
    """

    cost: Cost
    limits: LoadLimits
    overdue: str = ""

    @property
    def most_seats(self) -> int:
        """How many seats of one batch it may play."""
        by_memory = self.limits.batch_bytes / max(self.cost.state_bytes + self.cost.working_bytes, 1)
        return int(min(by_memory, self.limits.batch_flops / max(self.cost.flops, 1)))

    def decision_s(self, seats: int) -> float:
        """Return the seconds in which it must decide for so many seats."""
        return self.limits.decision_s * max(1.0, seats * self.cost.flops / _STEADY)


def clocks() -> tuple[float, float]:
    """Return the seconds of two clocks, for `taken_s`: the one on the wall, and that of this process's processors."""
    return time.perf_counter(), time.process_time()


def taken_s(since: tuple[float, float]) -> float:
    """Return the seconds that something took since `clocks` were read: the less of the two.

    While other processes have the machine, the wall clock alone goes on; and several threads take more than its time.
    """
    return min(now - then for now, then in zip(clocks(), since, strict=True))


def check_load_time(seconds: float, limits: LoadLimits) -> None:
    """Raise StateError if loading took longer than it may."""
    if seconds > limits.load_s:
        raise StateError(_too_much("load_s", seconds, limits.load_s))


def _too_much(name: str, value: float, limit: float) -> str:
    quantity = {
        "parameters": "parameters",
        "layers": "layers",
        "flops": "floating-point operations per decision",
        "state_bytes": "bytes of recurrent state per seat",
        "working_bytes": "bytes of intermediate results per seat",
        "observation_bytes": "bytes for its spaces",
        "load_s": "seconds to load",
    }[name]
    return (
        f"it takes {value:.4g} {quantity}, more than the limit of {limit:.4g}; if you trust it, load it in Python by "
        f"Agent.load(path, limits=LoadLimits({name}={1.1 * value:.2g}))"
    )


def cost_of(description: PolicyDescription, network_parameters: int = 0) -> Cost:
    """Compute what the policy of a description costs.

    Args:
        description: It may describe what cannot be built; then the cost is about right.
        network_parameters: Those of the user's own network, if it has one.
    """
    cost, config = Cost(), description.config
    entries = dict(description.observation_space)
    cost.observation_bytes = sum(map(_space_bytes, (*entries.values(), description.action_space)))
    cost.layers += len(description.action_space.counts)
    if len(description.action_space.counts) > 1:  # which factors count for each kind of action
        kinds, *others = description.action_space.counts
        cost.observation_bytes += _USE_BYTES * kinds * len(others)
    cost.parameters += network_parameters
    cost.compute(2 * network_parameters, 0)
    seen, place_size, cells = _add_observations(cost, description, entries)
    size = seen
    strategy = config.strategy
    if strategy is not None:
        _add_strategy(cost, strategy, _strategy_inputs(description, entries, strategy))
        size += strategy.latent
    recurrent = config.recurrent
    if recurrent is not None:
        for _ in range(1 + (recurrent.critic == "separate")):
            cost.linear(size, 4 * recurrent.size)  # four gates
            cost.linear(recurrent.size, 4 * recurrent.size, bias=False)
            cost.state_bytes += _FLOAT * 2 * recurrent.size  # hidden state and cell
        size = recurrent.size + (size if recurrent.skip else 0)
    actor, critic = (cost.mlp(size, hidden) for hidden in (config.net_arch.pi, config.net_arch.vf))
    _add_head(cost, description, actor, place_size, cells)
    cost.linear(critic, 1)
    if strategy is not None:
        _add_strategy_heads(cost, description, strategy, seen)
    return cost


def _space_bytes(space: SpaceDescription) -> int:
    if space.kind == "box":
        return prod(space.shape) * _BOX_BYTES.get(space.dtype, _SMALL_BOX_BYTES)
    return _CHOICE_BYTES * len(space.counts)


def _size(space: SpaceDescription) -> int:
    """Return how many numbers an entry is for a network that sees it flat."""
    return space.counts[0] if space.kind == "discrete" else prod(space.shape)


def _add_observations(
    cost: Cost, description: PolicyDescription, entries: dict[str, SpaceDescription]
) -> tuple[int, int, int]:
    """Add the encoders of all entries; return their features, the features of a place, and places."""
    config, grid, features, place_size, cells = description.config, description.action_places, 0, 0, 0
    for name, space in entries.items():
        if name == description.action_mask and not config.sees_action_mask:
            continue
        # As floats, and once more where it is turned or normalized; a Discrete entry as whole numbers too.
        cost.compute(4 * _size(space), (2 + 2 * (space.kind == "discrete")) * _size(space))
        if config.module is not None:
            continue
        if space.kind != "box" or len(space.shape) != 3:
            features += cost.mlp(_size(space), config.encoder)
        elif grid is not None and config.spatial is not None and name == grid[0]:
            _, rows, columns = grid
            place_size, cells = config.spatial.channels[-1], rows * columns
            _add_cells(cost, space.shape, rows, columns, config.spatial)
            features += 2 * place_size
        else:
            features += _add_cnn(cost, space.shape, config.cnn)
    return features, place_size, cells


def _add_cells(cost: Cost, shape: Sequence[int], rows: int, columns: int, config: SpatialConfig) -> None:
    inputs = (shape[0] // rows) * (shape[1] // columns) * shape[2]
    for outputs in config.channels:
        cost.linear(inputs, outputs, rows * columns)
        inputs = 9 * outputs


def _add_cnn(cost: Cost, shape: Sequence[int], config: CnnConfig) -> int:
    height, width, channels = shape if shape[2] < shape[0] else (shape[1], shape[2], shape[0])
    for outputs, kernel, stride in zip(config.channels, config.kernels, config.strides, strict=True):
        height, width = (max((edge - kernel) // stride + 1, 0) for edge in (height, width))
        channels = cost.linear(channels * kernel * kernel, outputs, height * width)
    return cost.linear(channels * height * width, config.features)


def _strategy_inputs(
    description: PolicyDescription, entries: dict[str, SpaceDescription], config: StrategyConfig
) -> int:
    if config.block is None:
        return _size(entries[config.entry]) if config.entry in entries else 0
    blocks = description.blocks.get(config.entry, {})
    names = (config.block,) if isinstance(config.block, str) else config.block
    return sum(stop - start for start, stop in (blocks.get(name, (0, 0)) for name in names))


def _add_strategy(cost: Cost, config: StrategyConfig, inputs: int) -> None:
    """Add an encoder, which encodes one frame and attends to its caches."""
    width, *look_back, pooled = config.width, *(frames + 1 for frames in config.look_back)
    cost.linear(inputs, width)
    for slots in look_back:
        cost.linear(width, 3 * width)
        cost.compute((4 * width + _SOFTMAX * config.heads) * slots, config.heads * slots)
        cost.linear(width, width)
        cost.linear(width, config.feedforward)
        cost.linear(config.feedforward, width)
        cost.state_bytes += 2 * _FLOAT * slots * width
        cost.compute(0, 2 * slots * width)  # keys and values in full precision
    cost.parameters += 2 * width * (2 * config.layers + 2)  # of the norms
    cost.linear(cost.linear(width, config.pooling), 1, bias=False)
    cost.compute(2 * width * pooled, width)
    cost.linear(cost.linear(width, width), config.latent)
    cost.state_bytes += _FLOAT * pooled * (width + 1) + _WHOLE * (2 + bool(config.events))


def _add_head(cost: Cost, description: PolicyDescription, latent: int, place_size: int, cells: int) -> None:
    config, space, uses = description.config, description.action_space, description.action_uses
    if space.kind == "box":
        actions = prod(space.shape)
        cost.linear(latent, actions)
        if config.squash is not None:
            if config.squash == "stochastic":
                cost.linear(latent, actions)
        elif config.state_dependent_exploration:
            cost.linear(latent, actions, bias=False)
            cost.compute(4 * latent * actions, 2 * latent * actions)  # a matrix of noise for each row
        else:
            cost.parameters += actions
        return
    if not place_size or config.spatial is None or len(space.counts) != 2:
        cost.linear(latent, prod(space.shape) if space.kind == "multi_binary" else sum(space.counts))
        return
    kinds, hidden = space.counts[0], config.spatial.hidden
    groups = sum(row[0] for row in uses if row) if uses else kinds
    cost.linear(latent, kinds)
    cost.linear(place_size, hidden, cells)
    cost.linear(latent, hidden)
    cost.linear(hidden, groups, cells)


def _add_strategy_heads(cost: Cost, description: PolicyDescription, config: StrategyConfig, seen: int) -> None:
    """Add what the encoder's latent is for besides: the losses of training, and the modulation of hidden units."""
    for loss in auxiliary_losses(config).values():
        beside, outputs = loss.head_form(description, seen)
        cost.linear(cost.mlp(config.latent + beside, (config.width,), runs=False), outputs, runs=False)
    for hidden in (description.config.net_arch.pi, description.config.net_arch.vf):
        if description.config.latent_modulates and hidden:
            cost.linear(config.latent, 2 * sum(hidden))
