"""The evaluation scenarios of a walker: settings that override those of training.

Every walk of a scenario is different, even at the same speed: `starts: fixed` gives each walk its own phase. The noise
makes them differ between batches and between seeds of an evaluation too.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_FIXED: Mapping[str, Any] = {
    "starts": "fixed",
    "start_noise": 0.01,
    "speed_change_s": 0.0,
    "episode_s": 15.0,
    "pushes": {"impulse_ns": 0.0},
}

# The first one selects the best agent: its starts cover the whole range of speeds.
SCENARIOS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
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
