"""The interface of one game: a state machine fed with clicks, keys, wheel and time; it does not draw."""

import functools

from ludus.worlds.city.drivers.driver import Button
from ludus.worlds.city.game.placement import CityEditor
from ludus.worlds.city.game.rules import FUNDED, Over, Tool
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.boxes import Element, find_at
from ludus.worlds.city.interface.commands import ADJUSTERS, KEYS, CommandHandler
from ludus.worlds.city.interface.figures import Figures
from ludus.worlds.city.interface.layout import Layout
from ludus.worlds.city.interface.menus import MENUS, SPEED_PERCENT, Command, Dialog, Overlay, Speed, Window, all_entries
from ludus.worlds.city.interface.panes import (
    NOTICES,
    Hint,
    MenuList,
    Pane,
    PaneWriter,
    PlacedPane,
    hint_at,
    place_lists,
    place_pane,
)
from ludus.worlds.city.interface.state import MAX_DIALOGS, InterfaceState, Message, message_text, tool_name
from ludus.worlds.city.interface.theme import TextMeasure, Theme

_SCROLLS = {"scroll.left": (-1, 0), "scroll.right": (1, 0), "scroll.up": (0, -1), "scroll.down": (0, 1)}


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
        self._commands = CommandHandler(simulation, editor, game, layout)
        self._writer = PaneWriter(simulation, editor, self.figures, game)
        self._day = simulation.city["day"]
        self._placed: PlacedPane | None = None
        self._stamp = (-1, -1)
        self._lines: tuple[tuple[int, ...], dict[str, str]] = ((), {})
        self._place_lists = functools.cache(functools.partial(place_lists, layout=layout, face=face))

    # --- input ---

    def restart(self, state: InterfaceState | None = None) -> None:
        """Start a new city, or resume a saved state; the camera stays on the map."""
        self.state = InterfaceState() if state is None else state
        self._commands.do(self.state, Command.SCROLL_ACROSS, 0)
        self._commands.do(self.state, Command.SCROLL_DOWN, 0)
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
            self._click_dialog(x, y)
        elif state.path:
            self._click_menu(x, y)
        elif state.window != Window.NONE and self._click_window(x, y):
            return
        elif self.layout.view.box.holds(x, y):
            self._commands.click(state, x, y, button)
        else:
            element = find_at(self.layout.elements, x, y)
            if element is not None:
                self._press(element)

    def drag(self, start: tuple[int, int], end: tuple[int, int], button: Button = "left") -> None:
        """Press a button at one pixel and release it at another; off the map that is a click at the end."""
        state, view = self.state, self.layout.view.box
        covered = state.dialogs or state.path or self._pane_holds(*start) or self._pane_holds(*end)
        if covered or not (view.holds(*start) and view.holds(*end)):
            self.click(*end, button)
            return
        self._commands.drag(self._point(*end), start, end)

    def scroll(self, x: int, y: int, notches: int) -> None:
        """Turn the wheel: over the map the camera moves, up for positive notches."""
        state = self._point(x, y)
        if not state.dialogs and not state.path and self.layout.view.box.holds(x, y):
            self._commands.do(state, Command.SCROLL_DOWN, -notches)

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
            self._commands.do(state, *KEYS[name])

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
            cost = self._commands.price(state)
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
                is_window = pane.name == "window"
                self._placed = place_pane(pane, self._face, self.layout.view.frame, at_right=is_window)
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
        pane = self.pane()
        if pane is None or not pane.box.holds(x, y):
            return ""
        found = find_at(pane.elements, x, y)
        return found.name if found is not None and found.kind == "button" else ""

    def hint(self) -> Hint | None:
        """Return the tooltip at the pointer, if there is one."""
        state = self.state
        if not state.hints or state.dialogs or state.path or self._pane_holds(state.pointer_x, state.pointer_y):
            return None
        return hint_at(state, self.layout, self.theme, self._face, self._commands.cost)

    def cell_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Return column and row of the map's cell at a pixel, or None off the map."""
        return self._commands.cell_at(self.state, x, y)

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

    def _click_dialog(self, x: int, y: int) -> None:
        pane = self.pane()
        element = None if pane is None else find_at(pane.elements, x, y)
        if element is not None and element.kind == "button":
            self._close_dialog(element.name.removeprefix("dialog."))
        else:
            self.state.say(Message.CLOSE_FIRST)

    def _close_dialog(self, choice: str) -> None:
        dialog, _, cell = self.state.dialogs.pop(0)
        if choice == "yes" and dialog == Dialog.ABANDON:
            self._over[self.game] = Over.ABANDONED
        elif choice == "yes" and dialog == Dialog.DEMOLISH:
            self._commands.demolish(self.state, cell)

    def _click_window(self, x: int, y: int) -> bool:
        """Handle a click on the window and return whether it was one."""
        pane = self.pane()
        if pane is None or not pane.box.holds(x, y):
            return False
        element = find_at(pane.elements, x, y)
        if element is not None and element.name == "window.close":
            self.state.window = Window.NONE
        elif element is not None and element.kind == "button":
            _, adjusted, way = element.name.split(".")
            self._commands.do(self.state, ADJUSTERS[adjusted], 1 if way == "up" else -1)
        return True

    def _click_menu(self, x: int, y: int) -> None:
        """Handle a click while a menu is open: an entry acts or opens its submenu, anything else closes the menu."""
        state, path = self.state, self._path_at(x, y)
        if path is not None:
            entry = self.lists()[len(path) - 2].entries[path[-1]]
            state.path = path if entry.children else ()
            if not entry.children:
                self._commands.do(state, entry.command, entry.number)
            return
        heading = self._heading_at(x, y)
        state.path = () if heading is None or state.path[0] == heading else (heading,)

    def _follow(self, x: int, y: int) -> None:
        state, path = self.state, self._path_at(x, y)
        heading = self._heading_at(x, y)
        if path is not None:
            state.path = path if self.lists()[len(path) - 2].entries[path[-1]].children else path[:-1]
        elif heading is not None and heading != state.path[0]:
            state.path = (heading,)

    def _path_at(self, x: int, y: int) -> tuple[int, ...] | None:
        """Return the path of the topmost entry of the open lists at a pixel."""
        for level, menu in reversed(list(enumerate(self.lists()))):
            for index, element in enumerate(menu.elements):
                if element.box.holds(x, y):
                    return (*self.state.path[: level + 1], index)
        return None

    def _heading_at(self, x: int, y: int) -> int | None:
        return next((index for index, menu in enumerate(self.layout.menus) if menu.box.holds(x, y)), None)

    def _press(self, element: Element) -> None:
        state, (group, _, name) = self.state, element.name.partition(".")
        if group == "menu":
            state.path = (next(i for i, entry in enumerate(MENUS) if entry.name == name),)
        elif group == "tool":
            self._commands.do(state, Command.SELECT_TOOL, Tool[name.upper()])
        elif group == "tax":
            self._commands.do(state, Command.CHANGE_TAX, 1 if name == "up" else -1)
        elif element.name in _SCROLLS:
            across, down = _SCROLLS[element.name]
            self._commands.do(state, Command.SCROLL_ACROSS if across else Command.SCROLL_DOWN, across + down)

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
