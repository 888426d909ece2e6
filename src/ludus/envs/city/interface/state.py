"""The state of one game's interface as whole numbers, so that it can be kept with the city's."""

from dataclasses import dataclass, field

from ludus.core.errors import SnapshotError
from ludus.envs.city.game.placement import Fault
from ludus.envs.city.game.rules import Tool
from ludus.envs.city.interface.commands import Dialog, Overlay, Speed, Window
from ludus.envs.city.interface.menus import MENUS
from ludus.envs.city.interface.messages import Message

MAX_DEPTH = 3  # of menus
MAX_DIALOGS = 8  # that wait for each other


@dataclass(slots=True)
class InterfaceState:
    """What the interface remembers.

    Attributes:
        tool: The selected `Tool`.
        path: Open menu and submenus, as indices; -1 where none is.
        window: The open `Window`.
        window_cell: What it tells about, in the case of a query.
        overlay: The `Overlay` of the map.
        speed: The `Speed` of the clock.
        speed_before: What a pause ends with.
        column: First column of the map in view.
        row: First row of the map in view.
        pointer_x: Where the pointer is, in pixels.
        pointer_y: Where the pointer is, in pixels.
        hints: Whether tooltips are shown.
        message: `messages.Message` in the message line, and its two numbers.
        carry: Thousandths of a day that have not passed yet.
        dialogs: Dialogs that wait, as (`Dialog`, amount, cell); the first one is shown.
    """

    tool: int = Tool.QUERY
    path: tuple[int, ...] = ()
    window: int = Window.NONE
    window_cell: int = -1
    overlay: int = Overlay.NONE
    speed: int = Speed.NORMAL
    speed_before: int = Speed.NORMAL
    column: int = 0
    row: int = 0
    pointer_x: int = -1
    pointer_y: int = -1
    hints: int = 1
    message: int = 0
    message_first: int = 0
    message_second: int = 0
    carry: int = 0
    dialogs: list[tuple[int, int, int]] = field(default_factory=list)

    def words(self) -> list[int]:
        """Returns the state as `STATE_WORDS` whole numbers."""
        path = [*self.path, *[-1] * (MAX_DEPTH - len(self.path))]
        dialogs = [*self.dialogs, *[(int(Dialog.NONE), 0, 0)] * (MAX_DIALOGS - len(self.dialogs))]
        plain = [int(getattr(self, name)) for name in _PLAIN]
        return [*plain, *path, *(word for dialog in dialogs for word in dialog)]

    @classmethod
    def of_words(cls, words: list[int], cells: int) -> "InterfaceState":
        """Returns the state that `words` gave, in a game whose map has so many cells.

        Raises:
            SnapshotError: There are too few or too many words, or one has a value that it cannot have.
        """
        if len(words) != STATE_WORDS:
            raise SnapshotError(f"the state of an interface has {STATE_WORDS} words, got {len(words)}")
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
        """Raises SnapshotError if something has a value that it cannot have."""
        limits = {
            "tool": (0, max(Tool)),
            "window": (0, max(Window)),
            "window_cell": (0 if self.window == Window.QUERY else -1, cells - 1),
            "overlay": (0, max(Overlay)),
            "speed": (0, max(Speed)),
            "speed_before": (0, max(Speed)),
            "hints": (0, 1),
            "message": (0, max(Message)),
            "carry": (0, 999),
        }
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
                raise SnapshotError(f"an interface has a dialog {dialog} about cell {cell}, which cannot be")
        level = MENUS
        for index in self.path:
            if index >= len(level) or not level[index].children:
                raise SnapshotError(f"an interface has the menu {self.path} open, which does not exist")
            level = level[index].children


_PLAIN = tuple(name for name in InterfaceState.__dataclass_fields__ if name not in ("path", "dialogs"))
STATE_WORDS = len(_PLAIN) + MAX_DEPTH + 3 * MAX_DIALOGS
