"""Zones: who comes, who leaves, how they feel and what the city wants, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.cells import has, is_zone
from ludus.envs.city.game.kernels.land import crowding, road_capacity
from ludus.envs.city.game.kernels.networks import ROAD_AND_POWER
from ludus.envs.city.game.kernels.streams import stream
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.rules import (
    CAPACITIES,
    COMMERCE_BASE,
    COMMERCE_SHARE,
    CROWDED,
    DECAY_STEP,
    FAIR_TAX,
    FELT_TAX_SHARE,
    GOOD_LAND,
    GROWTH_STEP,
    HAPPY_BASE,
    HAPPY_CLINIC,
    HAPPY_FIRE,
    HAPPY_IDLE,
    HAPPY_PARK,
    HAPPY_POLICE,
    HAPPY_SCHOOL,
    HAPPY_SMOKE,
    HAPPY_TAX,
    HAPPY_TRAFFIC,
    HAPPY_WATERED,
    INDUSTRY_BASE,
    LEAVE_FACTOR,
    QUOTA_BASE,
    QUOTA_SHARE,
    SPARE_WORKERS,
    TAX_DEMAND,
    Flag,
    Kind,
    Stream,
)
from ludus.envs.warp_functions import below, uniform

CAPACITY_BASE = wp.constant(CAPACITIES[0])
CAPACITY_WATERED = wp.constant(CAPACITIES[1])
CAPACITY_GOOD = wp.constant(CAPACITIES[2])


@wp.func
def count_networks(grid: Grid, game: wp.int32, rules: Rules):
    """Counts people and jobs of every network of roads, at its first cell."""
    for cell in range(rules.cells):
        grid.people[game, cell] = 0
        grid.jobs[game, cell] = 0
    for cell in range(rules.cells):
        if is_zone(grid.kind[game, cell]):
            count(grid, game, cell, grid.amount[game, cell])


@wp.func
def count(grid: Grid, game: wp.int32, cell: wp.int32, change: wp.int32):
    """Adds a change of a zone to the count of its network, if it has one."""
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
    capacity = int(0)
    if (flags & ROAD_AND_POWER) == ROAD_AND_POWER:
        capacity = int(CAPACITY_BASE)
        if (flags & Flag.WATER) != 0:
            capacity = int(CAPACITY_WATERED)
            if grid.kind[game, cell] == Kind.INDUSTRIAL:
                if (flags & Flag.FIRE) != 0:
                    capacity = int(CAPACITY_GOOD)
            elif grid.value[game, cell] >= GOOD_LAND:
                capacity = int(CAPACITY_GOOD)
    return capacity


@wp.func
def quota(demand: wp.float32, total: wp.int32, h: wp.uint32) -> wp.int32:
    """People or jobs that come (positive) or leave (negative) in a tick; what is left of a whole one is drawn."""
    most = QUOTA_BASE + QUOTA_SHARE * wp.float32(total)
    if demand < 0.0:
        return -wp.int32(-demand / 100.0 * most * LEAVE_FACTOR + uniform(h))
    return wp.int32(demand / 100.0 * most + uniform(h))


@wp.func
def has_balance(grid: Grid, game: wp.int32, cell: wp.int32, kind: wp.int32) -> bool:
    """Whether a network has work for more people, or people for more work."""
    network = grid.network[game, grid.road[game, cell]]
    workers = grid.people[game, network] / 2
    jobs = grid.jobs[game, network]
    if kind == Kind.RESIDENTIAL:
        return workers < jobs + SPARE_WORKERS
    return jobs < workers + SPARE_WORKERS


@wp.func
def grow_zone(
    grid: Grid, game: wp.int32, cell: wp.int32, wanted: wp.int32, luck: wp.float32, road_carries: wp.float32
) -> wp.int32:
    """People or jobs by which a zone changes in this tick, of those that want to come or leave."""
    kind = grid.kind[game, cell]
    amount = grid.amount[game, cell]
    capacity = capacity_of(grid, game, cell)
    if capacity == 0:
        return -wp.min(amount, DECAY_STEP)
    if amount > capacity:
        return -1
    if wanted < 0:
        return -wp.min(wp.min(amount, 2), -wanted)
    attractive = kind == Kind.INDUSTRIAL or luck * 100.0 < grid.value[game, cell] + 40.0
    if wanted == 0 or not attractive or amount >= capacity:
        return 0
    if crowding(grid, game, cell, road_carries) > CROWDED or not has_balance(grid, game, cell, kind):
        return 0
    return wp.min(wp.min(wanted, GROWTH_STEP), capacity - amount)


@wp.func
def grow(grid: Grid, game: wp.int32, city: City, rules: Rules):
    """Lets people and jobs come and leave, beginning at a random cell."""
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
    """How happy the people of a cell are, from 0 to 100."""
    flags = grid.flags[game, cell]
    happy = HAPPY_BASE + HAPPY_POLICE * has(flags, Flag.POLICE) + HAPPY_FIRE * has(flags, Flag.FIRE)
    happy += HAPPY_CLINIC * has(flags, Flag.CLINIC) + HAPPY_SCHOOL * has(flags, Flag.SCHOOL)
    happy += HAPPY_PARK * has(flags, Flag.PARK) + HAPPY_WATERED * has(flags, Flag.WATER)
    happy -= HAPPY_SMOKE * grid.air[game, cell] + HAPPY_TAX * (felt_tax - FAIR_TAX)
    happy -= HAPPY_TRAFFIC * wp.min(crowding(grid, game, cell, carries), 1.0)
    idle = float(1.0)
    if grid.road[game, cell] >= 0:
        network = grid.network[game, grid.road[game, cell]]
        workers = wp.float32(wp.max(grid.people[game, network] / 2, 1))
        idle = wp.max(1.0 - wp.float32(grid.jobs[game, network] + SPARE_WORKERS) / workers, 0.0)
    return wp.clamp(happy - HAPPY_IDLE * idle, 0.0, 100.0)


@wp.func
def demand(city: wp.ref[City]):
    """Computes what the city wants more or less of."""
    workers = wp.float32(city.population / 2)
    shops = wp.float32(city.commercial)
    industry = wp.float32(city.industrial)
    common = city.market - TAX_DEMAND * (city.felt_tax - FAIR_TAX)
    spare = wp.float32(SPARE_WORKERS)
    homes = 100.0 * (shops + industry - workers + spare) / (workers + spare) + city.happiness - HAPPY_BASE
    shopping = 100.0 * (COMMERCE_SHARE * workers + COMMERCE_BASE - shops) / (shops + 2.0 * COMMERCE_BASE)
    making = 100.0 * ((1.0 - COMMERCE_SHARE) * workers + INDUSTRY_BASE - industry) / (industry + INDUSTRY_BASE)
    city.demand_residential = wp.clamp(homes + common, -100.0, 100.0)
    city.demand_commercial = wp.clamp(shopping + common, -100.0, 100.0)
    city.demand_industrial = wp.clamp(making + common, -100.0, 100.0)


@wp.func
def take_census(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Counts the city and computes its figures; `count_networks` comes first."""
    carries = road_capacity(city)
    city.felt_tax += FELT_TAX_SHARE * (wp.float32(city.tax) - city.felt_tax)
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
    city.happiness = wp.clamp(HAPPY_BASE - HAPPY_TAX * (city.felt_tax - FAIR_TAX), 0.0, 100.0)
    city.pollution = 0.0
    city.value = 0.0
    if people > 0:
        city.happiness = moods / wp.float32(people)
        city.pollution = smoke / wp.float32(people)
    if built > 0:
        city.value = worth / wp.float32(built)
    demand(city)
