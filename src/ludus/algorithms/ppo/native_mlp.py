"""PPO for plain MLP policies on the CPU as two compiled functions: the rollout's forward pass and a whole epoch.

With networks this small, calling an operation costs more than doing it. Warp brings a compiler with it, so nothing else
has to be installed; the functions compile on first use (a few seconds), then load from a cache. Their C++ source is in
`cpp/`; its loss is the twin of `loss.py`.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.optimizer import FlatAdam
from ludus.nn.distributions import BernoulliHead, CategoricalHead, GaussianHead, MultiCategoricalHead
from ludus.nn.mlp import Mlp
from ludus.policies.policy import Entries, Policy, RecurrentState, Step
from ludus.rollout.buffer import RolloutBuffer


class Address(IntEnum):
    """Places in the table of memory addresses."""

    WHOLE = 0  # the table of whole numbers (`Whole`), int32
    NUMBERS = 1  # the table of numbers (`Number`), float32
    LAYERS = 2  # the table of linear layers (`Layer` columns), int32
    COUNTS = 3  # choices of a categorical head, int32
    WORKSPACE = 4
    PARAMETERS = 5
    PARTS = 6  # gradients of a minibatch's parts, (parts, parameters); of a job's own part where it has one
    FIRST_AVERAGE = 7  # of Adam
    SECOND_AVERAGE = 8
    ADAM_STEP = 9
    FRAMES = 10  # (frames, features)
    ORDER = 11  # frame of each place in the epoch, int64
    ACTIONS = 12  # (frames, actions) float32
    LOG_PROBS = 13
    VALUES = 14
    ADVANTAGES = 15
    RETURNS = 16
    SUMS = 17  # metrics
    FIRST_RATIO_ERROR = 18
    STOPPED = 19
    NOISE = 20  # of the forward pass, (rows, actions); 0 asks for values alone
    OUT_ACTIONS = 21  # likewise, (rows, actions) float32
    OUT_LOG_PROBS = 22  # likewise, (rows,)
    OUT_VALUES = 23  # likewise, (rows,)
    PARTIAL = 24  # metrics of the parts, (parts, 6)
    GRADIENT = 25


class Whole(IntEnum):
    """Places in the table of whole numbers."""

    LAYERS = 0  # linear layers of both networks
    ACTOR_LAYERS = 1  # the first of them, the actor's
    ROWS = 2  # frames that the job works on
    MINIBATCHES = 3  # in an epoch
    FEATURES = 4
    HEAD = 5  # `Head`
    CHOICES = 6  # independent choices, buttons or dimensions
    OUTPUTS = 7  # outputs of the actor's last layer
    LOG_STD = 8  # place of the log standard deviations in the parameters
    PARAMETERS = 9
    ACTIVATION = 10  # 0 tanh, 1 relu
    NORMALISE = 11
    SCRATCH = 12  # place in the workspace of a padded weight gradient
    BATCH_ROWS = 13  # frames in a minibatch
    FIRST_ROW = 14  # of the job's part within a minibatch
    PARTS = 15
    BATCH = 16  # which minibatch
    PACKED = 17  # place in the workspace of the rows that an outer product packs


class Number(IntEnum):
    """Places in the table of numbers."""

    LEARNING_RATE = 0
    CLIP = 1
    ENTROPY = 2
    VALUE = 3
    VALUE_CLIP = 4  # negative: none
    BETA_1 = 5
    BETA_2 = 6
    EPSILON = 7
    WEIGHT_DECAY = 8
    MAX_NORM = 9
    KL_LIMIT = 10  # negative: none


class Layer(IntEnum):
    """Columns of the table of linear layers; places are in floats."""

    INPUTS = 0
    OUTPUTS = 1
    WEIGHT = 2  # in the parameters
    BIAS = 3
    TRANSPOSED = 4  # in the workspace: weights (inputs, outputs), padded, in panels of 8 columns
    PADDED = 5  # in the workspace: weights (outputs, inputs), likewise
    SOURCE = 6  # in the workspace: what the layer reads
    RESULT = 7  # in the workspace: what it gives, after its activation
    RESULT_GRADIENT = 8  # in the workspace: the loss's slope before the activation
    SOURCE_GRADIENT = 9  # likewise of the layer below; -1 for the first


class Head(IntEnum):
    """Kinds of action heads."""

    CATEGORICAL = 0
    BUTTONS = 1
    GAUSSIAN = 2


LANES = 8  # all sizes are padded to this many
PACKED_ROWS = 128  # that an outer product packs at a time


def padded(size: int) -> int:
    """Return the size rounded up to whole lanes."""
    return -(-size // LANES) * LANES


# Below, handing rows to a thread costs more than it brings.
_ROWS_WORTH_A_THREAD = 512
_ROWS_WORTH_A_FORWARD_THREAD = 128
_WIDEST = 1024  # the compiled code keeps a layer's bias on its stack
_HEADS = {
    CategoricalHead: Head.CATEGORICAL,
    MultiCategoricalHead: Head.CATEGORICAL,
    BernoulliHead: Head.BUTTONS,
    GaussianHead: Head.GAUSSIAN,
}
_ACTIVATIONS = {"tanh": 0, "relu": 1}


def supports(policy: Policy) -> bool:
    """Return whether the policy is one that the compiled functions know: plain MLPs in float32 on the CPU, one process.

    Above a certain width the processor's own libraries are faster, and torch uses all cores.
    """
    plain = policy.device.type == "cpu" and not policy.has_memory
    sizes = (*policy.config.net_arch.pi, *policy.config.net_arch.vf, policy.observations.output_size)
    return (
        plain
        and policy.network is None
        and type(policy.head) in _HEADS
        and policy.config.activation in _ACTIVATIONS
        and not list(policy.observations.parameters())
        and max(sizes) <= _WIDEST
        and not distributed.is_initialized()
    )


class NativeMlp:
    """The rollout step and the update of one policy, compiled.

    It works on the optimiser's own flat tensors, so parameters, averages and state are where they always are.
    """

    def __init__(self, policy: Policy, optimiser: FlatAdam, config: PpoConfig) -> None:
        self._policy, self._optimiser, self._config = policy, optimiser, config
        self._layers = _linear_layers(policy)
        self._places = {id(p): s for p, s in zip(policy.parameters(), optimiser.starts, strict=True)}
        self._parts: list[_Job] = []
        self._forward: dict[int, _Forward] = {}
        self._threads = ThreadPoolExecutor(max(1, torch.get_num_threads() - 1), "ludus-native")  # started when needed

    def epoch(self, order: Tensor, numbers: Mapping[Number, float]) -> None:
        """Run all minibatches of an epoch, its frames in `order` `(frames,)` int64; `begin` comes first."""
        for job in (*self._parts, self._apply):
            for place, number in numbers.items():
                job.numbers[place] = number
            job.set({Address.ORDER: order})
        if len(self._parts) == 1:
            self._parts[0].run()
            return
        for batch in range(int(self._apply.whole[Whole.MINIBATCHES])):
            if self._apply.kept[Address.STOPPED]:
                return
            for job in self._parts:
                job.whole[Whole.BATCH] = batch
            self._run_all(self._parts)
            self._apply.run()

    def begin(self, buffer: RolloutBuffer, sums: Tensor, first_ratio_error: Tensor, stopped: Tensor) -> None:
        """Prepare the epochs over one rollout; metrics add up in the given tensors."""
        if not self._parts:
            self._make_parts(buffer)
        frames = self._frames({name: tensor.flatten(0, 1) for name, tensor in buffer.observations.items()})
        actions, view = buffer.actions.flatten(0, 1).float(), self._policy.canonical
        if view is not None:
            actions = view.turn_keys(actions, view.is_mirrored(buffer.observations).flatten())
        actions = actions.contiguous()
        for job in (*self._parts, self._apply):
            job.set(
                {
                    Address.FRAMES: frames,
                    Address.ACTIONS: actions,
                    Address.LOG_PROBS: buffer.log_probs,
                    Address.VALUES: buffer.values,
                    Address.ADVANTAGES: buffer.advantages,
                    Address.RETURNS: buffer.returns,
                    Address.SUMS: sums,
                    Address.FIRST_RATIO_ERROR: first_ratio_error,
                    Address.STOPPED: stopped,
                }
            )

    def _make_parts(self, buffer: RolloutBuffer) -> None:
        """Create one job for whole epochs, or for large minibatches one per thread and one that joins them."""
        rows = self._config.batch_size
        edges = _shares(rows, _ROWS_WORTH_A_THREAD)
        count = len(edges) - 1
        gradients, partial = torch.zeros(count, self._optimiser.flat.numel()), torch.zeros(count, 6)
        kernel = "gradient_kernel" if count > 1 else "epoch_kernel"
        self._parts = [self._make_job(kernel, stop - start) for start, stop in pairwise(edges)]
        self._apply = self._make_job("apply_kernel", 1) if count > 1 else self._parts[0]
        average, squares, step = self._optimiser.averages()
        for i, job in enumerate((*self._parts, self._apply)):
            own = i if i < count and count > 1 else 0
            job.whole[Whole.FIRST_ROW] = edges[own]
            job.whole[Whole.BATCH_ROWS], job.whole[Whole.PARTS] = rows, count
            job.whole[Whole.MINIBATCHES] = buffer.size // rows
            job.set(
                {
                    Address.PARTS: gradients[own],
                    Address.PARTIAL: partial[own],
                    Address.GRADIENT: self._optimiser.gradient,
                    Address.FIRST_AVERAGE: average,
                    Address.SECOND_AVERAGE: squares,
                    Address.ADAM_STEP: step,
                }
            )

    @torch.no_grad()
    def step(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor, noise: Tensor) -> Step:
        """Act on one frame; see `Policy.step`."""
        view = self._policy.canonical
        mirrored = None if view is None else view.is_mirrored(observations)
        if view is not None and mirrored is not None:
            noise = view.turn_keys(noise, mirrored)  # each key keeps its own
        found = self._run_forward(observations, noise)
        actions = found.actions.to(self._policy.head.action_dtype)
        if view is not None and mirrored is not None:
            actions = view.turn_keys(actions, mirrored)
        return Step(actions, found.log_probs, found.values, memory)

    @torch.no_grad()
    def value(self, observations: Entries, memory: RecurrentState, episode_starts: Tensor) -> Tensor:
        """Return the values of one frame; see `Policy.value`."""
        return self._run_forward(observations, None).values

    def _run_forward(self, observations: Entries, noise: Tensor | None) -> "_Forward":
        """Return the tensors of the forward pass; the next one overwrites them."""
        frames = self._frames(observations)
        rows = frames.shape[0]
        forward = self._forward.get(rows)
        if forward is None:
            forward = self._forward[rows] = self._make_forward(rows)
        for job, part in forward.jobs:
            job.set({Address.FRAMES: frames[part]})
            job.set_noise(None if noise is None else noise[part])
        self._run_all([job for job, _ in forward.jobs])
        return forward

    def _make_forward(self, rows: int) -> "_Forward":
        """Create a job over all rows, or for many rows one per thread: a row's numbers do not depend on the others."""
        shares = _shares(rows, _ROWS_WORTH_A_FORWARD_THREAD)
        actions = torch.zeros(rows, *self._policy.head.action_shape)
        log_probs, values, jobs = torch.zeros(rows), torch.zeros(rows), []
        for start, stop in pairwise(shares):
            job, part = self._make_job("forward_kernel", stop - start), slice(start, stop)
            job.set({Address.OUT_ACTIONS: actions[part]})
            job.set({Address.OUT_LOG_PROBS: log_probs[part], Address.OUT_VALUES: values[part]})
            jobs.append((job, part))
        return _Forward(jobs, actions, log_probs, values)

    def _run_all(self, jobs: "Sequence[_Job]") -> None:
        """Run jobs side by side, the first on the calling thread."""
        others = [self._threads.submit(job.run) for job in jobs[1:]]
        jobs[0].run()
        for other in others:
            other.result()

    def _frames(self, observations: Entries) -> Tensor:
        frames: Tensor = self._policy.observations(self._policy.observations.flatten(dict(observations)))
        return frames.contiguous()

    def _make_job(self, kernel: str, rows: int) -> "_Job":
        policy, config = self._policy, self._config
        actor_layers, _ = self._layers
        layers = [layer for network in self._layers for layer in network]
        table, scratch, workspace = self._plan(rows)
        job = _Job(kernel, table, torch.zeros(workspace), torch.tensor(_counts(policy), dtype=torch.int32))
        job.set({Address.PARAMETERS: self._optimiser.flat.data})
        log_std = self._places[id(policy.head.log_std)] if isinstance(policy.head, GaussianHead) else 0
        for place, value in {
            Whole.LAYERS: len(layers),
            Whole.ACTOR_LAYERS: len(actor_layers),
            Whole.ROWS: rows,
            Whole.FEATURES: policy.observations.output_size,
            Whole.HEAD: _HEADS[type(policy.head)],
            Whole.CHOICES: max(1, *policy.head.action_shape, 1),
            Whole.OUTPUTS: actor_layers[-1].out_features,
            Whole.LOG_STD: log_std,
            Whole.PARAMETERS: self._optimiser.flat.numel(),
            Whole.ACTIVATION: _ACTIVATIONS[policy.config.activation],
            Whole.NORMALISE: config.normalize_advantage,
            Whole.SCRATCH: scratch,
            Whole.PACKED: scratch + max(padded(x.in_features) * padded(x.out_features) for x in layers),
        }.items():
            job.whole[place] = value
        for number, amount in {
            Number.VALUE: config.vf_coef,
            Number.BETA_1: config.betas[0],
            Number.BETA_2: config.betas[1],
            Number.EPSILON: config.adam_eps,
            Number.WEIGHT_DECAY: config.weight_decay,
            Number.MAX_NORM: config.max_grad_norm,
        }.items():
            job.numbers[number] = amount
        return job

    def _plan(self, rows: int) -> tuple[list[list[int]], int, int]:
        """Lay out the workspace; return the table of layers, and place of the scratch and all size in floats."""
        tall = padded(rows)
        frames, top = 0, tall * padded(self._policy.observations.output_size)
        table: list[list[int]] = []
        for network in self._layers:
            source, source_gradient = frames, -1
            for layer in network:
                square = padded(layer.in_features) * padded(layer.out_features)
                result = tall * padded(layer.out_features)
                row = [0] * len(Layer)
                row[Layer.INPUTS], row[Layer.OUTPUTS] = layer.in_features, layer.out_features
                row[Layer.WEIGHT], row[Layer.BIAS] = self._places[id(layer.weight)], self._places[id(layer.bias)]
                row[Layer.TRANSPOSED], row[Layer.PADDED] = top, top + square
                row[Layer.SOURCE], row[Layer.SOURCE_GRADIENT] = source, source_gradient
                row[Layer.RESULT], row[Layer.RESULT_GRADIENT] = top + 2 * square, top + 2 * square + result
                source, source_gradient = row[Layer.RESULT], row[Layer.RESULT_GRADIENT]
                top += 2 * square + 2 * result
                table.append(row)
        sizes = [(padded(x.in_features), padded(x.out_features)) for network in self._layers for x in network]
        largest = max(inputs * outputs for inputs, outputs in sizes)
        packed = PACKED_ROWS * max(inputs + outputs for inputs, outputs in sizes)
        return table, top, top + largest + packed


