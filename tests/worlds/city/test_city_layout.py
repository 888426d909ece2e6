"""Tests of layouts and formats: every theme at every size has room for everything, and nothing overlaps."""

from itertools import combinations

import pytest

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.settings import read_settings
from ludus.worlds.city.drivers.driver import Box
from ludus.worlds.city.interface.layout import Layout, make_layout
from ludus.worlds.city.interface.theme import FIELDS, RESOLUTIONS, THEMES, CityDisplay, Format, Theme, theme_of, whole
from ludus.worlds.city.painting.typefaces import Typeface, typeface_of
from ludus.worlds.city.perception.reading import Date

LOOKS = [(theme, size) for theme in THEMES.values() for size in (*RESOLUTIONS, (560, 360), (1920, 1080))]


def lay_out(theme: Theme, size: tuple[int, int], map_size: tuple[int, int] = (32, 24)) -> tuple[Layout, Typeface]:
    face = typeface_of(theme.family, theme.size_for(size[1]))
    return make_layout(theme, size, map_size, face), face


@pytest.mark.parametrize(("theme", "size"), LOOKS, ids=lambda value: getattr(value, "name", None))
def test_nothing_overlaps_and_nothing_sticks_out(theme: Theme, size: tuple[int, int]) -> None:
    layout, _ = lay_out(theme, size)
    boxes = {f"field {name}": place.box for name, place in layout.fields.items()}
    boxes |= {element.name: element.box for element in (*layout.menus, *layout.tools, *layout.view.scrolls)}
    boxes |= {"demand": layout.demand, "speed": layout.speed, "message": layout.message, "tool": layout.tool_label}
    boxes["map"] = layout.view.box
    assert set(layout.fields) == set(FIELDS)
    assert len(layout.tools) == 16
    for (first, a), (second, b) in combinations(boxes.items(), 2):
        assert not a.meets(b), f"{first} {a} meets {second} {b}"
    for name, box in boxes.items():
        assert box.width > 0, name
        assert box.height > 0, name
        assert box.left >= 0, name
        assert box.top >= 0, name
        assert box.right <= size[0], name
        assert box.bottom <= size[1], name


@pytest.mark.parametrize(("theme", "size"), LOOKS, ids=lambda value: getattr(value, "name", None))
def test_parts_of_a_field_lie_side_by_side_within_it(theme: Theme, size: tuple[int, int]) -> None:
    layout, face = lay_out(theme, size)
    for name, place in layout.fields.items():
        assert not place.label.meets(place.value), name
        assert place.label.left >= place.box.left
        assert place.value.right <= place.box.right
        if theme.words:
            assert face.width(theme.words[name]) <= place.label.width
    down, up = (element.box for element in layout.tax_buttons)
    assert not down.meets(up)
    assert not down.meets(layout.fields["tax"].value)
    assert up.right <= layout.fields["tax"].box.right


@pytest.mark.parametrize(("theme", "size"), LOOKS, ids=lambda value: getattr(value, "name", None))
def test_every_value_fits_into_its_place(theme: Theme, size: tuple[int, int]) -> None:
    layout, face = lay_out(theme, size)
    form = theme.format
    amounts = [sign * digit * 10**power for sign in (1, -1) for digit in (1, 4, 8, 9) for power in range(8)]
    texts = {
        "date": [form.day(Date(1900 + 7 * month, month, day)) for month in range(1, 13) for day in (1, 28, 30)],
        "funds": [form.money(amount) for amount in amounts if amount > -10_000_000],
        "balance": [form.money(amount, signed=True) for amount in amounts if abs(amount) < 100_000],
        "population": [form.number(amount) for amount in range(0, 450_000, 9_973)],
        "tax": [form.share(percent) for percent in range(21)],
        "happiness": [form.share(percent) for percent in range(101)],
    }
    for name, shown in texts.items():
        for text in shown:
            assert face.width(text) <= layout.fields[name].value.width - 2, f"{text} does not fit into {name}"
    assert max(face.width(f"{entry.label}") for entry in layout.tools) <= layout.tool_label.width


def test_small_maps_are_shown_whole_and_large_ones_are_scrolled() -> None:
    whole_map, _ = lay_out(THEMES["classic"], (1280, 720))
    assert (whole_map.view.columns, whole_map.view.rows, whole_map.view.scrolls) == (32, 24, ())
    part, _ = lay_out(THEMES["classic"], (640, 400), (96, 96))
    assert part.view.tile == 16
    assert part.view.columns < 96
    assert {element.name for element in part.view.scrolls} == {
        "scroll.left",
        "scroll.right",
        "scroll.up",
        "scroll.down",
    }


def test_pictures_that_are_too_small_are_refused() -> None:
    with pytest.raises(ConfigError, match="300x200"):
        lay_out(THEMES["classic"], (300, 200))
    with pytest.raises(ConfigError, match="'winter'"):
        read_settings(CityDisplay, {"themes": ("wintre",)}, "city-v1")
    with pytest.raises(UnknownNameError, match="classic"):
        theme_of("klassic")


def test_themes_differ_in_place_letters_and_format() -> None:
    assert len(THEMES) >= 4
    for attribute in ("arrangement", "family", "palette", "map_colors", "format"):
        values = [getattr(theme, attribute) for theme in THEMES.values()]
        assert all(a != b for a, b in combinations(values, 2)), attribute


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (Format(), 1_234_567, "$1,234,567"),
        (Format(), -45, "-$45"),
        (Format(thousands=".", currency="€", currency_first=False), -12_345, "-12.345 €"),
        (Format(short_from=10_000), 9_999, "$9,999"),
        (Format(short_from=10_000), 12_399, "$12.3k"),
        (Format(short_from=10_000), -2_999_999, "-$2.9M"),
    ],
)
def test_money_is_written_as_the_format_says(form: Format, value: int, text: str) -> None:
    assert form.money(value) == text


def test_what_abbreviated_numbers_say() -> None:
    form = Format(short_from=10_000, date="Mar 1901")
    assert [form.said(value) for value in (9_999, 12_399, -2_999_999)] == [9_999, 12_300, -2_900_000]
    assert form.said_date(Date(1901, 3, 12)) == Date(1901, 3, 1)
    assert form.money(500, signed=True) == "+$500"
    assert form.money(0, signed=True) == "$0"


def test_dates_are_written_as_the_format_says() -> None:
    date = Date(1901, 3, 2)
    assert [theme.format.day(date) for theme in THEMES.values()] == [
        "Mar 2, 1901",
        "02.03.1901",
        "2 Mar 1901",
        "1901-03-02",
        "Mar 1901",
    ]


def test_figures_are_rounded_half_up() -> None:
    assert [whole(value) for value in (0.49, 0.5, 1.5, 2.5, -0.5, -1.49)] == [0, 1, 2, 3, -1, -1]


def test_boxes_are_moved_into_their_area() -> None:
    assert Box(90, -5, 20, 10).within(Box(0, 0, 100, 100)) == Box(80, 0, 20, 10)
    assert Box(10, 20, 30, 40).region(100, 200).box(100, 200) == (10, 20, 30, 40)
