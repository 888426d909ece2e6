"""A profile for a new game: what pictures show, figures that people type, and a map of an unknown interface."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from benchmarks.city_explore import explore
from screen_leftovers import is_there, tree, wait_until  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.config import dump_yaml, read_yaml
from ludus.core.errors import ConfigError, FormatError, UnknownNameError
from ludus.core.files import write_atomic
from ludus.worlds.city import discovery, new_profile
from ludus.worlds.city.audit import FIGURES, PICTURES, audit_city
from ludus.worlds.city.discovery import TextLine
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Box, Region
from ludus.worlds.city.drivers.x11 import X11Driver
from ludus.worlds.city.new_profile import known_parts
from ludus.worlds.city.perception.embedded import embedded_fields, make_up_figures
from ludus.worlds.city.perception.pictures import png
from ludus.worlds.city.perception.reading import Date, Field
from ludus.worlds.city.profile_schema import GameProfile

pytestmark = pytest.mark.screen

TYPED = ("funds", "population", "date")
GRAY = np.full((60, 400, 3), 200, np.uint8)


def lines(*entries: tuple[str, int, int]) -> list[TextLine]:
    """Lines of text, by what they say and where they begin; a letter is 8 pixels wide and 12 high."""
    return [TextLine(text, Box(left, top, 8 * len(text), 12)) for text, left, top in entries]


def test_figures_are_found_by_what_their_lines_say_in_most_pictures() -> None:
    seen = [
        lines(
            ("Funds: $200", 10, 4), ("Population", 10, 30), ("191", 180, 30), ("15. Jan 0", 300, 4), ("Help", 300, 30)
        ),
        lines(
            ("Funds: $1,250", 10, 4), ("Population", 10, 30), ("88", 188, 30), ("30. Feb 3", 300, 4), ("Help", 300, 30)
        ),
    ]
    figures = {figure.name: figure for figure in discovery._figures([GRAY, GRAY], seen)}
    assert {name: (figure.kind, figure.prefix) for name, figure in figures.items()} == {
        "funds": ("money", "Funds:"),
        "population": ("number", ""),
        "date": ("date", ""),
    }
    left, _, width, _ = figures["population"].box
    assert (left, left + width) == (90, 294)  # 90 pixels of level ground on both sides of 180 to 204
    assert figures["date"].notation.short_years


def test_a_line_is_split_into_words_and_the_value_at_its_end() -> None:
    assert discovery._split("Tax Rate; 7%") == ("Tax Rate:", "7%")
    assert discovery._split("-18 760 $") == ("", "-18 760 $")
    assert discovery._split("Welcome to Lincity") == ("", "")


def test_the_map_is_the_largest_rectangle_of_busy_ground_and_its_cells_repeat() -> None:
    picture = np.full((160, 240, 3), 128, np.uint8)
    picture[32:160, 80:240] = np.where(
        np.indices((128, 160))[1][:, :, None] % 16 < 2, 0, 255
    )  # a line every 16 columns
    picture[32:160:20, 80:240] = 90  # and every 20 rows
    assert discovery._map([picture], [Box(80, 32, 160, 16)]) == (80, 48, 160, 112)
    assert discovery._cell(picture, Box(80, 32, 160, 128)) == (16, 20)


def test_the_largest_rectangle_of_a_mask() -> None:
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1]], np.bool_)
    assert discovery._largest(mask) == (1, 1, 3, 2)


def test_letters_of_a_colour_are_read_on_any_ground() -> None:
    frame = np.full((4, 4, 3), (0, 120, 250), np.uint8)
    frame[1, 1], frame[2, 2] = (0, 0, 255), (0, 40, 255)
    crop = Field("funds", "money", Region(0.0, 0.0, 1.0, 1.0), ink=(0, 0, 255)).cut(frame)
    assert (int(crop[1, 1, 0]), int(crop[2, 2, 0]), int(crop[0, 0, 0])) == (0, 60, 180)


def test_what_is_known_must_say_how_the_game_is_started() -> None:
    assert known_parts("lincity-ng -w", None, "640x480", ())["launch"] == {"command": ["lincity-ng", "-w"]}
    with pytest.raises(ConfigError, match="--command"):
        known_parts(None, None, "640x480", ())
    with pytest.raises(ConfigError, match="WIDTHxHEIGHT"):
        known_parts("game", None, "wide", ())


# --- typed figures ---


@pytest.fixture
def typed_folder(tmp_path: Path) -> Path:
    """A profile of the embedded game's picture, twelve pictures, and what they say, as if a person had typed it."""
    games = CityGames(1)
    fields = {
        field.name: field
        for field in embedded_fields(games.layout(0), games.interfaces[0].theme)
        if field.name in TYPED
    }
    size = (games.display.width, games.display.height)
    random, rows = np.random.default_rng(3), ["picture," + ",".join(TYPED)]
    for number in range(1, 13):
        make_up_figures(games, 0, random)
        texts = games.texts(0)
        written = [texts[name].removeprefix(fields[name].prefix).strip() for name in TYPED]
        rows.append(f"{number:02}," + ",".join(f'"{text}"' for text in written))
        write_atomic(tmp_path / PICTURES / f"{number:02}.png", png(games.capture(0)))
    games.close()
    (tmp_path / FIGURES).write_text("\n".join(rows) + "\n")
    boxes = {name: field.region.box(*size) for name, field in fields.items()}
    regions = {name: [box.left, box.top, box.right, box.bottom] for name, box in boxes.items()}
    document = {
        "title": "Copy",
        "packages": ["none"],
        "launch": {"command": ["none"]},
        "screen": [*size],
        "window": {"title": "Copy", "size": [*size]},
        "measured_on": [*size],
        "regions": regions,
        "map": {"region": "funds", "cell": [8, 8]},
        "readings": {name: {"kind": f.kind, "region": name, "prefix": f.prefix} for name, f in fields.items()},
        "landmarks": {"funds": {"region": "funds"}},
        "reset": {"terrain": "funds"},
    }
    (tmp_path / "profile.yaml").write_text(dump_yaml(document))
    return tmp_path


