"""A tiny game on a real screen, for tests: a map, two tools, a pause, a menu, a dialog, a prompt and late drawing.

Run as a program: `toy_game.py SEED EVENTS`, where EVENTS is a file that gets a line for every click and key.
"""

import random
import select
import sys
import time
from pathlib import Path
from typing import Any

from Xlib import XK, X, display

WIDTH, HEIGHT = 320, 240
COLUMNS, ROWS, CELL, LEFT, TOP = 13, 8, 20, 40, 40
LAG_S = 0.1  # after which a choice of tool shows
DAY_S = 0.02
COLORS = (0x406040, 0x206020, 0x4060C0)


class ToyGame:
    """The state, and what is drawn of it."""

    def __init__(self, seed: int, events: Path) -> None:
        self.events = events
        self.display: Any = display.Display()
        screen = self.display.screen()
        self.root = screen.root
        self.window = self._open(0, 0, WIDTH, HEIGHT, "Toy City", False)
        self.gc = self.window.create_gc()
        self.dialog: Any = None
        self.menu: Any = None
        self.paused, self.tool, self.shown_tool, self.redraw_at = True, 0, 0, 0.0
        self.begin(seed)

    def begin(self, seed: int) -> None:
        dice = random.Random(seed)  # noqa: S311 - a game
        self.land = [[dice.choice(COLORS) for _ in range(COLUMNS)] for _ in range(ROWS)]
        self.funds, self.day, self.next_day = 200, 0, time.monotonic() + DAY_S
        self.draw()

    def draw(self) -> None:
        self._box(0, 0, WIDTH, HEIGHT, 0x808080)
        for stripe in range(10):  # a landmark
            self._box(10 * stripe, 0, 5, 18, 0xC0C000)
        for bit in range(8):
            self._box(110 + 6 * bit, 4, 4, 10, 0xFFFFFF if self.day >> bit & 1 else 0)
            self._box(170 + 6 * bit, 4, 4, 10, 0xFFFFFF if self.funds >> bit & 1 else 0)
        self._box(230, 2, 20, 16, 0xC00000 if self.paused else 0x00C000)
        self._box(260, 2, 20, 16, 0x303080)  # opens the menu
        self._box(2, 30, 20, 20, 0x0000FF)
        self._box(2, 60, 20, 20, 0x00FFFF)
        self._box(2, 90, 20, 20, (0x202020, 0x0000FF, 0x00FFFF)[self.shown_tool])
        for row in range(ROWS):
            for column in range(COLUMNS):
                self._box(LEFT + CELL * column, TOP + CELL * row, CELL - 1, CELL - 1, self.land[row][column])
        self.display.flush()

    def clicked(self, window: int, x: int, y: int) -> None:
        if self.dialog is not None and window == self.dialog.id:
            self.dialog.destroy()
            self.dialog = None
        elif self.menu is not None:
            inside = window == self.menu.id
            self.menu.destroy()
            self.menu = None
            if inside:
                self.dialog = self._open(30, 30, 100, 60, "Toy Dialog", False)
        elif 230 <= x < 250 and y < 18:
            self.paused = not self.paused
        elif 260 <= x < 280 and y < 18:
            self.menu = self._open(260, 20, 40, 30, "menu", True)
        elif x < 22:
            self.tool = 1 if 30 <= y < 50 else 2 if 60 <= y < 80 else self.tool
            self.redraw_at = self.redraw_at or time.monotonic() + LAG_S
        elif LEFT <= x < LEFT + CELL * COLUMNS and TOP <= y < TOP + CELL * ROWS and self.funds >= 10 and self.tool:
            self.land[(y - TOP) // CELL][(x - LEFT) // CELL] = 0xFF00FF
            self.funds -= 10
        self.draw()

    def asked(self, line: str) -> str:
        """Answers a line such as `tell MARK funds`."""
        word, mark, command = line.split(maxsplit=2)
        if word != "tell":
            return "what?"
        if command == "odd":
            self.dialog = self._open(50, 50, 90, 60, "Odd Window", False)
        if command.startswith("new "):
            self.paused = True
            self.begin(int(command.split()[1]))
        values = {"funds": self.funds, "day": self.day, "paused": int(self.paused), "odd": 1}
        if command not in values and not command.startswith("new "):
            return f"no {command}"
        return f"{mark}{values.get(command, '')}{mark}"

    def turn(self) -> None:
        """Does what is due."""
        now = time.monotonic()
        if self.redraw_at and now >= self.redraw_at:
            self.redraw_at, self.shown_tool = 0.0, self.tool
            self.draw()
        if now >= self.next_day:
            self.next_day = now + DAY_S
            if not self.paused:
                self.day += 1
                self.draw()
        while self.display.pending_events():
            event = self.display.next_event()
            if event.type == X.ButtonPress:
                self._note(f"click {event.event_x} {event.event_y} {event.detail}")
                self.clicked(event.window.id, event.event_x, event.event_y)
            elif event.type == X.KeyPress:
                self._note(f"key {event.detail}")
                if event.detail == self.display.keysym_to_keycode(XK.XK_q):
                    raise SystemExit(0)
            elif event.type == X.ClientMessage and self.dialog is not None:  # asked to close its window
                self.dialog.destroy()
                self.dialog = None
            elif event.type == X.Expose:
                self.draw()

    def _open(self, left: int, top: int, width: int, height: int, title: str, popup: bool) -> Any:
        window = self.root.create_window(
            left,
            top,
            width,
            height,
            0,
            X.CopyFromParent,
            background_pixel=0xE0E0E0,
            override_redirect=popup,
            event_mask=X.ExposureMask | X.ButtonPressMask | X.KeyPressMask,
        )
        window.set_wm_name(title)
        window.map()
        self.display.sync()
        return window

    def _box(self, left: int, top: int, width: int, height: int, color: int) -> None:
        self.gc.change(foreground=color)
        self.window.fill_rectangle(self.gc, left, top, width, height)

    def _note(self, line: str) -> None:
        with self.events.open("a") as stream:
            stream.write(line + "\n")


def main() -> None:
    game = ToyGame(int(sys.argv[1]), Path(sys.argv[2]))
    print("ready>", flush=True)
    while True:
        ready, _, _ = select.select([game.display.fileno(), sys.stdin], [], [], 0.005)
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            print(game.asked(line.strip()), flush=True)
            print("ready>", flush=True)
        game.turn()


if __name__ == "__main__":
    main()
