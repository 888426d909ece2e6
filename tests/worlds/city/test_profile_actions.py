"""What can be done in a game that has a profile: kinds of action, the gestures that they are, and blocks on lots."""

from pathlib import Path

import pytest

from ludus.core.errors import ConfigError, ConfigFileError, UnknownNameError
from ludus.worlds.city.actions import EXPLORATORY, ProfileGestures, profile_catalogue
from ludus.worlds.city.config import GROUPS
from ludus.worlds.city.drivers.driver import Click, Drag, Key, Point
from ludus.worlds.city.profile import load_profile
from ludus.worlds.city.profile_schema import GameProfile, operations

PROFILE = load_profile("micropolis")
LOTS = profile_catalogue(PROFILE, GROUPS, "lots", None)
TILES = profile_catalogue(PROFILE, GROUPS, "tiles", None)


def at(x: float, y: float) -> Point:
    """A place of Micropolis's picture, in its pixels."""
    return Point(x / 1200, y / 720)


def gestures(profile: GameProfile = PROFILE) -> ProfileGestures:
    return ProfileGestures(profile, LOTS, "lots")


def near(first: Point, second: Point) -> bool:
    return abs(first.x - second.x) < 1e-9 and abs(first.y - second.y) < 1e-9


def test_tiles_have_tools_streets_taxes_and_menus() -> None:
    assert (TILES.columns, TILES.rows) == (42, 30)
    assert {"residential", "wire", "park", "street_across", "bulldoze", "tax_up", "roads_down"} <= set(TILES.names)
    assert {"menu.options.disasters", "menu.windows.budget", "camera_left", *EXPLORATORY} <= set(TILES.names)
    assert "query" not in TILES  # it builds nothing
    coal = TILES.kinds[TILES.number("coal")]
    assert (coal.least_cost, coal.most_cost, coal.uses_cell) == (3000.0, 3016.0, True)


def test_no_action_opens_menus_that_end_cities_or_change_their_time() -> None:
    for menu in ("micropolis", "disasters", "priority"):
        assert not [name for name in TILES.names if name.startswith(f"menu.{menu}.")]
        assert gestures().plain.is_forbidden(PROFILE.menus[menu].at)
    assert gestures().plain.headings == (PROFILE.menus["options"].at, PROFILE.menus["windows"].at)


def test_lots_have_blocks_and_large_tools() -> None:
    assert (LOTS.columns, LOTS.rows) == (14, 7)
    homes = LOTS.kinds[LOTS.number("homes")]
    assert (homes.least_cost, homes.most_cost) == (135.0, 147.0)  # 100 + 3 * 10 + 5, and 12 trees
    assert LOTS.kinds[LOTS.number("wire_down")].least_cost == 20.0  # four tiles
    assert "coal" in LOTS
    assert "road" not in LOTS
    assert "street_across" not in LOTS


def test_a_block_is_the_use_of_three_tools() -> None:
    (steps,) = gestures().of(LOTS.number("homes"), 15, None)  # second column, second row: from (562, 93) on
    tools = [step.at for step in steps[::2] if isinstance(step, Click)]
    assert tools == [PROFILE.tools[name].at for name in ("residential", "road", "wire")]
    zone, road, wire = steps[1::2]
    assert isinstance(zone, Click)
    assert near(zone.at, at(586, 117))
    assert isinstance(road, Drag)
    assert near(road.start, at(570, 149))
    assert near(road.end, at(602, 149))
    assert isinstance(wire, Click)
    assert near(wire.at, at(586, 149))


def test_a_tool_is_used_in_the_middle_of_the_zone_of_a_lot() -> None:
    (steps,) = gestures().of(LOTS.number("coal"), 0, None)
    last = steps[-1]
    assert isinstance(last, Click)
    assert near(last.at, at(538, 53))


