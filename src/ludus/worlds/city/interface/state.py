"""The state of one game's interface as integers, so that it can be saved with the city, and its message line."""

from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from pydantic import TypeAdapter

from ludus.config import read_yaml
from ludus.core.errors import SnapshotError
from ludus.worlds.city.game.placement import Fault
from ludus.worlds.city.game.rules import BUILDINGS, Tool
from ludus.worlds.city.interface.menus import MENUS, Dialog, Overlay, Speed, Window
from ludus.worlds.city.interface.theme import Amount, Format


class Message(IntEnum):
    """Messages; `first` and `second` are their numbers."""

    WELCOME = 0
    BUILT = 1  # tool, cost
    CLEARED = 2  # -, cost
    REFUSED = 3  # fault, cost
    SELECTED = 4  # tool
    TAX = 5  # percent
    FUNDED = 6  # percent
    CLOSE_FIRST = 7
    PAUSED = 8
    RUNS = 9
    SHOWN = 10
    SCROLLED = 11
    BUILT_MANY = 12  # number, cost


@dataclass(frozen=True, slots=True)
class Words:
    """What the interface says, by the names of enumerations; see `words.yaml`."""

    messages: dict[str, str]
    faults: dict[str, str]
    titles: dict[str, str]
    dialogs: dict[str, tuple[str, ...]]
    reports: dict[str, tuple[tuple[str, ...], ...]]
    hints: dict[str, str]


WORDS = TypeAdapter(Words).validate_python(read_yaml(Path(__file__).with_name("words.yaml"), "words", 20_000))


def tool_name(tool: int) -> str:
    """Return what a tool is called."""
    return Tool(tool).name.capitalize() if tool in (Tool.QUERY, Tool.BULLDOZER) else BUILDINGS[tool].name


def message_text(message: int, first: int, second: int, form: Format) -> str:
    """Write a message."""
    name, fault = Message(message).name.lower(), Fault(first).name.lower() if message == Message.REFUSED else ""
    text = WORDS.faults.get(fault, "") if fault else WORDS.messages.get(name, "")
    tool = tool_name(first) if message in (Message.BUILT, Message.SELECTED) else ""
    return text.format(tool=tool, first=Amount(first, form), second=Amount(second, form))


MAX_DEPTH = 3  # of menus
MAX_DIALOGS = 8  # that wait for each other


@dataclass(slots=True)
class InterfaceState:
    """What the interface remembers."""

    tool: int = Tool.QUERY  # the selected `Tool`
    path: tuple[int, ...] = ()  # open menu and submenus, as indices; -1 where none is
    window: int = Window.NONE  # the open `Window`
    window_cell: int = -1  # what it tells about, in the case of a query
    overlay: int = Overlay.NONE  # the `Overlay` of the map
    speed: int = Speed.NORMAL  # the `Speed` of the clock
    speed_before: int = Speed.NORMAL  # what a pause ends with
    column: int = 0  # first column of the map in view
    row: int = 0  # first row of the map in view
    pointer_x: int = -1  # where the pointer is, in pixels
    pointer_y: int = -1  # where the pointer is, in pixels
    hints: int = 1  # whether tooltips are shown
    message: int = 0  # `messages.Message` in the message line, and its two numbers
    message_first: int = 0
    message_second: int = 0
    carry: int = 0  # thousandths of a day that have not passed yet
    # Dialogs that wait, as (`Dialog`, amount, cell); the first one is shown.
    dialogs: list[tuple[int, int, int]] = field(default_factory=list)

    def say(self, message: Message, first: int = 0, second: int = 0) -> None:
        """Write a message with its numbers to the message line."""
        self.message, self.message_first, self.message_second = message, first, second

    def words(self) -> list[int]:
        """Return the state as `STATE_WORDS` integers."""
        path = [*self.path, *[-1] * (MAX_DEPTH - len(self.path))]
        dialogs = [*self.dialogs, *[(int(Dialog.NONE), 0, 0)] * (MAX_DIALOGS - len(self.dialogs))]
        plain = [int(getattr(self, name)) for name in _PLAIN]
        return [*plain, *path, *(word for dialog in dialogs for word in dialog)]

    @classmethod
    def of_words(cls, words: list[int], cells: int) -> "InterfaceState":
        """Return the state from `words`, in a game with this number of cells; raise SnapshotError if it is invalid."""
        state = cls()
        for name, word in zip(_PLAIN, words, strict=False):
            setattr(state, name, word)
        rest = words[len(_PLAIN) :]
        state.path = tuple(index for index in rest[:MAX_DEPTH] if index >= 0)
        triples = zip(*[iter(rest[MAX_DEPTH:])] * 3, strict=True)
        state.dialogs = [(kind, amount, cell) for kind, amount, cell in triples if kind != Dialog.NONE]
        state.check(cells)
        return state

    def check(self, cells: int) -> None:
        """Raise SnapshotError if a field has an invalid value."""
        kinds = {"tool": Tool, "window": Window, "overlay": Overlay, "speed": Speed, "message": Message}
        limits = {name: (0, int(max(kind))) for name, kind in kinds.items()}
        limits |= {"speed_before": limits["speed"], "hints": (0, 1), "carry": (0, 999)}
        limits["window_cell"] = (0 if self.window == Window.QUERY else -1, cells - 1)
        if self.message in (Message.BUILT, Message.SELECTED):
            limits["message_first"] = (0, max(Tool))
        elif self.message == Message.REFUSED:
            limits["message_first"] = (1, max(Fault))
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise SnapshotError(f"an interface's {name} is {getattr(self, name)}, valid: {low} to {high}")
        for dialog, _, cell in self.dialogs:
            least = 0 if dialog in (Dialog.FIRE, Dialog.STORM, Dialog.DEMOLISH) else -1
            if not (0 < dialog <= max(Dialog) and least <= cell < cells):
                raise SnapshotError(f"an interface has a dialog {dialog} about cell {cell}, which is invalid")
        level = MENUS
        for index in self.path:
            if index >= len(level) or not level[index].children:
                raise SnapshotError(f"an interface has the menu {self.path} open, which does not exist")
            level = level[index].children


_PLAIN = tuple(name for name in InterfaceState.__dataclass_fields__ if name not in ("path", "dialogs"))
STATE_WORDS = len(_PLAIN) + MAX_DEPTH + 3 * MAX_DIALOGS
