"""Orders: what entries of menus, buttons and keys do to the game and to its interface."""

from ludus.envs.city.game.placement import Works
from ludus.envs.city.game.rules import FUNDING_STEP, Department, Tool
from ludus.envs.city.game.simulation import CitySimulation
from ludus.envs.city.interface.commands import Command, Dialog, Overlay, Speed, Window
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.messages import Message
from ludus.envs.city.interface.state import InterfaceState

SCROLL_CELLS = 4  # by which a click on an arrow, a notch of the wheel or a key moves the camera
_DEPARTMENTS = {
    Command.FUND_TRANSPORT: Department.TRANSPORT,
    Command.FUND_SAFETY: Department.SAFETY,
    Command.FUND_WELFARE: Department.WELFARE,
}
# What the two buttons beside a line of the budget change, up or down by one step.
ADJUSTERS = {
    "tax": Command.CHANGE_TAX,
    "transport": Command.CHANGE_TRANSPORT,
    "safety": Command.CHANGE_SAFETY,
    "welfare": Command.CHANGE_WELFARE,
}
_CHANGES = {
    Command.CHANGE_TRANSPORT: Department.TRANSPORT,
    Command.CHANGE_SAFETY: Department.SAFETY,
    Command.CHANGE_WELFARE: Department.WELFARE,
}
TOOL_KEYS = {
    "q": Tool.QUERY,
    "d": Tool.ROAD,
    "l": Tool.LINE,
    "r": Tool.RESIDENTIAL,
    "c": Tool.COMMERCIAL,
    "i": Tool.INDUSTRIAL,
    "g": Tool.COAL,
    "w": Tool.WIND,
    "u": Tool.PUMP,
    "t": Tool.TOWER,
    "o": Tool.POLICE,
    "f": Tool.FIRE,
    "h": Tool.CLINIC,
    "s": Tool.SCHOOL,
    "p": Tool.PARK,
    "b": Tool.BULLDOZER,
}
KEYS: dict[str, tuple[Command, int]] = {
    "Left": (Command.SCROLL_ACROSS, -1),
    "Right": (Command.SCROLL_ACROSS, 1),
    "Up": (Command.SCROLL_DOWN, -1),
    "Down": (Command.SCROLL_DOWN, 1),
    "space": (Command.TOGGLE_PAUSE, 0),
    "1": (Command.SET_SPEED, Speed.SLOW),
    "2": (Command.SET_SPEED, Speed.NORMAL),
    "3": (Command.SET_SPEED, Speed.FAST),
    "plus": (Command.CHANGE_TAX, 1),
    "equal": (Command.CHANGE_TAX, 1),
    "minus": (Command.CHANGE_TAX, -1),
    "F1": (Command.OPEN_WINDOW, Window.BUDGET),
    "F2": (Command.OPEN_WINDOW, Window.CITY),
    "F3": (Command.OPEN_WINDOW, Window.DEMAND),
    **{key: (Command.SELECT_TOOL, int(tool)) for key, tool in TOOL_KEYS.items()},
}


class Orders:
    """Carries out commands in one game."""

    def __init__(self, simulation: CitySimulation, works: Works, game: int, layout: Layout) -> None:
        self._city, self._works, self._game = simulation.city, works, game
        self._last_column = simulation.rules.columns - layout.view.columns
        self._last_row = simulation.rules.rows - layout.view.rows

    def do(self, state: InterfaceState, command: Command, number: int) -> None:
        """Carries out a command with its number."""
        if command in (Command.SCROLL_ACROSS, Command.SCROLL_DOWN):
            self._scroll(state, command, number)
        elif command in (Command.SET_SPEED, Command.TOGGLE_PAUSE):
            self._set_speed(state, command, number)
        elif command in (Command.CHANGE_TAX, Command.SET_TAX):
            base = int(self._city["tax"][self._game]) if command == Command.CHANGE_TAX else 0
            self._say(state, Message.TAX, self._works.set_tax(self._game, base + number))
        elif command in _CHANGES:
            now = self._works.funding(self._game, _CHANGES[command])
            wanted = now + number * FUNDING_STEP
            self._say(state, Message.FUNDED, self._works.set_funding(self._game, _CHANGES[command], wanted))
        elif command in _DEPARTMENTS:
            self._say(state, Message.FUNDED, self._works.set_funding(self._game, _DEPARTMENTS[command], number))
        elif command == Command.SELECT_TOOL:
            state.tool = number
            self._say(state, Message.SELECTED, number)
        else:
            self._show(state, command, number)

    def _show(self, state: InterfaceState, command: Command, number: int) -> None:
        if command == Command.SET_OVERLAY:
            state.overlay = Overlay(number)
        elif command == Command.OPEN_WINDOW:
            state.window = Window(number)
        elif command == Command.ASK_ABANDON:
            state.dialogs.append((Dialog.ABANDON, 0, -1))
        elif command == Command.SHOW_ABOUT:
            state.dialogs.append((Dialog.ABOUT, 0, -1))
        elif command == Command.TOGGLE_HINTS:
            state.hints = 1 - state.hints
        elif command == Command.TOGGLE_REPORT:
            self._city["report"][self._game] = 1 - self._city["report"][self._game]

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
        self._say(state, Message.PAUSED if wanted == Speed.PAUSE else Message.RUNS)

    def _say(self, state: InterfaceState, message: Message, first: int = 0) -> None:
        state.message, state.message_first, state.message_second = message, first, 0
