"""Mouse and keys (XTEST) for one game alone: every event is checked to reach one of its windows before it is sent.

The server does nothing else between the check and the event (it is grabbed), so that no window can slip in between.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from ludus.core.errors import ActionError, GameLostError
from ludus.envs.city.drivers.driver import Button
from ludus.envs.city.screen.connection import screen_errors

_BUTTONS: dict[Button, int] = {"left": 1, "middle": 2, "right": 3}
_WHEEL_UP, _WHEEL_DOWN = 4, 5
_FOCUS_FOLLOWS_POINTER = 1
_DRAG_STEPS = 4  # moves on the way of a drag; a single jump is not a drag to every toolkit


class GuardedInput:
    """Moves, clicks and types on one screen, and refuses whatever would reach another window than the game's."""

    def __init__(self, connection: Any, name: str, owns: Callable[[int], bool]) -> None:  # noqa: ANN401
        """Takes over the pointer of a screen.

        Args:
            connection: To the screen's server.
            name: Of the screen.
            owns: Says whether a window, by its number, belongs to the game.
        """
        self._connection, self._name, self._owns = connection, name, owns
        self._root = connection.screen().root
        self._size = (connection.screen().width_in_pixels, connection.screen().height_in_pixels)
        pointer = self._root.query_pointer()
        self._place = (int(pointer.root_x), int(pointer.root_y))
        self.refused = 0

    def move(self, x: int, y: int) -> None:
        """Moves the pointer to a pixel of the screen.

        Raises:
            GameLostError: What is there is not the game.
        """
        with self._alone():
            self._move_checked(x, y)

    def click(self, x: int, y: int, button: Button = "left", hold_s: float = 0.0) -> None:
        """Clicks at a pixel of the screen; a press that was sent is always released.

        Raises:
            GameLostError: What is there is not the game.
        """
        self._press(x, y, _BUTTONS[button], hold_s)

    def scroll(self, x: int, y: int, notches: int) -> None:
        """Turns the wheel at a pixel, so many notches; positive is up."""
        for _ in range(abs(notches)):
            self._press(x, y, _WHEEL_UP if notches > 0 else _WHEEL_DOWN, 0.0)

    def drag(self, start: tuple[int, int], end: tuple[int, int], button: Button = "left", pause_s: float = 0.0) -> None:
        """Presses at one pixel, moves to another in a few steps and releases there; both ends must be the game's."""
        from Xlib import X

        with self._alone():
            self._move_checked(*end)
            self._move_checked(*start)
            self._send(X.ButtonPress, _BUTTONS[button])
        try:
            for step in range(1, _DRAG_STEPS + 1):
                time.sleep(pause_s)
                x, y = (a + (b - a) * step // _DRAG_STEPS for a, b in zip(start, end, strict=True))
                with self._alone():  # the game holds the pointer while the button is down, wherever it is
                    self._send(X.MotionNotify, 0, x, y)
            time.sleep(pause_s)
        finally:
            with self._alone():
                self._send(X.ButtonRelease, _BUTTONS[button])

    def key(self, name: str, hold_s: float = 0.0) -> None:
        """Presses and releases a key by its X11 name.

        Raises:
            ActionError: There is no such key.
            GameLostError: Keys would not go to the game.
        """
        from Xlib import X

        codes = self._codes(name)
        with self._alone():
            self._check_focus()
            for code in codes:
                self._send(X.KeyPress, code)
            if not hold_s:
                self._release_keys(codes)
        if hold_s:
            time.sleep(hold_s)
            with self._alone():
                self._release_keys(codes)

    def _press(self, x: int, y: int, number: int, hold_s: float) -> None:
        from Xlib import X

        with self._alone():
            self._move_checked(x, y)
            self._send(X.ButtonPress, number)
            if not hold_s:
                self._send(X.ButtonRelease, number)
        if hold_s:  # the window that got the press gets the release too, whatever comes up in between
            try:
                time.sleep(hold_s)
            finally:
                with self._alone():
                    self._send(X.ButtonRelease, number)

    def _release_keys(self, codes: list[int]) -> None:
        from Xlib import X

        for code in reversed(codes):
            self._send(X.KeyRelease, code)

    def _codes(self, name: str) -> list[int]:
        """Returns the keys to press: the named one, with shift before it where its sign needs that."""
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
        """Moves the pointer if, and only if, the game is what is there; it goes back otherwise."""
        from Xlib import X

        width, height = self._size
        if not (0 <= x < width and 0 <= y < height):
            raise self._refusal(f"({x}, {y}) is outside the screen of {width}x{height}")
        self._send(X.MotionNotify, 0, x, y)
        below = self._root.query_pointer().child
        found = int(below.id) if below else 0
        if not found or not self._owns(found):
            self._send(X.MotionNotify, 0, *self._place)
            raise self._refusal(f"at ({x}, {y}) there is {self._describe(found)}, not the game")
        self._place = (x, y)

    def _check_focus(self) -> None:
        """Raises if keys would not go to the game."""
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
        """Keeps all other programs from changing anything on the screen for some requests."""
        with screen_errors(self._name):
            self._connection.grab_server()
            try:
                yield
            finally:
                self._connection.ungrab_server()
                self._connection.sync()

    def _send(self, kind: int, detail: int, x: int = 0, y: int = 0) -> None:
        self._connection.xtest_fake_input(kind, detail, x=x, y=y)
