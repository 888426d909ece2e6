"""The interface of one game: a state machine fed with clicks, keys, wheel and time; it does not draw."""

import functools
from collections.abc import Iterator

from ludus.worlds.city.drivers.driver import Box, Button
from ludus.worlds.city.game.placement import ZONES, CityEditor, Fault, Plan
from ludus.worlds.city.game.rules import BUILDINGS, BULLDOZE_COST, FUNDED, FUNDING_STEP, Kind, Over, Tool
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.layout import Layout, find_at
from ludus.worlds.city.interface.menus import SPEED_PERCENT, Command, Dialog, Entry, Overlay, Speed, Window, all_entries
from ludus.worlds.city.interface.panes import (
    NOTICES,
    Figures,
    Hint,
    MenuList,
    Pane,
    PaneWriter,
    PlacedPane,
    place_lists,
    place_pane,
)
from ludus.worlds.city.interface.state import MAX_DIALOGS, WORDS, InterfaceState, Message, message_text, tool_name
from ludus.worlds.city.interface.theme import TextMeasure, Theme

_PRECIOUS = range(Kind.COAL, Kind.PARK)  # demolished only after confirmation
_LINES = (Tool.ROAD, Tool.LINE)
_AREAS = (*ZONES, Tool.PARK, Tool.BULLDOZER)

SCROLL_CELLS = 4  # by which a click on an arrow, a notch of the wheel or a key moves the camera
_DEPARTMENTS = {Command[f"{verb}_{each.name}"]: each for verb in ("FUND", "CHANGE") for each in FUNDED}
_SCROLLS = {
    "left": (Command.SCROLL_ACROSS, -1),
    "right": (Command.SCROLL_ACROSS, 1),
    "up": (Command.SCROLL_DOWN, -1),
    "down": (Command.SCROLL_DOWN, 1),
}
# What pairs of buttons beside numbers change, up or down by one step.
_ADJUSTERS = {
    **dict.fromkeys(("tax", "window.tax"), Command.CHANGE_TAX),
    **{f"window.{each.name.lower()}": Command[f"CHANGE_{each.name}"] for each in FUNDED},
}
_BUTTONS: dict[str, tuple[Command, int]] = {
    "window.close": (Command.OPEN_WINDOW, int(Window.NONE)),
    **{f"tool.{tool.name.lower()}": (Command.SELECT_TOOL, int(tool)) for tool in Tool},
    **{f"scroll.{way}": scroll for way, scroll in _SCROLLS.items()},
    **{f"{name}.up": (command, 1) for name, command in _ADJUSTERS.items()},
    **{f"{name}.down": (command, -1) for name, command in _ADJUSTERS.items()},
}
TOOL_KEYS = dict(zip("qdlrcigwutofhspb", Tool, strict=True))
KEYS: dict[str, tuple[Command, int]] = {
    **{way.capitalize(): scroll for way, scroll in _SCROLLS.items()},
    "space": (Command.TOGGLE_PAUSE, 0),
    **{str(int(speed)): (Command.SET_SPEED, speed) for speed in (Speed.SLOW, Speed.NORMAL, Speed.FAST)},
    **dict.fromkeys(("plus", "equal"), (Command.CHANGE_TAX, 1)),
    "minus": (Command.CHANGE_TAX, -1),
    **{f"F{int(window)}": (Command.OPEN_WINDOW, window) for window in (Window.BUDGET, Window.CITY, Window.DEMAND)},
    **{key: (Command.SELECT_TOOL, int(tool)) for key, tool in TOOL_KEYS.items()},
}


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


