"""Episode metrics of Roshambo, shares of throws won and lost, and names of the throws for the strategy analysis."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.world_parts import EpisodeMetrics, StyleLabels
from ludus.rewards.step_info import StepInfo
from ludus.worlds.roshambo.rules import THROWS


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Return the quantities to sum over a match, in the shape of the step's tensors."""
    reward = info.events["reward"]
    return {"won": (reward > 0).float(), "lost": (reward < 0).float()}


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Return the metrics of each match from the sums of `per_step` and the lengths in throws, `(matches,)` each."""
    del rate_hz
    return {"won_share": sums["won"] / lengths, "lost_share": sums["lost"] / lengths}


METRICS = EpisodeMetrics(per_step, per_episode)
STYLES = StyleLabels(action_names=THROWS)
