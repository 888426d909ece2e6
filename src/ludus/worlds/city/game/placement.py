"""Building and bulldozing: what a tool may do at a cell, what it costs, and doing it."""

from dataclasses import dataclass
from enum import IntEnum

from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.rules import Department, Kind, Over, Terrain, Tool
from ludus.worlds.city.game.simulation import CitySimulation

ZONES = (Tool.RESIDENTIAL, Tool.COMMERCIAL, Tool.INDUSTRIAL)
_OVER_WATER = {Tool.ROAD: const.BRIDGE_COST, Tool.LINE: const.WATER_LINE_COST}
_FUNDING = {department: f"funding_{department.name.lower()}" for department in const.FUNDED}


class Fault(IntEnum):
    """Why nothing was done."""

    NONE, OUTSIDE, OCCUPIED, ON_WATER = range(4)
    FAR_FROM_WATER, TOO_EXPENSIVE, NOTHING_THERE, OVER = range(4, 8)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tool would do."""

    fault: Fault  # why it cannot be done, or NONE
    cost: int = 0  # what it would cost, in dollars; 0 with most faults
    cells: tuple[int, ...] = ()  # cells that it would change


class CityEditor:
    """Builds and bulldozes in the cities of a simulation, and sets their taxes and budgets."""

    def __init__(self, simulation: CitySimulation) -> None:
        self._simulation = simulation
        self._columns, self._rows = simulation.rules.columns, simulation.rules.rows
        self._brush = simulation.rules.zone_brush
        self._funds, self._over = simulation.city["funds"], simulation.city["over"]

    def plan(self, game: int, tool: Tool, column: int, row: int) -> Plan:
        """Return what a tool would do at a cell; those for zones use all free cells of a square from there on."""
        if self._over[game] != Over.PLAYING:
            return Plan(Fault.OVER)
        if not (0 <= column < self._columns and 0 <= row < self._rows):
            return Plan(Fault.OUTSIDE)
        if tool == Tool.QUERY:
            return Plan(Fault.NONE)
        plans = [self._plan_cell(game, tool, row * self._columns + column)]
        if tool in ZONES:
            plans = [
                self._plan_cell(game, tool, y * self._columns + x)
                for y in range(row, min(row + self._brush, self._rows))
                for x in range(column, min(column + self._brush, self._columns))
            ]
        elif plans[0].cost <= self._funds[game]:
            return plans[0]
        cost, cells = sum(plan.cost for plan in plans), tuple(cell for plan in plans for cell in plan.cells)
        if not cells:
            return plans[0]
        return Plan(Fault.TOO_EXPENSIVE, cost) if cost > self._funds[game] else Plan(Fault.NONE, cost, cells)

    def do(self, game: int, tool: Tool, column: int, row: int) -> Plan:
        """Use a tool at a cell and return what was done, or why nothing was."""
        plan = self.plan(game, tool, column, row)
        if not plan.cells:
            return plan
        cells, city = self._simulation.cells, self._simulation.city
        for cell in plan.cells:
            if cells.kind[game, cell] == Kind.EMPTY and cells.terrain[game, cell] == Terrain.TREES:
                cells.terrain[game, cell] = Terrain.LAND
            cells.kind[game, cell] = Kind.EMPTY if tool == Tool.BULLDOZER else int(tool)
            cells.amount[game, cell] = 0
            cells.flags[game, cell] = 0
        city["funds"][game] -= plan.cost
        city["changed"][game] = 1
        return plan

    def set_tax(self, game: int, percent: int) -> int:
        """Set the tax, from 0 to `MAX_TAX`, and return it."""
        percent = min(max(percent, 0), const.MAX_TAX)
        self._simulation.city["tax"][game] = percent
        return percent

    def set_funding(self, game: int, department: Department, percent: int) -> int:
        """Set the funding of a department, in steps from 0 to 100 percent, and return it."""
        percent = min(max(percent // const.FUNDING_STEP * const.FUNDING_STEP, 0), 100)
        self._simulation.city[_FUNDING[department]][game] = percent
        return percent

    def funding(self, game: int, department: Department) -> int:
        """Return the funding of a department, in percent."""
        return int(self._simulation.city[_FUNDING[department]][game])

    def _plan_cell(self, game: int, tool: Tool, cell: int) -> Plan:
        kind, terrain = self._simulation.cells.kind[game, cell], self._simulation.cells.terrain[game, cell]
        if tool == Tool.BULLDOZER:
            is_bare = kind == Kind.EMPTY and terrain != Terrain.TREES
            return Plan(Fault.NOTHING_THERE) if is_bare else Plan(Fault.NONE, const.BULLDOZE_COST, (cell,))
        if kind != Kind.EMPTY:
            return Plan(Fault.OCCUPIED)
        if terrain == Terrain.WATER:
            over_water = _OVER_WATER.get(tool)
            return Plan(Fault.ON_WATER) if over_water is None else Plan(Fault.NONE, over_water, (cell,))
        if tool == Tool.PUMP and not self._beside_water(game, cell):
            return Plan(Fault.FAR_FROM_WATER)
        cost = const.BUILDINGS[tool].cost
        if terrain == Terrain.HILL:
            cost *= const.HILL_FACTOR
        elif terrain == Terrain.TREES:
            cost += const.TREE_COST
        return Plan(Fault.NONE, cost, (cell,))

    def _beside_water(self, game: int, cell: int) -> bool:
        row, column = divmod(cell, self._columns)
        terrain = self._simulation.cells.terrain[game].reshape(self._rows, self._columns)
        near = terrain[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
        return bool((near == Terrain.WATER).any())
