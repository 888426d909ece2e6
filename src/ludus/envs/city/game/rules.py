"""The rules in numbers: every constant of the embedded city builder with its unit, in one table.

A city is a grid of cells, numbered row by row from the upper left. Time runs in days, 30 a month; every `TICK_DAYS` the
networks, the air, the values and the zones are computed anew, and at the end of a month money changes hands. Money is
in whole dollars, taxes fall due in thousandths of one. Distances are in cells.
"""

from dataclasses import dataclass
from enum import IntEnum

# --- time (days) ---
MONTH_DAYS = 30
YEAR_MONTHS = 12
TICK_DAYS = 10
FIRST_YEAR = 1900

# --- map (cells) ---
MIN_SIDE = 12
MAX_SIDE = 96
ROAD_REACH = 2  # a zone or a service needs a road at most this far away, counted in the longer direction
POWER_REACH = 2  # power jumps from one built cell to another at most this far away, counted along rows and columns
TREE_COST = 5  # $ to clear a cell of trees for a building
HILL_FACTOR = 2  # everything costs so many times as much on a hill
BRIDGE_COST = 60  # $ a cell of road over water
BRIDGE_UPKEEP = 3  # $ a month
WATER_LINE_COST = 12  # $ a cell of power line over water
BULLDOZE_COST = 2  # $ a cell

HAMLET_ROADS = 8  # cells of the street that a city begins with, if it begins with a hamlet

# --- zones ---
CAPACITIES = (12, 24, 48)  # people or jobs in a cell: with road and power; with water too; on good land too
LEVELS = (1, 9, 18, 30)  # people or jobs from which a building looks larger
GOOD_LAND = 50.0  # land value from which homes and shops reach the last capacity; industry needs a fire station
GROWTH_STEP = 3  # most people or jobs that come to a cell in a tick
DECAY_STEP = 3  # people or jobs that leave a cell in a tick if it has no road or no power
QUOTA_BASE = 12.0  # people or jobs that a tick can bring at full demand, to the whole city ...
QUOTA_SHARE = 0.06  # ... and for each that is there already
LEAVE_FACTOR = 0.6  # they leave that much more slowly
SPARE_WORKERS = 20  # people who find work or bring their own, so that a hamlet can begin without jobs
CROWDED = 1.25  # load of a road beyond which nothing grows on it

# --- demand (from -100 to 100) ---
COMMERCE_SHARE = 0.4  # jobs in shops for each worker; the rest is industry
COMMERCE_BASE = 4.0
INDUSTRY_BASE = 15.0
FAIR_TAX = 7.0  # percent
TAX_DEMAND = 6.0  # points of demand that a percent of tax costs
FELT_TAX_SHARE = 0.15  # how far the tax that people feel moves to the real one in a tick

# --- traffic ---
ROAD_CAPACITY = 160.0  # trips a day on one cell at full funding
FLOW_ROUNDS = 3  # how often a tick spreads trips to neighbouring roads
FLOW_SHARE = 0.5  # of the trips that spread in a round

# --- air and land, all from 0 to 100 ---
AIR_KEEP = 0.50
AIR_SPREAD = 0.115  # to each of the four neighbours
AIR_EMISSION = 0.25
INDUSTRY_SMOKE = 1.6  # for each job
COAL_SMOKE = 70.0
TRAFFIC_SMOKE = 8.0  # of a full road
TREE_CLEANS = 3.0
PARK_CLEANS = 5.0
VALUE_BASE = 28.0
VALUE_SHORE = 10.0
VALUE_HILL = 8.0
VALUE_TREE = 3.0  # for each of the four neighbours
VALUE_PARK = 12.0
VALUE_SCHOOL = 8.0
VALUE_CLINIC = 7.0
VALUE_POLICE = 7.0
VALUE_FIRE = 4.0
VALUE_WATERED = 6.0
VALUE_SMOKE = 0.6  # lost for each point of pollution
VALUE_TRAFFIC = 10.0  # lost beside a full road

# --- happiness, from 0 to 100 ---
HAPPY_BASE = 50.0
HAPPY_POLICE = 7.0
HAPPY_FIRE = 5.0
HAPPY_CLINIC = 8.0
HAPPY_SCHOOL = 8.0
HAPPY_PARK = 8.0
HAPPY_WATERED = 6.0
HAPPY_SMOKE = 0.5  # lost for each point of pollution
HAPPY_TRAFFIC = 14.0  # lost beside a full road
HAPPY_TAX = 3.0  # lost for each percent above the fair tax
HAPPY_IDLE = 40.0  # lost where nobody has work

