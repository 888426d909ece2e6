"""Reward terms of `nudge-v1`; events such as `arrivals` are terms without being written down."""

from torch import Tensor

from ludus.rewards import StepInfo, reward_term

SETS = {"dense": {"arrivals": 1.0, "lateness": -0.05}, "sparse": {"arrivals": 1.0}}


@reward_term("nudge")
def lateness(info: StepInfo) -> Tensor:
    """1 for every step in which the marble has not arrived."""
    return 1.0 - info.events["arrivals"]
