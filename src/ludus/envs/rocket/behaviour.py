"""How a car plays: what is summed up over an episode of Rocket, and the numbers that are made of it."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.rewards.moment import Moment

RATIOS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "goal_ratio": ("team_goals", "conceded"),
        "shot_success": ("goals", "shots"),
        "kickoff_touch_share": ("kickoff_touches", "kickoffs"),
    }
)

_SUMMED_EVENTS = (
    "goals",
    "team_goals",
    "conceded",
    "assists",
    "shots",
    "saves",
    "touches",
    "aerial_touches",
    "demolitions",
    "demolished",
    "boost_used",
    "boost_gained",
    "jumps",
    "dodges",
    "kickoffs",
    "kickoff_touches",
)
_MEAN_MEASURES = ("speed", "ball_speed", "ball_distance", "boost")
_A_MINUTE = ("touches", "boost_used", "boost_gained", "jumps", "dodges")
_SHARES = ("supersonic", "air", "possession", "offense", "goal_side")


def per_step(moment: Moment) -> dict[str, Tensor]:
    """Returns the quantities whose sums over an episode are wanted, in the shape of the moment's tensors."""
    measures = moment.measures
    quantities = {name: moment.events[name] for name in _SUMMED_EVENTS}
    quantities |= {f"mean_{name}": measures[name] for name in _MEAN_MEASURES}
    driving = measures["demolished"] == 0
    quantities["supersonic"] = measures["supersonic"]
    quantities["air"] = (driving & (measures["on_ground"] == 0)).float()
    quantities["possession"] = measures["possession"]
    quantities["offense"] = (measures["ball_y"] > 0).float()
    quantities["goal_side"] = (driving & (measures["y"] < measures["ball_y"])).float()
    return quantities


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Returns the numbers of each episode, `(episodes,)`, of one seat.

    Args:
        sums: Sums of what `per_step` gave, `(episodes,)` each.
        lengths: `(episodes,)` steps.
        rate_hz: Steps a second.
    """
    seconds = lengths / rate_hz
    numbers = {name: sums[name] for name in _SUMMED_EVENTS if name not in _A_MINUTE}
    numbers |= {f"{name}_a_minute": 60.0 * sums[name] / seconds for name in _A_MINUTE}
    numbers |= {f"{name}_share": sums[name] / lengths for name in _SHARES}
    numbers |= {f"mean_{name}": sums[f"mean_{name}"] / lengths for name in _MEAN_MEASURES}
    for name, (above, below) in RATIOS.items():
        numbers[name] = sums[above] / np.maximum(sums[below], 1.0)
    numbers["length_s"] = seconds
    return numbers
