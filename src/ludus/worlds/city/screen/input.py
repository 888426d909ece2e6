"""Mouse and keys (XTEST) for one game alone: every event is checked to reach one of its windows before it is sent.

The server does nothing else between the check and the event (it is grabbed), so that no window can slip in between.
"""

import contextlib
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
        self.refused = 0

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
        with self._alone():
            self._check_focus()
            for code in codes:
                self._send(self._x.KeyPress, code)
            if not hold_s:
                self._release_keys(codes)
        if hold_s:
            time.sleep(hold_s)
            with self._alone():
                self._release_keys(codes)

    def _press(self, x: int, y: int, number: int, hold_s: float) -> None:
        with self._alone():
            self._move_checked(x, y)
            self._send(self._x.ButtonPress, number)
            if not hold_s:
                self._send(self._x.ButtonRelease, number)
        if hold_s:  # the window that got the press also gets the release, even if another appears in between
            try:
                time.sleep(hold_s)
            finally:
                with self._alone():
                    self._send(self._x.ButtonRelease, number)

    def _release_keys(self, codes: list[int]) -> None:
        for code in reversed(codes):
            self._send(self._x.KeyRelease, code)

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
            raise self._refusal(f"({x}, {y}) is outside the screen of {width}x{height}")
        self._send(self._x.MotionNotify, 0, x, y)
        below = self._root.query_pointer().child
        found = int(below.id) if below else 0
        if not found or not self._owns(found):
            self._send(self._x.MotionNotify, 0, *self._place)
            raise self._refusal(f"at ({x}, {y}) there is {self._describe(found)}, not the game")
        self._place = (x, y)

    def _check_focus(self) -> None:
        """Raise if keys would not go to the game."""
        focus = self._connection.get_input_focus().focus
        if focus == _FOCUS_FOLLOWS_POINTER:
            below = self._root.query_pointer().child
            found = int(below.id) if below else 0
        else:
            found = int(focus.id) if hasattr(focus, "id") else 0
        if not found or not self._owns(found):
            raise self._refusal(f"keys would go to {self._describe(found)}, not to the game")

    def _describe(self, window_id: int) -> str:
        return f"the window {window_id:#x} of another program" if window_id else "no window"

    def _refusal(self, why: str) -> GameLostError:
        self.refused += 1
        return GameLostError(f"input was not sent: {why}")

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
