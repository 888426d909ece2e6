"""What gestures do to the city and to its interface: tools used on the map, menu entries, buttons and keys."""

from collections.abc import Iterator

from ludus.worlds.city.drivers.driver import Button
from ludus.worlds.city.game.placement import ZONES, CityEditor, Fault, Plan
from ludus.worlds.city.game.rules import BUILDINGS, BULLDOZE_COST, FUNDED, FUNDING_STEP, Kind, Tool
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.layout import Layout
from ludus.worlds.city.interface.menus import Command, Dialog, Overlay, Speed, Window
from ludus.worlds.city.interface.state import InterfaceState, Message

_PRECIOUS = range(Kind.COAL, Kind.PARK)  # demolished only after confirmation
_LINES = (Tool.ROAD, Tool.LINE)
_AREAS = (*ZONES, Tool.PARK, Tool.BULLDOZER)


SCROLL_CELLS = 4  # by which a click on an arrow, a notch of the wheel or a key moves the camera
_DEPARTMENTS = {Command[f"FUND_{department.name}"]: department for department in FUNDED}
_CHANGES = {Command[f"CHANGE_{department.name}"]: department for department in FUNDED}
# What the two buttons beside a line of the budget change, up or down by one step.
ADJUSTERS = {"tax": Command.CHANGE_TAX, **{_CHANGES[command].name.lower(): command for command in _CHANGES}}
TOOL_KEYS = dict(zip("qdlrcigwutofhspb", Tool, strict=True))
KEYS: dict[str, tuple[Command, int]] = {
    "Left": (Command.SCROLL_ACROSS, -1),
    "Right": (Command.SCROLL_ACROSS, 1),
    "Up": (Command.SCROLL_DOWN, -1),
    "Down": (Command.SCROLL_DOWN, 1),
    "space": (Command.TOGGLE_PAUSE, 0),
    **{str(int(speed)): (Command.SET_SPEED, speed) for speed in (Speed.SLOW, Speed.NORMAL, Speed.FAST)},
    **dict.fromkeys(("plus", "equal"), (Command.CHANGE_TAX, 1)),
    "minus": (Command.CHANGE_TAX, -1),
    **{f"F{int(window)}": (Command.OPEN_WINDOW, window) for window in (Window.BUDGET, Window.CITY, Window.DEMAND)},
    **{key: (Command.SELECT_TOOL, int(tool)) for key, tool in TOOL_KEYS.items()},
}


