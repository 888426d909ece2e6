"""Tests of the driver of real games, with a toy game on a real screen: seen, played, reset, lost and recovered."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from screen_leftovers import resource_use  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.core.errors import GameLostError, GameNotFoundError
from ludus.worlds.city.drivers.driver import Click, Key, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile, Rest
from ludus.worlds.city.screen.xserver import Window

pytestmark = pytest.mark.screen


def bits(driver: X11Driver, region: str) -> int:
    """The number that the toy game shows as eight boxes."""
    left, top, _, _ = driver.profile.regions[region].box(driver.width, driver.height)
    row = driver.capture()[top + 5, left + 2 :: 6, 0][:8]
    return sum(1 << bit for bit, value in enumerate(row) if value > 128)


def color(driver: X11Driver, column: int, row: int) -> tuple[int, ...]:
    point = driver.profile.grid.cell(column, row)
    return tuple(int(value) for value in driver.capture()[int(point.y * driver.height), int(point.x * driver.width)])


@pytest.fixture
def others() -> set[int]:
    """The processes that tests before this one have left running, such as the compiler's."""
    return {child.pid for child in psutil.Process().children(recursive=True)}


def process(driver: X11Driver) -> int:
    assert driver._session is not None
    return driver._session.pid


def test_a_game_is_played_by_a_profile_alone(toy: X11Driver) -> None:
    assert toy.capture().shape == (240, 320, 3)
    assert toy.trouble() is None
    toy.connect()
    first = toy.profile.tools["first"]
    toy.do([first.choice, Click(toy.profile.grid.cell(3, 2))])
    assert color(toy, 3, 2) == (0xFF, 0x00, 0xFF)
    assert bits(toy, "funds") == 190 == int(toy.prompt.ask("funds"))
    assert bits(toy, "date") == 0
    assert toy.prompt.ask("paused") == "1"


def test_time_passes_only_where_a_gesture_waits(toy: X11Driver) -> None:
    toy.do([Wait(0.3)])
    after = bits(toy, "date")
    assert 3 <= after <= 20  # a day is 20 ms
    time.sleep(0.2)
    assert bits(toy, "date") == after == int(toy.prompt.ask("day"))


def test_a_game_that_an_agent_set_going_is_paused_again(toy: X11Driver) -> None:
    toy.do([Click(toy.profile.regions["pause"].middle)])
    assert toy.prompt.ask("paused") == "1"
    day = bits(toy, "date")
    assert day > 0
    assert bits(toy, "date") == day


def test_what_was_done_is_drawn_when_act_returns(toy: X11Driver) -> None:
    # The toy draws a choice of tool 100 ms late; whatever was chosen, the picture must be that of the last sign.
    seen = []
    for tool in ("first", "second", "second", "first", "first", "second"):
        toy.do([toy.profile.tools[tool].choice])
        before = toy.capture().copy()
        time.sleep(0.15)
        seen.append(np.array_equal(before, toy.capture()))
    assert seen == [True] * 6


def test_equal_seeds_have_equal_land(toy: X11Driver) -> None:
    cells = toy.profile.regions["cells"]
    toy.reset(5)
    fifth = cells.cut(toy.capture()).copy()
    toy.reset(6)
    assert not np.array_equal(cells.cut(toy.capture()), fifth)
    toy.do([toy.profile.tools["first"].choice, Click(toy.profile.grid.cell(0, 0)), Wait(0.1)])
    toy.reset(5)
    assert np.array_equal(cells.cut(toy.capture()), fifth)
    assert (bits(toy, "date"), bits(toy, "funds"), toy.seed) == (0, 200, 5)


