"""Tests of the second game, OpenTTD: a profile file was enough for it."""

from collections.abc import Iterator

import numpy as np
import pytest

from ludus.envs.city.drivers.driver import Click, Wait
from ludus.envs.city.drivers.x11 import X11Driver
from ludus.envs.city.learned import LearnedPictures
from ludus.envs.city.profile import GameProfile, load_profile

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
    game.act([Wait(3.0)])  # a day takes two seconds
    later = game.capture().copy()
    assert not np.array_equal(regions["date"].cut(later), regions["date"].cut(start))
    assert game.trouble() is None
    game.act([Click(PROFILE.menus["finances"].at)])
    assert np.mean(game.capture() != later) > 0.01  # a window inside the window
    game.reset(game.seed)
    again = game.capture()
    for name in ("date", "funds"):
        assert np.array_equal(regions[name].cut(again), regions[name].cut(start))
        assert regions[name].cut(again).std() > 10.0  # there is something to be read
    assert np.mean(np.all(regions["view"].cut(again) == regions["view"].cut(start), axis=2)) > 0.99
    land = regions["view"].cut(start).copy()
    game.reset(game.seed + 1)
    assert np.mean(np.all(regions["view"].cut(game.capture()) == land, axis=2)) < 0.9
