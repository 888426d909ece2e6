"""The rollout buffer: everything of one rollout, preallocated on the device."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from ludus.envs.base import action_dtypes
from ludus.nn.mlp import aligned
from ludus.policies.policy import Policy, RecurrentState


class Targets(NamedTuple):
    """What a minibatch is learned from, `(steps, rows)` each."""

    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Segments `(sequence_length, segments, ...)` with the memory `(segments, ...)` before their first frames."""

    observations: dict[str, Tensor]
    memory: RecurrentState
    episode_starts: Tensor
    actions: Tensor
    targets: Targets
    labels: dict[str, Tensor] = field(default_factory=dict)  # see `RolloutBuffer.labels`


class Frame(NamedTuple):
    """Views of one step of the buffer, `(rows, ...)`, made once: with few rows, making them costs as much as using."""

    observations: dict[str, Tensor]
    inputs: dict[str, Tensor]  # the same as the policy reads them
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    dones: Tensor
    bootstraps: Tensor
    labels: dict[str, Tensor]


class RolloutBuffer:
    """Steps first, then rows; memories only at the starts of sequences.

    Attributes:
        observations: `(steps, rows, ...)` an entry.
        memory: `(steps / sequence_length, rows, ...)` an entry, the memory before each sequence's first frame.
        actions: `(steps, rows, *action_shape)`.
        episode_starts: `(steps, rows)` bool, frames that are the first of an episode.
        dones: `(steps, rows)` bool, steps in which the episode ended.
        rewards: `(steps, rows)`, as the world gave them.
        bootstraps: `(steps, rows)`, value of the final observation where the episode was truncated, else 0.
        last_values: `(rows,)`, values of the observations after the last step.
        log_probs, values, advantages, returns: `(steps, rows)`.
        labels: What losses beside that of the policy learn from, where the policy or the algorithm has such a loss.
            `bots`: `(steps, rows)` int64, the bot that was played against (`EnvSpec.bots`), -1 for none.
            `opponent_actions`: `(steps, rows, *action_shape)`, what the opponent did in the same step; -1 or NaN where
            that is unknown. `demonstrations`: likewise, what a demonstrator would have done.
        frames: The same, step by step.
    """

    def __init__(
        self,
        policy: Policy,
        steps: int,
        rows: int,
        sequence_length: int,
        *,
        has_demonstrations: bool = False,
    ) -> None:
        """Allocate the tensors.

        Args:
            policy: The policy that plays.
            steps: Steps of a rollout.
            rows: Rows of the learner.
            sequence_length: Steps of a sequence; it divides `steps`, see `PpoConfig.sequence_length_for`.
            has_demonstrations: Whether there is a demonstrator.
        """
        device = policy.device
        self.steps, self.rows = steps, rows
        self.sequence_length = sequence_length
        self._stored = {name: _storage(policy, name, steps, rows) for name in policy.spec.observation_space}
        self.observations = {
            name: self._stored[name][..., : space.shape[-1]] if space.shape else self._stored[name]
            for name, space in policy.spec.observation_space.items()
        }
        self.memory: RecurrentState = {
            name: tensor.new_zeros((steps // self.sequence_length, *tensor.shape))
            for name, tensor in policy.initial(rows).items()
        }
        head = policy.head
        self.actions = torch.zeros((steps, rows, *head.action_shape), dtype=head.action_dtype, device=device)
        flags = torch.zeros((2, steps, rows), dtype=torch.bool, device=device)
        self.episode_starts, self.dones = flags[0], flags[1]
        self._floats = torch.zeros((6, steps, rows), device=device)
        self.rewards, self.bootstraps, self.log_probs, self.values, self.advantages, self.returns = self._floats
        self.last_values = torch.zeros(rows, device=device)
        self.labels: dict[str, Tensor] = {}
        asked = {loss.label for loss in policy.auxiliary_losses.values()}
        if "bots" in asked:
            self.labels["bots"] = torch.full((steps, rows), -1, dtype=torch.int64, device=device)
        if "opponent_actions" in asked:
            dtype = action_dtypes(policy.spec.action_space)[0]
            unknown = float("nan") if dtype.is_floating_point else -1
            self.labels["opponent_actions"] = torch.full(self.actions.shape, unknown, dtype=dtype, device=device)
        if has_demonstrations:
            self.labels["demonstrations"] = torch.zeros_like(self.actions)
        views = zip(self.actions, self.log_probs, self.values, self.dones, self.bootstraps, strict=True)
        self.frames = [
            Frame(_at(t, self.observations), _at(t, self._stored), *step, _at(t, self.labels))
            for t, step in enumerate(views)
        ]
        self._offsets = torch.arange(self.sequence_length, device=device).unsqueeze(1) * rows

    def recorded_bytes(self) -> int:
        """Return the bytes of what is recorded per step and row, without the memories."""
        recorded = (self.actions, self.episode_starts, self.dones, self._floats, *self.observations.values())
        return sum(tensor.nbytes for tensor in (*recorded, *self.labels.values()))

    @property
    def segments(self) -> int:
        """Number of sequences in the buffer; single steps for a policy without memory."""
        return self.steps // self.sequence_length * self.rows

    @property
    def size(self) -> int:
        """Number of experiences in the buffer."""
        return self.steps * self.rows

    def store_memory(self, step: int, memory: Mapping[str, Tensor]) -> None:
        """Keep the memory before `step` if a sequence starts there."""
        if step % self.sequence_length == 0:
            for name, tensor in memory.items():
                self.memory[name][step // self.sequence_length].copy_(tensor)

    def frames_of(self, segments: Tensor) -> Tensor:
        """Return the frames `(sequence_length, segments)` of segments as in `minibatch`, step by step, row by row."""
        if self.sequence_length == 1:
            return segments.unsqueeze(0)
        sequences = segments.div(self.rows, rounding_mode="floor")
        return self._offsets + (sequences * (self.sequence_length * self.rows) + segments.remainder(self.rows))

    def minibatch(self, segments: Tensor) -> Minibatch:
        """Return segments `(segments,)` int64, numbered row by row within a sequence, and sequence after sequence."""
        frames = self.frames_of(segments)
        _, _, *learned = self._floats.flatten(1)[:, frames]
        return Minibatch(
            observations={name: tensor.flatten(0, 1)[frames] for name, tensor in self._stored.items()},
            memory={name: tensor.flatten(0, 1)[segments] for name, tensor in self.memory.items()},
            episode_starts=self.episode_starts.flatten()[frames],
            actions=self.actions.flatten(0, 1)[frames],
            targets=Targets(*learned),
            labels={name: tensor.flatten(0, 1)[frames] for name, tensor in self.labels.items()},
        )


def _at(step: int, entries: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor[step] for name, tensor in entries.items()}


def _storage(policy: Policy, name: str, steps: int, rows: int) -> Tensor:
    """Make the tensor in which an entry is kept: in the type of its space, double precision as float32.

    A policy whose first layers read bfloat16 gets its numbers in that type at once, at a width that suits them: every
    minibatch then gathers half as much, and nothing has to be converted.
    """
    space = policy.spec.observation_space[name]
    shape, dtype = (steps, rows, *(space.shape or ())), str(space.dtype)
    if dtype.startswith("float") and policy.reads_bfloat16(name):
        return torch.zeros((*shape[:-1], aligned(shape[-1])), dtype=torch.bfloat16, device=policy.device)
    kind = torch.float32 if dtype.startswith("float") else getattr(torch, dtype)
    return torch.zeros(shape, dtype=kind, device=policy.device)
