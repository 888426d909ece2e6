"""One screen of an X server: its windows, its picture, and the mouse and keys of one game.

Every event is checked to reach one of the game's windows before it is sent. The server does nothing else between the
check and the event (it is grabbed), so that no window can slip in between. Pictures are captured through memory shared
with the server (mss with XShm).
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ActionError, GameLostError, MissingDependencyError
from ludus.worlds.city.drivers.driver import Box, Button, Frame
from ludus.worlds.city.perception.pictures import opencv

_LOCAL_NAME = re.compile(r":\d+")


def open_display(name: str) -> Any:  # noqa: ANN401 - python-xlib has no types
    """Return a connection to a screen of this machine, such as `:7`; raise GameLostError if there is none."""
    try:
        from Xlib import display
    except ImportError as error:
        raise MissingDependencyError("python-xlib", "city", "input to a game") from error
    if not _LOCAL_NAME.fullmatch(name):
        raise GameLostError(f"{name!r} is not a local screen; those have names such as ':7'")
    with screen_errors(name):
        connection = display.Display(name)
        for extension in ("XTEST", "X-Resource"):
            if not connection.has_extension(extension):
                raise GameLostError(
                    f"the screen {name} lacks the extension {extension}; use Xvfb of Debian 12 or later"
                )
    return connection


@contextlib.contextmanager
def screen_errors(name: str) -> Iterator[None]:
    """Turn what the libraries raise when a screen or a window goes away into `GameLostError`."""
    from Xlib import error as xlib_error

    try:
        yield
    except (xlib_error.DisplayError, xlib_error.ConnectionClosedError, xlib_error.XError, OSError) as error:
        raise GameLostError(f"the screen {name} or a window on it is gone: {error!s:.200}") from error


_LOCAL_CLIENT_PID = 2  # of X-Resource: ask for the process that is connected
_MAX_TITLE = 200


@dataclass(frozen=True, slots=True)
class Window:
    """A visible window on the screen's top level, as it was when it was looked at."""

    id: int  # its number at the server
    title: str  # what it calls itself; empty if nothing
    box: Box  # its inside, in pixels of the screen
    popup: bool  # whether it is a menu or a tooltip: no window manager would touch it
    pid: int  # the process that made it, as the server says; 0 if the server does not know


class Windows:
    """Looks at the windows of one screen."""

    def __init__(self, connection: Any, name: str) -> None:  # noqa: ANN401 - python-xlib has no types
        from Xlib import X

        self._connection, self._name = connection, name
        self._root = connection.screen().root
        with screen_errors(name):
            self._mask = int(connection.res_query_clients().clients[0].resource_mask)
            self._utf8_name = connection.intern_atom("_NET_WM_NAME")
            self._utf8 = connection.intern_atom("UTF8_STRING")
            self._root.change_attributes(event_mask=X.SubstructureNotifyMask)
            connection.sync()
        self._shown: list[Window] | None = None

    def shown(self) -> list[Window]:
        """Return the visible windows on the top level, the lowest first.

        The server tells when windows come, go or move, so that nothing is asked while nothing changes.
        """
        with screen_errors(self._name):
            while self._connection.pending_events():
                self._connection.next_event()
                self._shown = None
            # A window may get its title after it has come up, of which the server does not tell.
            if self._shown is None or any(not window.title and not window.popup for window in self._shown):
                children = self._root.query_tree().children
                self._shown = [window for child in children if (window := self._look(child)) is not None]
        return self._shown

    def ask_to_close(self, window: Window) -> None:
        """Ask a program to close one of its windows, as the close button of a window manager does."""
        from Xlib.protocol import event

        with screen_errors(self._name):
            target = self._connection.create_resource_object("window", window.id)
            protocols, close = (self._connection.intern_atom(name) for name in ("WM_PROTOCOLS", "WM_DELETE_WINDOW"))
            target.send_event(event.ClientMessage(window=target, client_type=protocols, data=(32, [close, 0, 0, 0, 0])))
            self._connection.sync()

    def owner(self, window_id: int) -> int:
        """Return the process that a window belongs to, as the server says; 0 if it does not know."""
        client = window_id & ~self._mask
        with screen_errors(self._name):
            answer = self._connection.res_query_client_ids([{"client": client, "mask": _LOCAL_CLIENT_PID}])
        named = (found.value for found in answer.ids if found.spec.mask == _LOCAL_CLIENT_PID and found.value)
        return int(next(named, (0,))[0])

    def _look(self, window: Any) -> Window | None:  # noqa: ANN401
        from Xlib import X
        from Xlib.error import XError

        try:
            attributes = window.get_attributes()
            if attributes.map_state != X.IsViewable or attributes.win_class != X.InputOutput:
                return None
            shape = window.get_geometry()
            inner = shape.border_width
            return Window(
                id=int(window.id),
                title=self._title(window),
                box=Box(int(shape.x) + inner, int(shape.y) + inner, int(shape.width), int(shape.height)),
                popup=bool(attributes.override_redirect),
                pid=self.owner(window.id),
            )
        except XError:  # it went away while we looked
            return None

    def _title(self, window: Any) -> str:  # noqa: ANN401
        title: str | None = None
        with contextlib.suppress(UnicodeDecodeError):
            title = window.get_full_text_property(self._utf8_name, self._utf8)
        return (title if title is not None else window.get_wm_name() or "")[:_MAX_TITLE]


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
        from Xlib import XK

        symbol = XK.string_to_keysym(name)
        code = self._connection.keysym_to_keycode(symbol) if symbol else 0
        if not code:
            raise ActionError(
                f"there is no key {name!r}; keys have X11 names such as 'Escape', 'Return', 'a' or 'plus'"
            )
        is_plain = self._connection.keycode_to_keysym(code, 0) == symbol  # others need shift before them
        codes = [code] if is_plain else [self._connection.keysym_to_keycode(XK.XK_Shift_L), code]
        self._hold(self._check_focus, self._x.KeyPress, self._x.KeyRelease, codes, hold_s)

    def _press(self, x: int, y: int, number: int, hold_s: float) -> None:
        self._hold(lambda: self._move_checked(x, y), self._x.ButtonPress, self._x.ButtonRelease, [number], hold_s)

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


