"""One rollout of off-policy learning: a few steps of all games, before they join the replay buffer."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import StateError
from ludus.policies.memory import with_prefix
from ludus.policies.policy import Policy


class OffPolicyRollout:
    """Steps first, then rows.

    Attributes:
        observations: `(steps, rows, ...)` an entry, as the world gave them.
        following: `(steps, rows, ...)` an entry, what came after each step; where the episode ended, its final one.
        actions: `(steps, rows, actions)`, between -1 and 1.
        log_probs: `(steps, rows)`, of the actions in their bounds.
        rewards: `(steps, rows)`, as the world gave them.
        terminated: `(steps, rows)` bool, steps in which the episode was over by its own rules.
        ends: `(steps, rows)` bool, steps in which it ended for whichever reason.
    """

    def __init__(self, policy: Policy, steps: int, first: Mapping[str, Tensor]) -> None:
        """Takes memory for `steps` steps of rows whose observations are like the `first`, `(rows, ...)` an entry."""
        device, rows = policy.device, len(next(iter(first.values())))
        self.steps, self.rows = steps, rows
        self.observations, self.following = (
            {
                name: torch.zeros((steps, *tensor.shape), dtype=_kept_type(tensor.dtype), device=device)
                for name, tensor in first.items()
            }
            for _ in range(2)
        )
        self.actions = torch.zeros((steps, rows, *policy.head.action_shape), device=device)
        self.log_probs, self.rewards = torch.zeros((2, steps, rows), device=device)
        self.terminated, self.ends = torch.zeros((2, steps, rows), dtype=torch.bool, device=device)

    def transitions(self) -> dict[str, Tensor]:
        """Returns what the replay buffer keeps, `(steps * rows, ...)` each."""
        kept = with_prefix("observations", self.observations) | with_prefix("following", self.following)
        kept |= {"actions": self.actions, "rewards": self.rewards, "terminated": self.terminated}
        return {name: tensor.flatten(0, 1) for name, tensor in kept.items()}

    def state(self) -> dict[str, Tensor]:
        """Returns copies of what the replay buffer keeps."""
        return {name: tensor.clone() for name, tensor in self.transitions().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It is of another world, another number of games or another `train_freq`.
        """
        own = self.transitions()
        if set(state) != set(own) or any(state[name].shape != own[name].shape for name in own):
            raise StateError("the state of the last rollout does not fit; use the same world, games and train_freq")
        for name, tensor in own.items():  # views of contiguous tensors
            tensor.copy_(state[name])


def _kept_type(dtype: torch.dtype) -> torch.dtype:
    """Returns the type in which observations are kept: double precision ones as float32."""
    return torch.float32 if dtype.is_floating_point else dtype
