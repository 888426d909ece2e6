"""Tests of the second game, OpenTTD: a profile file was enough for it."""

from collections.abc import Iterator

import numpy as np
import pytest
from screen_leftovers import wait_until  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.city.drivers.driver import Click, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile

PROFILE = load_profile("openttd")


@pytest.fixture(scope="module")
def game(openttd: GameProfile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Driver]:
    with X11Driver(openttd, pictures=LearnedPictures(tmp_path_factory.mktemp("openttd"))) as driver:
        driver.launch()
        yield driver


def test_it_is_launched_seen_clicked_and_reset(game: X11Driver) -> None:
    regions = PROFILE.regions
    game.connect()
    start = game.capture().copy()
    assert start.shape == (640, 1024, 3)
    later = start

    def a_day_has_passed() -> bool:
        nonlocal later
        game.do([Wait(1.0)])  # a day takes two seconds or more
        later = game.capture().copy()
        return not np.array_equal(regions["date"].cut(later), regions["date"].cut(start))

    wait_until(a_day_has_passed)
    assert game.trouble() is None
    game.do([Click(PROFILE.menus["finances"].at)])
    # A window inside the window; this profile has no sign that everything is drawn, and a busy machine draws late.
    wait_until(lambda: bool(np.mean(game.capture() != later) > 0.01))
    game.reset(game.seed)
    again = game.capture()
    for name in ("date", "funds"):
        assert np.array_equal(regions[name].cut(again), regions[name].cut(start))
        assert regions[name].cut(again).std() > 10.0  # there is something to be read
    assert np.mean(np.all(regions["view"].cut(again) == regions["view"].cut(start), axis=2)) > 0.99
    land = regions["view"].cut(start).copy()
    game.reset(game.seed + 1)
    assert np.mean(np.all(regions["view"].cut(game.capture()) == land, axis=2)) < 0.9
