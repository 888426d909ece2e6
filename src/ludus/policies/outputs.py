"""What a policy gives: for one frame, for whole segments, and between its parts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from torch import Tensor

from ludus.nn.recurrent import RecurrentState

Entries: TypeAlias = Mapping[str, Tensor]  # observations by entry, with the rows first


class Step(NamedTuple):
    """What `Policy.step` gives: actions, log probabilities `(rows,)`, values `(rows,)` and the next memory."""

    actions: Tensor
    log_probs: Tensor
    values: Tensor
    memory: RecurrentState


class Evaluation(NamedTuple):
    """What `Policy.unroll` gives, `(steps, rows)` each."""

    # Of the actions, under the behaviour that rollouts are collected with: with exploration, the mixture.
    log_probs: Tensor
    entropies: Tensor  # of the policy alone, without exploration
    values: Tensor  # of the observations
    auxiliary: Mapping[str, Tensor] = MappingProxyType({})  # `(steps, rows, ...)`, predictions of auxiliary losses


class Trunk(NamedTuple):
    """Features of actor and critic before their own layers; the same tensor where they share their memory."""

    actor: Tensor  # `(..., features)`
    critic: Tensor  # likewise
    # `(..., cells, features)`, what is seen of each place where actions have places, else None.
    places: Tensor | None = None
    seen: Tensor | None = None  # `(..., features)`, of the observation alone; None with a network that gives actions
    latent: Tensor | None = None  # `(..., size)`, what the strategy encoder gave; None without one
