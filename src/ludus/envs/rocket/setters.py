"""The state setters by name: how an episode can begin."""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Setter(IntEnum):
    """What begins an episode; one team has the attacking part in it, blue or orange at random."""

    KICKOFF = 0  # the usual start: both teams in the same slots, the ball in the middle
    RANDOM = 1  # ball and cars anywhere, some in the air, at any speed
    GOALIE = 2  # a shot is on its way to the goal of the defending team, one of whom is near it
    SHOOTER = 3  # the ball lies or rolls in front of an attacker, between it and the goal
    AERIAL = 4  # the ball is high, an attacker with boost below or already in the air
    WALL = 5  # the ball is at a side wall, an attacker drives on the wall or toward it
    RECOVERY = 6  # all cars tumble through the air with little boost


SETTERS = tuple(setter.name.lower() for setter in Setter)


def setter_bounds(weights: Mapping[str, float]) -> NDArray[np.float32]:
    """Returns for each setter the end of its part of [0, 1]; a number drawn there chooses the first that is larger.

    Args:
        weights: Weight of each setter by name; those left out have none.
    """
    parts = np.cumsum([weights.get(name, 0.0) for name in SETTERS], dtype=np.float64)
    bounds: NDArray[np.float32] = (parts / parts[-1]).astype(np.float32)
    bounds[bounds == bounds[-1]] = 2.0  # no number drawn can lie beyond the last one with a weight
    return bounds
