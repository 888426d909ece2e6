"""The replay buffer: the last so many env steps, as tensors on the device."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ludus.algorithms.sac_td3.collector import OffPolicyRollout
from ludus.core.errors import ConfigError, StateError
from ludus.core.state import check_tensors
from ludus.policies.policy import Policy, part_of


class ReplayBatch(NamedTuple):
    """What a gradient step learns from; Stable-Baselines3 reads it by these names."""

    observations: Tensor  # `(batch, features)`, normalised
    actions: Tensor  # `(batch, actions)` between -1 and 1
    next_observations: Tensor  # `(batch, features)`, normalised; the final ones where an episode ended
    dones: Tensor  # `(batch, 1)`, 1 where the episode was over; not where it was only cut off
    rewards: Tensor  # `(batch, 1)`, normalised
    discounts: None = None  # the same discount counts for all


class ReplayBuffer:
    """A ring of env steps as the world gave them; they are normalised by the statistics of when they are drawn."""

    def __init__(self, policy: Policy, rollout: OffPolicyRollout, capacity: int) -> None:
        """Allocate memory for `capacity` env steps of rollouts like the one given."""
        size = rollout.steps * rollout.rows
        if capacity < size:
            raise ConfigError(
                f"buffer_size {capacity} is less than the {size} env steps of one iteration "
                f"({rollout.steps} steps x {rollout.rows} rows); raise it, or lower train_freq or world.num_envs"
            )
        self._policy, self._capacity = policy, capacity
        # Not filled: pages that nothing was written to take no memory.
        self._storage = {
            name: torch.empty((capacity, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
            for name, tensor in rollout.transitions().items()
        }
        self._offsets = torch.arange(size, device=policy.device)
        self.count = self.position = 0  # env steps that it holds, and where the next one goes
        self._filled = 0  # slots that were ever written to

    def add(self, rollout: OffPolicyRollout) -> None:
        """Add all steps of a rollout, over the oldest ones where it is full."""
        slots = (self._offsets + self.position) % self._capacity
        for name, tensor in rollout.transitions().items():
            self._storage[name].index_copy_(0, slots, tensor)
        self.position = (self.position + len(slots)) % self._capacity
        self.count = min(self.count + len(slots), self._capacity)
        self._filled = max(self._filled, self.count)

    @torch.no_grad()
    def draw(self, batch_size: int, generator: torch.Generator) -> ReplayBatch:
        """Draw env steps evenly, with replacement."""
        chosen = torch.randint(self.count, (batch_size,), generator=generator, device=self._policy.device)
        batch = {name: tensor[chosen] for name, tensor in self._storage.items()}
        rewards, normaliser = batch["rewards"], self._policy.returns
        if normaliser is not None:
            rewards = (rewards * normaliser.scale).clamp(-normaliser.clip, normaliser.clip)
        return ReplayBatch(
            observations=self._features(part_of(batch, "observations")),
            actions=batch["actions"],
            next_observations=self._features(part_of(batch, "following")),
            dones=batch["terminated"].float().unsqueeze(1),
            rewards=rewards.unsqueeze(1),
        )

    def _features(self, entries: dict[str, Tensor]) -> Tensor:
        encoder = self._policy.observations
        features: Tensor = encoder(encoder.flatten(entries))
        return features

    def nbytes(self) -> int:
        """Return its size in bytes when full."""
        return sum(tensor.nbytes for tensor in self._storage.values())

    def state(self) -> dict[str, Tensor]:
        """Return what it holds: views, not copies, since it is large; see `load_state`."""
        return {name: tensor[: self.count] for name, tensor in self._storage.items()}

    def load_state(self, state: Mapping[str, Tensor] | None, position: int, count: int) -> bool:
        """Restore a state with its position and count; return whether the buffer now holds it, or raise StateError.

        What `state` gave shows later additions too, but the only ones between a state and the way back to it are those
        of the rollout that the state names as the next to be added, to the very slots that it will be added to. None
        was not stored: only what is still here can be gone back to, and a buffer that never held as much becomes empty.
        """
        if not (position < self._capacity and count <= self._capacity):
            raise StateError(
                f"the state of the replay buffer does not fit: position {position}, count {count}; it has room for "
                f"{self._capacity} env steps; use the same buffer_size"
            )
        if state is not None:
            self._copy(state, count)
        elif self._filled < count:
            self.position = self.count = 0
            return False
        self.position, self.count = position, count
        self._filled = max(self._filled, count)
        return True

    def _copy(self, state: Mapping[str, Tensor], count: int) -> None:
        held = {name: tensor[:count] for name, tensor in self._storage.items()}
        check_tensors(state, held, "the replay buffer", advice="use the same world and buffer_size")
        for name, own in held.items():
            if state[name].data_ptr() != own.data_ptr():
                own.copy_(state[name])