@dataclass(frozen=True, slots=True)
class _Forward:
    """The forward pass over some number of rows: its jobs, each with its rows, and what they write into."""

    jobs: "list[tuple[_Job, slice]]"
    actions: Tensor
    log_probs: Tensor
    values: Tensor


def _shares(rows: int, least: int) -> list[int]:
    """Return where the rows of each thread begin, and the end: all of them on one thread if each had less than `least`.

    Parts of equal size are those of an update since the first version, whose sums, and so whose bytes, depend on them.
    """
    threads = torch.get_num_threads()
    count = threads if rows >= least * threads else 1
    return [rows * i // count for i in range(count + 1)]


class _Job:
    """The tables of one compiled function and its launch."""

    def __init__(self, kernel: str, layers: list[list[int]], workspace: Tensor, counts: Tensor) -> None:
        self._addresses = np.zeros(len(Address), dtype=np.int64)
        self.whole = np.zeros(len(Whole), dtype=np.int32)
        self.numbers = np.zeros(len(Number), dtype=np.float32)
        self.kept: dict[Address, Tensor] = {}
        self._addresses[Address.WHOLE] = self.whole.ctypes.data
        self._addresses[Address.NUMBERS] = self.numbers.ctypes.data
        self.set(
            {
                Address.LAYERS: torch.tensor(layers, dtype=torch.int32),
                Address.WORKSPACE: workspace,
                Address.COUNTS: counts,
            }
        )
        self._command = _record(kernel, self._addresses.ctypes.data)

    def set(self, tensors: Mapping[Address, Tensor]) -> None:
        """Point entries of the table at tensors, and keep these alive."""
        for address, tensor in tensors.items():
            self.kept[address] = tensor
            self._addresses[address] = tensor.data_ptr()

    def set_noise(self, noise: Tensor | None) -> None:
        """Point at the noise, or at none."""
        if noise is None:
            self._addresses[Address.NOISE] = 0
        else:
            self.set({Address.NOISE: noise})

    def run(self) -> None:
        """Run the compiled function; it is done when this returns."""
        self._command.launch()


@cache
def _kernels() -> Any:  # noqa: ANN401 - a module whose contents Warp makes
    """Import and load the kernels on first use, so that a learner that has no use for them never pays."""
    from ludus.algorithms.ppo import native_kernels as kernels
    from ludus.envs.warp_tools import load_kernels

    load_kernels(kernels, torch.device("cpu"))
    return kernels


def _record(kernel: str, address: int) -> Any:  # noqa: ANN401 - Warp's launch has no static type
    import warp as wp

    found = getattr(_kernels(), kernel)
    return wp.launch(found, dim=1, inputs=[wp.uint64(address)], device="cpu", record_cmd=True)


def _linear_layers(policy: Policy) -> tuple[list[nn.Linear], list[nn.Linear]]:
    def of(network: Mlp, last: nn.Module) -> list[nn.Linear]:
        return [layer for layer in (*network.layers, last) if isinstance(layer, nn.Linear)]

    return of(policy.actor, policy.head.linear), of(policy.critic, policy.value_head)


def _counts(policy: Policy) -> list[int]:
    """Return the number of alternatives of each choice of a categorical head; nothing for the others."""
    head = policy.head
    if isinstance(head, MultiCategoricalHead):
        return list(head.counts)
    return [head.linear.out_features] if isinstance(head, CategoricalHead) else [0]
