"""How a fighter behaves: what is summed up over a match of Brawl, and the numbers that are made of it."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.rewards.moment import Moment

DANGER_Y = 4.2  # units; y grows downward, so deeper than this is below both grounds' tops and near the kill box

RATIOS: Mapping[str, tuple[str, str]] = MappingProxyType({"damage_ratio": ("damage_dealt", "damage_taken")})

_SUMMED_EVENTS = (
    "damage_dealt",
    "damage_taken",
    "knockouts",
    "knocked_out",
    "falls",
    "pickups",
    "attacks",
    "stun_hits",
)


def per_step(moment: Moment) -> dict[str, Tensor]:
    """Returns the quantities whose sums over a match are wanted, in the shape of the moment's tensors."""
    quantities = {name: moment.events[name] for name in _SUMMED_EVENTS}
    quantities["danger"] = (moment.measures["y"] > DANGER_Y).float()
    return quantities


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Returns the numbers of each match, `(matches,)`.

    A match ends with the last stock of either fighter, so its length is how long one survived in it: the whole time
    limit for whoever stands to the end, less after an early defeat and after an early win.

    Args:
        sums: Sums of what `per_step` gave, `(matches,)` each.
        lengths: `(matches,)` steps.
        rate_hz: Steps a second.
    """
    seconds = lengths / rate_hz
    return {
        "damage_dealt": sums["damage_dealt"],
        "damage_taken": sums["damage_taken"],
        "damage_ratio": sums["damage_dealt"] / np.maximum(sums["damage_taken"], 1.0),
        "knockouts": sums["knockouts"],
        "knocked_out": sums["knocked_out"],
        "self_destructs": sums["falls"],
        "danger_share": sums["danger"] / lengths,
        "pickups": sums["pickups"],
        "attack_rate": sums["attacks"] / seconds,
        "stun_hits": sums["stun_hits"],
        "survival_s": seconds,
    }
