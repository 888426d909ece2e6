"""Traffic, air and the value of land, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.cells import beside, has, is_wood, is_zone, kind_at
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.rules import (
    AIR_EMISSION,
    AIR_KEEP,
    AIR_SPREAD,
    COAL_SMOKE,
    FLOW_ROUNDS,
    FLOW_SHARE,
    INDUSTRY_SMOKE,
    PARK_CLEANS,
    ROAD_CAPACITY,
    TRAFFIC_SMOKE,
    TREE_CLEANS,
    VALUE_BASE,
    VALUE_CLINIC,
    VALUE_FIRE,
    VALUE_HILL,
    VALUE_PARK,
    VALUE_POLICE,
    VALUE_SCHOOL,
    VALUE_SHORE,
    VALUE_SMOKE,
    VALUE_TRAFFIC,
    VALUE_TREE,
    VALUE_WATERED,
    Flag,
    Kind,
    Terrain,
)


@wp.func
def road_capacity(city: City) -> wp.float32:
    """Trips a day that a cell of road carries; badly kept roads carry less."""
    return ROAD_CAPACITY * wp.float32(wp.max(city.funding_transport, 10)) / 100.0


@wp.func
def roads_beside(grid: Grid, game: wp.int32, cell: wp.int32, rules: Rules) -> wp.int32:
    """How many roads a road goes on to."""
    count = int(0)
    for side in range(4):
        there = beside(cell, side, rules)
        if kind_at(grid, game, there) == Kind.ROAD:
            count += 1
    return count


@wp.func
def set_out(grid: Grid, game: wp.int32, rules: Rules) -> wp.int32:
    """Puts everybody onto the road that serves them; writes all roads to `order` and returns how many there are.

    `mark` of a road is the number of roads that it goes on to.
    """
    roads = int(0)
    for cell in range(rules.cells):
        grid.load[game, cell] = 0.0
        grid.mark[game, cell] = 0
        if grid.kind[game, cell] == Kind.ROAD:
            grid.mark[game, cell] = roads_beside(grid, game, cell, rules)
            grid.order[game, roads] = cell
            roads += 1
    for cell in range(rules.cells):
        if is_zone(grid.kind[game, cell]) and grid.road[game, cell] >= 0:
            road = grid.road[game, cell]
            grid.load[game, road] = grid.load[game, road] + wp.float32(grid.amount[game, cell])
    return roads


@wp.func
def drive(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Sends everybody onto the roads and lets the trips spread along them."""
    roads = set_out(grid, game, rules)
    for _round in range(FLOW_ROUNDS):
        for place in range(roads):
            cell = grid.order[game, place]
            arriving = float(0.0)
            for side in range(4):
                there = beside(cell, side, rules)
                if kind_at(grid, game, there) == Kind.ROAD:
                    arriving += grid.load[game, there] / wp.float32(grid.mark[game, there])
            stays = wp.where(grid.mark[game, cell] > 0, 1.0 - FLOW_SHARE, 1.0)
            grid.next[game, cell] = stays * grid.load[game, cell] + FLOW_SHARE * arriving
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
    """What a cell gives to the air, or takes from it if negative."""
    kind = grid.kind[game, cell]
    smoke = float(0.0)
    if kind == Kind.INDUSTRIAL:
        smoke = AIR_EMISSION * INDUSTRY_SMOKE * wp.float32(grid.amount[game, cell])
    elif kind == Kind.COAL:
        smoke = AIR_EMISSION * COAL_SMOKE
    elif kind == Kind.ROAD:
        smoke = AIR_EMISSION * TRAFFIC_SMOKE * wp.min(grid.load[game, cell] / capacity, 1.0)
    elif kind == Kind.PARK:
        smoke = -PARK_CLEANS
    elif grid.terrain[game, cell] == Terrain.TREES:
        smoke = -TREE_CLEANS
    return smoke


@wp.func
def spread_air(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Moves smoke on by one tick."""
    capacity = road_capacity(city)
    for row in range(rules.rows):
        for column in range(rules.columns):
            cell = row * rules.columns + column
            around = float(0.0)
            if column > 0:
                around += grid.air[game, cell - 1]
            if column < rules.columns - 1:
                around += grid.air[game, cell + 1]
            if row > 0:
                around += grid.air[game, cell - rules.columns]
            if row < rules.rows - 1:
                around += grid.air[game, cell + rules.columns]
            smoke = smoke_of(grid, game, cell, capacity)
            grid.next[game, cell] = AIR_KEEP * grid.air[game, cell] + AIR_SPREAD * around + smoke
    for cell in range(rules.cells):
        grid.air[game, cell] = wp.clamp(grid.next[game, cell], 0.0, 100.0)


@wp.func
def crowding(grid: Grid, game: wp.int32, cell: wp.int32, capacity: wp.float32) -> wp.float32:
    """Load of the road that serves a cell, as a share of what it carries; 0 without one."""
    road = grid.road[game, cell]
    load = float(0.0)
    if road >= 0:
        load = grid.load[game, road] / capacity
    return load


@wp.func
def value_scenery(grid: Grid, game: wp.int32, rules: Rules):
    """Computes what the land is worth by nature."""
    for cell in range(rules.cells):
        terrain = grid.terrain[game, cell]
        value = float(0.0)
        if terrain != Terrain.WATER:
            trees = int(0)
            for side in range(4):
                trees += is_wood(grid, game, beside(cell, side, rules))
            value = VALUE_BASE + VALUE_SHORE * wp.float32(grid.shore[game, cell]) + VALUE_TREE * wp.float32(trees)
            if terrain == Terrain.HILL:
                value += VALUE_HILL
        grid.scenery[game, cell] = value


@wp.func
def value_land(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Computes what every cell of land is worth."""
    capacity = road_capacity(city)
    for cell in range(rules.cells):
        value = grid.scenery[game, cell]
        flags = grid.flags[game, cell]
        if value > 0.0:
            if flags != 0:
                value += VALUE_PARK * has(flags, Flag.PARK) + VALUE_SCHOOL * has(flags, Flag.SCHOOL)
                value += VALUE_CLINIC * has(flags, Flag.CLINIC) + VALUE_POLICE * has(flags, Flag.POLICE)
                value += VALUE_FIRE * has(flags, Flag.FIRE) + VALUE_WATERED * has(flags, Flag.WATER)
            value -= VALUE_SMOKE * grid.air[game, cell]
            value -= VALUE_TRAFFIC * wp.min(crowding(grid, game, cell, capacity), 1.0)
        grid.value[game, cell] = wp.clamp(value, 0.0, 100.0)
