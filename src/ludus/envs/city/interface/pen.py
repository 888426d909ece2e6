"""The pen: what the selected tool does where the map is clicked or dragged over."""

from collections.abc import Iterator

from ludus.envs.city.drivers.driver import Button
from ludus.envs.city.game.placement import ZONES, Fault, Plan, Works
from ludus.envs.city.game.rules import BUILDINGS, BULLDOZE_COST, Kind, Tool
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.commands import Dialog, Window
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.messages import Message
from ludus.envs.city.interface.state import InterfaceState

_PRECIOUS = range(Kind.COAL, Kind.PARK)  # demolished only after a question
_LINES = (Tool.ROAD, Tool.LINE)
_AREAS = (*ZONES, Tool.PARK, Tool.BULLDOZER)


class Pen:
    """Uses tools on the map of one game."""

    def __init__(self, simulation: CitySimulation, works: Works, game: int, layout: Layout) -> None:
        self._simulation, self._works, self._game, self._view = simulation, works, game, layout.view
        self._columns = simulation.rules.columns

    def cost(self, tool: int) -> int:
        """Returns what a tool costs on plain land, for everything that one click builds."""
        if tool == Tool.BULLDOZER:
            return BULLDOZE_COST
        brush = self._simulation.rules.zone_brush if tool in ZONES else 1
        return BUILDINGS[tool].cost * brush * brush

    def cell_at(self, state: InterfaceState, x: int, y: int) -> tuple[int, int] | None:
        """Returns column and row of the cell at a pixel, or None off the map."""
        view = self._view
        if not view.box.holds(x, y):
            return None
        return (x - view.box.left) // view.tile + state.column, (y - view.box.top) // view.tile + state.row

    def click(self, state: InterfaceState, x: int, y: int, button: Button) -> None:
        """Uses the selected tool at a pixel of the map; other buttons than the left one ask what is there."""
        place = self.cell_at(state, x, y)
        if place is None:
            return
        cell = place[1] * self._columns + place[0]
        if state.tool == Tool.QUERY or button != "left":
            state.window, state.window_cell = Window.QUERY, cell
        elif state.tool == Tool.BULLDOZER and int(self._simulation.cells.kind[self._game, cell]) in _PRECIOUS:
            state.dialogs.append((Dialog.DEMOLISH, 0, cell))
        else:
            self._tell(state, self._works.do(self._game, Tool(state.tool), *place))

    def demolish(self, state: InterfaceState, cell: int) -> None:
        """Tears down what stands on a cell, after the question was answered."""
        row, column = divmod(cell, self._columns)
        self._tell(state, self._works.do(self._game, Tool.BULLDOZER, column, row))

    def drag(self, state: InterfaceState, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Uses the tool along a line or over an area; tools for single buildings act at the end."""
        first, last = self.cell_at(state, *start), self.cell_at(state, *end)
        if first is None or last is None or state.tool not in (*_LINES, *_AREAS):
            self.click(state, *end, "left")
            return
        tool, built, paid = Tool(state.tool), 0, 0
        for column, row in _along(first, last) if tool in _LINES else _over(first, last):
            kind = int(self._simulation.cells.kind[self._game, row * self._columns + column])
            if tool == Tool.BULLDOZER and kind in _PRECIOUS:
                continue
            plan = self._works.do(self._game, tool, column, row)
            built += len(plan.cells) if plan.fault == Fault.NONE else 0
            paid += plan.cost if plan.fault == Fault.NONE else 0
            if plan.fault == Fault.TOO_EXPENSIVE:
                self._tell(state, plan)
                return
        state.message, state.message_first, state.message_second = Message.BUILT_MANY, built, paid

    def _tell(self, state: InterfaceState, plan: Plan) -> None:
        if plan.fault != Fault.NONE:
            said = (Message.REFUSED, int(plan.fault), plan.cost)
        elif state.tool == Tool.BULLDOZER:
            said = (Message.CLEARED, 0, plan.cost)
        else:
            said = (Message.BUILT, state.tool, plan.cost)
        state.message, state.message_first, state.message_second = said


def _along(first: tuple[int, int], last: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Cells from one to another: along the row first, then along the column."""
    step = 1 if last[0] >= first[0] else -1
    for column in range(first[0], last[0] + step, step):
        yield column, first[1]
    step = 1 if last[1] >= first[1] else -1
    for row in range(first[1] + step, last[1] + step, step):
        if first[1] != last[1]:
            yield last[0], row


def _over(first: tuple[int, int], last: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Cells of the rectangle between two."""
    for row in range(min(first[1], last[1]), max(first[1], last[1]) + 1):
        for column in range(min(first[0], last[0]), max(first[0], last[0]) + 1):
            yield column, row
