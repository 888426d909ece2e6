"""The interface of one game: a state machine fed with clicks, keys, wheel and time; it knows nothing of drawing."""

from ludus.envs.city.drivers.driver import Button
from ludus.envs.city.game.placement import Works
from ludus.envs.city.game.rules import Over, Tool
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.commands import SPEED_PERCENT, Command, Dialog, Overlay, Speed, Window
from ludus.envs.city.interface.dialogs import NOTICES, Dialogs
from ludus.envs.city.interface.elements import Element, find_at
from ludus.envs.city.interface.figures import Figures
from ludus.envs.city.interface.hints import Hint, hint_at
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.menus import MENUS, all_entries
from ludus.envs.city.interface.messages import Message, message_text, tool_name
from ludus.envs.city.interface.open_menus import MenuList, place_lists
from ludus.envs.city.interface.orders import ADJUSTERS, KEYS, Orders
from ludus.envs.city.interface.panes import Pane, PlacedPane, place_pane
from ludus.envs.city.interface.pen import Pen
from ludus.envs.city.interface.state import MAX_DIALOGS, InterfaceState
from ludus.envs.city.interface.theme import Measure, Theme
from ludus.envs.city.interface.windows import Windows

_SCROLLS = {"scroll.left": (-1, 0), "scroll.right": (1, 0), "scroll.up": (0, -1), "scroll.down": (0, 1)}


