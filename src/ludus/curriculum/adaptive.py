"""Exploring while stuck, building while it grows: when a run switches, and how often it explores."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import StateError
from ludus.curriculum.steering_config import AdaptiveConfig

EXPLORING, BUILDING = "exploring", "building"


class Adaptive:
    """Follows how many games are stuck.

    Attributes:
        is_exploring: Whether the run explores at present; else it builds.
        frequency: Exploration frequency of the next iteration.
        stuck: Share of stuck games in the last iteration that said anything; None before.
        switches: How often it has switched.
    """

    def __init__(self, config: AdaptiveConfig) -> None:
        self._config = config
        self.is_exploring, self.frequency, self.switches = False, config.lowest, 0
        self.stuck: float | None = None

    @property
    def mode(self) -> str:
        """`exploring` or `building`."""
        return EXPLORING if self.is_exploring else BUILDING

    def record(self, stuck: float, windows: float) -> str | None:
        """Takes an iteration and returns why the run switches, in words; None if it does not.

        Args:
            stuck: Windows of `patience` decisions in which nothing grew.
            windows: All windows; an iteration without any changes nothing.
        """
        if windows <= 0.0:
            return None
        config, before = self._config, self.is_exploring
        self.stuck = stuck / windows
        if self.stuck >= config.explore_above:
            self.is_exploring = True
        elif self.stuck < config.build_below:
            self.is_exploring = False
        moved = self.frequency + (config.step if self.is_exploring else -config.step)
        self.frequency = round(min(max(moved, config.lowest), config.highest), 9)
        if self.is_exploring == before:
            return None
        self.switches += 1
        share = f"{self.stuck:.0%} of the games"
        return f"{self.mode}: {config.measure} had not grown for {config.patience} decisions in {share}"

    def state(self) -> dict[str, Any]:
        """Returns where it stands, for JSON."""
        return {
            "is_exploring": self.is_exploring,
            "frequency": self.frequency,
            "stuck": self.stuck,
            "switches": self.switches,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave.

        Raises:
            StateError: A part of it is missing.
        """
        try:
            self.is_exploring, self.frequency = bool(state["is_exploring"]), float(state["frequency"])
            self.stuck = None if state["stuck"] is None else float(state["stuck"])
            self.switches = int(state["switches"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"the state of adaptive steering is incomplete ({error!r}); use the same config"
            ) from error


def count_stuck(values: NDArray[np.float64], ends: NDArray[np.bool_], patience: int) -> tuple[int, int]:
    """Returns how many windows of a rollout show no growth, and how many windows there are.

    Args:
        values: `(steps, rows)`, what has to grow, after each step.
        ends: `(steps, rows)`, steps in which an episode ended; windows that go on into the next one do not count.
        patience: Decisions of a window.
    """
    inside = ~broken_windows(ends, patience)
    grown = values[patience:] > values[:-patience]
    return int((inside & ~grown).sum()), int(inside.sum())


def broken_windows(ends: NDArray[np.bool_], decisions: int) -> NDArray[np.bool_]:
    """Says which windows have an episode's end before their last decision, `(steps - decisions, rows)`.

    Window `t` goes from what was seen after step `t` to what was seen `decisions` steps later.
    """
    counted = np.concatenate((np.zeros((1, ends.shape[1]), np.int64), ends.cumsum(axis=0)))
    return counted[decisions:-1] > counted[: -1 - decisions]
