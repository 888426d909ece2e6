"""How a person drives: keyboard keys, the controls that they ask of a car, and the action nearest to them."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.rocket.actions import AXES, action_table
from ludus.envs.rocket.config import RocketConfig
from ludus.envs.rocket.rules import CONTROLS, Control


class Keys(NamedTuple):
    """Keys of the keyboard, by their lower-case names, that do the same, and what it is."""

    names: tuple[str, ...]
    meaning: str


FORWARD = Keys(("w", "up"), "forward; in the air: nose down")
BACKWARD = Keys(("s", "down"), "brake, backward; in the air: nose up")
LEFT = Keys(("a", "left"), "left")
RIGHT = Keys(("d", "right"), "right")
ROLL_LEFT = Keys(("q",), "roll to the left in the air")
ROLL_RIGHT = Keys(("e",), "roll to the right in the air")
JUMP = Keys(("space",), "jump; again in the air with a direction: dodge")
BOOST = Keys(("left shift", "right shift"), "boost")
HANDBRAKE = Keys(("left ctrl", "right ctrl", "x"), "slide; in the air left and right roll instead of turning")
DRIVING = (FORWARD, BACKWARD, LEFT, RIGHT, ROLL_LEFT, ROLL_RIGHT, JUMP, BOOST, HANDBRAKE)
# The same on two lines, for a card on the screen.
KEY_LINES = (
    "W S drive, nose down and up   A D steer   Q E roll   Space jump, dodge",
    "Shift boost   Ctrl or X slide   C camera",
)
# How much it matters that a row of the action table differs from what was asked for: what a button does is not undone
# by steering well.
_WEIGHTS = np.array((2.0, 2.0, 2.0, 1.0, 2.0, 6.0, 4.0, 1.0))


def held_controls(held: Collection[str]) -> NDArray[np.float32]:
    """Returns the controls `(8,)` that held keys ask for, in the order of `rules.Control`; buttons are 0 or 1."""

    def is_held(keys: Keys) -> float:
        return float(any(name in held for name in keys.names))

    drive, turn = is_held(FORWARD) - is_held(BACKWARD), is_held(RIGHT) - is_held(LEFT)
    roll, slide, boost = is_held(ROLL_RIGHT) - is_held(ROLL_LEFT), is_held(HANDBRAKE), is_held(BOOST)
    controls = np.zeros(CONTROLS, dtype=np.float32)
    controls[Control.THROTTLE] = drive or boost
    controls[Control.STEER] = turn
    controls[Control.PITCH] = -drive
    controls[Control.YAW] = 0.0 if slide else turn
    controls[Control.ROLL] = roll or (turn if slide else 0.0)
    controls[Control.JUMP] = is_held(JUMP)
    controls[Control.BOOST] = boost
    controls[Control.HANDBRAKE] = slide
    return controls


def action_of(controls: NDArray[np.float32], config: RocketConfig, *, on_ground: bool) -> Tensor:
    """Returns the action of a seat that is nearest to controls, whichever action space the game has.

    Args:
        controls: `(8,)` as `held_controls` gives them.
        config: Of the game.
        on_ground: Whether the car stands on its wheels. The rows of the table that pitch and roll do not steer, so
            that on the ground one that steers is nearer.
    """
    if config.actions == "continuous":
        pressed = np.where(controls[AXES:] > 0.0, 1.0, -1.0)
        return torch.from_numpy(np.concatenate((controls[:AXES], pressed)).astype(np.float32))
    if config.actions == "bins":
        steps = np.rint((controls[:AXES] + 1.0) / 2.0 * (config.bins - 1))
        return torch.from_numpy(np.concatenate((steps, controls[AXES:] > 0.0)).astype(np.int64))
    weights = _WEIGHTS.copy()
    ignored = (Control.PITCH, Control.YAW, Control.ROLL) if on_ground else (Control.THROTTLE, Control.STEER)
    if not (on_ground and controls[Control.JUMP] > 0.0):  # a jump from the ground may become a dodge
        weights[list(ignored)] *= 0.1
    distance = (np.abs(action_table() - controls) * weights).sum(1)
    return torch.tensor(int(distance.argmin()))
