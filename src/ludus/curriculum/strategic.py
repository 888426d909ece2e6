"""Turning to what is furthest behind: factors of goals, and the kinds of action that measurably help them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import StateError
from ludus.curriculum.effects import Effects
from ludus.curriculum.steering_config import StrategicConfig, goal_term

OTHERS = "others"  # compares a kind with all others


class Strategic:
    """Follows goals and effects.

    Attributes:
        effects: What was measured; the goals are its first metrics.
        progress: How far each goal was reached in the last iteration, 0 to 1.
        factors: Factor of each goal's reward.
    """

    def __init__(self, config: StrategicConfig, kinds: Sequence[str]) -> None:
        """Begins with nothing measured and all factors 1.

        Args:
            config: Its settings; what kinds are compared with is among them.
            kinds: Names of the kinds of action.
        """
        self._config = config
        against = None if config.against == OTHERS else list(kinds).index(config.against)
        self.effects = Effects(kinds, config.measures(), against, config.confidence, config.fewest)
        self.progress = dict.fromkeys(config.goals, 0.0)
        self.factors = dict.fromkeys(map(goal_term, config.goals), 1.0)

    def record(self, measured: NDArray[np.float64], progress: Sequence[float], env_steps: int) -> None:
        """Takes an iteration.

        Args:
            measured: What `Effects.measure` gave.
            progress: How far each goal is reached, 0 to 1, by the order of the goals.
            env_steps: Steps that the iteration took.
        """
        half_life = self._config.half_life_env_steps
        self.effects.add(measured, 1.0 if half_life is None else 0.5 ** (env_steps / half_life))
        self.progress = dict(zip(self._config.goals, map(float, progress), strict=True))
        wanted, inertia = goal_factors(progress, self._config.most), self._config.inertia
        for name, factor in zip(self.factors, wanted, strict=True):
            self.factors[name] = inertia * self.factors[name] + (1.0 - inertia) * factor

    def favour(self) -> list[float]:
        """Returns the weight of each kind in exploring: how much it brings goals on that are behind; 0 if unsure."""
        gains = np.zeros(len(self.effects.kinds))
        for metric, progress in enumerate(self.progress.values()):
            gains += max(1.0 - progress, 0.0) * self.effects.sure(metric)
        helpful: list[float] = np.maximum(gains, 0.0).tolist()
        return helpful

    def state(self) -> dict[str, Any]:
        """Returns where it stands, for JSON."""
        return {"effects": self.effects.state(), "progress": dict(self.progress), "factors": dict(self.factors)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: It is of other goals, kinds or metrics.
        """
        progress, factors = state.get("progress", {}), state.get("factors", {})
        if set(progress) != set(self.progress) or set(factors) != set(self.factors):
            raise StateError("the state of strategic steering is of other goals; use the same config")
        self.effects.load_state(state["effects"])
        self.progress = {name: float(progress[name]) for name in self.progress}
        self.factors = {name: float(factors[name]) for name in self.factors}


def goal_factors(progress: Sequence[float], most: float) -> list[float]:
    """Returns a factor for each goal: how far it is behind, over the mean of all; between 1 / `most` and `most`."""
    behind = [min(max(1.0 - share, 0.0), 1.0) for share in progress]
    mean = sum(behind) / len(behind)
    if mean <= 0.0:
        return [1.0] * len(behind)
    return [min(max(share / mean, 1.0 / most), most) for share in behind]