def test_a_reset_that_does_nothing_is_an_error(toy_profile: GameProfile, tmp_path: Path) -> None:
    text = (tmp_path / "toy_city.yaml").read_text()
    (tmp_path / "toy_city.yaml").write_text(text.replace('"new {seed}"', "new 1"))
    profile = load_profile(str(tmp_path / "toy_city.yaml"))
    assert profile.fingerprint != toy_profile.fingerprint
    with X11Driver(profile, pictures=LearnedPictures(tmp_path / "pictures")) as driver:
        driver.launch()
        with pytest.raises(GameLostError, match=r"seed 3 .*seed 0"):
            driver.reset(3)
        started_s = time.monotonic()
        driver.do([Rest(0.2)])
        assert time.monotonic() - started_s >= 0.8  # after two failed starts the third one has four times as long


def test_what_was_learned_is_kept_and_must_be_seen_again(toy: X11Driver, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for file in toy.pictures.folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    assert {file.stem for file in folder.iterdir()} == {"stripes", "date", "funds", "pause"}
    kept = LearnedPictures(folder)
    assert all(np.array_equal(kept[name], toy.pictures[name]) for name in kept)
    kept.learn({"stripes": np.zeros_like(kept["stripes"])})
    with X11Driver(toy.profile, pictures=LearnedPictures(folder)) as driver:
        with pytest.raises(GameLostError, match=r"stripes .*0\.0%"):
            driver.launch()
        assert driver._session is None


def test_an_empty_window_is_no_game(toy_profile: GameProfile, tmp_path: Path) -> None:
    program = tmp_path / "empty.py"
    program.write_text(
        "from Xlib import X, display; import time; d = display.Display(); r = d.screen().root\n"
        "w = r.create_window(0, 0, 320, 240, 0, X.CopyFromParent, background_pixel=0); w.set_wm_name('Toy City')\n"
        "w.map(); d.sync(); print('ready>', flush=True)\n"
        "import sys\n"
        "for line in sys.stdin: m = line.split()[1]; print(f'{m}200{m}\\nready>', flush=True)\n"
    )
    text = (tmp_path / "toy_city.yaml").read_text()
    game = Path(__file__).with_name("toy_game.py")
    timeout = '  timeout_s: 4.0\n  prompt: {ready: "'
    (tmp_path / "toy_city.yaml").write_text(
        text.replace(str(game), str(program)).replace('  prompt: {ready: "', timeout)
    )
    profile = load_profile(str(tmp_path / "toy_city.yaml"))
    driver = X11Driver(profile, pictures=LearnedPictures(tmp_path / "pictures"))
    with pytest.raises(GameLostError, match=r"frozen|is empty"):
        driver.launch()
    assert toy_profile.landmarks
    assert not (tmp_path / "pictures").exists()


def test_a_game_that_is_not_installed_is_named_with_its_packages(tmp_path: Path) -> None:
    text = Path(__file__).with_name("toy_city.yaml").read_text()
    (tmp_path / "toy.yaml").write_text(text.replace("PYTHON", "/no/such/game"))
    with pytest.raises(GameNotFoundError, match=r"/no/such/game.*apt-get install toy-city xvfb"):
        X11Driver(load_profile(str(tmp_path / "toy.yaml"))).launch()


def test_before_launch_and_after_close_there_is_no_game(others: set[int], toy: X11Driver) -> None:
    pids = {child.pid for child in psutil.Process().children(recursive=True)} - others
    assert len(pids) >= 3
    assert toy._session is not None
    assert resource_use(toy._session.screen)[0] == 3
    toy.close()
    toy.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    with pytest.raises(GameLostError, match="screen"):
        toy.capture()
    with pytest.raises(GameLostError, match="prompt"):
        _ = toy.prompt


def test_a_dialog_is_told_and_closed_and_the_city_goes_on(toy: X11Driver) -> None:
    toy.do([toy.profile.tools["first"].choice, Click(toy.profile.grid.cell(1, 1))])
    menu = toy.profile.menus["games"]
    toy.do([Click(menu.at), Click(menu.items["dialog"])])
    assert toy.open_dialogs() == ("toy",)
    trouble = toy.trouble()
    assert trouble is not None
    assert (trouble.kind, "toy" in trouble.what) == ("dialog", True)
    assert toy.recover()
    assert toy.trouble() is None
    assert color(toy, 1, 1) == (0xFF, 0x00, 0xFF)
    assert [incident.city_went_on for incident in toy.incidents] == [True]


def test_an_unexpected_window_is_told_and_asked_to_close(toy: X11Driver) -> None:
    toy.prompt.ask("odd")
    trouble = toy.trouble()
    assert trouble is not None
    assert (trouble.kind, "'Odd Window'" in trouble.what) == ("dialog", True)
    assert toy.recover()
    assert toy.trouble() is None
    assert toy.open_dialogs() == ()


@pytest.mark.parametrize(("fault", "kinds"), [("kill", "process"), ("stop", "frozen"), ("quit", "process window")])
def test_a_lost_game_is_told_and_begun_anew(toy: X11Driver, fault: str, kinds: str) -> None:
    toy.reset(4)
    toy.do([toy.profile.tools["first"].choice, Click(toy.profile.grid.cell(1, 1))])
    before = process(toy)
    if fault == "quit":
        with pytest.raises(GameLostError):
            toy.do([Key("q")])
    else:
        os.kill(before, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        while toy.trouble() is None:
            time.sleep(0.01)
    trouble = toy.trouble()
    assert trouble is not None
    assert trouble.kind in kinds.split()  # a game that quits closes its window and takes its time to end
    with pytest.raises(GameLostError):
        toy.do([toy.profile.tools["first"].choice])
    assert not toy.recover()
    assert process(toy) != before
    assert toy.trouble() is None
    assert (toy.seed, bits(toy, "funds")) == (4, 200)
    assert [incident.trouble.kind in kinds.split() for incident in toy.incidents] == [True]


def test_a_window_that_goes_before_its_process_is_told_as_the_end_of_the_process(
    toy: X11Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = toy._session
    assert session is not None
    shown, game = session.shown, process(toy)

    def shown_while_it_dies() -> list[Window]:
        os.kill(game, signal.SIGKILL)  # after the process was found running
        while toy._executor is not None and toy._executor.window in shown():
            time.sleep(0.01)
        return shown()

    monkeypatch.setattr(session, "shown", shown_while_it_dies)
    trouble = toy.trouble()
    assert trouble is not None
    assert trouble.kind == "process"


def test_a_game_that_draws_nothing_is_found_frozen(toy: X11Driver) -> None:
    # The hands do not look at the state of the process: the signs that are not seen tell.
    session = toy._session
    assert session is not None
    os.kill(session.pid, signal.SIGSTOP)
    hands = toy._executor
    assert hands is not None
    settle = toy.profile.settle.model_copy(update={"timeout_s": 0.5})  # a stopped game draws as little in less time
    hands._profile = toy.profile.model_copy(update={"settle": settle})
    started = time.monotonic()
    with pytest.raises(GameLostError, match="frozen"):
        hands.do([toy.profile.tools["first"].choice])
    assert time.monotonic() - started < 30.0
    assert hands.frozen


def test_a_lost_screen_is_told_and_another_one_started(toy: X11Driver) -> None:
    session = toy._session
    assert session is not None
    os.kill(session.screen.pid, signal.SIGKILL)
    while session.screen.is_alive or toy.trouble() is None:  # the game, which it takes along, may be missed first
        time.sleep(0.01)
    with pytest.raises(GameLostError):
        toy.capture()
    assert not toy.recover()
    assert [incident.trouble.kind for incident in toy.incidents] == ["screen"]
    assert toy.capture().std() > 10.0


def test_games_side_by_side_do_not_disturb_each_other(toy: X11Driver) -> None:
    with X11Driver(toy.profile, pictures=toy.pictures) as other:
        other.launch()
        toy.reset(2)
        other.reset(3)
        toy.do([toy.profile.tools["first"].choice, Click(toy.profile.grid.cell(2, 2))])
        assert toy._session is not None
        assert other._session is not None
        assert toy._session.screen.display != other._session.screen.display
        assert (bits(toy, "funds"), bits(other, "funds")) == (190, 200)
