"""Weighs a world's events into the one number that other libraries call a reward."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.base import EnvSpec

# What an event is worth unless the caller says otherwise; worlds that lack an event do without it. A world that
# declares `reward` is rewarded by that alone.
DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "damage_dealt": 0.01,
        "damage_taken": -0.01,
        "knockouts": 1.0,
        "knocked_out": -1.0,
        "falls": -0.5,
        "team_goals": 5.0,
        "conceded": -5.0,
        "touches": 0.1,
        "population_gain": 0.1,
        "population_loss": -0.1,
        "bankrupt": -10.0,
        "wins": 5.0,
        "losses": -5.0,
    }
)


def default_weights(spec: EnvSpec) -> dict[str, float]:
    """Returns the weights for a world's events when none are given."""
    if "reward" in spec.events:
        return {"reward": 1.0}
    return {name: weight for name, weight in DEFAULT_WEIGHTS.items() if name in spec.events}


class RewardWeights:
    """A weighted sum of events."""

    def __init__(self, spec: EnvSpec, weights: Mapping[str, float] | None) -> None:
        """Takes the weights of a world's events; None takes the default.

        Raises:
            UnknownNameError: A weight is for an event that the world does not have.
            ConfigError: No event is left to reward.
        """
        self.weights = default_weights(spec) if weights is None else dict(weights)
        for name in self.weights:
            if name not in spec.events:
                raise UnknownNameError(f"event of {spec.id}", name, spec.events)
        if not self.weights:
            raise ConfigError(f"{spec.id} needs reward weights; its events: {', '.join(spec.events) or 'none'}")

    def total(self, events: Mapping[str, NDArray[np.float32]], count: int) -> NDArray[np.float32]:
        """Returns the rewards `(count,)` of events `(count,)` a name."""
        rewards = np.zeros(count, dtype=np.float32)
        for name, weight in self.weights.items():
            rewards += np.float32(weight) * events[name]
        return rewards
