"""The connection to an X server, and its windows: titles, places and owning processes."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ludus.core.errors import GameLostError, MissingDependencyError
from ludus.worlds.city.drivers.driver import Box

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
    left: int  # of its inside, in pixels of the screen
    top: int  # of its inside, in pixels of the screen
    width: int  # of its inside
    height: int  # of its inside
    popup: bool  # whether it is a menu or a tooltip: no window manager would touch it
    pid: int  # the process that made it, as the server says; 0 if the server does not know

    @property
    def box(self) -> Box:
        """Its inside."""
        return Box(self.left, self.top, self.width, self.height)


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
        for identity in answer.ids:
            if identity.spec.mask == _LOCAL_CLIENT_PID and identity.value:
                return int(identity.value[0])
        return 0

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
                left=int(shape.x) + inner,
                top=int(shape.y) + inner,
                width=int(shape.width),
                height=int(shape.height),
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
