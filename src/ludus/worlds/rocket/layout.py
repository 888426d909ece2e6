"""Where things lie on the field: boost pads, kickoff and respawn places; lengths in uu, angles in rad.

Everything is given for blue, who defends y < 0; orange's places are these turned by 180 degrees about the middle.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PadKind:
    """What a boost pad of one size is."""

    boost: float  # what it gives
    back_s: float  # time until it is back after it was taken
    radius: float  # of the cylinder in which the middle of a car takes it
    box_half: float  # half width of the box that holds a car that has taken it, until the car leaves the box


BIG = PadKind(boost=100.0, back_s=10.0, radius=208.0, box_half=160.0)
SMALL = PadKind(boost=12.0, back_s=4.0, radius=144.0, box_half=120.0)
PAD_TOP_Z = 168.0  # of the cylinder
PAD_BOX_TOP_Z = 64.0

# In the order that is usual elsewhere: by y, then by x. Turned by 180 degrees, pad i is pad 33 - i.
_PAD_PLACES = (
    *((0.0, -4240.0), (-1792.0, -4184.0), (1792.0, -4184.0), (-3072.0, -4096.0), (3072.0, -4096.0)),
    *((-940.0, -3308.0), (940.0, -3308.0), (0.0, -2816.0), (-3584.0, -2484.0), (3584.0, -2484.0)),
    *((-1788.0, -2300.0), (1788.0, -2300.0), (-2048.0, -1036.0), (0.0, -1024.0), (2048.0, -1036.0)),
    *((-3584.0, 0.0), (-1024.0, 0.0)),
)
PADS: tuple[tuple[float, float], ...] = _PAD_PLACES + tuple((0.0 - x, 0.0 - y) for x, y in reversed(_PAD_PLACES))
BIG_PADS = frozenset({3, 4, 15, 18, 29, 30})
PAD_COUNT = len(PADS)

# x, y and heading; both teams take the same slots in a kickoff.
KICKOFFS = (
    (-2048.0, -2560.0, math.pi / 4),
    (2048.0, -2560.0, 3 * math.pi / 4),
    (-256.0, -3840.0, math.pi / 2),
    (256.0, -3840.0, math.pi / 2),
    (0.0, -4608.0, math.pi / 2),
)
RESPAWNS = ((-2688.0, -4608.0), (-2304.0, -4608.0), (2304.0, -4608.0), (2688.0, -4608.0))  # facing the other goal
RESPAWN_Z = 36.0

# Which pad may be in reach: the field in square cells, none of which meets two pads' cylinders.
PAD_CELL = 512.0
PAD_CELLS_X, PAD_CELLS_Y = 16, 20


def pad_kind(pad: int) -> PadKind:
    """Return the kind of a pad."""
    return BIG if pad in BIG_PADS else SMALL


def pad_grid() -> NDArray[np.int32]:
    """Return the pad whose cylinder each cell `(16, 20)` of the field meets, -1 for none."""
    grid = np.full((PAD_CELLS_X, PAD_CELLS_Y), -1, dtype=np.int32)
    left = (np.arange(PAD_CELLS_X) - PAD_CELLS_X / 2) * PAD_CELL
    bottom = (np.arange(PAD_CELLS_Y) - PAD_CELLS_Y / 2) * PAD_CELL
    for pad, (x, y) in enumerate(PADS):
        away_x = np.maximum(np.maximum(left - x, x - left - PAD_CELL), 0.0)
        away_y = np.maximum(np.maximum(bottom - y, y - bottom - PAD_CELL), 0.0)
        grid[np.hypot.outer(away_x, away_y) < pad_kind(pad).radius] = pad
    return grid
