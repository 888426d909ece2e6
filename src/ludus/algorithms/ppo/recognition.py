"""The other auxiliary loss of the strategy encoder: which of the world's bots the opponent is, told by the latent."""

from typing import NamedTuple

from torch import Tensor, nn

from ludus.algorithms.ppo.seats import NamedOpponents, Opponents
from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec
from ludus.policies.policy import Policy

_NOBODY = -1  # the label of games without a bot


class Recognised(NamedTuple):
    """How well bots were told apart, `()` each.

    Attributes:
        loss: Mean cross entropy over frames with a bot, in nats; 0 where there is none.
        right: Frames whose bot was the most likely one.
        labelled: Frames with a bot.
    """

    loss: Tensor
    right: Tensor
    labelled: Tensor


def recognised(policy: Policy, spec: EnvSpec, opponents: Opponents | None) -> NamedOpponents | None:
    """Returns the opponents that a policy learns to recognise, None for a policy that does not.

    Args:
        policy: Who learns.
        spec: The world that it plays.
        opponents: Who plays against it.

    Raises:
        ConfigError: There is nobody who could be recognised, or the world has other bots than the policy knows.
    """
    if policy.recognition is None or policy.config.strategy is None:
        return None
    asked = f"policy.strategy.recognise is {policy.config.strategy.recognise:g}"
    if not isinstance(opponents, NamedOpponents):
        raise ConfigError(
            f"{asked}, but no opponents play who could be recognised; set it to 0, or name bots of {spec.id} under "
            f"opponents: {', '.join(spec.bots)}"
        )
    last = policy.recognition[-1]
    if isinstance(last, nn.Linear) and last.out_features != len(spec.bots):
        raise ConfigError(
            f"{asked}, and the policy knows {last.out_features} bots, but {spec.id} has {len(spec.bots)} now: "
            f"{', '.join(spec.bots) or 'none'}; use settings of the world that leave its bots as they are"
        )
    return opponents


def recognition_loss(logits: Tensor, bots: Tensor) -> Recognised:
    """Compares guesses with who really played.

    Args:
        logits: `(steps, rows, bots)`.
        bots: `(steps, rows)` int64, who it was; -1 where it was no bot, which counts nothing.
    """
    flat, labels = logits.flatten(0, -2), bots.flatten()
    labelled = (labels != _NOBODY).sum().to(flat.dtype)
    # A sum over labels instead of a selection: shapes stay the same whatever the labels, as CUDA graphs need it.
    total = nn.functional.cross_entropy(flat, labels, ignore_index=_NOBODY, reduction="sum")
    right = (flat.argmax(-1) == labels).sum().to(flat.dtype)
    return Recognised(total / labelled.clamp(min=1.0), right, labelled)
