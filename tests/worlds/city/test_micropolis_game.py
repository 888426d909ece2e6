"""Tests of Micropolis on a real screen, against the truth of its own prompt."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from benchmarks.micropolis_map import POWERED, TILE_MASK, MicropolisMap
from screen_leftovers import resource_use, wait_until  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.core.errors import GameLostError
from ludus.worlds.city.drivers.driver import Click, Point, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile, operations

pytestmark = pytest.mark.screen

PROFILE = load_profile("micropolis")
FIRST_TILE = (39, 35)  # of the map, in the upper left cell of the view
WIDE_LAND = 47  # a seed whose view is three quarters bare land
FRESH = (20_000, 1900, 7, 0)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> LearnedPictures:
    return LearnedPictures(tmp_path_factory.mktemp("micropolis"))


@pytest.fixture(scope="module")
def running(micropolis: GameProfile, pictures: LearnedPictures) -> Iterator[X11Driver]:
    with X11Driver(micropolis, pictures=pictures) as driver:
        driver.launch()
        yield driver


@pytest.fixture
def game(running: X11Driver) -> X11Driver:
    """The game at the start of a city on wide land."""
    running.recover()
    running.reset(WIDE_LAND)
    running.incidents.clear()
    return running


@pytest.fixture
def truth(game: X11Driver) -> MicropolisMap:
    return MicropolisMap(game)


def state(truth: MicropolisMap) -> tuple[int, int, int, int]:
    return truth.number("Funds"), truth.number("Year"), truth.number("TaxRate"), truth.speed()


def place(game: X11Driver, tool: str, *cells: tuple[int, int]) -> None:
    game.do([PROFILE.tools[tool].choice, *(Click(PROFILE.grid.cell(*cell)) for cell in cells)])


def bare_place(truth: MicropolisMap, cells: int) -> tuple[int, int]:
    """The first place in the view with nothing on it and around it."""
    left, top = FIRST_TILE
    bare = (truth.tiles() & TILE_MASK) == 0
    for row in range(1, PROFILE.grid.rows - cells - 1):
        for column in range(1, PROFILE.grid.columns - cells - 1):
            x, y = left + column, top + row
            if bare[y - 1 : y + cells + 1, x - 1 : x + cells + 1].all():
                return column, row
    raise AssertionError("no bare land")


def test_a_reset_is_the_same_city_again(game: X11Driver, truth: MicropolisMap) -> None:
    assert state(truth) == FRESH
    land, picture = truth.tiles(), game.capture().copy()
    place(game, "road", (10, 20))
    game.do([Click(PROFILE.slider_point("tax", 12)), Wait(0.4)])
    truth.set_number("Funds", 77)
    assert state(truth) == (77, truth.number("Year"), 12, 0)
    game.reset(2)
    assert not np.array_equal(truth.tiles(), land)
    game.reset(WIDE_LAND)
    assert state(truth) == FRESH
    assert np.array_equal(truth.tiles(), land)
    overview = PROFILE.regions["overview"]
    assert np.array_equal(overview.cut(game.capture()), overview.cut(picture))


@pytest.mark.parametrize("name", [name for name in PROFILE.tools if name not in ("query", "bulldozer")])
def test_a_tool_costs_and_covers_what_the_profile_says(game: X11Driver, truth: MicropolisMap, name: str) -> None:
    tool = PROFILE.tools[name]
    truth.set_number("Funds", 50_000)
    column, row = bare_place(truth, tool.cells)
    middle = 1 if tool.cells >= 3 else 0  # of what it makes, from its upper left cell
    before = truth.tiles() & TILE_MASK
    place(game, name, (column + middle, row + middle))
    changed = np.argwhere((truth.tiles() & TILE_MASK) != before)
    assert 50_000 - truth.number("Funds") == tool.cost
    left, top = FIRST_TILE
    assert changed.min(axis=0).tolist() == [top + row, left + column]
    assert (np.ptp(changed, axis=0) + 1).tolist() == [tool.cells, tool.cells]


def test_the_bulldozer_takes_away_what_was_built(game: X11Driver, truth: MicropolisMap) -> None:
    column, row = bare_place(truth, 1)
    place(game, "road", (column, row))
    place(game, "bulldozer", (column, row))
    x, y = FIRST_TILE[0] + column, FIRST_TILE[1] + row
    assert truth.tile(x, y) & TILE_MASK == 0
    assert truth.number("Funds") == 20_000 - 10 - 1
    place(game, "query", (column, row))
    assert truth.number("Funds") == 20_000 - 10 - 1


def test_the_tax_slider_sets_every_rate(game: X11Driver, truth: MicropolisMap) -> None:
    for rate in (0, 1, 9, 13, 20):
        game.do([Click(PROFILE.slider_point("tax", rate))])
        assert truth.number("TaxRate") == rate


def test_the_camera_moves_by_whole_cells_and_back(game: X11Driver) -> None:
    picture = PROFILE.regions["cells"]
    start = picture.cut(game.capture()).copy()
    for there, back, step in (("left", "right", (0, 128)), ("down", "up", (-128, 0))):
        game.do(operations(PROFILE.camera[there]))
        moved = picture.cut(game.capture())
        height, width = start.shape[:2]
        old = start[max(-step[0], 0) : height - 200, : width - 200]
        new = moved[max(step[0], 0) :, max(step[1], 0) :][: old.shape[0], : old.shape[1]]
        assert np.mean(np.all(old == new, axis=2)) > 0.97
        game.do(operations(PROFILE.camera[back]))
        assert np.mean(np.all(picture.cut(game.capture()) == start, axis=2)) > 0.99


def test_the_game_stands_still_between_decisions(game: X11Driver, truth: MicropolisMap) -> None:
    for seconds in (1.5, 0.1, 0.2, 0.3, 0.5):  # the date is drawn every 200 ms, and may be in the middle of that
        months = truth.number("Year") * 12 + truth.month()
        game.do([Wait(seconds)])
        after = truth.number("Year") * 12 + truth.month()
        assert after > months
        seen = game.capture().copy()
        time.sleep(0.5)
        assert truth.speed() == 0
        assert truth.number("Year") * 12 + truth.month() == after
        for name in ("hud", "demand", "running", "graph", "log", "message", "overview", "tool", "evaluation"):
            region = PROFILE.regions[name]
            assert np.array_equal(region.cut(game.capture()), region.cut(seen)), f"{name} after {seconds} s"


def test_what_act_returns_on_shows_the_funds(game: X11Driver, truth: MicropolisMap) -> None:
    # The game draws its funds 200 ms late: a picture taken at once would show the funds before.
    shown = set()
    left, row = bare_place(truth, 8)
    for column in range(left, left + 6):
        place(game, "road", (column, row))
        shown.add(PROFILE.regions["funds"].cut(game.capture()).tobytes())
        now = PROFILE.regions["hud"].cut(game.capture()).copy()
        time.sleep(0.3)
        assert np.array_equal(PROFILE.regions["hud"].cut(game.capture()), now)
    assert truth.number("Funds") == 20_000 - 60
    assert len(shown) == 6


def test_zones_with_power_and_roads_grow(game: X11Driver, truth: MicropolisMap) -> None:
    column, row = bare_place(truth, 13)
    place(game, "coal", (column + 1, row + 1))
    place(game, "residential", *((column + 5 + 3 * zone, row + 1) for zone in range(3)))
    place(game, "road", *((column + 4 + step, row + 3) for step in range(9)))
    place(game, "industrial", (column + 5, row + 5), (column + 8, row + 5))
    place(game, "commercial", (column + 11, row + 5))
    place(game, "wire", (column + 3, row + 4))
    population = PROFILE.regions["population"]
    empty = population.cut(game.capture()).copy()
    for _ in range(20):
        game.do([Wait(0.5)])
        if truth.evaluation()["population"] != "0":
            break
    left, top = FIRST_TILE
    for zone in range(3):
        assert truth.tile(left + column + 5 + 3 * zone, top + row + 1) & POWERED
        assert truth.tile(left + column + 5 + 3 * zone, top + row + 5) & POWERED
    assert truth.evaluation()["population"] != "0"
    assert not np.array_equal(population.cut(game.capture()), empty)
    assert game.trouble() is None


def test_long_numbers_move_the_evaluation_and_are_no_trouble(game: X11Driver, truth: MicropolisMap) -> None:
    before = game.capture().copy()
    words = {"population": "1,234,567", "migration": "-23,456", "assessed": "$1,234,567,000", "approval": "100%"}
    words |= {"category": "MEGALOPOLIS", "score": "1000", "score_change": "-100"}
    truth.set_evaluation(words)
    game.do([PROFILE.tools["road"].choice])
    assert truth.evaluation() == words
    frame = game.capture()
    assert game.trouble() is None
    for name in words:  # all of each number is within its line, and the line has nothing else
        line = PROFILE.regions[name].cut(frame).min(axis=2)
        assert not np.array_equal(line, PROFILE.regions[name].cut(before).min(axis=2))
        assert np.ptp(line[0]) == np.ptp(line[-1]) == np.ptp(line[:, 0]) == np.ptp(line[:, -1]) == 0


@pytest.mark.parametrize(
    ("menu", "item", "dialog"),
    [("windows", "budget", "budget"), ("micropolis", "save_as", "file"), ("micropolis", "quit", "question")],
)
def test_dialogs_are_told_and_closed(game: X11Driver, truth: MicropolisMap, menu: str, item: str, dialog: str) -> None:
    column, row = bare_place(truth, 1)
    place(game, "road", (column, row))
    game.do([Click(PROFILE.menus[menu].at), Click(PROFILE.menus[menu].items[item])])
    assert game.open_dialogs() == (dialog,)
    assert game.recover()
    assert game.trouble() is None
    assert truth.number("Funds") == 20_000 - 10
    assert [(found.trouble.kind, found.city_went_on) for found in game.incidents] == [("dialog", True)]


def test_panels_that_were_closed_or_opened_are_put_right(game: X11Driver, truth: MicropolisMap) -> None:
    game.do([Click(Point(780 / 1200, 709 / 720))])  # dismisses the evaluation
    found = game.trouble()
    assert found is not None
    assert found.kind == "layout"
    assert game.recover()
    game.do([Click(PROFILE.menus["windows"].at), Click(PROFILE.menus["windows"].items["graph"])])
    assert game.recover()
    assert game.trouble() is None
    column, row = bare_place(truth, 1)
    place(game, "road", (column, row))
    assert truth.tile(FIRST_TILE[0] + column, FIRST_TILE[1] + row) & TILE_MASK != 0


def test_the_end_of_a_city_is_told_and_another_one_begun(game: X11Driver, truth: MicropolisMap) -> None:
    game.prompt.ask("UILoseGame")
    wait_until(lambda: game.open_dialogs() == ("question",))
    with pytest.raises(GameLostError):
        game.do([Click(Point(337 / 1200, 187 / 720))])  # its only button leads out of the city
    wait_until(lambda: (found := game.trouble()) is not None and found.kind == "over")  # the window goes first
    assert not game.recover()
    assert state(truth) == FRESH


@pytest.mark.parametrize("fault", ["window destroyed", "stopped", "killed"])
def test_a_lost_game_is_begun_anew(game: X11Driver, truth: MicropolisMap, fault: str) -> None:
    session, hands = game._session, game._executor
    assert session is not None
    assert hands is not None
    if fault == "window destroyed":
        session._connection.create_resource_object("window", hands.window.id).destroy()
        session._connection.sync()
    else:
        os.kill(session.pid, signal.SIGSTOP if fault == "stopped" else signal.SIGKILL)
    wait_until(lambda: game.trouble() is not None)
    with pytest.raises(GameLostError):
        game.do([Wait(0.1)])
    assert not game.recover()
    assert state(truth) == FRESH
    place(game, "road", bare_place(truth, 1))
    assert truth.number("Funds") == 20_000 - 10


def test_several_games_run_side_by_side_and_leave_nothing(game: X11Driver, pictures: LearnedPictures) -> None:
    others = [X11Driver(PROFILE, pictures=pictures) for _ in range(2)]
    try:
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(X11Driver.launch, others))
            list(threads.map(lambda driver: driver.reset(WIDE_LAND), others))
            list(threads.map(lambda driver: driver.do([PROFILE.tools["road"].choice, Wait(0.2)]), others))
        sessions = [driver._session for driver in (game, *others)]
        displays = {session.screen.display for session in sessions if session is not None}
        assert len(displays) == 3
        assert sessions[1] is not None
        processes, memory_bytes = resource_use(sessions[1].screen)
        assert processes == 3
        assert memory_bytes < 400_000_000
        folders = [session.screen.folder for session in sessions[1:] if session is not None]
        pids = [session.pid for session in sessions[1:] if session is not None]
    finally:
        for driver in others:
            driver.close()
    assert not any(folder.exists() for folder in folders)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert game.trouble() is None
