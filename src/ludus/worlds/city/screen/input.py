"""Mouse and keys (XTEST) for one game alone: every event is checked to reach one of its windows before it is sent.

The server does nothing else between the check and the event (it is grabbed), so that no window can slip in between.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

from ludus.core.errors import ActionError, GameLostError
from ludus.worlds.city.drivers.driver import Button
from ludus.worlds.city.screen.windows import screen_errors

_BUTTONS: dict[Button, int] = {"left": 1, "middle": 2, "right": 3}
_WHEEL_UP, _WHEEL_DOWN = 4, 5
_FOCUS_FOLLOWS_POINTER = 1
_DRAG_STEPS = 4  # moves on the way of a drag; a single jump is not a drag to every toolkit


class GuardedInput:
    """Moves, clicks and types on one screen, and refuses input that would reach a window of another program."""

    def __init__(self, connection: Any, name: str, owns: Callable[[int], bool]) -> None:  # noqa: ANN401
        """Take over the pointer of a screen, for a game that owns some of its windows."""
        from Xlib import X

        self._x = X
        self._connection, self._name, self._owns = connection, name, owns
        self._root = connection.screen().root
        self._size = (connection.screen().width_in_pixels, connection.screen().height_in_pixels)
        pointer = self._root.query_pointer()
        self._place = (int(pointer.root_x), int(pointer.root_y))

    def move(self, x: int, y: int) -> None:
        """Move the pointer to a pixel of the screen; raise GameLostError if what is there is not the game."""
        with self._alone():
            self._move_checked(x, y)

    def click(self, x: int, y: int, button: Button = "left", hold_s: float = 0.0) -> None:
        """Click at a pixel of the screen, as in `move`; a press that was sent is always released."""
        self._press(x, y, _BUTTONS[button], hold_s)

    def scroll(self, x: int, y: int, notches: int) -> None:
        """Turn the wheel at a pixel by a number of notches; positive is up."""
        for _ in range(abs(notches)):
            self._press(x, y, _WHEEL_UP if notches > 0 else _WHEEL_DOWN, 0.0)

    def drag(self, start: tuple[int, int], end: tuple[int, int], button: Button = "left", pause_s: float = 0.0) -> None:
        """Press at one pixel, move to another in a few steps and release there; both ends must belong to the game."""
        with self._alone():
            self._move_checked(*end)
            self._move_checked(*start)
            self._send(self._x.ButtonPress, _BUTTONS[button])
        try:
            for step in range(1, _DRAG_STEPS + 1):
                time.sleep(pause_s)
                x, y = (a + (b - a) * step // _DRAG_STEPS for a, b in zip(start, end, strict=True))
                with self._alone():  # the game holds the pointer while the button is down, wherever it is
                    self._send(self._x.MotionNotify, 0, x, y)
            time.sleep(pause_s)
        finally:
            with self._alone():
                self._send(self._x.ButtonRelease, _BUTTONS[button])

    def key(self, name: str, hold_s: float = 0.0) -> None:
        """Press and release a key by its X11 name; raise ActionError if there is no such key."""
        codes = self._codes(name)
        self._hold(self._check_focus, self._x.KeyPress, self._x.KeyRelease, codes, hold_s)

    def _press(self, x: int, y: int, number: int, hold_s: float) -> None:
        check = functools.partial(self._move_checked, x, y)
        self._hold(check, self._x.ButtonPress, self._x.ButtonRelease, [number], hold_s)

    def _hold(self, check: Callable[[], None], press: int, release: int, details: list[int], hold_s: float) -> None:
        """Press buttons or keys and release them, at once or after some time."""
        with self._alone():
            check()
            for detail in details:
                self._send(press, detail)
            for detail in [] if hold_s else details[::-1]:
                self._send(release, detail)
        if hold_s:  # the window that got the press also gets the release, even if another appears in between
            try:
                time.sleep(hold_s)
            finally:
                with self._alone():
                    for detail in details[::-1]:
                        self._send(release, detail)

    def _codes(self, name: str) -> list[int]:
        """Return the keys to press: the named one, with shift before it where its sign needs that."""
        from Xlib import XK

        symbol = XK.string_to_keysym(name)
        code = self._connection.keysym_to_keycode(symbol) if symbol else 0
        if not code:
            raise ActionError(
                f"there is no key {name!r}; keys have X11 names such as 'Escape', 'Return', 'a' or 'plus'"
            )
        plain = self._connection.keycode_to_keysym(code, 0) == symbol
        shift = self._connection.keysym_to_keycode(XK.XK_Shift_L)
        return [code] if plain else [shift, code]

    def _move_checked(self, x: int, y: int) -> None:
        """Move the pointer if, and only if, the game is what is there; it goes back otherwise."""
        width, height = self._size
        if not (0 <= x < width and 0 <= y < height):
            raise _refusal(f"({x}, {y}) is outside the screen of {width}x{height}")
        self._send(self._x.MotionNotify, 0, x, y)
        found = self._below_pointer()
        if not found or not self._owns(found):
            self._send(self._x.MotionNotify, 0, *self._place)
            raise _refusal(f"at ({x}, {y}) there is {_described(found)}, not the game")
        self._place = (x, y)

    def _below_pointer(self) -> int:
        """Return the window at the pointer; 0 if there is none."""
        below = self._root.query_pointer().child
        return int(below.id) if below else 0

    def _check_focus(self) -> None:
        """Raise if keys would not go to the game."""
        focus = self._connection.get_input_focus().focus
        found = self._below_pointer() if focus == _FOCUS_FOLLOWS_POINTER else int(getattr(focus, "id", 0))
        if not found or not self._owns(found):
            raise _refusal(f"keys would go to {_described(found)}, not to the game")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep all other programs from changing anything on the screen for some requests."""
        with screen_errors(self._name):
            self._connection.grab_server()
            try:
                yield
            finally:
                self._connection.ungrab_server()
                self._connection.sync()

    def _send(self, kind: int, detail: int, x: int = 0, y: int = 0) -> None:
        self._connection.xtest_fake_input(kind, detail, x=x, y=y)


def _described(window_id: int) -> str:
    return f"the window {window_id:#x} of another program" if window_id else "no window"


def _refusal(why: str) -> GameLostError:
    return GameLostError(f"input was not sent: {why}")
