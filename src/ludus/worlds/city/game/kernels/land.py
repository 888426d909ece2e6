"""Warp functions of the land: the terrain of a new city from smooth noise, traffic, pollution and land values."""

import warp as wp

from ludus.envs.warp_functions import mix, uniform
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.kernels.structs import City, Grid, Rules, beside, has, is_zone, kind_at, stream
from ludus.worlds.city.game.rules import Flag, Kind, Stream, Terrain

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
    """Lay out land and water, hills and trees; return the share that can be built on."""
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
    """Make the land of a new city; redraw while there is too little land or hardly any water."""
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
    """Build the initial hamlet where the most land is: a street with a wind turbine beside its middle."""
    best = int(-1)
    x = rules.columns / 2
    y = rules.rows / 2
    for row in range(HIGH, rules.rows - HIGH):
        for column in range(const.HAMLET_ROADS, rules.columns - const.HAMLET_ROADS):
            count = open_land(grid, game, column, row, rules)
            if count > best:
                best = count
                x = column
                y = row
    for column in range(x - const.HAMLET_ROADS / 2, x - const.HAMLET_ROADS / 2 + const.HAMLET_ROADS):
        cell = y * rules.columns + column
        grid.kind[game, cell] = Kind.ROAD
        if grid.terrain[game, cell] == Terrain.TREES:
            grid.terrain[game, cell] = Terrain.LAND
    place = (y + 1) * rules.columns + x
    grid.kind[game, place] = Kind.WIND
    grid.terrain[game, place] = Terrain.LAND


@wp.func
def road_capacity(city: City) -> wp.float32:
    """Trips per day that a road cell carries; badly funded roads carry less."""
    return const.ROAD_CAPACITY * wp.float32(wp.max(city.funding_transport, 10)) / 100.0


@wp.func
def set_out(grid: Grid, game: wp.int32, rules: Rules) -> wp.int32:
    """Load every zone onto the road that serves it; write all roads to `order` and return their number.

    `mark` of a road is its number of adjacent roads.
    """
    roads = int(0)
    for cell in range(rules.cells):
        grid.load[game, cell] = 0.0
        grid.mark[game, cell] = 0
        if grid.kind[game, cell] == Kind.ROAD:
            for side in range(4):
                if kind_at(grid, game, beside(cell, side, rules)) == Kind.ROAD:
                    grid.mark[game, cell] = grid.mark[game, cell] + 1
            grid.order[game, roads] = cell
            roads += 1
    for cell in range(rules.cells):
        if is_zone(grid.kind[game, cell]) and grid.road[game, cell] >= 0:
            road = grid.road[game, cell]
            grid.load[game, road] = grid.load[game, road] + wp.float32(grid.amount[game, cell])
    return roads


@wp.func
def drive(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Load the roads and spread the trips along them."""
    roads = set_out(grid, game, rules)
    for _round in range(const.FLOW_ROUNDS):
        for place in range(roads):
            cell = grid.order[game, place]
            arriving = float(0.0)
            for side in range(4):
                there = beside(cell, side, rules)
                if kind_at(grid, game, there) == Kind.ROAD:
                    arriving += grid.load[game, there] / wp.float32(grid.mark[game, there])
            stays = wp.where(grid.mark[game, cell] > 0, 1.0 - const.FLOW_SHARE, 1.0)
            grid.next[game, cell] = stays * grid.load[game, cell] + const.FLOW_SHARE * arriving
        for place in range(roads):
            cell = grid.order[game, place]
            grid.load[game, cell] = grid.next[game, cell]
    capacity = road_capacity(city)
    trips = float(0.0)
    weighted = float(0.0)
    for place in range(roads):
        load = grid.load[game, grid.order[game, place]]
        trips += load
        weighted += load * wp.min(load / capacity, 1.0)
    city.traffic = 0.0
    if trips > 0.0:
        city.traffic = 100.0 * weighted / trips


@wp.func
def smoke_of(grid: Grid, game: wp.int32, cell: wp.int32, capacity: wp.float32) -> wp.float32:
    """Pollution that a cell emits; negative if it cleans the air."""
    kind = grid.kind[game, cell]
    smoke = float(0.0)
    if kind == Kind.INDUSTRIAL:
        smoke = const.AIR_EMISSION * const.INDUSTRY_SMOKE * wp.float32(grid.amount[game, cell])
    elif kind == Kind.COAL:
        smoke = const.AIR_EMISSION * const.COAL_SMOKE
    elif kind == Kind.ROAD:
        smoke = const.AIR_EMISSION * const.TRAFFIC_SMOKE * wp.min(grid.load[game, cell] / capacity, 1.0)
    elif kind == Kind.PARK:
        smoke = -const.PARK_CLEANS
    elif grid.terrain[game, cell] == Terrain.TREES:
        smoke = -const.TREE_CLEANS
    return smoke


@wp.func
def spread_air(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Spread pollution by one tick: air = keep * air + spread * (sum of 4 neighbours) + emission."""
    capacity = road_capacity(city)
    for cell in range(rules.cells):
        around = float(0.0)
        for side in range(4):
            there = beside(cell, side, rules)
            if there >= 0:
                around += grid.air[game, there]
        smoke = smoke_of(grid, game, cell, capacity)
        grid.next[game, cell] = const.AIR_KEEP * grid.air[game, cell] + const.AIR_SPREAD * around + smoke
    for cell in range(rules.cells):
        grid.air[game, cell] = wp.clamp(grid.next[game, cell], 0.0, 100.0)


@wp.func
def crowding(grid: Grid, game: wp.int32, cell: wp.int32, capacity: wp.float32) -> wp.float32:
    """Load of the road that serves a cell, as a share of its capacity; 0 without a road."""
    road = grid.road[game, cell]
    if road < 0:
        return 0.0
    return grid.load[game, road] / capacity


@wp.func
def value_scenery(grid: Grid, game: wp.int32, rules: Rules):
    """Compute the part of the land value that nature gives."""
    for cell in range(rules.cells):
        terrain = grid.terrain[game, cell]
        value = float(0.0)
        if terrain != Terrain.WATER:
            trees = int(0)
            for side in range(4):
                there = beside(cell, side, rules)
                if there >= 0:
                    trees += wp.where(grid.terrain[game, there] == Terrain.TREES, 1, 0)
            value = const.VALUE_BASE + const.VALUE_SHORE * wp.float32(grid.shore[game, cell])
            value += const.VALUE_TREE * wp.float32(trees)
            if terrain == Terrain.HILL:
                value += const.VALUE_HILL
        grid.scenery[game, cell] = value


@wp.func
def value_land(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Compute the land value of every cell."""
    capacity = road_capacity(city)
    for cell in range(rules.cells):
        value = grid.scenery[game, cell]
        flags = grid.flags[game, cell]
        if value > 0.0:
            if flags != 0:
                value += const.VALUE_PARK * has(flags, Flag.PARK) + const.VALUE_SCHOOL * has(flags, Flag.SCHOOL)
                value += const.VALUE_CLINIC * has(flags, Flag.CLINIC) + const.VALUE_POLICE * has(flags, Flag.POLICE)
                value += const.VALUE_FIRE * has(flags, Flag.FIRE) + const.VALUE_WATERED * has(flags, Flag.WATER)
            value -= const.VALUE_SMOKE * grid.air[game, cell]
            value -= const.VALUE_TRAFFIC * wp.min(crowding(grid, game, cell, capacity), 1.0)
        grid.value[game, cell] = wp.clamp(value, 0.0, 100.0)
