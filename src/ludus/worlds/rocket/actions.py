"""The action spaces of a seat: a table of 90 useful combinations, or continuous controls."""

from itertools import product

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.rules import CONTROLS, Control

AXES = 5  # controls that are numbers; the others are buttons
BUTTONS = CONTROLS - AXES


def action_table() -> NDArray[np.float32]:
    """Return the controls `(90, 8)` of the table, in the order of `rules.Control`.

    The first 24 are for the ground: throttle, steer, boost (with full throttle alone) and handbrake; yaw follows the
    steering. The other 66 are for the air: pitch, yaw, roll, jump and boost; a jump goes with no yaw, since a sideward
    dodge is a roll, and holds the handbrake if it is a dodge, so that a landing car slides.
    """
    rows: list[tuple[float, ...]] = []
    for throttle, steer, boost, handbrake in product((-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        if boost == 0 or throttle == 1:
            rows.append((throttle or boost, steer, 0, steer, 0, 0, boost, handbrake))
    for pitch, yaw, roll, jump, boost in product((-1, 0, 1), (-1, 0, 1), (-1, 0, 1), (0, 1), (0, 1)):
        if (jump and yaw) or (pitch == 0 and roll == 0 and jump == 0):
            continue
        handbrake = int(jump == 1 and (pitch != 0 or roll != 0))
        rows.append((boost, yaw, pitch, yaw, roll, jump, boost, handbrake))
    return np.array(rows, dtype=np.float32)


TABLE_SIZE = len(action_table())


# In a mirror that exchanges left and right, steer, yaw and roll change their sign.
MIRRORED = tuple(-1.0 if control in (Control.STEER, Control.YAW, Control.ROLL) else 1.0 for control in Control)


def action_space(config: RocketConfig) -> spaces.Space[object]:
    """Return the action space of one seat."""
    if config.actions == "table":
        return spaces.Discrete(TABLE_SIZE)
    return spaces.Box(-1.0, 1.0, (CONTROLS,))