def test_streets_end_at_the_edge_of_what_is_seen() -> None:
    made = ProfileGestures(PROFILE, TILES, "tiles")
    (steps,) = made.of(TILES.number("street_across"), 40, None)
    street = steps[-1]
    assert isinstance(street, Drag)
    assert near(street.start, PROFILE.grid.cell(40, 0))
    assert near(street.end, PROFILE.grid.cell(41, 0))


def test_taxes_are_clicked_beside_where_they_stand() -> None:
    assert gestures().of(LOTS.number("tax_up"), 0, 7.0) == ((Click(PROFILE.slider_point("tax", 8.0)),),)
    assert gestures().of(LOTS.number("tax_down"), 0, 7.0) == ((Click(PROFILE.slider_point("tax", 6.0)),),)
    assert gestures().of(LOTS.number("tax_up"), 0, None) == ((),)  # nobody knows where it stands


def test_funding_goes_down_level_by_level_in_its_dialog() -> None:
    made, windows = gestures(), PROFILE.menus["windows"]
    for level in (80.0, 50.0, 0.0, 0.0):
        opens, sets, closes = made.of(LOTS.number("fire_down"), 0, None)
        assert opens == (Click(windows.at), Click(windows.items["budget"]))
        assert sets == (Click(PROFILE.slider_point("fire", level)),)
        assert closes == operations(PROFILE.dialogs["budget"].close)
    made.begin()
    assert made.of(LOTS.number("fire_up"), 0, None)[1] == (Click(PROFILE.slider_point("fire", 100.0)),)


def test_exploring_clicks_nowhere_without_a_target_and_never_on_closed_menus() -> None:
    made, click = gestures(), LOTS.number("click_element")
    assert made.of(click, 0, None, None) == ((),)
    assert made.of(click, 0, None, PROFILE.menus["disasters"].at) == ((),)
    assert made.of(click, 0, None, Point(0.5, 0.5)) == ((Click(Point(0.5, 0.5)),),)
    assert made.of(LOTS.number("escape"), 0, None) == ((Key("Escape"),),)


def test_kinds_can_be_named() -> None:
    some = profile_catalogue(PROFILE, ("build",), "lots", ("homes", "coal"))
    assert some.names == ("wait", "homes", "coal")
    with pytest.raises(UnknownNameError, match="skyscraper"):
        profile_catalogue(PROFILE, ("build",), "lots", ("skyscraper",))
    with pytest.raises(UnknownNameError, match="tax_up"):
        profile_catalogue(PROFILE, ("build",), "lots", ("tax_up",))


def test_lots_can_be_those_in_the_middle() -> None:
    some = PROFILE.with_middle_lots(8, 5).lot_grid  # of 14x7: from the fourth column and the second row on
    assert some is not None
    assert (some.columns, some.rows) == (8, 5)
    assert near(some.corner(0, 0), at(514 + 3 * 48, 29 + 64))
    assert near(some.corner(0, 1), at(514 + 3 * 48, 29 + 2 * 64))
    assert near(Point(some.region.right, some.region.bottom), at(514 + 11 * 48, 29 + 6 * 64))
    assert PROFILE.with_middle_lots(99, 99).lot_grid == PROFILE.lot_grid


def test_lots_need_a_profile_with_lots() -> None:
    with pytest.raises(ConfigError, match="lots"):
        profile_catalogue(PROFILE.model_copy(update={"lots": None}), GROUPS, "lots", None)


def test_faults_of_lots_are_told_at_their_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: micropolis\nlots:\n  blocks:\n    homes: [{tool: residental, at: [24, 24]}]\n")
    with pytest.raises(ConfigFileError, match=r"mine\.yaml:4:\d+.*tools.*'residental'"):
        load_profile(str(file))
    file.write_text("extends: micropolis\nlots:\n  blocks:\n    homes: [{tool: road, drag: [0, 0, 8, 8]}]\n")
    with pytest.raises(ConfigFileError, match=r"lots\.blocks\.homes\.0"):
        load_profile(str(file))