class CommandHandler:
    """Carries out commands in one game, and uses tools on its map."""

    def __init__(self, simulation: CitySimulation, editor: CityEditor, game: int, layout: Layout) -> None:
        self._simulation, self._editor, self._game, self._view = simulation, editor, game, layout.view
        self._columns = simulation.rules.columns
        self._last_column = simulation.rules.columns - layout.view.columns
        self._last_row = simulation.rules.rows - layout.view.rows

    def do(self, state: InterfaceState, command: Command, number: int) -> None:
        """Carry out a command with its number."""
        if command in (Command.SCROLL_ACROSS, Command.SCROLL_DOWN):
            self._scroll(state, command, number)
        elif command in (Command.SET_SPEED, Command.TOGGLE_PAUSE):
            self._set_speed(state, command, number)
        elif command in (Command.CHANGE_TAX, Command.SET_TAX):
            base = int(self._simulation.city["tax"][self._game]) if command == Command.CHANGE_TAX else 0
            state.say(Message.TAX, self._editor.set_tax(self._game, base + number))
        elif command in _CHANGES:
            now = self._editor.funding(self._game, _CHANGES[command])
            wanted = now + number * FUNDING_STEP
            state.say(Message.FUNDED, self._editor.set_funding(self._game, _CHANGES[command], wanted))
        elif command in _DEPARTMENTS:
            state.say(Message.FUNDED, self._editor.set_funding(self._game, _DEPARTMENTS[command], number))
        elif command == Command.SELECT_TOOL:
            state.tool = number
            state.say(Message.SELECTED, number)
        else:
            self._show(state, command, number)

    def _show(self, state: InterfaceState, command: Command, number: int) -> None:
        if command == Command.SET_OVERLAY:
            state.overlay = Overlay(number)
        elif command == Command.OPEN_WINDOW:
            state.window = Window(number)
        elif command in (Command.ASK_ABANDON, Command.SHOW_ABOUT):
            state.dialogs.append((Dialog.ABANDON if command == Command.ASK_ABANDON else Dialog.ABOUT, 0, -1))
        elif command == Command.TOGGLE_HINTS:
            state.hints = 1 - state.hints
        elif command == Command.TOGGLE_REPORT:
            self._simulation.city["report"][self._game] = 1 - self._simulation.city["report"][self._game]

    def _scroll(self, state: InterfaceState, command: Command, number: int) -> None:
        step = number * SCROLL_CELLS
        if command == Command.SCROLL_ACROSS:
            state.column = min(max(state.column + step, 0), self._last_column)
        else:
            state.row = min(max(state.row + step, 0), self._last_row)

    def _set_speed(self, state: InterfaceState, command: Command, number: int) -> None:
        wanted = number
        if command == Command.TOGGLE_PAUSE:
            wanted = state.speed_before if state.speed == Speed.PAUSE else int(Speed.PAUSE)
        if wanted == Speed.PAUSE and state.speed != Speed.PAUSE:
            state.speed_before = state.speed
        state.speed = wanted
        state.say(Message.PAUSED if wanted == Speed.PAUSE else Message.RUNS)

    # --- tools on the map ---

    def price(self, state: InterfaceState) -> int:
        """Return what a click at the pointer would cost, 0 if it would do nothing; off the map as on plain land."""
        place = self.cell_at(state, state.pointer_x, state.pointer_y)
        tool = Tool(state.tool)
        return self.cost(tool) if place is None else self._editor.plan(self._game, tool, *place).cost

    def cost(self, tool: int) -> int:
        """Return what a tool costs on plain land, for everything that one click builds."""
        if tool == Tool.BULLDOZER:
            return BULLDOZE_COST
        brush = self._simulation.rules.zone_brush if tool in ZONES else 1
        return BUILDINGS[tool].cost * brush * brush

    def cell_at(self, state: InterfaceState, x: int, y: int) -> tuple[int, int] | None:
        """Return column and row of the cell at a pixel, or None off the map."""
        view = self._view
        if not view.box.holds(x, y):
            return None
        return (x - view.box.left) // view.tile + state.column, (y - view.box.top) // view.tile + state.row

    def click(self, state: InterfaceState, x: int, y: int, button: Button) -> None:
        """Use the selected tool at a pixel of the map; other buttons than the left one ask what is there."""
        place = self.cell_at(state, x, y)
        if place is None:
            return
        cell = place[1] * self._columns + place[0]
        if state.tool == Tool.QUERY or button != "left":
            state.window, state.window_cell = Window.QUERY, cell
        elif state.tool == Tool.BULLDOZER and int(self._simulation.cells.kind[self._game, cell]) in _PRECIOUS:
            state.dialogs.append((Dialog.DEMOLISH, 0, cell))
        else:
            self._tell(state, self._editor.do(self._game, Tool(state.tool), *place))

    def demolish(self, state: InterfaceState, cell: int) -> None:
        """Demolish what is built on a cell, after the player confirmed."""
        row, column = divmod(cell, self._columns)
        self._tell(state, self._editor.do(self._game, Tool.BULLDOZER, column, row))

    def drag(self, state: InterfaceState, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Use the tool along a line or over an area; tools for single buildings act at the end."""
        first, last = self.cell_at(state, *start), self.cell_at(state, *end)
        if first is None or last is None or state.tool not in (*_LINES, *_AREAS):
            self.click(state, *end, "left")
            return
        tool, built, paid = Tool(state.tool), 0, 0
        for column, row in _along(first, last) if tool in _LINES else _over(first, last):
            kind = int(self._simulation.cells.kind[self._game, row * self._columns + column])
            if tool == Tool.BULLDOZER and kind in _PRECIOUS:
                continue
            plan = self._editor.do(self._game, tool, column, row)
            built += len(plan.cells) if plan.fault == Fault.NONE else 0
            paid += plan.cost if plan.fault == Fault.NONE else 0
            if plan.fault == Fault.TOO_EXPENSIVE:
                self._tell(state, plan)
                return
        state.say(Message.BUILT_MANY, built, paid)

    def _tell(self, state: InterfaceState, plan: Plan) -> None:
        if plan.fault != Fault.NONE:
            state.say(Message.REFUSED, int(plan.fault), plan.cost)
        elif state.tool == Tool.BULLDOZER:
            state.say(Message.CLEARED, 0, plan.cost)
        else:
            state.say(Message.BUILT, state.tool, plan.cost)


def _along(first: tuple[int, int], last: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Cells from one to another: along the row first, then along the column."""
    step = 1 if last[0] >= first[0] else -1
    for column in range(first[0], last[0] + step, step):
        yield column, first[1]
    step = 1 if last[1] >= first[1] else -1
    for row in range(first[1] + step, last[1] + step, step):
        yield last[0], row


def _over(first: tuple[int, int], last: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Cells of the rectangle between two."""
    (left, right), (top, bottom) = (sorted(ends) for ends in zip(first, last, strict=True))
    return ((column, row) for row in range(top, bottom + 1) for column in range(left, right + 1))
