"""The kernels of the embedded city builder: found a city, let days pass; one thread is one city."""

import warp as wp

from ludus.envs.city.game.kernels.land import drive, spread_air, value_land, value_scenery
from ludus.envs.city.game.kernels.looks import look_of
from ludus.envs.city.game.kernels.months import end_month, reach_milestone
from ludus.envs.city.game.kernels.networks import join_circuits, join_roads, serve, serve_by_roads, supply_power
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.kernels.terrain import build_hamlet, make_land
from ludus.envs.city.game.kernels.zones import count_networks, grow, take_census
from ludus.envs.city.game.rules import HISTORY_MONTHS, MONTH_DAYS, TAX_YIELD, TICK_DAYS
from ludus.envs.warp_functions import mix
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)


@wp.func
def look_around(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Computes networks and services anew."""
    if city.changed != 0:
        join_roads(grid, game, rules)
        serve_by_roads(grid, game, rules)
        join_circuits(grid, game, city, table, rules)
        value_scenery(grid, game, rules)
        city.changed = 0
    supply_power(grid, game, city, table, rules)
    serve(grid, game, city, table, rules)


@wp.func
def tick(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Lets the city live on by `TICK_DAYS`."""
    look_around(grid, game, city, table, rules)
    drive(grid, game, city, rules)
    spread_air(grid, game, city, rules)
    value_land(grid, game, city, rules)
    count_networks(grid, game, rules)
    grow(grid, game, city, rules)
    take_census(grid, game, city, rules)


@wp.kernel
def found_kernel(
    cities: wp.array[City],
    grid: Grid,
    history: wp.array2d[wp.int32],
    chosen: wp.array[wp.bool],
    keys: wp.array[wp.int64],
    table: wp.array2d[wp.int32],
    rules: Rules,
    first: int,
):
    """Founds new cities in the chosen games; a key of -1 stands for the game's own next one."""
    game = wp.tid() + first
    if not chosen[game]:
        return
    city = City()
    city.episode = cities[game].episode + 1
    city.key = mix(mix(rules.seed_hash, wp.uint32(rules.first_game + game)), wp.uint32(city.episode))
    if keys[game] >= wp.int64(0):
        city.key = wp.uint32(keys[game])
    city.funds = rules.funds
    city.tax = rules.tax
    city.felt_tax = wp.float32(rules.tax)
    city.funding_transport = 100
    city.funding_safety = 100
    city.funding_welfare = 100
    city.report = rules.report
    city.notice_cell = -1
    for cell in range(rules.cells):
        grid.kind[game, cell] = 0
        grid.amount[game, cell] = 0
        grid.air[game, cell] = 0.0
        grid.load[game, cell] = 0.0
    for month in range(HISTORY_MONTHS):
        history[game, month] = 0
    make_land(grid, game, city, rules)
    if rules.hamlet != 0:
        build_hamlet(grid, game, rules)
    city.changed = 1
    look_around(grid, game, city, table, rules)
    value_land(grid, game, city, rules)
    count_networks(grid, game, rules)
    take_census(grid, game, city, rules)
    cities[game] = city


@wp.kernel
def live_kernel(
    cities: wp.array[City],
    grid: Grid,
    history: wp.array2d[wp.int32],
    days: wp.array[wp.int32],
    milestones: wp.array[wp.int32],
    table: wp.array2d[wp.int32],
    rules: Rules,
    first: int,
):
    """Lets days pass, until the city has something to tell."""
    game = wp.tid() + first
    if days[game] <= 0:
        return
    city = cities[game]
    left = days[game]
    while left > 0 and city.over == 0 and city.notice == 0:
        left -= 1
        city.day += 1
        city.tax_due += (city.population + city.filled) * city.tax * TAX_YIELD
        if city.day % TICK_DAYS == 0:
            tick(grid, game, city, table, rules)
            reach_milestone(city, milestones)
        if city.day % MONTH_DAYS == 0:
            end_month(grid, game, city, table, history, rules)
    cities[game] = city


@wp.kernel
def look_kernel(cities: wp.array[City], grid: Grid, looks: wp.array2d[wp.int32], rules: Rules, first: int):
    """Writes how every cell looks."""
    game = wp.tid() + first
    city = cities[game]
    for cell in range(rules.cells):
        looks[game, cell] = look_of(grid, game, cell, city, rules)
