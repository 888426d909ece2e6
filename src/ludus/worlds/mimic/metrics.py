"""Episode metrics of Mimic: what is summed over an episode, and the numbers computed from the sums."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.world_parts import EpisodeMetrics, Extreme
from ludus.rewards.step_info import StepInfo
from ludus.worlds.mimic.body import SIDES
from ludus.worlds.mimic.scoring import GRAVITY_M_S2

EXTREMES: Mapping[str, tuple[str, Extreme]] = MappingProxyType(
    {"distance_min_m": ("distance_m", "min"), "stable_walks": ("stable", "sum")}
)

_FAR_M = 15.0  # a walk of this length is stable
_SHORT_M = 7.5  # and so is one of this length that lasts a whole episode,
_SHORT_SHARE = 0.625  # or of this share of a desired way that is shorter than 12 m
_STANDING_M_S = 0.1  # desired speed below which a walker is to stand, and what it may drift by then
_PEAK, _ERROR = "peak_", "error_"
_EVENTS = (
    *("reward", "distance", "energy", "completed", "pushes", "faults"),
    *(f"{name}_{side}" for name in ("strikes", "step", "swing", "stance") for side in SIDES),
)
_MEASURES = ("speed", "desired", "mass")


def per_step(info: StepInfo) -> dict[str, Tensor]:
    """Return the quantities to sum over an episode, in the shape of the step's tensors."""
    quantities = {name: info.events[name] for name in _EVENTS}
    quantities |= {name: info.state_metrics[name] for name in _MEASURES}
    quantities |= {name: tensor for name, tensor in info.events.items() if name.startswith(_PEAK)}
    return quantities | {name: info.state_metrics[name] for name in info.state_metrics if name.startswith(_ERROR)}


def per_episode(
    sums: Mapping[str, NDArray[np.float64]], lengths: NDArray[np.int64], rate_hz: float
) -> dict[str, NDArray[np.float64]]:
    """Return the metrics of each walk from the sums of `per_step` and the lengths in steps, `(walks,)` each."""
    seconds, distance, way = lengths / rate_hz, sums["distance"], sums["desired"] / rate_hz
    least = np.where(way < _STANDING_M_S * seconds, -_STANDING_M_S * seconds, np.minimum(_SHORT_M, _SHORT_SHARE * way))
    strikes = sums["strikes_right"] + sums["strikes_left"]
    steps, swings = (
        [sums[f"{name}_{side}"] / np.maximum(sums[f"strikes_{side}"], 1.0) for side in SIDES]
        for name in ("step", "swing")
    )
    weight = GRAVITY_M_S2 * sums["mass"] / lengths
    errors = {
        f"rmse_{name.removeprefix(_ERROR)}_deg": np.sqrt(values / lengths)
        for name, values in sums.items()
        if name.startswith(_ERROR)
    }
    numbers = {
        "distance_m": distance,
        "duration_s": seconds,
        "speed_m_s": distance / seconds,
        "speed_error": np.abs(distance - way) / np.maximum(way, _STANDING_M_S * seconds),
        "imitation": sums["reward"] / lengths,
        "stable": ((distance >= _FAR_M) | ((sums["completed"] > 0) & (distance >= least))).astype(np.float64),
        "rmse_deg": np.mean(list(errors.values()), axis=0),
        "cadence_steps_min": 60.0 * strikes / seconds,
        "stride_length_m": 2.0 * distance / np.maximum(strikes, 1.0),
        "step_asymmetry": _asymmetry(steps, 0.05),
        "swing_asymmetry": _asymmetry(swings, 0.05),
        "stance_share": 0.5 * (sums["stance_right"] + sums["stance_left"]) / seconds,
        "cost_of_transport": sums["energy"] / (weight * np.maximum(distance, 0.1)),
        "pushes": sums["pushes"],
        "survived": sums["completed"],
    }
    peaks = {f"{name}_nm": values for name, values in sums.items() if name.startswith(_PEAK)}
    return numbers | errors | peaks


def _asymmetry(sides: Sequence[NDArray[np.float64]], least: float) -> NDArray[np.float64]:
    """Return the difference of right and left over their mean, which counts at least `least`."""
    right, left = sides
    return np.abs(right - left) / np.maximum(np.abs(0.5 * (right + left)), least)


METRICS = EpisodeMetrics(per_step, per_episode, extremes=EXTREMES)