class Interface:
    """The interface of one game.

    Attributes:
        state: Everything that is saved.
        serial: Incremented whenever menus, panes, pointer or camera may have changed.
    """

    def __init__(
        self, simulation: CitySimulation, editor: CityEditor, game: int, theme: Theme, layout: Layout, face: TextMeasure
    ) -> None:
        self.layout, self.theme, self.game = layout, theme, game
        self.state = InterfaceState()
        self.figures = Figures(simulation, game, theme.format)
        self.serial = 0
        self._face, self._simulation = face, simulation
        self._notice, self._over = simulation.city["notice"], simulation.city["over"]
        self._editor = editor
        self._writer = PaneWriter(simulation, self.figures, game)
        self._day = simulation.city["day"]
        self._placed: PlacedPane | None = None
        self._stamp = (-1, -1)
        self._lines: tuple[tuple[int, ...], dict[str, str]] = ((), {})
        self._place_lists = functools.cache(functools.partial(place_lists, layout=layout, face=face))

    # --- input ---

    def restart(self, state: InterfaceState | None = None) -> None:
        """Start a new city, or resume a saved state; the camera stays on the map."""
        self.state = InterfaceState() if state is None else state
        self._move_camera(0, 0)
        self._placed = None
        self.serial += 1

    def move(self, x: int, y: int) -> None:
        """Move the pointer; open menus follow it."""
        state = self._point(x, y)
        if state.path and not state.dialogs:
            self._follow(x, y)

    def click(self, x: int, y: int, button: Button = "left") -> None:
        """Move the pointer to a pixel and click."""
        state = self._point(x, y)
        if state.dialogs:
            if name := self._button_at(x, y):
                self._close_dialog(name.removeprefix("dialog."))
            else:
                state.say(Message.CLOSE_FIRST)
        elif state.path:
            self._click_menu(x, y)
        elif self._pane_holds(x, y):
            if name := self._button_at(x, y):
                self._do(*_BUTTONS[name])
        elif (place := self.cell_at(x, y)) is not None:
            self._use_tool(place, button)
        else:
            element = find_at(self.layout.elements, x, y)
            if element is not None and element.kind == "menu":
                state.path = (self.layout.menus.index(element),)
            elif element is not None and element.name in _BUTTONS:
                self._do(*_BUTTONS[element.name])
        self.serial += 1  # on the way the pane was asked for as it stood before

    def drag(self, start: tuple[int, int], end: tuple[int, int], button: Button = "left") -> None:
        """Press a button at one pixel and release it at another; off the map that is a click at the end."""
        state, first, last = self.state, self.cell_at(*start), self.cell_at(*end)
        covered = state.dialogs or state.path or self._pane_holds(*start) or self._pane_holds(*end)
        if covered or first is None or last is None:
            self.click(*end, button)
            return
        self._point(*end)
        if state.tool in (*_LINES, *_AREAS):
            self._use_along(first, last)
        else:
            self._use_tool(last, "left")
        self.serial += 1

    def scroll(self, x: int, y: int, notches: int) -> None:
        """Turn the wheel: over the map the camera moves, up for positive notches."""
        state = self._point(x, y)
        if not state.dialogs and not state.path and self.layout.view.box.holds(x, y):
            self._move_camera(0, -notches)

    def key(self, name: str) -> None:
        """Press a key, by its X11 name; keys without a meaning do nothing."""
        state = self.state
        self.serial += 1
        if state.dialogs:
            choices = {"Return": 0, "KP_Enter": 0, "space": 0, "y": 0, "Escape": -1, "n": -1}
            if name in choices:
                self._close_dialog(self._write_pane().buttons[choices[name]][0])
        elif name == "Escape":
            self._escape()
        elif name in KEYS:
            self._do(*KEYS[name])

    def days(self, seconds: float) -> int:
        """Return the days that pass in some seconds of the game's clock; fractions of a day are carried over."""
        state = self.state
        if state.dialogs or self._over[self.game] != Over.PLAYING:
            return 0
        percent = SPEED_PERCENT[Speed(state.speed)]
        state.carry += round(seconds * 1000.0) * self._simulation.rules.days_per_second * percent // 100
        days, state.carry = divmod(state.carry, 1000)
        return days

    def take_notices(self) -> None:
        """Convert the notices of the city to dialogs; call after days have passed."""
        notice = int(self._notice[self.game])
        if notice == 0:
            return
        amount, cell = self.figures.number("notice_amount"), self.figures.number("notice_cell")
        for bit, dialog in NOTICES.items():
            if notice & bit and len(self.state.dialogs) < MAX_DIALOGS:
                self.state.dialogs.append((dialog, amount, cell))
        self._notice[self.game] = 0
        self.state.path = ()
        self.serial += 1

    # --- output ---

    def texts(self) -> dict[str, str]:
        """Return the text of every field: of the HUD, and of speed, tool and message."""
        state, form = self.state, self.theme.format
        key: tuple[int, ...] = (state.tool, state.message, state.message_first, state.message_second, state.speed)
        key += (self.serial, int(self._day[self.game]))  # without a gesture or a day no price at the pointer changes
        if self._lines[0] != key:
            cost = self._price()
            tool = f"{tool_name(state.tool)} {form.money(cost)}" if cost else tool_name(state.tool)
            message = message_text(state.message, state.message_first, state.message_second, form)
            lines = {"speed": Speed(state.speed).name.capitalize(), "tool": tool, "message": message}
            self._lines = key, lines
        return {**self.figures.texts(), **self._lines[1]}

    def lists(self) -> tuple[MenuList, ...]:
        """Return the lists of the open menus."""
        return self._place_lists(self.state.path)

    def pane(self) -> PlacedPane | None:
        """Return the dialog that is shown, else the window, else None."""
        if not self.has_pane:
            return None
        stamp = self.serial, int(self._day[self.game])
        if self._stamp != stamp:  # nothing that a pane says changes without a gesture or a day
            self._stamp = stamp
            pane = self._write_pane()
            if self._placed is None or self._placed.pane != pane:
                self._placed = place_pane(pane, self._face, self.layout.view.frame)
        return self._placed

    @property
    def has_pane(self) -> bool:
        """Whether a dialog or a window is shown."""
        return bool(self.state.dialogs) or self.state.window != Window.NONE

    def marks(self) -> frozenset[str]:
        """Return the names of the menu entries that are checked."""
        state, number = self.state, self.figures.number
        held = {
            (Command.SET_SPEED, state.speed),
            (Command.SET_OVERLAY, state.overlay),
            (Command.SET_TAX, number("tax")),
            *((Command[f"FUND_{each.name}"], number(f"funding_{each.name.lower()}")) for each in FUNDED),
            (Command.TOGGLE_HINTS, 0 if state.hints else -1),
            (Command.TOGGLE_REPORT, 0 if number("report") else -1),
        }
        return frozenset(name for name, entry in all_entries() if (entry.command, entry.number) in held)

    def hovered(self) -> str:
        """Return the name of the entry of a menu or the button of a pane under the pointer; empty if there is none."""
        state = self.state
        x, y = state.pointer_x, state.pointer_y
        if state.path and not state.dialogs:
            for menu in reversed(self.lists()):
                if menu.box.holds(x, y):
                    entry = find_at(menu.elements, x, y)
                    return "" if entry is None else entry.name
        return self._button_at(x, y)

    def hint(self) -> Hint | None:
        """Return the tooltip for what is under the pointer: tools, with what a click of theirs costs, and fields."""
        state, layout, face = self.state, self.layout, self._face
        x, y = state.pointer_x, state.pointer_y
        if not state.hints or state.dialogs or state.path or self._pane_holds(x, y):
            return None
        element = find_at(layout.elements, x, y)
        if element is None or element.kind not in ("tool", "field", "bar"):
            return None
        name = element.name.partition(".")[2]
        if element.kind == "tool":
            cost = self._cost(Tool[name.upper()])
            text = f"{element.label} {self.theme.format.money(cost)}" if cost else element.label
        else:
            text = WORDS.hints.get(name, name.replace("_", " ").capitalize())
        width, height = face.width(text) + 8, face.height + 6
        # Above the pointer where there is no room below, so that it does not hide what is pointed at.
        top = y + 14 if y + 14 + height <= layout.height else y - height - 4
        return Hint(text, Box(x + 10, top, width, height).within(Box(0, 0, layout.width, layout.height)))

    def cell_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Return column and row of the cell at a pixel, or None off the map."""
        view = self.layout.view
        if not view.box.holds(x, y):
            return None
        return (x - view.box.left) // view.tile + self.state.column, (y - view.box.top) // view.tile + self.state.row

    # --- handling clicks ---

    def _point(self, x: int, y: int) -> InterfaceState:
        self.state.pointer_x, self.state.pointer_y = x, y
        self.serial += 1
        return self.state

    def _write_pane(self) -> Pane:
        state = self.state
        if state.dialogs:
            dialog, amount, cell = state.dialogs[0]
            return self._writer.dialog(Dialog(dialog), amount, cell)
        return self._writer.window(Window(state.window), state.window_cell)

    def _pane_holds(self, x: int, y: int) -> bool:
        pane = self.pane()
        return pane is not None and pane.box.holds(x, y)

    def _button_at(self, x: int, y: int) -> str:
        """Return the name of the button of the dialog or window at a pixel; empty if there is none."""
        pane = self.pane()
        element = None if pane is None else find_at(pane.elements, x, y)
        return element.name if element is not None and element.kind == "button" else ""

    def _close_dialog(self, choice: str) -> None:
        dialog, _, cell = self.state.dialogs.pop(0)
        if choice == "yes" and dialog == Dialog.ABANDON:
            self._over[self.game] = Over.ABANDONED
        elif choice == "yes" and dialog == Dialog.DEMOLISH:
            row, column = divmod(cell, self._simulation.rules.columns)
            self._tell(self._editor.do(self.game, Tool.BULLDOZER, column, row))

    def _click_menu(self, x: int, y: int) -> None:
        """Handle a click while a menu is open: an entry acts or opens its submenu, anything else closes the menu."""
        state, (path, entry) = self.state, self._entry_at(x, y)
        heading = self._heading_at(x, y)
        if entry is None:
            state.path = () if heading is None or state.path[0] == heading else (heading,)
        elif entry.children:
            state.path = path
        else:
            state.path = ()
            self._do(entry.command, entry.number)

    def _follow(self, x: int, y: int) -> None:
        state, (path, entry) = self.state, self._entry_at(x, y)
        heading = self._heading_at(x, y)
        if entry is not None:
            state.path = path if entry.children else path[:-1]
        elif heading is not None and heading != state.path[0]:
            state.path = (heading,)

    def _entry_at(self, x: int, y: int) -> tuple[tuple[int, ...], Entry | None]:
        """Return path and entry of the topmost place of the open lists at a pixel; None if there is none."""
        for level, menu in reversed(list(enumerate(self.lists()))):
            for index, element in enumerate(menu.elements):
                if element.box.holds(x, y):
                    return (*self.state.path[: level + 1], index), menu.entries[index]
        return (), None

    def _heading_at(self, x: int, y: int) -> int | None:
        return next((index for index, menu in enumerate(self.layout.menus) if menu.box.holds(x, y)), None)

    def _escape(self) -> None:
        """Close the uppermost of: menu, window, overlay, tool."""
        state = self.state
        if state.path:
            state.path = ()
        elif state.window != Window.NONE:
            state.window = Window.NONE
        elif state.overlay != Overlay.NONE:
            state.overlay = Overlay.NONE
        else:
            state.tool = Tool.QUERY

    # --- commands and tools ---

    def _do(self, command: Command, number: int) -> None:
        """Carry out a command with its number."""
        state = self.state
        if command == Command.SCROLL_ACROSS:
            self._move_camera(number, 0)
        elif command == Command.SCROLL_DOWN:
            self._move_camera(0, number)
        elif command == Command.TOGGLE_PAUSE:
            self._set_speed(state.speed_before if state.speed == Speed.PAUSE else int(Speed.PAUSE))
        elif command == Command.SET_SPEED:
            self._set_speed(number)
        elif command in (Command.CHANGE_TAX, Command.SET_TAX):
            base = int(self._simulation.city["tax"][self.game]) if command == Command.CHANGE_TAX else 0
            state.say(Message.TAX, self._editor.set_tax(self.game, base + number))
        elif command in _DEPARTMENTS:
            department = _DEPARTMENTS[command]
            if command >= Command.CHANGE_TRANSPORT:
                number = self._editor.funding(self.game, department) + number * FUNDING_STEP
            state.say(Message.FUNDED, self._editor.set_funding(self.game, department, number))
        elif command == Command.SELECT_TOOL:
            state.tool = number
            state.say(Message.SELECTED, number)
        elif command == Command.SET_OVERLAY:
            state.overlay = Overlay(number)
        elif command == Command.OPEN_WINDOW:
            state.window = Window(number)
        elif command in (Command.ASK_ABANDON, Command.SHOW_ABOUT):
            state.dialogs.append((Dialog.ABANDON if command == Command.ASK_ABANDON else Dialog.ABOUT, 0, -1))
        elif command == Command.TOGGLE_HINTS:
            state.hints = 1 - state.hints
        elif command == Command.TOGGLE_REPORT:
            self._simulation.city["report"][self.game] = 1 - self._simulation.city["report"][self.game]

    def _move_camera(self, across: int, down: int) -> None:
        state, rules, view = self.state, self._simulation.rules, self.layout.view
        state.column = min(max(state.column + across * SCROLL_CELLS, 0), rules.columns - view.columns)
        state.row = min(max(state.row + down * SCROLL_CELLS, 0), rules.rows - view.rows)

    def _set_speed(self, wanted: int) -> None:
        state = self.state
        if wanted == Speed.PAUSE and state.speed != Speed.PAUSE:
            state.speed_before = state.speed
        state.speed = wanted
        state.say(Message.PAUSED if wanted == Speed.PAUSE else Message.RUNS)

    def _price(self) -> int:
        """Return what a click at the pointer would cost, 0 if it would do nothing; off the map as on plain land."""
        state = self.state
        place = self.cell_at(state.pointer_x, state.pointer_y)
        tool = Tool(state.tool)
        return self._cost(tool) if place is None else self._editor.plan(self.game, tool, *place).cost

    def _cost(self, tool: int) -> int:
        """Return what a tool costs on plain land, for everything that one click builds."""
        if tool == Tool.BULLDOZER:
            return BULLDOZE_COST
        brush = self._simulation.rules.zone_brush if tool in ZONES else 1
        return BUILDINGS[tool].cost * brush * brush

    def _use_tool(self, place: tuple[int, int], button: Button) -> None:
        """Use the selected tool at a cell; other buttons than the left one ask what is there."""
        state = self.state
        cell = place[1] * self._simulation.rules.columns + place[0]
        if state.tool == Tool.QUERY or button != "left":
            state.window, state.window_cell = Window.QUERY, cell
        elif state.tool == Tool.BULLDOZER and int(self._simulation.cells.kind[self.game, cell]) in _PRECIOUS:
            state.dialogs.append((Dialog.DEMOLISH, 0, cell))
        else:
            self._tell(self._editor.do(self.game, Tool(state.tool), *place))

    def _use_along(self, first: tuple[int, int], last: tuple[int, int]) -> None:
        """Use the tool along a line between two cells or over an area."""
        tool, built, paid = Tool(self.state.tool), 0, 0
        for column, row in _along(first, last) if tool in _LINES else _over(first, last):
            kind = int(self._simulation.cells.kind[self.game, row * self._simulation.rules.columns + column])
            if tool == Tool.BULLDOZER and kind in _PRECIOUS:
                continue
            plan = self._editor.do(self.game, tool, column, row)
            if plan.fault == Fault.TOO_EXPENSIVE:
                self._tell(plan)
                return
            built += len(plan.cells)  # nothing with another fault
            paid += plan.cost
        self.state.say(Message.BUILT_MANY, built, paid)

    def _tell(self, plan: Plan) -> None:
        state = self.state
        if plan.fault != Fault.NONE:
            state.say(Message.REFUSED, int(plan.fault), plan.cost)
        elif state.tool == Tool.BULLDOZER:
            state.say(Message.CLEARED, 0, plan.cost)
        else:
            state.say(Message.BUILT, state.tool, plan.cost)
