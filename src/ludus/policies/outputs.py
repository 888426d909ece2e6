"""What a policy gives: of one step, of whole segments, and what its encoders and memories hand to its heads."""

from typing import NamedTuple

from torch import Tensor

from ludus.policies.memory import Memory


class Step(NamedTuple):
    """What `Policy.step` gives: actions, log probabilities `(rows,)`, values `(rows,)` and the next memory."""

    actions: Tensor
    log_probs: Tensor
    values: Tensor
    memory: Memory


class Evaluation(NamedTuple):
    """What `Policy.unroll` gives, `(steps, rows)` each.

    Attributes:
        log_probs: Of the actions, under the behaviour that rollouts are collected with: with exploration, the mixture.
        entropies: Of the policy alone, without exploration.
        values: Of the observations.
        predictions: `(steps, rows, inputs)`, what the strategy encoder will read some frames later, made of its
            latent; None where nothing is predicted.
        recognitions: `(steps, rows, bots)`, logits of which of the world's bots the opponent is, made of the same
            latent; None where nobody is recognised.
    """

    log_probs: Tensor
    entropies: Tensor
    values: Tensor
    predictions: Tensor | None = None
    recognitions: Tensor | None = None


class Trunk(NamedTuple):
    """Features of actor and critic before their own layers; the same tensor where they share their memory.

    Attributes:
        actor: `(..., features)`.
        critic: Likewise.
        places: `(..., cells, features)`, what is seen of each place where actions have places, else None.
    """

    actor: Tensor
    critic: Tensor
    places: Tensor | None = None