class ScreenCapture:
    """Takes pictures of one screen; to be used by one thread at a time."""

    def __init__(self, display: str) -> None:
        """Connect to a screen such as `:7`; raise GameLostError if there is no such screen."""
        cv2 = opencv("seeing a game")
        try:
            import mss
        except ImportError as error:
            raise MissingDependencyError("mss", "city", "seeing a game") from error
        self.display = display
        self._convert, self._code = cv2.cvtColor, cv2.COLOR_BGRA2RGB
        # mss asserts that there is an answer; there is none from a screen that is gone.
        self._failures = (mss.ScreenShotError, OSError, AssertionError)
        try:
            self._eye = mss.MSS(display=display)
        except mss.ScreenShotError as error:
            raise GameLostError(f"the screen {display} cannot be seen: {error}") from error

    def grab(self, box: Box) -> Frame:
        """Return what is in a box, RGB."""
        frame: Frame = self._convert(self.raw(box), self._code)
        return frame

    def raw(self, box: Box) -> NDArray[np.uint8]:
        """Return what is in a box as `(height, width, 4)`, blue first: quicker than `grab`, to compare pictures."""
        try:
            shot = self._eye.grab(box._asdict())
        except self._failures as error:
            raise GameLostError(f"the screen {self.display} cannot be seen at {box}: {error!s:.200}") from error
        return np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)

    def close(self) -> None:
        """End the connection; may be called twice."""
        with contextlib.suppress(*self._failures):
            self._eye.close()


Look: TypeAlias = Callable[[], NDArray[np.uint8]]


def wait_until(is_met: Callable[[], bool], timeout_s: float, poll_s: float) -> bool:
    """Wait until a condition is met; return whether it was in time."""
    give_up = time.monotonic() + timeout_s
    while not is_met():
        if time.monotonic() >= give_up:
            return False
        time.sleep(poll_s)
    return True


def wait_for_change(look: Look, before: NDArray[np.uint8], timeout_s: float, poll_s: float) -> bool:
    """Wait until a picture differs from an earlier one; return whether it did in time."""
    return wait_until(lambda: not np.array_equal(look(), before), timeout_s, poll_s)


def wait_until_still(look: Look, captures: int, timeout_s: float, poll_s: float) -> bool:
    """Wait until a number of consecutive captures are equal; return whether they were in time."""
    give_up = time.monotonic() + timeout_s
    last, equal = look(), 1
    while equal < captures:
        if time.monotonic() >= give_up:
            return False
        time.sleep(poll_s)
        last, before = look(), last
        equal = equal + 1 if np.array_equal(last, before) else 1
    return True