def test_typed_figures_teach_letters_and_audit_every_picture_by_the_others(typed_folder: Path) -> None:
    pytest.importorskip("rapidocr")
    measured: dict[str, Any] = audit_city(str(typed_folder / "profile.yaml"), folder=typed_folder / "letters")
    fields = {field["field"]: field for field in measured["fields"]}
    assert {name: field["states"] for name, field in fields.items()} == dict.fromkeys(TYPED, 12)
    assert all(field["wrong"] == 0.0 and field["accuracy"] >= 0.8 for field in fields.values())
    assert list((typed_folder / "letters").glob("glyphs-profile-*.json"))


def test_wrong_words_among_typed_figures_are_named_with_their_line(typed_folder: Path) -> None:
    file = typed_folder / FIGURES
    rows = file.read_text().splitlines()
    file.write_text("\n".join((*rows[:2], '02,"lots","",""')))
    with pytest.raises(FormatError, match=r"figures.csv:3: 'lots' is no money"):
        audit_city(str(typed_folder / "profile.yaml"), folder=typed_folder)
    file.write_text("picture,wealth\n01,5\n")
    with pytest.raises(UnknownNameError, match="wealth"):
        audit_city(str(typed_folder / "profile.yaml"), folder=typed_folder)


def test_short_years_are_dates_only_where_a_game_has_them() -> None:
    from ludus.worlds.city.perception.reading import parse_date

    assert parse_date("15. Jan 0", short_years=True) == Date(0, 1, 15)
    assert parse_date("30. Aug 12", short_years=True) == Date(12, 8, 30)
    assert parse_date("15. Jan 0") is None
    assert parse_date("7/12/0", short_years=True) == Date(0, 12, 7)
    assert parse_date("7/12/0") is None
    assert parse_date("7/13/0", short_years=True) is None  # a day, then a month
    assert parse_date("15. Jan 012", short_years=True) is None


@pytest.mark.usefixtures("xvfb")
def test_where_nothing_always_looks_the_same_a_landmark_is_asked_for(
    toy_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base: Any = read_yaml(toy_path, "profile", 100_000)
    del base["landmarks"]
    found = discovery.Proposal([], Box(0, 0, 64, 64), (16, 16), [], landmark=Box(0, 0, 0, 0))
    monkeypatch.setattr(new_profile, "propose", lambda _pictures, _engine: found)
    folder = tmp_path / "new"
    with pytest.raises(ConfigError, match="--base"):
        new_profile.make_profile(folder, base, pictures=2, every_s=0.05, say=print)
    assert (folder / PICTURES / "02.png").exists()
    assert (folder / new_profile.PROPOSAL).exists()


# --- an interface that nobody knows ---


def test_controls_are_tried_and_their_effects_recorded(toy_profile: GameProfile, tmp_path: Path) -> None:
    with X11Driver(toy_profile) as driver:
        found = explore(driver, 14)
    found.save(tmp_path)
    kinds = [effect.kind for effect in found.effects]
    assert len(kinds) == 14
    assert {"marks", "opens"} <= set(kinds), kinds  # a tool that was chosen, and the menu
    assert (tmp_path / "interface.png").stat().st_size > 1_000
    assert (tmp_path / "interface.yaml").read_text().count("effect:") == 14


@pytest.mark.usefixtures("xvfb")
def test_nothing_is_left_of_a_game_that_was_explored_when_its_parent_is_killed(toy_path: Path) -> None:
    base = toy_path.parent / "base.yaml"
    base.write_text(toy_path.read_text())
    command = [sys.executable, "-m", "benchmarks.city_explore", str(toy_path.parent / "map"), "--base", str(base)]
    with subprocess.Popen([*command, "--clicks", "1000"], stdout=subprocess.DEVNULL) as parent:
        wait_until(lambda: len(tree(parent.pid)) == 3)  # the supervisor, the screen and the game
        pids = tree(parent.pid)
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_there, pids)))
    assert not any(psutil.pid_exists(pid) and is_there(pid) for pid in pids)
