"""The rules in numbers: every constant of the embedded city builder with its unit, in one table.

A city is a grid of cells, numbered row by row from the upper left. Time runs in days, 30 per month; every `TICK_DAYS`
the networks, the air, the values and the zones are recomputed, and at the end of a month taxes and upkeep are paid.
Money is in whole dollars, tax claims in thousandths of a dollar. Distances are in cells.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from pydantic import Field

from ludus.envs.settings import EnvSettings

# --- time (days) ---
MONTH_DAYS = 30
YEAR_MONTHS = 12
TICK_DAYS = 10
FIRST_YEAR = 1900

# --- map (cells) ---
MIN_SIDE = 12
MAX_SIDE = 96
MOST_BRUSH = 4  # cells along the side of the square that one click can zone
ROAD_REACH = 2  # a zone or a service needs a road at most this far away, counted in the longer direction
POWER_REACH = 2  # power jumps from one built cell to another at most this far away, counted along rows and columns
TREE_COST = 5  # $ to clear a cell of trees for a building
HILL_FACTOR = 2  # cost factor on a hill
BRIDGE_COST = 60  # $ per cell of road over water
BRIDGE_UPKEEP = 3  # $ per month
WATER_LINE_COST = 12  # $ per cell of power line over water
BULLDOZE_COST = 2  # $ per cell

HAMLET_ROADS = 8  # length of the street that a city starts with

# --- zones ---
CAPACITIES = (12, 24, 48)  # people or jobs in a cell: with road and power; with water too; on good land too
LEVELS = (1, 9, 18, 30)  # people or jobs from which a building looks larger
GOOD_LAND = 50.0  # land value from which homes and shops reach the last capacity; industry needs a fire station
GROWTH_STEP = 3  # most people or jobs that come to a cell per tick
DECAY_STEP = 3  # people or jobs that leave a cell without road or power per tick
QUOTA_BASE = 12.0  # people or jobs that come per tick at full demand, to the whole city ...
QUOTA_SHARE = 0.06  # ... and per existing one
LEAVE_FACTOR = 0.6  # people and jobs leave at this fraction of the rate
SPARE_WORKERS = 20  # people who find work or bring their own, so that a hamlet can begin without jobs
CROWDED = 1.25  # load of a road beyond which nothing grows on it

# --- demand (from -100 to 100) ---
COMMERCE_SHARE = 0.4  # jobs in shops per worker; the rest is industry
COMMERCE_BASE = 4.0
INDUSTRY_BASE = 15.0
FAIR_TAX = 7.0  # percent
TAX_DEMAND = 6.0  # points of demand lost per percent of tax
FELT_TAX_SHARE = 0.15  # step of the felt tax toward the real one per tick

# --- traffic ---
ROAD_CAPACITY = 160.0  # trips per day on one cell at full funding
FLOW_ROUNDS = 3  # rounds per tick that spread trips to neighbouring roads
FLOW_SHARE = 0.5  # of the trips that spread per round

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
HAPPY_IDLE = 40.0  # lost at full unemployment

# --- money ---
START_FUNDS = 10_000
TAX_YIELD = 2  # thousandths of a dollar per day, percent of tax and inhabitant or filled job
MAX_TAX = 20  # percent
START_TAX = 7
FUNDING_STEP = 10  # percent
INTEREST_DIVISOR = 100  # debts grow by 1 / 100 per month
DEBT_LIMIT = 1_000  # $ below zero
DEBT_MONTHS = 6  # months below the limit until the city is bankrupt
FUNDS_LIMIT = 99_999_999
MILESTONES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
GRANT = 2  # $ per inhabitant of a milestone reached for the first time

# --- events ---
EVENT_CHANCE = 0.06  # per month
EVENTS_FROM_MONTH = 12
MARKET_SWING = 25.0  # points of demand
MARKET_MONTHS = 6
STORM_SPOTS = 40  # cells that a storm strikes; it takes power lines and trees

HISTORY_MONTHS = 120  # of population, for the graph

# --- sprite codes: one number per cell with everything that its picture depends on ---
# code = kind * SPRITE_KIND + detail. The detail of empty land is terrain * 16 plus a variant or, for water, the sides
# that meet land; of roads and lines the connected sides, plus SPRITE_WATER over water; of zones size, variant and
# whether power is missing; of other buildings whether power is missing. SPRITE_HILL is added on a hill.
SPRITE_KIND = 1024
SPRITE_HILL = 512
SPRITE_WATER = 16
SPRITE_SIZE = 16  # times the size of a zone's building, 0 to 4
SPRITE_VARIANT = 2  # times a variant, 0 to 3
SPRITE_DARK = 1  # power is missing


class Terrain(IntEnum):
    """The ground of a cell."""

    LAND, WATER, TREES, HILL = range(4)


class Kind(IntEnum):
    """What is built on a cell."""

    EMPTY, ROAD, LINE = range(3)
    RESIDENTIAL, COMMERCIAL, INDUSTRIAL = range(3, 6)
    COAL, WIND, PUMP, TOWER = range(6, 10)
    POLICE, FIRE, CLINIC, SCHOOL, PARK, RUBBLE = range(10, 16)


class Tool(IntEnum):
    """What a click on the map does; a tool that builds has the number of what it builds."""

    QUERY, ROAD, LINE = range(3)
    RESIDENTIAL, COMMERCIAL, INDUSTRIAL = range(3, 6)
    COAL, WIND, PUMP, TOWER = range(6, 10)
    POLICE, FIRE, CLINIC, SCHOOL, PARK, BULLDOZER = range(10, 16)


class Flag(IntEnum):
    """The networks and services that reach a cell, as bits."""

    ROAD, POWER, WATER, POLICE, FIRE, CLINIC, SCHOOL, PARK = (1 << bit for bit in range(8))


class Department(IntEnum):
    """Departments that pay the upkeep."""

    TRANSPORT, SAFETY, WELFARE, UTILITIES = range(4)


FUNDED = (Department.TRANSPORT, Department.SAFETY, Department.WELFARE)  # departments that can be funded in part


class Notice(IntEnum):
    """Notices for the player, as bits; the city pauses until they are taken."""

    MILESTONE, FIRE, STORM, BOOM, RECESSION, DEBT, BANKRUPT, YEAR = (1 << bit for bit in range(8))


class Over(IntEnum):
    """Why a game has ended."""

    PLAYING, BANKRUPT, ABANDONED = range(3)


class Stream(IntEnum):
    """Names of the independent random streams within one day of one city."""

    TERRAIN, TREES, GROWTH, EVENT, EVENT_PLACE = range(5)


@dataclass(frozen=True, slots=True)
class Building:
    """Costs and effects of a building, per cell."""

    name: str  # for people
    cost: int  # $ on plain land
    upkeep: int = 0  # $ per month at full funding
    department: Department = Department.UTILITIES  # who pays it
    power: int = 0  # units that it gives (positive) or takes (negative); zones take more as they grow
    reach: int = 0  # radius in which it serves
    serves: int = 0  # the bit of `Flag` that it gives, or 0


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
POWER_PER = 8  # people or jobs per additional unit of power that a zone needs


class Column(IntEnum):
    """Columns of the table of buildings that kernels read."""

    UPKEEP, DEPARTMENT, POWER, REACH, SERVES = range(5)


class CityRules(EnvSettings):
    """Settings of the game itself, apart from its appearance.

    Attributes:
        columns: Width of the map in cells.
        rows: Height of the map in cells.
        funds: Initial funds, in dollars.
        tax: Initial tax, in percent.
        hamlet: Whether a city starts with a street and a wind turbine instead of bare land.
        zone_brush: Side of the square that one click with a zone tool zones, in cells.
        days_per_second: Days per second of the game's clock at normal speed.
        events: Whether fires, storms, booms and recessions happen.
        yearly_report: Whether a new city shows its budget at the end of a year, in a dialog that has to be closed.
        threads: Host threads that advance the cities; None for all cores.
    """

    columns: Annotated[int, Field(ge=MIN_SIDE, le=MAX_SIDE)] = 32
    rows: Annotated[int, Field(ge=MIN_SIDE, le=MAX_SIDE)] = 24
    funds: Annotated[int, Field(ge=0, le=1_000_000)] = START_FUNDS
    tax: Annotated[int, Field(ge=0, le=20)] = START_TAX
    hamlet: bool = True
    zone_brush: Annotated[int, Field(ge=1, le=MOST_BRUSH)] = 2
    days_per_second: Annotated[int, Field(ge=1, le=360)] = 10
    events: bool = True
    yearly_report: bool = True
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None

    @property
    def cells(self) -> int:
        """Cells of the map."""
        return self.columns * self.rows
