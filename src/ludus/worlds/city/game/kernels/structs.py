"""The state of a city as Warp structs: what a kernel loads, changes and stores.

Every field of `City` is 32 bits wide, so that an array of cities is also an int32 tensor `(games, words)`. The
cells are separate arrays `(games, cells)`; `Grid` only holds them together.
"""

import warp as wp

from ludus.core.state import FLAG, WORD, Range
from ludus.envs.warp_functions import mix
from ludus.worlds.city.game.rules import CAPACITIES, FUNDS_LIMIT, MAX_TAX, MILESTONES, Flag, Kind, Notice, Over, Terrain

_COUNT = (0, 2**31 - 1)
_PERCENT = (0, 100)
_POINTS = (-100, 100)


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
    filled: wp.int32  # filled jobs
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
    report: wp.int32  # 1: show the budget at the end of a year
    notice: wp.int32  # pending bits of rules.Notice
    notice_cell: wp.int32  # where it happened, -1 nowhere
    notice_amount: wp.int32  # $ granted, cells struck
    connected: wp.int32  # cells in circuits of power
    changed: wp.int32  # 1: something was built or torn down since the networks were computed
    over: wp.int32  # rules.Over


_AMOUNTS = (
    *("power_supply", "power_need", "income", "paid_transport", "paid_safety", "paid_welfare", "paid_utilities"),
    *("paid_interest", "balance", "year_balance", "debt_months", "market_months", "notice_amount"),
)


def city_ranges(cells: int) -> dict[str, Range]:
    """Return the valid range of every field of a `City` with this number of cells."""
    return {
        "key": (-(2**31), 2**31 - 1),
        "episode": (-1, 2**30),
        "day": (0, 2**30),  # months follow from it, and places in the history from them
        "funds": (-FUNDS_LIMIT, FUNDS_LIMIT),
        **dict.fromkeys(("tax", "felt_tax"), (0, MAX_TAX)),
        **dict.fromkeys(("funding_transport", "funding_safety", "funding_welfare"), _PERCENT),
        **dict.fromkeys(("happiness", "traffic", "pollution", "value"), _PERCENT),
        **dict.fromkeys(("demand_residential", "demand_commercial", "demand_industrial", "market"), _POINTS),
        **dict.fromkeys(("population", "commercial", "industrial", "filled", "tax_due"), _COUNT),
        **dict.fromkeys(_AMOUNTS, WORD),
        "milestones": (0, len(MILESTONES)),
        "notice": (0, sum(Notice)),
        "notice_cell": (-1, cells - 1),
        "connected": (0, cells),
        **dict.fromkeys(("report", "changed"), FLAG),
        "over": (0, max(Over)),
    }


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
    load: wp.array2d[wp.float32]  # of a road: trips per day
    air: wp.array2d[wp.float32]  # pollution, 0 to 100
    value: wp.array2d[wp.float32]  # of the land, 0 to 100
    scenery: wp.array2d[wp.float32]  # the part of it that nature gives; 0 for water
    # Scratch, valid within a tick.
    order: wp.array2d[wp.int32]
    mark: wp.array2d[wp.int32]
    next: wp.array2d[wp.float32]
    people: wp.array2d[wp.int32]  # of a network, at its first cell
    jobs: wp.array2d[wp.int32]


def cell_ranges(cells: int) -> dict[str, Range]:
    """Return the valid range of every array of a `Grid` with this number of cells; scratch is not saved."""
    return {
        "terrain": (0, max(Terrain)),
        "shore": FLAG,
        "kind": (0, max(Kind)),
        "amount": (0, CAPACITIES[-1]),
        "flags": (0, sum(Flag)),
        **dict.fromkeys(("road", "network"), (-1, cells - 1)),
        "circuit": (-cells, cells - 1),
        **dict.fromkeys(("load", "scenery"), (0, 1_000_000)),
        **dict.fromkeys(("air", "value"), _PERCENT),
        "history": _COUNT,
    }


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


@wp.func
def stream(city: City, name: wp.int32, index: wp.int32) -> wp.uint32:
    """Hash of the named random stream of this city and day; `index` separates draws of the same day."""
    return mix(mix(mix(city.key, wp.uint32(city.day)), wp.uint32(name)), wp.uint32(index))


@wp.func
def is_zone(kind: wp.int32) -> bool:
    """Whether people or jobs can come to a cell."""
    return kind >= Kind.RESIDENTIAL and kind <= Kind.INDUSTRIAL


@wp.func
def conducts(kind: wp.int32) -> bool:
    """Whether a cell of this kind conducts power; cables lie under the roads."""
    return kind >= Kind.ROAD and kind < Kind.RUBBLE


@wp.func
def beside(cell: wp.int32, side: wp.int32, rules: Rules) -> wp.int32:
    """The neighbour of a cell (side 0 left, 1 right, 2 above, 3 below), or -1 at the edge of the map."""
    x = cell % rules.columns
    there = int(-1)
    if side == 0 and x > 0:
        there = cell - 1
    elif side == 1 and x < rules.columns - 1:
        there = cell + 1
    elif side == 2 and cell >= rules.columns:
        there = cell - rules.columns
    elif side == 3 and cell < rules.cells - rules.columns:
        there = cell + rules.columns
    return there


@wp.func
def has(flags: wp.int32, bit: wp.int32) -> wp.float32:
    """1 if a flag is set, else 0."""
    return wp.where((flags & bit) != 0, 1.0, 0.0)


@wp.func
def kind_at(grid: Grid, game: wp.int32, cell: wp.int32) -> wp.int32:
    """What stands on a cell; -1 for a cell of -1, outside the map. Warp evaluates both sides of an `and`."""
    if cell < 0:
        return -1
    return grid.kind[game, cell]
