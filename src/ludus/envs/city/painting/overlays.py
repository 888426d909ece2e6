"""Overlays: how hot or cold each cell is, in steps from 0 to 7."""

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.game.rules import ROAD_CAPACITY, Flag, Kind
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.commands import Overlay

_STEPS = 8
_FLAGS = {
    Overlay.POWER: Flag.POWER,
    Overlay.WATER: Flag.WATER,
    Overlay.POLICE: Flag.POLICE,
    Overlay.FIRE: Flag.FIRE,
    Overlay.CLINIC: Flag.CLINIC,
    Overlay.SCHOOL: Flag.SCHOOL,
}


def overlay_levels(simulation: CitySimulation, game: int, overlay: Overlay) -> NDArray[np.int32]:
    """Returns the step of every cell of a game, `(cells,)`; what is reached by a service is warm, the rest is cold."""
    cells = simulation.cells
    if overlay in _FLAGS:
        reached = (cells.flags[game] & int(_FLAGS[overlay])) != 0
        return np.where(reached, np.int32(4), np.int32(0))
    if overlay == Overlay.TRAFFIC:
        share = np.where(cells.kind[game] == Kind.ROAD, cells.load[game] / ROAD_CAPACITY, 0.0)
    elif overlay == Overlay.POLLUTION:
        share = cells.air[game] / 100.0
    else:
        share = cells.value[game] / 100.0
    levels: NDArray[np.int32] = np.clip(share * _STEPS, 0, _STEPS - 1).astype(np.int32)
    return levels
