"""Roads, power and services: who is reached by what, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.cells import beside, conducts, is_zone, kind_at
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.rules import POWER_PER, POWER_REACH, ROAD_REACH, Column, Department, Flag, Kind

POWER_SPAN = wp.constant(POWER_REACH)
ROAD_ALONE = wp.constant(int(Flag.ROAD))
ROAD_AND_POWER = wp.constant(int(Flag.ROAD) | int(Flag.POWER))


@wp.func
def reach_road(grid: Grid, game: wp.int32, cell: wp.int32, network: wp.int32, tail: wp.int32) -> wp.int32:
    """Adds a road to a network and to the end of `order`; returns 1, or 0 if it was there already."""
    if grid.network[game, cell] >= 0:
        return 0
    grid.network[game, cell] = network
    grid.order[game, tail] = cell
    return 1


@wp.func
def join_roads(grid: Grid, game: wp.int32, rules: Rules):
    """Numbers the connected networks of roads: every road gets the first cell of its network."""
    for cell in range(rules.cells):
        grid.network[game, cell] = -1
    for start in range(rules.cells):
        if grid.kind[game, start] == Kind.ROAD and grid.network[game, start] < 0:
            grid.network[game, start] = start
            grid.order[game, 0] = start
            head = int(0)
            tail = int(1)
            while head < tail:
                cell = grid.order[game, head]
                head += 1
                for side in range(4):
                    there = beside(cell, side, rules)
                    if kind_at(grid, game, there) == Kind.ROAD:
                        tail += reach_road(grid, game, there, start, tail)


@wp.func
def nearest_road(grid: Grid, game: wp.int32, cell: wp.int32, rules: Rules) -> wp.int32:
    """The road that serves a cell: the first of the nearest ring that has one; -1 if none is near enough."""
    x = cell % rules.columns
    y = cell / rules.columns
    for ring in range(1, ROAD_REACH + 1):
        for row in range(wp.max(y - ring, 0), wp.min(y + ring + 1, rules.rows)):
            for column in range(wp.max(x - ring, 0), wp.min(x + ring + 1, rules.columns)):
                if grid.kind[game, row * rules.columns + column] == Kind.ROAD:
                    return row * rules.columns + column
    return -1


@wp.func
def serve_by_roads(grid: Grid, game: wp.int32, rules: Rules):
    """Finds the road of every cell that needs one."""
    for cell in range(rules.cells):
        kind = grid.kind[game, cell]
        road = int(-1)
        if kind >= Kind.RESIDENTIAL and kind < Kind.RUBBLE:
            road = nearest_road(grid, game, cell, rules)
        grid.road[game, cell] = road


@wp.func
def power_of(grid: Grid, game: wp.int32, cell: wp.int32, table: wp.array2d[wp.int32]) -> wp.int32:
    """Units of power that a cell gives (positive) or takes (negative)."""
    kind = grid.kind[game, cell]
    units = table[kind, Column.POWER]
    if is_zone(kind):
        units -= grid.amount[game, cell] / POWER_PER
    return units


@wp.func
def flood_power(grid: Grid, game: wp.int32, start: wp.int32, first: wp.int32, rules: Rules) -> wp.int32:
    """Writes to `circuit`, from place `first` on, all cells that a plant's power reaches, nearest first.

    Returns the place after the last one. `mark` is 0 where power can go and has not been yet.
    """
    grid.mark[game, start] = 1
    grid.circuit[game, first] = start
    head = int(first)
    tail = int(first + 1)
    while head < tail:
        cell = grid.circuit[game, head]
        head += 1
        x = cell % rules.columns
        y = cell / rules.columns
        top = wp.max(y - POWER_SPAN, 0)
        bottom = wp.min(y + POWER_SPAN, rules.rows - 1)
        for row in range(top, bottom + 1):
            wide = POWER_SPAN - wp.abs(row - y)
            there = row * rules.columns + wp.max(x - wide, 0)
            last = row * rules.columns + wp.min(x + wide, rules.columns - 1)
            while there <= last:
                if grid.mark[game, there] == 0:
                    grid.mark[game, there] = 1
                    grid.circuit[game, tail] = there
                    tail += 1
                there += 1
    return tail


@wp.func
def join_circuits(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Finds what is connected with plants: `circuit` lists it, and the last cell of each circuit as -1 - cell."""
    for cell in range(rules.cells):
        grid.mark[game, cell] = wp.where(conducts(grid.kind[game, cell]), 0, 1)
    tail = int(0)
    for start in range(rules.cells):
        if grid.mark[game, start] == 0 and table[grid.kind[game, start], Column.POWER] > 0:
            tail = flood_power(grid, game, start, tail, rules)
            grid.circuit[game, tail - 1] = -1 - grid.circuit[game, tail - 1]
    city.connected = tail


@wp.func
def supply_power(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Gives power to what is connected with plants, the nearest first, as long as there is enough of it."""
    city.power_supply = 0
    city.power_need = 0
    for cell in range(rules.cells):
        grid.flags[game, cell] = wp.where(grid.road[game, cell] >= 0, ROAD_ALONE, 0)
    first = int(0)
    left = int(0)
    for place in range(city.connected):
        entry = grid.circuit[game, place]
        left += wp.max(power_of(grid, game, wp.max(entry, -1 - entry), table), 0)
        if entry < 0:  # a circuit ends here: all its plants are known
            city.power_supply += left
            for again in range(first, place + 1):
                cell = wp.max(grid.circuit[game, again], -1 - grid.circuit[game, again])
                need = wp.max(-power_of(grid, game, cell, table), 0)
                city.power_need += need
                if need <= left:
                    left -= need
                    grid.flags[game, cell] = grid.flags[game, cell] | Flag.POWER
            first = place + 1
            left = 0


@wp.func
def funding_of(city: City, department: wp.int32) -> wp.int32:
    """What a department gets of what it needs, in percent."""
    funding = int(100)
    if department == Department.TRANSPORT:
        funding = city.funding_transport
    elif department == Department.SAFETY:
        funding = city.funding_safety
    elif department == Department.WELFARE:
        funding = city.funding_welfare
    return funding


@wp.func
def reach_out(grid: Grid, game: wp.int32, cell: wp.int32, reach: wp.int32, bit: wp.int32, rules: Rules):
    """Gives a flag to all cells within a circle."""
    x = cell % rules.columns
    y = cell / rules.columns
    for row in range(wp.max(y - reach, 0), wp.min(y + reach + 1, rules.rows)):
        for column in range(wp.max(x - reach, 0), wp.min(x + reach + 1, rules.columns)):
            if (row - y) * (row - y) + (column - x) * (column - x) <= reach * reach:
                there = row * rules.columns + column
                grid.flags[game, there] = grid.flags[game, there] | bit


@wp.func
def serve(grid: Grid, game: wp.int32, city: City, table: wp.array2d[wp.int32], rules: Rules):
    """Lets services reach the cells around them; what is funded in part reaches less far.

    Pumps and towers need power, parks nothing, the others power and a road.
    """
    for cell in range(rules.cells):
        kind = grid.kind[game, cell]
        bit = table[kind, Column.SERVES]
        if bit != 0:
            needed = wp.int32(ROAD_AND_POWER)
            if bit == Flag.WATER:
                needed = int(Flag.POWER)
            elif bit == Flag.PARK:
                needed = 0
            if (grid.flags[game, cell] & needed) == needed:
                reach = table[kind, Column.REACH] * funding_of(city, table[kind, Column.DEPARTMENT]) / 100
                reach_out(grid, game, cell, reach, bit, rules)
