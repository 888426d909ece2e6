"""Questions about a policy that neither playing nor learning asks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ludus.core.errors import StateError, UnsupportedError, brief
from ludus.nn.heads import MaskedCategoricalHead
from ludus.nn.recurrent import RecurrentState
from ludus.policies.outputs import Entries

if TYPE_CHECKING:
    from ludus.policies.policy import Policy


def check_finite(state: Mapping[str, Tensor]) -> None:
    """Raise StateError if parameters or statistics are NaN or Inf: they would play on, and lose."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise StateError(f"{brief(name)} contains NaN or Inf; train the agent again or use an earlier checkpoint")


@torch.no_grad()
def kind_shares(
    policy: "Policy", observations: Entries, memory: RecurrentState, episode_starts: Tensor, *, explores: bool = True
) -> Tensor:
    """Return the probability of every kind of action, `(steps, rows, kinds)`, over segments as in `Policy.unroll`.

    It is that of the mixture with which experience is collected or, unless `explores`, the policy's own. Raise
    UnsupportedError if its actions have no kinds.
    """
    head = policy.head
    if not isinstance(head, MaskedCategoricalHead):
        raise UnsupportedError(
            f"actions of {policy.spec.id} have no kinds that the policy knows of; valid: Discrete and MultiDiscrete "
            "actions with a mask, with factors that do not always count, or with policy.exploration"
        )
    logits = head.choice_logits(policy.action_parameters(observations, memory, episode_starts))
    if explores and policy.mixture is not None:
        return policy.mixture.kind_shares(logits)
    return torch.softmax(logits[..., : head.choices.counts[0]], -1)
