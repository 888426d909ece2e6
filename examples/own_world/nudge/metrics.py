"""Episode metrics of `nudge-v1`: they come with every evaluation and with `behavior_metrics.csv`."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.world_parts import EpisodeMetrics, Numbers
from ludus.rewards import StepInfo


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Return what is summed over an episode."""
    return {"arrivals": info.events["arrivals"]}


def per_episode(sums: Numbers, lengths: NDArray[np.int64], rate_hz: float) -> dict[str, NDArray[np.float64]]:
    """Return the share of episodes in which the marble arrived, and how long they took."""
    return {"arrived": sums["arrivals"], "time_s": lengths / rate_hz}


METRICS = EpisodeMetrics(per_step, per_episode)
