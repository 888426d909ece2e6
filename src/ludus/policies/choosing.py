"""How likely a policy's choices are: of every kind of action, in whole rollouts or in one decision."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.networks.choices import ChoiceHead
from ludus.policies.memory import Memory
from ludus.policies.policy import Policy


@torch.no_grad()
def kind_shares(
    policy: Policy, observations: Mapping[str, Tensor], memory: Memory, starts: Tensor, *, explores: bool = True
) -> Tensor:
    """Returns the probability of every kind of action, `(steps, rows, kinds)`.

    Args:
        policy: Who chooses.
        observations: `(steps, rows, ...)` an entry.
        memory: Before the first step, `(rows, ...)` an entry.
        starts: `(steps, rows)` bool, frames that are the first of an episode.
        explores: Whether it explores as it does where experience is collected; else the policy's own choice is meant.

    Raises:
        UnsupportedError: Its actions have no kinds.
    """
    head = policy.head
    if not isinstance(head, ChoiceHead):
        raise UnsupportedError(
            f"actions of {policy.spec.id} have no kinds that the policy knows of; valid: Discrete and MultiDiscrete "
            "actions with a mask, with factors that do not always count, or with policy.exploration"
        )
    logits = head.choice_logits(policy.action_parameters(observations, memory, starts))
    if explores and policy.mixture is not None:
        return policy.mixture.kind_shares(logits)
    return torch.softmax(logits[..., : head.choices.counts[0]], -1)
