"""Episode metrics of Rocket: what is summed over an episode, and the numbers computed from the sums."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.step_info import StepInfo

RATIOS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "goal_ratio": ("team_goals", "conceded"),
        "shot_success": ("goals", "shots"),
        "kickoff_touch_share": ("kickoff_touches", "kickoffs"),
    }
)

_SUMMED_EVENTS = (
    *("goals", "team_goals", "conceded", "assists", "shots", "saves", "touches", "aerial_touches", "demolitions"),
    *("demolished", "boost_used", "boost_gained", "jumps", "dodges", "kickoffs", "kickoff_touches"),
)
_MEAN_MEASURES = ("speed", "ball_speed", "ball_distance", "boost")
_A_MINUTE = ("touches", "boost_used", "boost_gained", "jumps", "dodges")
_SHARES = ("supersonic", "air", "possession", "offense", "goal_side")


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Return the quantities to sum over an episode, in the shape of the step's tensors."""
    state_metrics = info.state_metrics
    quantities = {name: info.events[name] for name in _SUMMED_EVENTS}
    quantities |= {f"mean_{name}": state_metrics[name] for name in _MEAN_MEASURES}
    driving = state_metrics["demolished"] == 0
    quantities["supersonic"] = state_metrics["supersonic"]
    quantities["air"] = (driving & (state_metrics["on_ground"] == 0)).float()
    quantities["possession"] = state_metrics["possession"]
    quantities["offense"] = (state_metrics["ball_y"] > 0).float()
    quantities["goal_side"] = (driving & (state_metrics["y"] < state_metrics["ball_y"])).float()
    return quantities


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Return the metrics of each episode from the sums of `per_step` and the lengths in steps, `(episodes,)` each."""
    seconds = lengths / rate_hz
    numbers = {name: sums[name] for name in _SUMMED_EVENTS if name not in _A_MINUTE}
    numbers |= {f"{name}_a_minute": 60.0 * sums[name] / seconds for name in _A_MINUTE}
    numbers |= {f"{name}_share": sums[name] / lengths for name in _SHARES}
    numbers |= {f"mean_{name}": sums[f"mean_{name}"] / lengths for name in _MEAN_MEASURES}
    for name, (above, below) in RATIOS.items():
        numbers[name] = sums[above] / np.maximum(sums[below], 1.0)
    numbers["length_s"] = seconds
    return numbers


METRICS = EpisodeMetrics(per_step, per_episode, ratios=RATIOS)
