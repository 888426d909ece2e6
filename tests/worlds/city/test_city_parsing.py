"""Numbers, money, percentages and dates: round trips over formats, hand-picked cases, hostile strings."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ludus.worlds.city.perception.reading import Date, Kind, Notation, Value, parse, parse_number

GERMAN = Notation(thousands=".", point=",")
SPACED = Notation(thousands=" ", grouped=True)
SEPARATORS = [(",", "."), (".", ","), (" ", "."), ("'", ".")]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0", "number", 0.0),
        ("1,234,567", "number", 1234567.0),
        ("20000", "number", 20000.0),
        ("-3.25", "number", -3.25),
        ("\u22125", "number", -5.0),
        ("12.3k", "number", 12300.0),
        ("1.1M", "number", 1100000.0),
        ("$20,000", "money", 20000.0),
        ("-$1,234", "money", -1234.0),
        ("$-1,234", "money", -1234.0),
        ("+$12", "money", 12.0),
        ("($20)", "money", -20.0),
        ("1,234 cr", "money", 1234.0),
        ("$101.5k", "money", 101500.0),
        ("7%", "percent", 7.0),
        ("7 %", "percent", 7.0),
        ("-3.5%", "percent", -3.5),
        ("Mar 12, 1901", "date", Date(1901, 3, 12)),
        ("12.03.1901", "date", Date(1901, 3, 12)),
        ("1901-03-12", "date", Date(1901, 3, 12)),
        ("12 March 1901", "date", Date(1901, 3, 12)),
        ("Mar 1901", "date", Date(1901, 3)),
        ("Mar12,1901", "date", Date(1901, 3, 12)),
        ("FEB 30, 2000", "date", Date(2000, 2, 30)),
        ("  Fire   station ", "text", "Fire station"),
    ],
)
def test_says_what_is_written(text: str, kind: Kind, value: Value) -> None:
    assert parse(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "number"),
        ("-", "number"),
        ("--5", "number"),
        ("1,23", "number"),
        ("1,2345", "number"),
        ("1234,567", "number"),
        (",123", "number"),
        ("12,", "number"),
        ("007", "number"),
        ("0,123", "number"),
        ("1.", "number"),
        (".5", "number"),
        ("1.2.3", "number"),
        ("12O", "number"),
        ("l2", "number"),
        ("1 2", "number"),
        ("k", "number"),
        ("5kk", "number"),
        ("1e5", "number"),
        ("nan", "number"),
        ("inf", "number"),
        ("1_000", "number"),
        ("\u0661\u0662", "number"),
        ("\u00b2", "number"),
        ("9" * 16, "number"),
        ("9" * 500, "number"),
        ("$", "money"),
        ("-$-5", "money"),
        ("$5$", "money"),
        ("S20,000", "money"),
        ("(-$5)", "money"),
        ("7", "percent"),
        ("%", "percent"),
        ("7%%", "percent"),
        ("Mar 0, 1901", "date"),
        ("Mar 32, 1901", "date"),
        ("Mxr 12, 1901", "date"),
        ("3/4/1901", "date"),
        ("13.13.1901", "date"),
        ("1901-3-12", "date"),
        ("Mar 12, 190", "date"),
        ("12 Mar 12, 1901", "date"),
        ("Mar 0000", "date"),
        ("   ", "text"),
    ],
)
def test_says_nothing_when_unclear(text: str, kind: Kind) -> None:
    assert parse(text, kind) is None


def test_the_notation_decides_what_a_dot_means() -> None:
    assert parse("1.234", "number", GERMAN) == 1234.0
    assert parse("1.234", "number") == 1.234
    assert parse("1.234,5", "number", GERMAN) == 1234.5
    assert parse("1.234,5", "number") is None


def test_missing_separators_are_refused_where_numbers_are_grouped() -> None:
    assert parse("1 234", "number", SPACED) == 1234.0
    assert parse("1234", "number", SPACED) is None
    assert parse("999", "number", SPACED) == 999.0


@given(
    st.integers(-(10**12), 10**12),
    st.sampled_from(SEPARATORS),
    st.sampled_from(["$", "\u20ac", "cr"]),
    st.booleans(),
    st.booleans(),
)
def test_money_comes_back(value: int, separators: tuple[str, str], sign: str, first: bool, plus: bool) -> None:
    thousands, point = separators
    digits = f"{abs(value):,}".replace(",", thousands)
    before = "-" if value < 0 else "+" if plus else ""
    text = f"{before}{sign}{digits}" if first else f"{before}{digits} {sign}"
    assert parse(text, "money", Notation(thousands=thousands, point=point, grouped=True)) == value


@given(st.integers(0, 99_999), st.sampled_from(["k", "M"]), st.sampled_from(SEPARATORS))
def test_tenths_of_thousands_come_back(tenths: int, unit: str, separators: tuple[str, str]) -> None:
    thousands, point = separators
    text = f"{tenths // 10:,}".replace(",", thousands) + f"{point}{tenths % 10}{unit}"
    expected = tenths * (100 if unit == "k" else 100_000)
    assert parse(text, "number", Notation(thousands=thousands, point=point)) == expected


@given(st.integers(1, 9999), st.integers(1, 12), st.integers(1, 31))
def test_dates_come_back(year: int, month: int, day: int) -> None:
    name, date = MONTHS[month - 1], Date(year, month, day)
    for text in (
        f"{name} {day}, {year:04d}",
        f"{day} {name} {year:04d}",
        f"{day:02d}.{month:02d}.{year:04d}",
        f"{year:04d}-{month:02d}-{day:02d}",
    ):
        assert parse(text, "date") == date, text


@given(st.text(max_size=80))
def test_hostile_text_gives_finite_numbers_with_its_own_digits_or_nothing(text: str) -> None:
    kinds: tuple[Kind, ...] = ("number", "money", "percent", "date", "text")
    for kind in kinds:
        value = parse(text, kind)
        if isinstance(value, float):
            assert math.isfinite(value)
            assert any(letter in "0123456789" for letter in text)


@given(st.integers(1000, 10**9), st.data())
def test_a_dropped_digit_is_noticed_in_groups(value: int, data: st.DataObject) -> None:
    text = f"{value:,}"
    place = data.draw(st.sampled_from([i for i, letter in enumerate(text) if letter.isdigit() and i > text.index(",")]))
    assert parse_number(text[:place] + text[place + 1 :], Notation(grouped=True)) is None
