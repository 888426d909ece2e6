"""Warp functions of roads, power and services, and of zones: growth and decline, happiness, demand and the census."""

import warp as wp

from ludus.envs.warp_functions import below, uniform
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.kernels.land import crowding, road_capacity
from ludus.worlds.city.game.kernels.structs import City, Grid, Rules, beside, conducts, has, is_zone, kind_at, stream
from ludus.worlds.city.game.rules import Column, Department, Flag, Kind, Stream

ROAD_ALONE = wp.constant(int(Flag.ROAD))
ROAD_AND_POWER = wp.constant(int(Flag.ROAD) | int(Flag.POWER))


@wp.func
def join_roads(grid: Grid, game: wp.int32, rules: Rules):
    """Number the connected networks of roads: every road gets the first cell of its network."""
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
                    if kind_at(grid, game, there) == Kind.ROAD:  # noqa: SIM102 - Warp evaluates both sides of an `and`
                        if grid.network[game, there] < 0:
                            grid.network[game, there] = start
                            grid.order[game, tail] = there
                            tail += 1


@wp.func
def nearest_road(grid: Grid, game: wp.int32, cell: wp.int32, rules: Rules) -> wp.int32:
    """The road that serves a cell: the first of the nearest ring that has one; -1 if none is near enough."""
    x = cell % rules.columns
    y = cell / rules.columns
    for ring in range(1, const.ROAD_REACH + 1):
        for row in range(wp.max(y - ring, 0), wp.min(y + ring + 1, rules.rows)):
            for column in range(wp.max(x - ring, 0), wp.min(x + ring + 1, rules.columns)):
                if grid.kind[game, row * rules.columns + column] == Kind.ROAD:
                    return row * rules.columns + column
    return -1


@wp.func
def serve_by_roads(grid: Grid, game: wp.int32, rules: Rules):
    """Find the road of every cell that needs one."""
    for cell in range(rules.cells):
        kind = grid.kind[game, cell]
        road = int(-1)
        if kind >= Kind.RESIDENTIAL and kind < Kind.RUBBLE:
            road = nearest_road(grid, game, cell, rules)
        grid.road[game, cell] = road


@wp.func
def power_of(grid: Grid, game: wp.int32, cell: wp.int32, table: wp.array2d[wp.int32]) -> wp.int32:
    """Units of power that a cell produces (positive) or needs (negative)."""
    kind = grid.kind[game, cell]
    units = table[kind, Column.POWER]
    if is_zone(kind):
        units -= grid.amount[game, cell] / const.POWER_PER
    return units


@wp.func
def flood_power(grid: Grid, game: wp.int32, start: wp.int32, first: wp.int32, rules: Rules) -> wp.int32:
    """Write to `circuit`, from place `first` on, all cells that a plant's power reaches, nearest first.

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
        top = wp.max(y - const.POWER_REACH, 0)
        bottom = wp.min(y + const.POWER_REACH, rules.rows - 1)
        for row in range(top, bottom + 1):
            wide = const.POWER_REACH - wp.abs(row - y)
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
    """Find what is connected with plants: `circuit` lists it, and the last cell of each circuit as -1 - cell."""
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
    """Supply power to the cells connected to plants, nearest first, until it runs out."""
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
    """Funding of a department, in percent of what it needs."""
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
    """Give a flag to all cells within a circle."""
    x = cell % rules.columns
    y = cell / rules.columns
    for row in range(wp.max(y - reach, 0), wp.min(y + reach + 1, rules.rows)):
        for column in range(wp.max(x - reach, 0), wp.min(x + reach + 1, rules.columns)):
            if (row - y) * (row - y) + (column - x) * (column - x) <= reach * reach:
                there = row * rules.columns + column
                grid.flags[game, there] = grid.flags[game, there] | bit


@wp.func
def serve(grid: Grid, game: wp.int32, city: City, table: wp.array2d[wp.int32], rules: Rules):
    """Set the service flags of the cells around each service; partial funding reduces the reach.

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


CAPACITIES = wp.constant(wp.vec3i(*const.CAPACITIES))


@wp.func
def count_networks(grid: Grid, game: wp.int32, rules: Rules):
    """Count people and jobs of every network of roads, at its first cell."""
    for cell in range(rules.cells):
        grid.people[game, cell] = 0
        grid.jobs[game, cell] = 0
    for cell in range(rules.cells):
        if is_zone(grid.kind[game, cell]):
            count(grid, game, cell, grid.amount[game, cell])


