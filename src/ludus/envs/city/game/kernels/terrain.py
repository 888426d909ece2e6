"""The land of a new city: water, hills and trees from smooth noise, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.streams import stream
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.rules import HAMLET_ROADS, Kind, Stream, Terrain
from ludus.envs.warp_functions import mix, uniform

ATTEMPTS = wp.constant(8)
MIN_LAND = wp.constant(0.55)  # share of a map that can be built on
MAX_LAND = wp.constant(0.90)  # above it there is hardly any water
SHORE_REACH = wp.constant(2)
WIDE = wp.constant(7)  # half of the area around a hamlet that should be land, in columns ...
HIGH = wp.constant(5)  # ... and in rows


@wp.func
def lattice(h: wp.uint32, x: wp.int32, y: wp.int32) -> wp.float32:
    """A random number from 0 to 1 for a point of a coarse grid."""
    return uniform(mix(mix(h, wp.uint32(x)), wp.uint32(y)))


@wp.func
def noise(h: wp.uint32, x: wp.int32, y: wp.int32, spacing: wp.int32) -> wp.float32:
    """A number from 0 to 1 that changes smoothly, over about `spacing` cells."""
    column = x / spacing
    row = y / spacing
    u = wp.float32(x - column * spacing) / wp.float32(spacing)
    v = wp.float32(y - row * spacing) / wp.float32(spacing)
    u = u * u * (3.0 - 2.0 * u)
    v = v * v * (3.0 - 2.0 * v)
    top = lattice(h, column, row) * (1.0 - u) + lattice(h, column + 1, row) * u
    bottom = lattice(h, column, row + 1) * (1.0 - u) + lattice(h, column + 1, row + 1) * u
    return top * (1.0 - v) + bottom * v


@wp.func
def lay_land(grid: Grid, game: wp.int32, city: City, rules: Rules, attempt: wp.int32) -> wp.float32:
    """Lays out land and water, hills and trees; returns the share that can be built on."""
    heights = stream(city, Stream.TERRAIN, attempt)
    woods = stream(city, Stream.TREES, attempt)
    land = int(0)
    for cell in range(rules.cells):
        x = cell % rules.columns
        y = cell / rules.columns
        height = 0.65 * noise(heights, x, y, 9) + 0.35 * noise(mix(heights, wp.uint32(1)), x, y, 4)
        wood = 0.6 * noise(woods, x, y, 5) + 0.4 * noise(mix(woods, wp.uint32(1)), x, y, 2)
        terrain = int(Terrain.LAND)
        if height < 0.33:
            terrain = int(Terrain.WATER)
        elif height > 0.72:
            terrain = int(Terrain.HILL)
        elif wood > 0.60:
            terrain = int(Terrain.TREES)
        if terrain != int(Terrain.WATER):
            land += 1
        grid.terrain[game, cell] = terrain
    return wp.float32(land) / wp.float32(rules.cells)


@wp.func
def near_water(grid: Grid, game: wp.int32, cell: wp.int32, reach: wp.int32, rules: Rules) -> bool:
    """Whether a cell has water within a square around it."""
    x = cell % rules.columns
    y = cell / rules.columns
    for row in range(wp.max(y - reach, 0), wp.min(y + reach + 1, rules.rows)):
        for column in range(wp.max(x - reach, 0), wp.min(x + reach + 1, rules.columns)):
            if grid.terrain[game, row * rules.columns + column] == Terrain.WATER:
                return True
    return False


@wp.func
def make_land(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Makes the land of a new city; draws anew while there is too little of it, or hardly any water."""
    attempt = int(0)
    share = float(0.0)
    while attempt < ATTEMPTS and (share < MIN_LAND or share > MAX_LAND):
        share = lay_land(grid, game, city, rules, attempt)
        attempt += 1
    for cell in range(rules.cells):
        grid.shore[game, cell] = wp.where(near_water(grid, game, cell, SHORE_REACH, rules), 1, 0)


@wp.func
def open_land(grid: Grid, game: wp.int32, x: wp.int32, y: wp.int32, rules: Rules) -> wp.int32:
    """Cells of plain land around a place; those of its own row count three times."""
    count = int(0)
    for row in range(wp.max(y - HIGH, 0), wp.min(y + HIGH + 1, rules.rows)):
        for column in range(wp.max(x - WIDE, 0), wp.min(x + WIDE + 1, rules.columns)):
            if grid.terrain[game, row * rules.columns + column] == Terrain.LAND:
                count += wp.where(row == y, 3, 1)
    return count


@wp.func
def build_hamlet(grid: Grid, game: wp.int32, rules: Rules):
    """Builds what a city begins with, where the most land is: a street, and a wind turbine beside its middle."""
    best = int(-1)
    x = rules.columns / 2
    y = rules.rows / 2
    for row in range(HIGH, rules.rows - HIGH):
        for column in range(HAMLET_ROADS, rules.columns - HAMLET_ROADS):
            count = open_land(grid, game, column, row, rules)
            if count > best:
                best = count
                x = column
                y = row
    for column in range(x - HAMLET_ROADS / 2, x - HAMLET_ROADS / 2 + HAMLET_ROADS):
        cell = y * rules.columns + column
        grid.kind[game, cell] = Kind.ROAD
        if grid.terrain[game, cell] == Terrain.TREES:
            grid.terrain[game, cell] = Terrain.LAND
    place = (y + 1) * rules.columns + x
    grid.kind[game, place] = Kind.WIND
    grid.terrain[game, place] = Terrain.LAND
