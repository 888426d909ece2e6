"""The trials in which a walker is evaluated: settings laid over those that it was trained with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_FIXED: Mapping[str, Any] = {
    "starts": "fixed",
    "start_noise": 0.0,
    "speed_change_s": 0.0,
    "episode_s": 15.0,
    "pushes": {"impulse_ns": 0.0},
}

# The first is the one by which the best agent is kept: twenty fixed starts over the whole range of speeds.
TRIALS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "walk": {**_FIXED},
        "speed-0.8": {**_FIXED, "speed": 0.8},
        "speed-1.0": {**_FIXED, "speed": 1.0},
        "speed-1.2": {**_FIXED, "speed": 1.2},
        "speed-1.4": {**_FIXED, "speed": 1.4},
        "changing": {**_FIXED, "speed_change_s": 3.0},
        "pushes": {**_FIXED, "pushes": {"impulse_ns": 15.0}},
    }
)