@wp.func
def count(grid: Grid, game: wp.int32, cell: wp.int32, change: wp.int32):
    """Add a change of a zone to the count of its network, if it has one."""
    road = grid.road[game, cell]
    if road >= 0:
        network = grid.network[game, road]
        if grid.kind[game, cell] == Kind.RESIDENTIAL:
            grid.people[game, network] = grid.people[game, network] + change
        else:
            grid.jobs[game, network] = grid.jobs[game, network] + change


@wp.func
def capacity_of(grid: Grid, game: wp.int32, cell: wp.int32) -> wp.int32:
    """People or jobs that a zone can hold."""
    flags = grid.flags[game, cell]
    if (flags & ROAD_AND_POWER) != ROAD_AND_POWER:
        return 0
    if (flags & Flag.WATER) == 0:
        return CAPACITIES[0]
    is_good = grid.value[game, cell] >= const.GOOD_LAND
    if grid.kind[game, cell] == Kind.INDUSTRIAL:
        is_good = (flags & Flag.FIRE) != 0
    return wp.where(is_good, CAPACITIES[2], CAPACITIES[1])


@wp.func
def quota(demand: wp.float32, total: wp.int32, h: wp.uint32) -> wp.int32:
    """People or jobs that come (positive) or leave (negative) per tick; the fraction is rounded at random."""
    most = const.QUOTA_BASE + const.QUOTA_SHARE * wp.float32(total)
    if demand < 0.0:
        return -wp.int32(-demand / 100.0 * most * const.LEAVE_FACTOR + uniform(h))
    return wp.int32(demand / 100.0 * most + uniform(h))


@wp.func
def has_balance(grid: Grid, game: wp.int32, cell: wp.int32, kind: wp.int32) -> bool:
    """Whether a network has work for more people, or people for more work."""
    network = grid.network[game, grid.road[game, cell]]
    workers = grid.people[game, network] / 2
    jobs = grid.jobs[game, network]
    if kind == Kind.RESIDENTIAL:
        return workers < jobs + const.SPARE_WORKERS
    return jobs < workers + const.SPARE_WORKERS


@wp.func
def grow_zone(
    grid: Grid, game: wp.int32, cell: wp.int32, wanted: wp.int32, luck: wp.float32, road_carries: wp.float32
) -> wp.int32:
    """Change of a zone in this tick, out of the people or jobs that want to come or leave."""
    kind = grid.kind[game, cell]
    amount = grid.amount[game, cell]
    capacity = capacity_of(grid, game, cell)
    if capacity == 0:
        return -wp.min(amount, const.DECAY_STEP)
    if amount > capacity:
        return -1
    if wanted < 0:
        return -wp.min(wp.min(amount, 2), -wanted)
    attractive = kind == Kind.INDUSTRIAL or luck * 100.0 < grid.value[game, cell] + 40.0
    if wanted == 0 or not attractive or amount >= capacity:
        return 0
    if crowding(grid, game, cell, road_carries) > const.CROWDED or not has_balance(grid, game, cell, kind):
        return 0
    return wp.min(wp.min(wanted, const.GROWTH_STEP), capacity - amount)


