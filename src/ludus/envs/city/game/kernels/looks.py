"""How cells look, as a Warp function; see `game.looks`."""

import warp as wp

from ludus.envs.city.game.kernels.cells import beside, conducts, is_zone, kind_at
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.looks import DARK, KIND, ON_HILL, OVER_WATER, SIZE, VARIANT
from ludus.envs.city.game.rules import LEVELS, Flag, Kind, Terrain
from ludus.envs.warp_functions import mix

LEVEL_1 = wp.constant(LEVELS[0])
LEVEL_2 = wp.constant(LEVELS[1])
LEVEL_3 = wp.constant(LEVELS[2])
LEVEL_4 = wp.constant(LEVELS[3])


@wp.func
def size_of(amount: wp.int32) -> wp.int32:
    """Size of a zone's building, from 0 to 4."""
    size = int(0)
    if amount >= LEVEL_1:
        size = 1
    if amount >= LEVEL_2:
        size = 2
    if amount >= LEVEL_3:
        size = 3
    if amount >= LEVEL_4:
        size = 4
    return size


@wp.func
def goes_on(grid: Grid, game: wp.int32, kind: wp.int32, there: wp.int32) -> bool:
    """Whether a road, a line or water at one cell is drawn as going on to a neighbour."""
    on = bool(False)
    if there >= 0:
        if kind == Kind.ROAD:
            on = kind_at(grid, game, there) == Kind.ROAD
        elif kind == Kind.LINE:
            on = conducts(kind_at(grid, game, there))
        else:
            on = grid.terrain[game, there] != Terrain.WATER
    return on


@wp.func
def look_of(grid: Grid, game: wp.int32, cell: wp.int32, city: City, rules: Rules) -> wp.int32:
    """The look of a cell."""
    kind = grid.kind[game, cell]
    terrain = grid.terrain[game, cell]
    sides = int(0)
    if kind == Kind.ROAD or kind == Kind.LINE or (kind == Kind.EMPTY and terrain == Terrain.WATER):
        for side in range(4):
            if goes_on(grid, game, kind, beside(cell, side, rules)):
                sides += 1 << side
    chance = wp.int32(mix(city.key, wp.uint32(cell)) & wp.uint32(3))
    dark = wp.where((grid.flags[game, cell] & Flag.POWER) == 0, DARK, 0)
    detail = dark
    if kind == Kind.EMPTY:
        detail = terrain * 16 + wp.where(terrain == Terrain.WATER, sides, chance)
    elif kind == Kind.ROAD or kind == Kind.LINE:
        detail = sides + wp.where(terrain == Terrain.WATER, OVER_WATER, 0)
    elif is_zone(kind):
        detail = size_of(grid.amount[game, cell]) * SIZE + chance * VARIANT + dark
    elif kind == Kind.PARK or kind == Kind.RUBBLE:
        detail = chance * VARIANT
    if kind != Kind.EMPTY and terrain == Terrain.HILL:
        detail += ON_HILL
    return kind * KIND + detail
