"""The state of a city as Warp structs: what a kernel loads, changes and stores.

Every field of `City` is 32 bits wide, so that an array of cities is also an int32 tensor `(games, words)`. What is in
the cells are arrays `(games, cells)` of their own; `Grid` only holds them together.
"""

import warp as wp


@wp.struct
class City:
    """What a city has once."""

    key: wp.uint32  # of all its random streams
    episode: wp.int32
    day: wp.int32  # since the city was founded
    funds: wp.int32  # $
    tax: wp.int32  # %
    felt_tax: wp.float32  # %; follows the tax slowly
    tax_due: wp.int32  # thousandths of $ since the last month
    funding_transport: wp.int32  # %
    funding_safety: wp.int32  # %
    funding_welfare: wp.int32  # %
    population: wp.int32
    commercial: wp.int32  # jobs in shops
    industrial: wp.int32  # jobs in industry
    filled: wp.int32  # jobs that somebody works in
    happiness: wp.float32  # 0 to 100
    traffic: wp.float32  # 0 to 100
    pollution: wp.float32  # 0 to 100, where people live
    value: wp.float32  # 0 to 100, of built land
    demand_residential: wp.float32  # -100 to 100
    demand_commercial: wp.float32
    demand_industrial: wp.float32
    power_supply: wp.int32  # units
    power_need: wp.int32
    income: wp.int32  # $ of taxes in the last month
    paid_transport: wp.int32  # $ in the last month
    paid_safety: wp.int32
    paid_welfare: wp.int32
    paid_utilities: wp.int32
    paid_interest: wp.int32
    balance: wp.int32  # $ of the last month
    year_balance: wp.int32  # $ of the months of this year
    debt_months: wp.int32  # in a row below the debt limit
    milestones: wp.int32  # reached so far
    market: wp.float32  # points of demand that a boom or recession adds
    market_months: wp.int32  # left of it
    report: wp.int32  # 1: tell the budget at the end of a year
    notice: wp.int32  # bits of rules.Notice that nobody has taken yet
    notice_cell: wp.int32  # where it happened, -1 nowhere
    notice_amount: wp.int32  # $ granted, cells struck
    connected: wp.int32  # cells in circuits of power
    changed: wp.int32  # 1: something was built or torn down since the networks were computed
    over: wp.int32  # rules.Over


@wp.struct
class Grid:
    """What a city has in every cell, `(games, cells)` each."""

    terrain: wp.array2d[wp.int32]  # rules.Terrain
    shore: wp.array2d[wp.int32]  # 1 near water
    kind: wp.array2d[wp.int32]  # rules.Kind
    amount: wp.array2d[wp.int32]  # people or jobs
    flags: wp.array2d[wp.int32]  # bits of rules.Flag
    road: wp.array2d[wp.int32]  # cell of the road that serves it, -1 none
    network: wp.array2d[wp.int32]  # of a road: first cell of the roads it is connected with
    circuit: wp.array2d[wp.int32]  # not of a cell: the cells that power reaches, one circuit after the other
    load: wp.array2d[wp.float32]  # of a road: trips a day
    air: wp.array2d[wp.float32]  # pollution, 0 to 100
    value: wp.array2d[wp.float32]  # of the land, 0 to 100
    scenery: wp.array2d[wp.float32]  # the part of it that nature gives; 0 for water
    # Scratch, valid within a tick.
    order: wp.array2d[wp.int32]
    mark: wp.array2d[wp.int32]
    next: wp.array2d[wp.float32]
    people: wp.array2d[wp.int32]  # of a network, at its first cell
    jobs: wp.array2d[wp.int32]


@wp.struct
class Rules:
    """Settings that kernels read."""

    columns: wp.int32
    rows: wp.int32
    cells: wp.int32
    funds: wp.int32
    tax: wp.int32
    events: wp.int32
    hamlet: wp.int32
    report: wp.int32
    seed_hash: wp.uint32  # the two halves of the seed, mixed
    first_game: wp.int32
