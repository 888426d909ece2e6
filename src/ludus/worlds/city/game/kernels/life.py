"""The kernels of the embedded city builder: found a city, advance days and months, write how cells look.

One thread is one city.
"""

import warp as wp

from ludus.envs.warp_functions import below, mix, uniform
from ludus.envs.warp_tools import EXACT
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.kernels.land import build_hamlet, drive, make_land, spread_air, value_land, value_scenery
from ludus.worlds.city.game.kernels.structs import City, Grid, Rules, beside, conducts, is_zone, kind_at, stream
from ludus.worlds.city.game.kernels.zones import (
    count_networks,
    funding_of,
    grow,
    join_circuits,
    join_roads,
    serve,
    serve_by_roads,
    supply_power,
    take_census,
)
from ludus.worlds.city.game.rules import Column, Department, Flag, Kind, Notice, Over, Stream, Terrain

FIRE_TRIES = wp.constant(40)


@wp.func
def pay_upkeep(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Compute what is paid to every department for this month."""
    bills = wp.vec4i(0, 0, 0, 0)
    for cell in range(rules.cells):
        kind = grid.kind[game, cell]
        if kind != Kind.EMPTY:
            cost = table[kind, Column.UPKEEP]
            if kind == Kind.ROAD and grid.terrain[game, cell] == Terrain.WATER:
                cost = int(const.BRIDGE_UPKEEP)
            department = table[kind, Column.DEPARTMENT]
            bills[department] = bills[department] + cost
    city.paid_transport = bills[0] * funding_of(city, Department.TRANSPORT) / 100
    city.paid_safety = bills[1] * funding_of(city, Department.SAFETY) / 100
    city.paid_welfare = bills[2] * funding_of(city, Department.WELFARE) / 100
    city.paid_utilities = bills[3]


@wp.func
def settle(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Collect the taxes of the month, pay its bills and check the debts."""
    pay_upkeep(grid, game, city, table, rules)
    city.income = city.tax_due / 1000
    city.tax_due -= city.income * 1000
    city.paid_interest = wp.max(-city.funds, 0) / const.INTEREST_DIVISOR
    paid = city.paid_transport + city.paid_safety + city.paid_welfare + city.paid_utilities + city.paid_interest
    city.balance = city.income - paid
    city.year_balance += city.balance
    city.funds = wp.clamp(city.funds + city.balance, -const.FUNDS_LIMIT, const.FUNDS_LIMIT)
    if city.funds >= -const.DEBT_LIMIT:
        city.debt_months = 0
        return
    city.debt_months += 1
    if city.debt_months == 1:
        city.notice = city.notice | Notice.DEBT
    elif city.debt_months >= const.DEBT_MONTHS:
        city.notice = city.notice | Notice.BANKRUPT
        city.over = Over.BANKRUPT


@wp.func
def catch_fire(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Burn down a random building, unless a fire station reaches it."""
    for turn in range(FIRE_TRIES):
        cell = below(stream(city, Stream.EVENT_PLACE, turn), rules.cells)
        kind = grid.kind[game, cell]
        if kind >= Kind.RESIDENTIAL and kind < Kind.PARK:
            if (grid.flags[game, cell] & Flag.FIRE) == 0:
                grid.kind[game, cell] = Kind.RUBBLE
                grid.amount[game, cell] = 0
                city.changed = 1
                city.notice = city.notice | Notice.FIRE
                city.notice_cell = cell
            return


@wp.func
def storm(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Destroy power lines and trees at random cells; notify the player only if a line was hit."""
    lines = int(0)
    for turn in range(const.STORM_SPOTS):
        cell = below(stream(city, Stream.EVENT_PLACE, turn), rules.cells)
        if grid.kind[game, cell] == Kind.LINE:
            grid.kind[game, cell] = Kind.EMPTY
            lines += 1
            city.changed = 1
            city.notice = city.notice | Notice.STORM
            city.notice_cell = cell
        elif grid.kind[game, cell] == Kind.EMPTY and grid.terrain[game, cell] == Terrain.TREES:
            grid.terrain[game, cell] = Terrain.LAND
            city.changed = 1
    city.notice_amount = lines


@wp.func
def happen(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Draw the random event of a month, if any."""
    city.market_months = wp.max(city.market_months - 1, 0)
    if city.market_months == 0:
        city.market = 0.0
    quiet = rules.events == 0 or city.notice != 0 or city.day / const.MONTH_DAYS <= const.EVENTS_FROM_MONTH
    if quiet or uniform(stream(city, Stream.EVENT, 0)) >= const.EVENT_CHANCE:
        return
    which = below(stream(city, Stream.EVENT, 1), 4)
    if which == 0:
        catch_fire(grid, game, city, rules)
    elif which == 1:
        storm(grid, game, city, rules)
    else:
        city.market = wp.where(which == 2, const.MARKET_SWING, -const.MARKET_SWING)
        city.market_months = const.MARKET_MONTHS
        city.notice = city.notice | wp.where(which == 2, int(Notice.BOOM), int(Notice.RECESSION))


@wp.func
def reach_milestone(city: wp.ref[City], milestones: wp.array[wp.int32]):
    """Grant money for a population that is reached for the first time."""
    if city.milestones == milestones.shape[0]:
        return
    goal = milestones[city.milestones]
    if city.population >= goal:
        city.notice_amount = const.GRANT * goal
        city.milestones += 1
        city.funds = wp.min(city.funds + city.notice_amount, const.FUNDS_LIMIT)
        city.notice = city.notice | Notice.MILESTONE


@wp.func
def end_month(
    grid: Grid,
    game: wp.int32,
    city: wp.ref[City],
    table: wp.array2d[wp.int32],
    history: wp.array2d[wp.int32],
    rules: Rules,
):
    """End a month."""
    month = city.day / const.MONTH_DAYS
    if month % const.YEAR_MONTHS == 1:
        city.year_balance = 0
    settle(grid, game, city, table, rules)
    history[game, (month - 1) % const.HISTORY_MONTHS] = city.population
    if month % const.YEAR_MONTHS == 0 and city.report != 0:
        city.notice = city.notice | Notice.YEAR
    happen(grid, game, city, rules)


LEVELS = wp.constant(wp.vec4i(*const.LEVELS))


@wp.func
def size_of(amount: wp.int32) -> wp.int32:
    """Size of a zone's building, from 0 to 4."""
    size = int(0)
    for level in range(4):
        if amount >= LEVELS[level]:
            size += 1
    return size


@wp.func
def goes_on(grid: Grid, game: wp.int32, kind: wp.int32, there: wp.int32) -> bool:
    """Whether a road, a line or water is drawn as connected to a neighbour."""
    if there < 0:
        return False
    if kind == Kind.ROAD:
        return kind_at(grid, game, there) == Kind.ROAD
    if kind == Kind.LINE:
        return conducts(kind_at(grid, game, there))
    return grid.terrain[game, there] != Terrain.WATER


@wp.func
def sprite_code(grid: Grid, game: wp.int32, cell: wp.int32, city: City, rules: Rules) -> wp.int32:
    """The sprite code of a cell; see `rules.SPRITE_KIND`."""
    kind = grid.kind[game, cell]
    terrain = grid.terrain[game, cell]
    sides = int(0)
    if kind == Kind.ROAD or kind == Kind.LINE or (kind == Kind.EMPTY and terrain == Terrain.WATER):
        for side in range(4):
            if goes_on(grid, game, kind, beside(cell, side, rules)):
                sides += 1 << side
    chance = wp.int32(mix(city.key, wp.uint32(cell)) & wp.uint32(3))
    dark = wp.where((grid.flags[game, cell] & Flag.POWER) == 0, const.SPRITE_DARK, 0)
    detail = dark
    if kind == Kind.EMPTY:
        detail = terrain * 16 + wp.where(terrain == Terrain.WATER, sides, chance)
    elif kind == Kind.ROAD or kind == Kind.LINE:
        detail = sides + wp.where(terrain == Terrain.WATER, const.SPRITE_WATER, 0)
    elif is_zone(kind):
        detail = size_of(grid.amount[game, cell]) * const.SPRITE_SIZE + chance * const.SPRITE_VARIANT + dark
    elif kind == Kind.PARK or kind == Kind.RUBBLE:
        detail = chance * const.SPRITE_VARIANT
    if kind != Kind.EMPTY and terrain == Terrain.HILL:
        detail += const.SPRITE_HILL
    return kind * const.SPRITE_KIND + detail


wp.set_module_options(EXACT)


@wp.func
def look_around(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Recompute networks and services."""
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
    """Advance the city by `TICK_DAYS`."""
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
    table: wp.array2d[wp.int32],
    rules: Rules,
    first: int,
):
    """Found the next cities of the chosen games."""
    game = wp.tid() + first
    if not chosen[game]:
        return
    city = City()
    city.episode = cities[game].episode + 1
    city.key = mix(mix(rules.seed_hash, wp.uint32(rules.first_game + game)), wp.uint32(city.episode))
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
    for month in range(const.HISTORY_MONTHS):
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
    """Advance days until the city has a notice for the player."""
    game = wp.tid() + first
    if days[game] <= 0:
        return
    city = cities[game]
    left = days[game]
    while left > 0 and city.over == 0 and city.notice == 0:
        left -= 1
        city.day += 1
        city.tax_due += (city.population + city.filled) * city.tax * const.TAX_YIELD
        if city.day % const.TICK_DAYS == 0:
            tick(grid, game, city, table, rules)
            reach_milestone(city, milestones)
        if city.day % const.MONTH_DAYS == 0:
            end_month(grid, game, city, table, history, rules)
    cities[game] = city


@wp.kernel
def sprite_kernel(cities: wp.array[City], grid: Grid, sprite_codes: wp.array2d[wp.int32], rules: Rules, first: int):
    """Write the sprite code of every cell."""
    game = wp.tid() + first
    city = cities[game]
    for cell in range(rules.cells):
        sprite_codes[game, cell] = sprite_code(grid, game, cell, city, rules)
