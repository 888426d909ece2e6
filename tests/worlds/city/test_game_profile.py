"""Tests of game profiles: what they say in fractions, and what is wrong with a bad one, at its place."""

from pathlib import Path

import pytest

from ludus.core.errors import ActionError, ConfigFileError, UnknownNameError
from ludus.worlds.city.drivers.driver import Click, Drag, Key, Move, Point
from ludus.worlds.city.profile import PROFILES, load_profile
from ludus.worlds.city.profile_schema import Ask, operations

TOY = Path(__file__).with_name("toy_city.yaml")


def faults_of(folder: Path, *changes: tuple[str, str]) -> list[str]:
    """The faults of the toy game's profile after some changes of its text."""
    text = TOY.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    file = folder / "changed.yaml"
    file.write_text(text)
    with pytest.raises(ConfigFileError) as caught:
        load_profile(str(file))
    return [str(fault).replace(f"{file}:", "") for fault in caught.value.faults]


def test_places_are_fractions_of_the_picture() -> None:
    profile = load_profile(str(TOY))
    assert profile.name == "toy_city"
    assert profile.tools["first"].at == Point(12 / 320, 40 / 240)
    assert profile.regions["cells"].box(640, 480) == (80, 80, 520, 320)
    assert (profile.grid.columns, profile.grid.rows) == (13, 8)
    first, last = profile.grid.cell(0, 0), profile.grid.cell(12, 7)
    assert (first.x, first.y) == pytest.approx((50 / 320, 50 / 240))
    assert (last.x, last.y) == pytest.approx((290 / 320, 190 / 240))
    with pytest.raises(ActionError, match=r"\(13, 0\) .*13x8"):
        profile.grid.cell(13, 0)
    assert operations(profile.pause.steps) == (Click(Point(240 / 320, 10 / 240)),)
    assert operations(profile.reset.steps) == (Ask("new {seed}"),)
    assert profile.learned_regions == ("stripes", "date", "funds", "pause")


@pytest.mark.parametrize("name", PROFILES.names())
def test_profiles_that_come_with_ludus_can_be_read(name: str) -> None:
    profile = load_profile(name)
    assert profile.packages
    assert {"date", "funds"} <= set(profile.readings)
    assert profile.grid.columns >= 10


def test_micropolis_says_what_there_is_to_be_known() -> None:
    profile = load_profile("micropolis")
    assert (profile.grid.columns, profile.grid.rows) == (42, 30)
    assert len(profile.tools) == 16
    assert profile.slider_point("tax", 0).x * 1200 == pytest.approx(239.0)
    assert profile.slider_point("tax", 99).x * 1200 == pytest.approx(347.0)
    middle, *keys = operations(profile.camera["left"])
    assert isinstance(middle, Move)
    assert keys == [Key("Left")] * 8


def test_a_profile_may_extend_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: micropolis\ntitle: Mine\ntools: {road: {at: [1, 2], cost: 3}}\n")
    mine, theirs = load_profile(str(file)), load_profile("micropolis")
    assert (mine.title, mine.tools["road"].cost, len(mine.tools)) == ("Mine", 3.0, 16)
    assert mine.fingerprint != theirs.fingerprint


def test_an_unknown_profile_is_named_with_the_valid_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'micropolis'.*lincity"):
        load_profile("micropolys")


def keys_of(faults: list[str]) -> list[str]:
    """Line, column and key of each fault: what stands before its sentence."""
    return [":".join(fault.split(":")[:3]) for fault in faults]


def test_unknown_names_are_faults_where_they_are_written(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("funds: {kind: money, region: funds}", "funds: {kind: money, region: fund}"),
        ("fresh: [date, funds]", "fresh: [date, stripe]"),
        ("terrain: cells", "terrain: land\n  expect: {fund: 3}"),
        ("tools:\n", "sliders: {tax: {region: date, least: 0, most: 9, dialog: toi}}\ntools:\n"),
    )
    assert keys_of(found) == [
        "20:32: readings.funds.region",
        "21:58: sliders.tax.dialog",
        "39:17: reset.fresh.1",
        "41:12: reset.terrain",
        "42:12: reset.expect.fund",
    ]
    assert "'fund'" in found[0]
    assert all("funds" in found[index] and "date" in found[index] for index in (0, 4))  # the valid names
    assert "'toy'" in found[1]
    assert "'stripes'" in found[2]


def test_places_outside_the_picture_are_faults(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("cells: [40, 40, 300, 200]", "cells: [40, 40, 300, 250]"),
        ("stripes: [0, 0, 100, 18]", "stripes: [0, 18, 100, 0]"),
        ("first: {at: [12, 40]", "first: {at: [321, 40]"),
        ("{dialog: [280, 35]}", "{dialog: [280, 241]}"),
        ("click: [240, 10]", "click: [240, -1]"),
        ("size: [320, 240]", "size: [420, 240]"),
    )
    assert keys_of(found) == [
        "8:33: window.size",
        "11:12: regions.stripes",
        "16:10: regions.cells",
        "22:15: tools.first.at",
        "25:42: menus.games.items.dialog",
        "30:25: pause.steps.0.click",
    ]
    assert all("320x240" in found[index] for index in (2, 3, 4, 5))
    assert "[0, 18, 100, 0]" in found[1]


def test_steps_keys_and_patterns_are_checked(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("close: [{click: [80, 60]}]", "close: [{click: [80, 60], key: a}]"),
        ("title: Toy City\npackages", "titel: Toy City\npackages"),
        ("window: {title: Toy City", "window: {title: Toy (City"),
        ("stripes: {region: stripes}", "stripes: {region: stripes, restore: [{clik: [1, 1]}]}"),
        ('  prompt: {ready: "ready>", answer: "tell {mark} {command}"}\n', ""),
    )
    keys = [key.split(": ")[1] for key in keys_of(found)]
    assert keys == [
        "title",
        "titel",
        "window.title",
        "dialogs.toy.close.0",
        "landmarks.stripes.restore.0.clik",
        "reset.steps.0.prompt",
        "reset.truth.0.ask",
    ]
    assert "'title'" in found[1]
    assert "click, key" in found[3]
    assert "'click'" in found[4]
    assert all("launch.prompt" in fault for fault in found[5:])


def test_a_tool_is_chosen_by_a_click_or_by_a_key_and_not_by_both(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("first: {at: [12, 40], cost: 10}", "first: {at: [12, 40], key: a, cost: 10}"),
        ("second: {at: [12, 70], cost: 10}", "second: {key: b, group: [12, 70], cost: 10}"),
    )
    assert ["tools.first" in found[0], "tools.second" in found[1]] == [True, True]
    assert "exactly one of at and key" in found[0]
    assert "group needs at" in found[1]


def test_an_area_costs_as_many_cells_as_it_covers(toy_path: Path) -> None:
    lots = """
lots:
  region: cells
  size: [60, 60]
  anchor: [10, 10]
  blocks:
    both: [{tool: first, area: [10, 10, 50, 30]}, {tool: second, drag: [10, 50, 50, 50]}]
"""
    toy_path.write_text(toy_path.read_text() + lots)
    profile = load_profile(str(toy_path))
    assert profile.lots is not None
    area, line = profile.lots.blocks["both"]
    assert (profile.cells_of(area), profile.cells_of(line)) == (6, 3)
    assert area.gesture(Point(0.0, 0.0)) == Drag(Point(10 / 320, 10 / 240), Point(50 / 320, 30 / 240))
