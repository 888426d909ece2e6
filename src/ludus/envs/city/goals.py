"""Goals of a city, such as so many people: how far each is reached, by what was read, and which were reached."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.city.extras import Extra, Rows, Turn
from ludus.envs.city.goal_names import AT_MOST, WORST

Targets: TypeAlias = Mapping[str, float]


class Goals(Extra):
    """Follows the goals of all games.

    A goal gives a measure `goal_NAME`, how far it is reached from 0 to 1, and an event of the same name, by how much
    that changed, which is a reward term too. `goals_reached` counts goals that are reached for the first time in an
    episode. A figure that cannot be read changes nothing.

    Attributes:
        names: Of the figures that have a goal.
    """

    def __init__(self, targets: Targets, games: int) -> None:
        self.names, self._targets = tuple(targets), dict(targets)
        self.measures = tuple(f"goal_{name}" for name in targets)
        self.events = (*self.measures, "goals_reached")
        self._progress: NDArray[np.float64] = np.zeros((games, len(targets)))
        self._reached: NDArray[np.bool_] = np.zeros((games, len(targets)), np.bool_)

    def begin(self, turn: Turn, games: Rows) -> None:
        """See `Extra`; what a city has from the beginning was not reached by anybody."""
        self._progress[games] = self._now(turn)[games]
        self._reached[games] = self._progress[games] >= 1.0

    def follow(self, turn: Turn, events: NDArray[np.float32], measures: NDArray[np.float32]) -> None:
        """See `Extra`."""
        now = self._now(turn)
        events[:, :-1] = now - self._progress
        events[:, -1] = ((now >= 1.0) & ~self._reached).sum(axis=1)
        self._reached |= now >= 1.0
        self._progress[:] = now
        measures[:] = now

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        return {"goal_progress": torch.from_numpy(self._progress), "goal_reached": torch.from_numpy(self._reached)}

    def _now(self, turn: Turn) -> NDArray[np.float64]:
        """Returns how far all goals are reached, `(games, goals)`; 0 where a figure was never readable."""
        columns = [
            np.where(held.is_known, progress(name, target, held.values), 0.0)
            for name, target in self._targets.items()
            for held in (turn.held(name),)
        ]
        return np.stack(columns, axis=1)


def progress(name: str, target: float, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns how far a goal is reached, 0 to 1.

    Args:
        name: Of the figure.
        target: What it should be at least; of traffic and pollution, at most.
        values: What it is.
    """
    share = (WORST - values) / (WORST - target) if name in AT_MOST else values / target
    return np.clip(share, 0.0, 1.0)
