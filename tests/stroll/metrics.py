"""How a walker strolls: how far, how fast, and whether it stands at the end."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.step_info import StepInfo

EXTREMES: Mapping[str, tuple[str, Literal["min", "max", "sum"]]] = {
    "distance_min_m": ("distance_m", "min"),
    "distance_max_m": ("distance_m", "max"),
    "stable_walks": ("stable", "sum"),
}


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Returns what is summed up."""
    return {"distance": info.events["progress"], "falls": info.events["fell"]}


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Returns the numbers of each walk."""
    distance = sums["distance"]
    return {"distance_m": distance, "speed_m_s": distance * rate_hz / lengths, "stable": 1.0 - sums["falls"]}


METRICS = EpisodeMetrics(per_step, per_episode, extremes=EXTREMES)