class Interface:
    """The interface of one game.

    Attributes:
        state: What it remembers.
        layout: Where everything is that never moves.
        theme: Its look.
        figures: What the HUD says.
        serial: Rises whenever something about menus, panes, pointer or camera may have changed.
    """

    def __init__(
        self, simulation: CitySimulation, works: Works, game: int, theme: Theme, layout: Layout, face: Measure
    ) -> None:
        self.layout, self.theme, self.game = layout, theme, game
        self.state = InterfaceState()
        self.figures = Figures(simulation, game, theme.format)
        self.serial = 0
        self._face, self._simulation = face, simulation
        self._notice, self._over = simulation.city["notice"], simulation.city["over"]
        self._orders = Orders(simulation, works, game, layout)
        self._pen = Pen(simulation, works, game, layout)
        self._dialogs = Dialogs(simulation, game, theme.format)
        self._windows = Windows(simulation, works, game, theme.format)
        self._day = simulation.city["day"]
        self._placed: PlacedPane | None = None
        self._stamp = (-1, -1)
        self._lines: tuple[tuple[int, ...], dict[str, str]] = ((), {})
        self._lists: tuple[tuple[int, ...], tuple[MenuList, ...]] = ((), ())

    # --- what comes in ---

    def restart(self, state: InterfaceState | None = None) -> None:
        """Begins anew, or goes on from a state that was kept; the camera stays on the map."""
        self.state = InterfaceState() if state is None else state
        self._orders.do(self.state, Command.SCROLL_ACROSS, 0)
        self._orders.do(self.state, Command.SCROLL_DOWN, 0)
        self._placed = None
        self.serial += 1

    def move(self, x: int, y: int) -> None:
        """Moves the pointer; open menus follow it."""
        state = self.state
        state.pointer_x, state.pointer_y = x, y
        self.serial += 1
        if state.path and not state.dialogs:
            self._follow(x, y)

    def click(self, x: int, y: int, button: Button = "left") -> None:
        """Moves the pointer to a pixel and clicks."""
        state = self.state
        state.pointer_x, state.pointer_y = x, y
        self.serial += 1
        if state.dialogs:
            self._click_dialog(x, y)
        elif state.path:
            self._click_menu(x, y)
        elif state.window != Window.NONE and self._click_window(x, y):
            return
        elif self.layout.view.box.holds(x, y):
            self._pen.click(state, x, y, button)
        else:
            element = find_at(self.layout.elements, x, y)
            if element is not None:
                self._press(element)

    def drag(self, start: tuple[int, int], end: tuple[int, int], button: Button = "left") -> None:
        """Presses a button at one pixel and lets it go at another; off the map that is a click at the end."""
        state, view = self.state, self.layout.view.box
        covered = state.dialogs or state.path or self._pane_holds(*start) or self._pane_holds(*end)
        if covered or not (view.holds(*start) and view.holds(*end)):
            self.click(*end, button)
            return
        state.pointer_x, state.pointer_y = end
        self.serial += 1
        self._pen.drag(state, start, end)

    def scroll(self, x: int, y: int, notches: int) -> None:
        """Turns the wheel: over the map the camera moves, up for positive notches."""
        state = self.state
        state.pointer_x, state.pointer_y = x, y
        self.serial += 1
        if not state.dialogs and not state.path and self.layout.view.box.holds(x, y):
            self._orders.do(state, Command.SCROLL_DOWN, -notches)

    def key(self, name: str) -> None:
        """Presses a key, by its X11 name; keys without a meaning do nothing."""
        state = self.state
        self.serial += 1
        if state.dialogs:
            choices = {"Return": 0, "KP_Enter": 0, "space": 0, "y": 0, "Escape": -1, "n": -1}
            if name in choices:
                self._close_dialog(self._write_pane().buttons[choices[name]][0])
        elif name == "Escape":
            self._escape()
        elif name in KEYS:
            self._orders.do(state, *KEYS[name])

    def days(self, seconds: float) -> int:
        """Returns the days that pass in some seconds of the game's clock; what is less than a day is kept for later."""
        state = self.state
        if state.dialogs or self._over[self.game] != Over.PLAYING:
            return 0
        percent = SPEED_PERCENT[Speed(state.speed)]
        state.carry += round(seconds * 1000.0) * self._simulation.rules.days_per_second * percent // 100
        days, state.carry = divmod(state.carry, 1000)
        return days

    def take_notices(self) -> None:
        """Turns what the city has to tell into dialogs; called after days have passed."""
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

    # --- what is shown ---

    def texts(self) -> dict[str, str]:
        """Returns the text of every field: of the HUD, and of speed, tool and message."""
        state, form = self.state, self.theme.format
        key = (state.tool, state.message, state.message_first, state.message_second, state.speed)
        if self._lines[0] != key:  # they change less often than figures do
            cost = self._pen.cost(state.tool)
            tool = f"{tool_name(state.tool)} {form.money(cost)}" if cost else tool_name(state.tool)
            message = message_text(state.message, state.message_first, state.message_second, form)
            lines = {"speed": Speed(state.speed).name.capitalize(), "tool": tool, "message": message}
            self._lines = key, lines
        return {**self.figures.texts(), **self._lines[1]}

    def lists(self) -> tuple[MenuList, ...]:
        """Returns the lists of the open menus."""
        if self._lists[0] != self.state.path:
            self._lists = self.state.path, place_lists(self.state.path, self.layout, self._face)
        return self._lists[1]

    def pane(self) -> PlacedPane | None:
        """Returns the dialog that is shown, else the window, else None."""
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

    def elements(self) -> list[Element]:
        """Returns everything on the screen that has a place, lowest first."""
        texts = self.texts()
        labelled = (
            Element(e.name, e.kind, e.box, texts.get(e.name.removeprefix("field."), e.label))
            for e in self.layout.elements
        )
        elements = list(labelled)
        elements += [
            Element("field.speed", "field", self.layout.speed, texts["speed"]),
            Element("field.tool", "field", self.layout.tool_label, texts["tool"]),
            Element("field.message", "field", self.layout.message, texts["message"]),
        ]
        pane = self.pane()
        modal = bool(self.state.dialogs)
        if pane is not None and not modal:
            elements += pane.elements
        for menu in self.lists():
            elements += menu.elements
        return [*elements, *pane.elements] if pane is not None and modal else elements

    @property
    def has_pane(self) -> bool:
        """Whether a dialog or a window is shown."""
        return bool(self.state.dialogs) or self.state.window != Window.NONE

    def marks(self) -> frozenset[str]:
        """Returns the names of the entries of menus that hold at present."""
        state, number = self.state, self.figures.number
        held = {
            (Command.SET_SPEED, state.speed),
            (Command.SET_OVERLAY, state.overlay),
            (Command.SET_TAX, number("tax")),
            (Command.FUND_TRANSPORT, number("funding_transport")),
            (Command.FUND_SAFETY, number("funding_safety")),
            (Command.FUND_WELFARE, number("funding_welfare")),
            (Command.TOGGLE_HINTS, 0 if state.hints else -1),
            (Command.TOGGLE_REPORT, 0 if number("report") else -1),
        }
        return frozenset(name for name, entry in all_entries() if (entry.command, entry.number) in held)

    def hovered(self) -> str:
        """Returns the name of the entry of a menu or the button of a pane under the pointer; empty if there is none."""
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
        """Returns the tooltip at the pointer, if there is one."""
        state = self.state
        if not state.hints or state.dialogs or state.path or self._pane_holds(state.pointer_x, state.pointer_y):
            return None
        return hint_at(state, self.layout, self.theme, self._face)

    def cell_at(self, x: int, y: int) -> tuple[int, int] | None:
        """Returns column and row of the map's cell at a pixel, or None off the map."""
        return self._pen.cell_at(self.state, x, y)

    # --- how clicks are understood ---

    def _write_pane(self) -> Pane:
        state = self.state
        if state.dialogs:
            dialog, amount, cell = state.dialogs[0]
            return self._dialogs.pane(Dialog(dialog), amount, cell)
        return self._windows.pane(Window(state.window), state.window_cell)

    def _pane_holds(self, x: int, y: int) -> bool:
        pane = self.pane()
        return pane is not None and pane.box.holds(x, y)

    def _click_dialog(self, x: int, y: int) -> None:
        pane = self.pane()
        element = None if pane is None else find_at(pane.elements, x, y)
        if element is not None and element.kind == "button":
            self._close_dialog(element.name.removeprefix("dialog."))
        else:
            self._say(Message.CLOSE_FIRST)

    def _close_dialog(self, choice: str) -> None:
        dialog, _, cell = self.state.dialogs.pop(0)
        if choice == "yes" and dialog == Dialog.ABANDON:
            self._over[self.game] = Over.ABANDONED
        elif choice == "yes" and dialog == Dialog.DEMOLISH:
            self._pen.demolish(self.state, cell)

    def _click_window(self, x: int, y: int) -> bool:
        """Handles a click on the window and says whether it was one."""
        pane = self.pane()
        if pane is None or not pane.box.holds(x, y):
            return False
        element = find_at(pane.elements, x, y)
        if element is not None and element.name == "window.close":
            self.state.window = Window.NONE
        elif element is not None and element.kind == "button":
            _, adjusted, way = element.name.split(".")
            self._orders.do(self.state, ADJUSTERS[adjusted], 1 if way == "up" else -1)
        return True

    def _click_menu(self, x: int, y: int) -> None:
        """Handles a click while a menu is open: an entry acts or opens its submenu, anything else closes the menu."""
        state = self.state
        for level, menu in reversed(list(enumerate(self.lists()))):
            for index, element in enumerate(menu.elements):
                if element.box.holds(x, y):
                    entry = menu.entries[index]
                    state.path = (*state.path[: level + 1], index) if entry.children else ()
                    if not entry.children:
                        self._orders.do(state, entry.command, entry.number)
                    return
        heading = self._heading_at(x, y)
        state.path = () if heading is None or state.path[0] == heading else (heading,)

    def _follow(self, x: int, y: int) -> None:
        state = self.state
        for level, menu in reversed(list(enumerate(self.lists()))):
            for index, element in enumerate(menu.elements):
                if element.box.holds(x, y):
                    deeper = (index,) if menu.entries[index].children else ()
                    state.path = (*state.path[: level + 1], *deeper)
                    return
        heading = self._heading_at(x, y)
        if heading is not None and heading != state.path[0]:
            state.path = (heading,)

    def _heading_at(self, x: int, y: int) -> int | None:
        for index, element in enumerate(self.layout.menus):
            if element.box.holds(x, y):
                return index
        return None

    def _press(self, element: Element) -> None:
        state, (group, _, name) = self.state, element.name.partition(".")
        if group == "menu":
            state.path = (next(i for i, entry in enumerate(MENUS) if entry.name == name),)
        elif group == "tool":
            self._orders.do(state, Command.SELECT_TOOL, Tool[name.upper()])
        elif group == "tax":
            self._orders.do(state, Command.CHANGE_TAX, 1 if name == "up" else -1)
        elif element.name in _SCROLLS:
            across, down = _SCROLLS[element.name]
            self._orders.do(state, Command.SCROLL_ACROSS if across else Command.SCROLL_DOWN, across + down)

    def _escape(self) -> None:
        """Leaves what is uppermost: the menu, the window, the overlay, the tool."""
        state = self.state
        if state.path:
            state.path = ()
        elif state.window != Window.NONE:
            state.window = Window.NONE
        elif state.overlay != Overlay.NONE:
            state.overlay = Overlay.NONE
        else:
            state.tool = Tool.QUERY

    def _say(self, message: Message, first: int = 0, second: int = 0) -> None:
        state = self.state
        state.message, state.message_first, state.message_second = message, first, second
