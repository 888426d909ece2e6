"""The end of a month: taxes, upkeep, debts, milestones and events, as Warp functions."""

import warp as wp

from ludus.envs.city.game.kernels.networks import funding_of
from ludus.envs.city.game.kernels.streams import stream
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.rules import (
    BRIDGE_UPKEEP,
    DEBT_LIMIT,
    DEBT_MONTHS,
    EVENT_CHANCE,
    EVENTS_FROM_MONTH,
    FUNDS_LIMIT,
    GRANT,
    HISTORY_MONTHS,
    INTEREST_DIVISOR,
    MARKET_MONTHS,
    MARKET_SWING,
    MONTH_DAYS,
    STORM_SPOTS,
    YEAR_MONTHS,
    Column,
    Department,
    Flag,
    Kind,
    Notice,
    Over,
    Stream,
    Terrain,
)
from ludus.envs.warp_functions import below, uniform

FIRE_TRIES = wp.constant(40)


@wp.func
def pay_upkeep(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Computes what every department gets for this month."""
    bills = wp.vec4i(0, 0, 0, 0)
    for cell in range(rules.cells):
        kind = grid.kind[game, cell]
        if kind != Kind.EMPTY:
            cost = table[kind, Column.UPKEEP]
            if kind == Kind.ROAD and grid.terrain[game, cell] == Terrain.WATER:
                cost = int(BRIDGE_UPKEEP)
            department = table[kind, Column.DEPARTMENT]
            bills[department] = bills[department] + cost
    city.paid_transport = bills[0] * funding_of(city, Department.TRANSPORT) / 100
    city.paid_safety = bills[1] * funding_of(city, Department.SAFETY) / 100
    city.paid_welfare = bills[2] * funding_of(city, Department.WELFARE) / 100
    city.paid_utilities = bills[3]


@wp.func
def settle(grid: Grid, game: wp.int32, city: wp.ref[City], table: wp.array2d[wp.int32], rules: Rules):
    """Takes the taxes of the month, pays its bills and watches the debts."""
    pay_upkeep(grid, game, city, table, rules)
    city.income = city.tax_due / 1000
    city.tax_due -= city.income * 1000
    city.paid_interest = wp.max(-city.funds, 0) / INTEREST_DIVISOR
    paid = city.paid_transport + city.paid_safety + city.paid_welfare + city.paid_utilities + city.paid_interest
    city.balance = city.income - paid
    city.year_balance += city.balance
    city.funds = wp.clamp(city.funds + city.balance, -FUNDS_LIMIT, FUNDS_LIMIT)
    if city.funds >= -DEBT_LIMIT:
        city.debt_months = 0
        return
    city.debt_months += 1
    if city.debt_months == 1:
        city.notice = city.notice | Notice.DEBT
    elif city.debt_months >= DEBT_MONTHS:
        city.notice = city.notice | Notice.BANKRUPT
        city.over = Over.BANKRUPT


@wp.func
def catch_fire(grid: Grid, game: wp.int32, city: wp.ref[City], rules: Rules):
    """Burns down a random building, unless a fire station reaches it."""
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
    """Takes power lines and trees at random cells; it is told only if it took a line."""
    lines = int(0)
    for turn in range(STORM_SPOTS):
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
    """Lets an event happen in some months."""
    city.market_months = wp.max(city.market_months - 1, 0)
    if city.market_months == 0:
        city.market = 0.0
    quiet = rules.events == 0 or city.notice != 0 or city.day / MONTH_DAYS <= EVENTS_FROM_MONTH
    if quiet or uniform(stream(city, Stream.EVENT, 0)) >= EVENT_CHANCE:
        return
    which = below(stream(city, Stream.EVENT, 1), 4)
    if which == 0:
        catch_fire(grid, game, city, rules)
    elif which == 1:
        storm(grid, game, city, rules)
    elif which == 2:
        city.market = MARKET_SWING
        city.market_months = MARKET_MONTHS
        city.notice = city.notice | Notice.BOOM
    else:
        city.market = -MARKET_SWING
        city.market_months = MARKET_MONTHS
        city.notice = city.notice | Notice.RECESSION


@wp.func
def reach_milestone(city: wp.ref[City], milestones: wp.array[wp.int32]):
    """Grants money for a population that is reached for the first time."""
    if city.milestones == milestones.shape[0]:
        return
    goal = milestones[city.milestones]
    if city.population >= goal:
        city.notice_amount = GRANT * goal
        city.milestones += 1
        city.funds = wp.min(city.funds + city.notice_amount, FUNDS_LIMIT)
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
    """Ends a month."""
    month = city.day / MONTH_DAYS
    if month % YEAR_MONTHS == 1:
        city.year_balance = 0
    settle(grid, game, city, table, rules)
    history[game, (month - 1) % HISTORY_MONTHS] = city.population
    if month % YEAR_MONTHS == 0 and city.report != 0:
        city.notice = city.notice | Notice.YEAR
    happen(grid, game, city, rules)
