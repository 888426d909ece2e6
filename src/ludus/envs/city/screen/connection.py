"""The connection to a screen's server, by name alone: never to the screen that `$DISPLAY` happens to mean."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from ludus.core.errors import GameLostError, MissingDependencyError

_LOCAL_NAME = re.compile(r":\d+")


def open_display(name: str) -> Any:  # noqa: ANN401 - python-xlib has no types
    """Returns a connection to a screen of this machine, such as `:7`.

    Raises:
        MissingDependencyError: python-xlib is not installed.
        GameLostError: There is no such screen, or it lacks an extension that is needed.
    """
    try:
        from Xlib import display
    except ImportError as error:
        raise MissingDependencyError("python-xlib", "city", "input to a game") from error
    if not _LOCAL_NAME.fullmatch(name):
        raise GameLostError(f"{name!r} is not a screen of our own; those have names such as ':7'")
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
    """Turns what the libraries raise when a screen or a window goes away into `GameLostError`."""
    from Xlib import error as xlib_error

    try:
        yield
    except (xlib_error.DisplayError, xlib_error.ConnectionClosedError, xlib_error.XError, OSError) as error:
        raise GameLostError(f"the screen {name} or a window on it is gone: {error!s:.200}") from error
