"""Mirrored experience: a rollout and its mirror image side by side, so that both are learned from alike."""

import torch

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec, Mirror
from ludus.policies.policy import Policy
from ludus.rollout.buffer import RolloutBuffer

_FRAMES_AT_ONCE = 32_768  # evaluated in one call, which bounds the memory that it takes


def check_symmetry(spec: EnvSpec, *, has_memory: bool) -> Mirror:
    """Return the mirror of a world; raise ConfigError if there is none, or if the policy has a memory."""
    if spec.mirror is None:
        raise ConfigError(
            f"ppo.symmetry_augmentation is on, but {spec.id} says nothing of how it looks in a mirror; switch it off"
        )
    if has_memory:
        raise ConfigError(
            "ppo.symmetry_augmentation is on, but the policy has a memory, whose mirror image is unknown; "
            "switch ppo.symmetry_augmentation off, or leave out policy.recurrent and policy.strategy"
        )
    return spec.mirror


class SymmetryAugmentation:
    """A buffer with twice the rows of a rollout: first its own, then their mirror images.

    Images have the advantages and returns of their originals: what happens in a mirror is worth the same. Their old
    log probabilities and values are those that the policy of the rollout gives to them, so that every ratio is 1
    before the first step of an update.

    Attributes:
        buffer: What `fill` fills.
    """

    def __init__(self, mirror: Mirror, policy: Policy, rollout: RolloutBuffer) -> None:
        """Allocate buffers for rollouts like the given one; `check_symmetry` returns the mirror."""
        self._mirror, self._policy = mirror, policy
        self.buffer = RolloutBuffer(policy, rollout.steps, 2 * rollout.rows, rollout.sequence_length)

    @torch.no_grad()
    def fill(self, rollout: RolloutBuffer) -> RolloutBuffer:
        """Return a finished rollout with its mirror image; the next call overwrites what this one returned."""
        buffer, rows, mirror = self.buffer, rollout.rows, self._mirror
        for name, seen in rollout.observations.items():
            buffer.observations[name][:, :rows].copy_(seen)
            buffer.observations[name][:, rows:].copy_(mirror.observations[name].apply(seen))
        buffer.actions[:, :rows].copy_(rollout.actions)
        buffer.actions[:, rows:].copy_(mirror.actions.apply(rollout.actions))
        for name in ("episode_starts", "dones", "rewards", "bootstraps", "advantages", "returns"):
            original, both = getattr(rollout, name), getattr(buffer, name)
            both[:, :rows].copy_(original)
            both[:, rows:].copy_(original)
        buffer.log_probs[:, :rows].copy_(rollout.log_probs)
        buffer.values[:, :rows].copy_(rollout.values)
        self._evaluate_images(rows)
        return buffer

    def _evaluate_images(self, rows: int) -> None:
        buffer = self.buffer
        steps = max(1, _FRAMES_AT_ONCE // rows)
        for first in range(0, buffer.steps, steps):
            part = (slice(first, first + steps), slice(rows, None))
            observations = {name: tensor[part] for name, tensor in buffer.observations.items()}
            found = self._policy.unroll(observations, {}, buffer.episode_starts[part], buffer.actions[part])
            buffer.log_probs[part] = found.log_probs
            buffer.values[part] = found.values