# --- money ---
START_FUNDS = 10_000
TAX_YIELD = 2  # thousandths of a dollar a day for each percent of tax and each inhabitant or filled job
MAX_TAX = 20  # percent
START_TAX = 7
FUNDING_STEP = 10  # percent
INTEREST_DIVISOR = 100  # debts grow by 1 / 100 a month
DEBT_LIMIT = 1_000  # $ below zero
DEBT_MONTHS = 6  # months below the limit until the city is bankrupt
FUNDS_LIMIT = 99_999_999
MILESTONES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
GRANT = 2  # $ for each inhabitant of a milestone that is reached for the first time

# --- events ---
EVENT_CHANCE = 0.06  # a month
EVENTS_FROM_MONTH = 12
MARKET_SWING = 25.0  # points of demand
MARKET_MONTHS = 6
STORM_SPOTS = 40  # cells that a storm strikes; it takes power lines and trees

HISTORY_MONTHS = 120  # of population, for the graph


class Terrain(IntEnum):
    """What a cell is made of."""

    LAND = 0
    WATER = 1
    TREES = 2
    HILL = 3


class Kind(IntEnum):
    """What stands on a cell."""

    EMPTY = 0
    ROAD = 1
    LINE = 2
    RESIDENTIAL = 3
    COMMERCIAL = 4
    INDUSTRIAL = 5
    COAL = 6
    WIND = 7
    PUMP = 8
    TOWER = 9
    POLICE = 10
    FIRE = 11
    CLINIC = 12
    SCHOOL = 13
    PARK = 14
    RUBBLE = 15


class Tool(IntEnum):
    """What a click on the map does; a tool that builds has the number of what it builds."""

    QUERY = 0
    ROAD = 1
    LINE = 2
    RESIDENTIAL = 3
    COMMERCIAL = 4
    INDUSTRIAL = 5
    COAL = 6
    WIND = 7
    PUMP = 8
    TOWER = 9
    POLICE = 10
    FIRE = 11
    CLINIC = 12
    SCHOOL = 13
    PARK = 14
    BULLDOZER = 15


class Flag(IntEnum):
    """What reaches a cell, as bits."""

    ROAD = 1
    POWER = 2
    WATER = 4
    POLICE = 8
    FIRE = 16
    CLINIC = 32
    SCHOOL = 64
    PARK = 128


class Department(IntEnum):
    """Who pays for something every month; the first three can be funded in part."""

    TRANSPORT = 0
    SAFETY = 1
    WELFARE = 2
    UTILITIES = 3


class Notice(IntEnum):
    """What a city tells its mayor, as bits; the clock of the city waits until they are taken."""

    MILESTONE = 1
    FIRE = 2
    STORM = 4
    BOOM = 8
    RECESSION = 16
    DEBT = 32
    BANKRUPT = 64
    YEAR = 128


class Over(IntEnum):
    """Why a game has ended."""

    PLAYING = 0
    BANKRUPT = 1
    ABANDONED = 2


class Stream(IntEnum):
    """Names of the independent random streams within one day of one city."""

    TERRAIN = 0
    TREES = 1
    GROWTH = 2
    EVENT = 3
    EVENT_PLACE = 4


@dataclass(frozen=True, slots=True)
class Building:
    """What it takes to build and keep something, a cell.

    Attributes:
        name: For people.
        cost: $ on plain land.
        upkeep: $ a month at full funding.
        department: Who pays it.
        power: Units that it gives (positive) or takes (negative); zones take more as they grow.
        reach: How far it serves, as the crow flies.
        serves: The bit of `Flag` that it gives, or 0.
    """

    name: str
    cost: int
    upkeep: int = 0
    department: Department = Department.UTILITIES
    power: int = 0
    reach: int = 0
    serves: int = 0


BUILDINGS: tuple[Building, ...] = (
    Building("Empty land", 0),
    Building("Road", 10, 1, Department.TRANSPORT),
    Building("Power line", 4),
    Building("Residential", 50, power=-1),
    Building("Commercial", 60, power=-1),
    Building("Industrial", 60, power=-1),
    Building("Coal plant", 2_500, 60, power=400),
    Building("Wind turbine", 700, 14, power=60),
    Building("Water pump", 350, 10, power=-4, reach=7, serves=Flag.WATER),
    Building("Water tower", 500, 16, power=-3, reach=4, serves=Flag.WATER),
    Building("Police", 500, 30, Department.SAFETY, -3, 6, Flag.POLICE),
    Building("Fire station", 500, 30, Department.SAFETY, -3, 6, Flag.FIRE),
    Building("Clinic", 600, 36, Department.WELFARE, -3, 6, Flag.CLINIC),
    Building("School", 600, 36, Department.WELFARE, -3, 6, Flag.SCHOOL),
    Building("Park", 60, 2, Department.WELFARE, 0, 3, Flag.PARK),
    Building("Rubble", 0),
)
POWER_PER = 8  # a zone takes one unit more for each so many people or jobs


class Column(IntEnum):
    """Columns of the table of buildings that kernels read."""

    UPKEEP = 0
    DEPARTMENT = 1
    POWER = 2
    REACH = 3
    SERVES = 4
