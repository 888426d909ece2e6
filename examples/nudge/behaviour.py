"""Behaviour numbers of `nudge-v1`: they come with every evaluation and with `behavior_metrics.csv`."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.behaviour import Numbers
from ludus.rewards import Moment


def per_step(moment: Moment) -> dict[str, Tensor]:
    """Returns what is added up over an episode."""
    return {"arrivals": moment.events["arrivals"]}


def per_episode(sums: Numbers, lengths: NDArray[np.int64], rate_hz: float) -> dict[str, NDArray[np.float64]]:
    """Returns the share of episodes in which the marble arrived, and how long they took."""
    return {"arrived": sums["arrivals"], "time_s": lengths / rate_hz}
