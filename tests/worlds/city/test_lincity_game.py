"""Tests of LinCity-NG, a game that was added by `ludus city new-profile`: its profile is all that is known of it."""

from collections.abc import Iterator

import numpy as np
import pytest

from ludus.worlds.city.drivers.driver import Click, Wait
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.perception.glyphs import GlyphBank
from ludus.worlds.city.perception.pictures import LearnedPictures
from ludus.worlds.city.perception.reader import OcrWorker, RapidOcr, profile_fields
from ludus.worlds.city.profile_schema import GameProfile

pytestmark = pytest.mark.screen

GOOD = (4, 3)  # a lot beside the houses


@pytest.fixture(scope="module")
def game(lincity: GameProfile, tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Driver]:
    with X11Driver(lincity, pictures=LearnedPictures(tmp_path_factory.mktemp("lincity"))) as driver:
        driver.launch()
        yield driver


def test_a_well_is_built_and_paid_for_and_time_passes_only_while_waiting(game: X11Driver) -> None:
    profile, start = game.profile, game.capture().copy()
    fields = {field.name: field for field in profile_fields(profile)}
    tool = profile.tools["well"]
    assert tool.group is not None
    assert profile.lot_grid is not None
    game.do([Click(tool.group), tool.choice, Click(profile.lot_grid.cell(*GOOD))])
    built = game.capture().copy()
    assert np.array_equal(fields["date"].region.cut(built), fields["date"].region.cut(start))
    assert not np.array_equal(fields["funds"].cut(built), fields["funds"].cut(start))
    game.do([Wait(1.5)])
    later = game.capture().copy()
    assert not np.array_equal(fields["date"].region.cut(later), fields["date"].region.cut(built))
    assert game.trouble() is None
    pytest.importorskip("rapidocr")
    worker = OcrWorker([RapidOcr()], GlyphBank())
    # After an action, which waits for the panel: right after the launch a busy machine may not have drawn it yet.
    assert worker.read(fields["population"], fields["population"].cut(built).copy()).value == 191.0
    assert worker.read(fields["funds"], fields["funds"].cut(built).copy()).value == -1.0
