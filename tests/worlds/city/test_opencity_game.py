"""Tests of OpenCity: its profile alone, and a real start of the game with a power plant and a block of homes."""

from collections.abc import Iterator

import numpy as np
import pytest

from ludus.worlds.city.actions import ProfileGestures, profile_catalogue
from ludus.worlds.city.drivers.driver import Drag, Key, Point, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.glyphs import GlyphBank
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.perception.reader import OcrWorker, RapidOcr, profile_fields
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile

pytestmark = pytest.mark.screen

PROFILE = load_profile("opencity")
LOTS = profile_catalogue(PROFILE, ["build"], "lots", None)
FLAT_LAND = 9  # a seed


def near(point: Point, x: float, y: float) -> bool:
    return abs(point.x * PROFILE.width - x) < 0.01 and abs(point.y * PROFILE.height - y) < 0.01


def test_a_block_is_two_roads_and_a_zone_of_five_by_five_cells() -> None:
    assert (LOTS.columns, LOTS.rows) == (5, 5)
    homes = LOTS.kinds[LOTS.number("homes")]
    assert (homes.least_cost, homes.most_cost) == (180.0, 180.0)  # 11 cells of road and 25 of the zone, 5 each
    assert LOTS.kinds[LOTS.number("works")].least_cost == 255.0  # a cell of industry costs 8
    (steps,) = ProfileGestures(PROFILE, LOTS, "lots").of(LOTS.number("homes"), 6, None)  # from (180.6, 120.58) on
    assert steps[::2] == [Key("p"), Key("p"), Key("r")]
    down, across, zone = steps[1::2]
    assert isinstance(down, Drag)
    assert near(down.start, 191.4, 128.18)
    assert near(down.end, 191.4, 204.58)
    assert isinstance(across, Drag)
    assert near(across.end, 299.4, 128.18)
    assert isinstance(zone, Drag)
    assert near(zone.start, 213.0, 143.48)
    assert near(zone.end, 299.4, 204.58)


def test_a_power_plant_fills_a_lot() -> None:
    plant = LOTS.kinds[LOTS.number("power")]
    assert (plant.least_cost, plant.columns) == (5000.0, 1)


@pytest.fixture(scope="module")
def game(opencity: GameProfile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Driver]:
    with X11Driver(opencity, pictures=LearnedPictures(tmp_path_factory.mktemp("opencity"))) as driver:
        driver.seed = FLAT_LAND
        driver.launch()
        yield driver


def test_a_town_is_built_and_time_passes_only_while_waiting(game: X11Driver) -> None:
    fields = {field.name: field for field in profile_fields(PROFILE)}
    gestures, start = ProfileGestures(PROFILE, LOTS, "lots"), game.capture().copy()
    for name, cell in (("power", 12), ("homes", 13)):
        for part in gestures.of(LOTS.number(name), cell, None):
            game.do(part)
    built = game.capture().copy()
    place = PROFILE.lot_grid
    assert place is not None
    # The middle of a cell of the zone: the lot's own middle is on a line between cells.
    x, y = place.corner(3.0 + 3.5 / 6.0, 2.0 + 3.5 / 6.0).pixel(PROFILE.width, PROFILE.height)
    assert np.abs(built[y, x].astype(int) - (53, 105, 43)).max() <= 3  # the green of a zone for homes
    assert not np.array_equal(fields["funds"].cut(built), fields["funds"].cut(start))
    assert np.array_equal(game.capture(), built)  # the process is stopped
    game.do([Wait(2.0)])
    later = game.capture().copy()
    assert not np.array_equal(fields["date"].cut(later), fields["date"].cut(built))
    assert game.trouble() is None
    pytest.importorskip("rapidocr")
    worker = OcrWorker([RapidOcr()], GlyphBank())
    assert worker.read(fields["funds"], fields["funds"].cut(start).copy()).value == 15_000.0
    # A plant and a block, and at most two months of its costs.
    left = worker.read(fields["funds"], fields["funds"].cut(built).copy()).value
    assert isinstance(left, float)
    assert 9_000.0 < left <= 9_820.0
