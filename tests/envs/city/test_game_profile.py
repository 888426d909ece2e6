"""Tests of game profiles: what they say in fractions, and what is wrong with a bad one, at its place."""

from pathlib import Path

import pytest

from ludus.core.errors import ActionError, ConfigFileError, UnknownNameError
from ludus.envs.city.drivers.driver import Click, Key, Move, Point
from ludus.envs.city.profile import Ask, load_profile, profile_names

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
    assert profile.regions["cells"].pixels(640, 480) == (80, 80, 600, 400)
    assert (profile.grid.columns, profile.grid.rows) == (13, 8)
    first, last = profile.grid.cell(0, 0), profile.grid.cell(12, 7)
    assert (first.x, first.y) == pytest.approx((50 / 320, 50 / 240))
    assert (last.x, last.y) == pytest.approx((290 / 320, 190 / 240))
    with pytest.raises(ActionError, match=r"cell \(13, 0\) is not on the map of 13x8 cells"):
        profile.grid.cell(13, 0)
    assert profile.pause == (Click(Point(240 / 320, 10 / 240)),)
    assert profile.reset.steps == (Ask("new {seed}"),)
    assert profile.learned_regions == ("stripes", "date", "funds", "pause")


@pytest.mark.parametrize("name", profile_names())
def test_profiles_that_come_with_ludus_can_be_read(name: str) -> None:
    profile = load_profile(name)
    assert profile.packages
    assert {"date", "funds"} <= set(profile.readings)
    assert profile.grid.columns >= 10


def test_micropolis_says_what_there_is_to_be_known() -> None:
    profile = load_profile("micropolis")
    assert (profile.grid.columns, profile.grid.rows) == (42, 30)
    assert len(profile.tools) == 16
    assert profile.sliders["tax"].point(0).x * 1200 == pytest.approx(239.0)
    assert profile.sliders["tax"].point(99).x * 1200 == pytest.approx(347.0)
    middle, *keys = profile.camera["left"]
    assert isinstance(middle, Move)
    assert keys == [Key("Left")] * 8


def test_a_profile_may_extend_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: micropolis\ntitle: Mine\ntools: {road: {at: [1, 2], cost: 3}}\n")
    mine, theirs = load_profile(str(file)), load_profile("micropolis")
    assert (mine.title, mine.tools["road"].cost, len(mine.tools)) == ("Mine", 3.0, 16)
    assert mine.fingerprint != theirs.fingerprint


def test_an_unknown_profile_is_named_with_the_valid_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'micropolis'\?.*openttd"):
        load_profile("micropolys")


def test_unknown_names_are_faults_where_they_are_written(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("funds: {kind: money, region: funds}", "funds: {kind: money, region: fund}"),
        ("fresh: [date, funds]", "fresh: [date, stripe]"),
        ("terrain: cells", "terrain: land\n  expect: {fund: 3}"),
    )
    regions = "valid: stripes, date, funds, pause, chosen, cells"
    assert found == [
        f"20:32: readings.funds.region: should be one of regions (got 'fund'); did you mean 'funds'? {regions}",
        f"38:17: reset.fresh.1: should be one of regions (got 'stripe'); did you mean 'stripes'? {regions}",
        f"40:12: reset.terrain: should be one of regions (got 'land'); {regions}",
        "41:12: reset.expect.fund: should be one of readings; did you mean 'funds'? valid: date, funds",
    ]


def test_places_outside_the_picture_are_faults(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("cells: [40, 40, 300, 200]", "cells: [40, 40, 300, 250]"),
        ("stripes: [0, 0, 100, 18]", "stripes: [0, 18, 100, 0]"),
        ("first: {at: [12, 40]", "first: {at: [321, 40]"),
        ("click: [240, 10]", "click: [240, -1]"),
        ("size: [320, 240]", "size: [420, 240]"),
    )
    assert found == [
        "8:33: window.size: should fit on the screen of 400x300",
        "11:12: regions.stripes: should be left, top, right, bottom (got [0, 18, 100, 0])",
        "16:10: regions.cells: should lie in the picture of 320x240 (got [40, 40, 300, 250])",
        "22:15: tools.first.at: should lie in the picture of 320x240 (got [321, 40])",
        "30:25: pause.steps.0.click: should lie in the picture of 320x240 (got [240, -1])",
    ]


def test_steps_keys_and_patterns_are_checked(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        ("close: [{click: [80, 60]}]", "close: [{click: [80, 60], key: a}]"),
        ("title: Toy City\npackages", "titel: Toy City\npackages"),
        ("window: {title: Toy City", "window: {title: Toy (City"),
        ('  prompt: {ready: "ready>", answer: "tell {mark} {command}"}\n', ""),
    )
    assert found[0] == "2:1: title: is required"
    assert found[1].startswith("2:1: titel: unknown key (got 'Toy City'); did you mean 'title'? valid: title, packages")
    assert any("should be a regular expression: missing )" in fault for fault in found)
    assert any("should have exactly one of click, move" in fault and "it has click, key" in fault for fault in found)
    prompts = [fault for fault in found if "needs launch.prompt" in fault]
    assert [fault.split(":")[2].strip() for fault in prompts] == ["reset.steps.0", "reset.truth"]
