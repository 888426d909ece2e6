"""What a picture of a walker shows: its state, the reference beside it and the numbers of the moment."""

from dataclasses import dataclass

import numpy as np

from ludus.envs.mimic.gait import Floats
from ludus.envs.mimic.reference import Frame, quaternions


@dataclass(frozen=True, slots=True)
class WalkerView:
    """A walker at one moment.

    Attributes:
        positions: `(7 + joints,)` of the walker, as MuJoCo has them: root, then joints.
        ghost: The same of the reference, whose place along and across the way does not matter; None to draw none.
        time_s: Since the episode began.
        desired_m_s: The speed that is asked for.
        push_n: `(2,)` force at the hips, forward and to the left.
    """

    positions: Floats
    ghost: Floats | None
    time_s: float
    desired_m_s: float
    push_n: tuple[float, float] = (0.0, 0.0)


def reference_positions(frame: Frame, game: int) -> Floats:
    """Returns `(7 + joints,)` positions of a walker that is where the reference of one game is."""
    root = frame.root[game].double().numpy()
    place = np.array((0.0, 0.0, root[0]))
    return np.concatenate((place, quaternions(root[1:]), frame.angles[game].double().numpy()))
