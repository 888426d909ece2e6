"""Counts steps: which foot carries, when a heel comes down, how long the step was."""

from typing import NamedTuple

import torch
from torch import Tensor

_CARRIES = 0.08  # share of the body's weight on a foot above which it has come down
_LIFTED = 0.02  # share below which it has left the ground
_SHORTEST_SWING_S = 0.12  # a foot that was off the ground for less has only bounced

STATE = ("right_down", "left_down", "right_air_s", "left_air_s")


class Strikes(NamedTuple):
    """Feet that came down in a step, `(games, 2)` each, right and left.

    Attributes:
        struck: 1 where the foot came down, else 0.
        length_m: How far it was in front of the other one then, else 0.
    """

    struck: Tensor
    length_m: Tensor


def follow_feet(state: Tensor, loads: Tensor, points: Tensor, seconds: float) -> tuple[Tensor, Strikes]:
    """Returns the next state of the feet, and those that came down.

    Args:
        state: `(games, 4)`, see `STATE`.
        loads: `(games, 2)` share of the body's weight on each foot.
        points: `(games, 4, 3)` heel and ball of the right and of the left foot, from the root.
        seconds: Length of a step.
    """
    was_down, air_s = state[:, :2] > 0.5, state[:, 2:]
    is_down = (loads > _CARRIES) | (was_down & (loads > _LIFTED))
    struck = (is_down & ~was_down & (air_s >= _SHORTEST_SWING_S)).float()
    heels = points[:, ::2, 0]
    length = struck * (heels - heels.flip(1))
    air_s = torch.where(is_down, 0.0, air_s + seconds)
    return torch.cat((is_down.float(), air_s), dim=1), Strikes(struck, length)
