"""Episode metrics of Brawl: what is summed over a match, and the numbers computed from the sums."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.step_info import StepInfo

DANGER_Y = 4.2  # units; y grows downward, so deeper than this is below both grounds' tops and near the kill box

RATIOS: Mapping[str, tuple[str, str]] = MappingProxyType({"damage_ratio": ("damage_dealt", "damage_taken")})

_SUMMED_EVENTS = (
    *("damage_dealt", "damage_taken", "knockouts", "knocked_out"),
    *("falls", "pickups", "attacks", "stun_hits"),
)


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Return the quantities to sum over a match, in the shape of the step's tensors."""
    quantities = {name: info.events[name] for name in _SUMMED_EVENTS}
    quantities["danger"] = (info.state_metrics["y"] > DANGER_Y).float()
    return quantities


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Return the metrics of each match from the sums of `per_step` and the lengths in steps, `(matches,)` each.

    A match ends with the last stock of either fighter, so its length is the survival time: the whole time
    limit if both stand to the end, less after an early defeat or an early win.
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


METRICS = EpisodeMetrics(per_step, per_episode, ratios=RATIOS)