@wp.func
def grow(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Let people and jobs come and leave, beginning at a random cell."""
    carries = road_capacity(city)
    wanted = wp.vec3i(
        quota(city.demand_residential, city.population, stream(city, Stream.GROWTH, rules.cells)),
        quota(city.demand_commercial, city.commercial, stream(city, Stream.GROWTH, rules.cells + 1)),
        quota(city.demand_industrial, city.industrial, stream(city, Stream.GROWTH, rules.cells + 2)),
    )
    start = below(stream(city, Stream.GROWTH, rules.cells + 3), rules.cells)
    for place in range(rules.cells):
        cell = (start + place) % rules.cells
        kind = grid.kind[game, cell]
        if is_zone(kind):
            slot = kind - int(Kind.RESIDENTIAL)
            luck = uniform(stream(city, Stream.GROWTH, cell))
            change = grow_zone(grid, game, cell, wanted[slot], luck, carries)
            if change != 0:
                grid.amount[game, cell] = grid.amount[game, cell] + change
                if change * wanted[slot] > 0:
                    wanted[slot] = wanted[slot] - change
                count(grid, game, cell, change)


@wp.func
def mood(grid: Grid, game: wp.int32, cell: wp.int32, felt_tax: wp.float32, carries: wp.float32) -> wp.float32:
    """Happiness of the people of a cell, from 0 to 100."""
    flags = grid.flags[game, cell]
    happy = const.HAPPY_BASE + const.HAPPY_POLICE * has(flags, Flag.POLICE) + const.HAPPY_FIRE * has(flags, Flag.FIRE)
    happy += const.HAPPY_CLINIC * has(flags, Flag.CLINIC) + const.HAPPY_SCHOOL * has(flags, Flag.SCHOOL)
    happy += const.HAPPY_PARK * has(flags, Flag.PARK) + const.HAPPY_WATERED * has(flags, Flag.WATER)
    happy -= const.HAPPY_SMOKE * grid.air[game, cell] + const.HAPPY_TAX * (felt_tax - const.FAIR_TAX)
    happy -= const.HAPPY_TRAFFIC * wp.min(crowding(grid, game, cell, carries), 1.0)
    idle = float(1.0)
    if grid.road[game, cell] >= 0:
        network = grid.network[game, grid.road[game, cell]]
        workers = wp.float32(wp.max(grid.people[game, network] / 2, 1))
        idle = wp.max(1.0 - wp.float32(grid.jobs[game, network] + const.SPARE_WORKERS) / workers, 0.0)
    return wp.clamp(happy - const.HAPPY_IDLE * idle, 0.0, 100.0)


@wp.func
def demand(city: wp.ref[City]):
    """Compute the demand for homes, shops and industry, each from -100 to 100."""
    workers = wp.float32(city.population / 2)
    shops = wp.float32(city.commercial)
    industry = wp.float32(city.industrial)
    common = city.market - const.TAX_DEMAND * (city.felt_tax - const.FAIR_TAX)
    spare = wp.float32(const.SPARE_WORKERS)
    homes = 100.0 * (shops + industry - workers + spare) / (workers + spare) + city.happiness - const.HAPPY_BASE
    shoppers = const.COMMERCE_SHARE * workers + const.COMMERCE_BASE
    makers = (1.0 - const.COMMERCE_SHARE) * workers + const.INDUSTRY_BASE
    shopping = 100.0 * (shoppers - shops) / (shops + 2.0 * const.COMMERCE_BASE)
    making = 100.0 * (makers - industry) / (industry + const.INDUSTRY_BASE)
    city.demand_residential = wp.clamp(homes + common, -100.0, 100.0)
    city.demand_commercial = wp.clamp(shopping + common, -100.0, 100.0)
    city.demand_industrial = wp.clamp(making + common, -100.0, 100.0)


@wp.func
def take_census(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Count the city and compute its figures; call `count_networks` first."""
    carries = road_capacity(city)
    city.felt_tax += const.FELT_TAX_SHARE * (wp.float32(city.tax) - city.felt_tax)
    people = int(0)
    shops = int(0)
    industry = int(0)
    filled = int(0)
    built = int(0)
    moods = float(0.0)
    smoke = float(0.0)
    worth = float(0.0)
    for cell in range(rules.cells):
        filled += wp.min(grid.people[game, cell] / 2, grid.jobs[game, cell])
        kind = grid.kind[game, cell]
        if is_zone(kind):
            amount = grid.amount[game, cell]
            built += 1
            worth += grid.value[game, cell]
            if kind == Kind.RESIDENTIAL:
                people += amount
                moods += wp.float32(amount) * mood(grid, game, cell, city.felt_tax, carries)
                smoke += wp.float32(amount) * grid.air[game, cell]
            elif kind == Kind.COMMERCIAL:
                shops += amount
            else:
                industry += amount
    city.population = people
    city.commercial = shops
    city.industrial = industry
    city.filled = filled
    city.happiness = wp.clamp(const.HAPPY_BASE - const.HAPPY_TAX * (city.felt_tax - const.FAIR_TAX), 0.0, 100.0)
    city.pollution = 0.0
    city.value = 0.0
    if people > 0:
        city.happiness = moods / wp.float32(people)
        city.pollution = smoke / wp.float32(people)
    if built > 0:
        city.value = worth / wp.float32(built)
    demand(city)
