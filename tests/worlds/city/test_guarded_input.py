"""Tests of input: it reaches the game, and never another window."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ludus.core.errors import ActionError, GameLostError
from ludus.worlds.city.screen.session import ScreenSession
from ludus.worlds.city.screen.xserver import open_display

TOY_GAME = Path(__file__).with_name("toy_game.py")


class Other:
    """A window of another program, which says what it got."""

    def __init__(self, name: str, left: int, top: int, *, popup: bool = False) -> None:
        from Xlib import X

        self.connection: Any = open_display(name)
        root = self.connection.screen().root
        mask = X.ButtonPressMask | X.ButtonReleaseMask | X.KeyPressMask | X.PointerMotionMask | X.EnterWindowMask
        self.window = root.create_window(
            left, top, 60, 60, 0, X.CopyFromParent, event_mask=mask, override_redirect=popup, background_pixel=0xFF
        )
        self.window.set_wm_name("Toy City")  # the title of the game does not make it the game
        self.window.map()
        self.connection.sync()

    def got(self) -> list[int]:
        """Types of the events that arrived, apart from the pointer passing by."""
        from Xlib import X

        self.connection.sync()
        kinds = [self.connection.next_event().type for _ in range(self.connection.pending_events())]
        return [kind for kind in kinds if kind not in (X.MotionNotify, X.EnterNotify)]


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScreenSession]:
    """The toy game on a screen that is larger than it."""
    request.getfixturevalue("xvfb")
    session = ScreenSession(400, 300)
    session.events = tmp_path / "events.txt"  # type: ignore[attr-defined]
    try:
        command = [sys.executable, str(TOY_GAME), "1", str(tmp_path / "events.txt")]
        session.start(["sh", "-c", f"sleep 1000 | {' '.join(command)}"], {}, None, None)
        session.wait_for(lambda window: window.title == "Toy City", "the toy game", 60.0)
        yield session
    finally:
        session.close()


def noted(session: ScreenSession, lines: int) -> list[str]:
    """The first lines that the game wrote about what it got."""
    file: Path = session.events  # type: ignore[attr-defined]
    give_up = time.monotonic() + 60.0
    while not file.exists() or len(file.read_text().splitlines()) < lines:
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return file.read_text().splitlines()


def test_clicks_drags_wheel_and_keys_reach_the_game(session: ScreenSession) -> None:
    session.input.click(100, 120)
    session.input.click(101, 121, "right", hold_s=0.02)
    session.input.scroll(50, 60, -2)
    session.input.drag((70, 80), (90, 100))
    session.input.key("a")
    session.input.key("A", hold_s=0.02)
    lines = noted(session, 8)
    assert lines[:5] == ["click 100 120 1", "click 101 121 3", "click 50 60 5", "click 50 60 5", "click 70 80 1"]
    small, shift, large = (int(line.split()[1]) for line in lines[5:8])
    assert small == large != shift
    pointer = session._connection.screen().root.query_pointer()
    assert (pointer.root_x, pointer.root_y) == (90, 100)
    assert not pointer.mask & 0x1F00  # no button is held


@pytest.mark.parametrize("popup", [False, True])
def test_input_never_goes_to_another_window(session: ScreenSession, popup: bool) -> None:
    other = Other(session.screen.display, 100, 100, popup=popup)
    session.input.move(10, 10)
    attempts: list[Callable[[], None]] = [
        lambda: session.input.click(120, 120),
        lambda: session.input.move(120, 120),
        lambda: session.input.scroll(120, 120, 1),
        lambda: session.input.drag((120, 120), (10, 10)),
        lambda: session.input.drag((10, 10), (120, 120)),
        lambda: session.input.click(380, 280),  # beside the game: no window at all
        lambda: session.input.click(4000, 20),
    ]
    for attempt in attempts:
        with pytest.raises(GameLostError, match="not sent"):
            attempt()
    assert other.got() == []
    session.input.click(20, 100)
    assert noted(session, 1) == ["click 20 100 1"]
    assert [window.title for window in session.shown()] == ["Toy City"]
    assert len(session.windows.shown()) == 2


def test_keys_never_go_to_another_window(session: ScreenSession) -> None:
    from Xlib import X

    other = Other(session.screen.display, 330, 240)
    session.input.move(10, 10)
    other.window.set_input_focus(X.RevertToPointerRoot, X.CurrentTime)
    other.connection.sync()
    with pytest.raises(GameLostError, match=r"keys.*window 0x"):
        session.input.key("q")
    other.connection.set_input_focus(X.NONE, X.RevertToNone, X.CurrentTime)
    other.connection.sync()
    with pytest.raises(GameLostError, match=r"keys.*no window"):
        session.input.key("q")
    other.connection.set_input_focus(X.PointerRoot, X.RevertToNone, X.CurrentTime)
    other.connection.sync()
    other.connection.screen().root.warp_pointer(350, 260)
    other.connection.sync()
    with pytest.raises(GameLostError, match=r"keys.*window 0x"):
        session.input.key("q")
    assert other.got() == []
    assert session.is_running


def test_a_key_that_does_not_exist_is_named(session: ScreenSession) -> None:
    with pytest.raises(ActionError, match="'Nonsense'"):
        session.input.key("Nonsense")


def test_only_screens_of_our_own_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("", "elsewhere:0", "unix/:0"):
        with pytest.raises(GameLostError, match=repr(name)):
            open_display(name)
    with pytest.raises(GameLostError, match=":54321"):
        open_display(":54321")
