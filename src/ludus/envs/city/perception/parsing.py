"""From characters to typed values: numbers, money, percentages and dates. Whatever is unclear is no value at all.

A wrong number is worse than none, so nothing is guessed: groups of digits must be whole; a leading zero, a foreign
digit or a sign in the wrong place makes the text unreadable; a date that could be two dates is none.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ludus.envs.city.perception.reading import Date, Kind, Value

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_OF = {name: index % 12 + 1 for index, name in enumerate(MONTHS + _LONG_MONTHS)} | {"sept": 9}
_UNITS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}
_MINUSES = str.maketrans({"\u2212": "-", "\u2013": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_MAX_DIGITS = 15  # more than a double holds exactly, and more than any game shows
_MAX_LENGTH = 64
_WORD_DATE = re.compile(
    r"(?:(?P<day1>\d{1,2})\.? ?)?(?P<month>[A-Za-z]{3,9})\.?(?: ?(?P<day2>\d{1,2}),)? ?(?P<year>\d{4})"
)
_DOTTED_DATE = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})")
_ISO_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})")
_SLASHED_DATE = re.compile(r"(?P<first>\d{1,2})/(?P<second>\d{1,2})/(?P<year>\d{4})")

Slashes: TypeAlias = Literal["unclear", "day first", "month first"]


@dataclass(frozen=True, slots=True)
class Notation:
    """How a game writes its numbers.

    Attributes:
        thousands: What may stand between groups of three digits; empty if nothing may.
        point: What stands before the digits after the point.
        grouped: Whether numbers from 1,000 on must be in groups; a missing separator then makes them unreadable.
        currencies: Signs of money, each before or after the number.
        slashes: Which part of 3/4/1901 is the day.
    """

    thousands: str = ","
    point: str = "."
    grouped: bool = False
    currencies: tuple[str, ...] = ("$", "\u20ac", "\u00a3", "\u00a5", "cr", "\u00a7")
    slashes: Slashes = "unclear"


PLAIN = Notation()


def parse(text: str, kind: Kind, notation: Notation = PLAIN) -> Value | None:
    """Returns what a text says as a value of this kind, or None if that is not perfectly clear."""
    if len(text) > _MAX_LENGTH:
        return None
    words = " ".join(text.translate(_MINUSES).split())
    if kind == "text":
        return words or None
    if kind == "date":
        return parse_date(words, notation)
    if kind == "percent":
        return parse_number(words[:-1].rstrip(" "), notation, units=False) if words.endswith("%") else None
    return parse_money(words, notation) if kind == "money" else parse_number(words, notation)


def parse_number(text: str, notation: Notation = PLAIN, *, units: bool = True) -> float | None:
    """Returns the number of a text such as `-1,234.5` or, with units, `12.3k`."""
    sign, digits = _signed(text)
    unit = digits[-1:] if units and digits[-1:] in ("k", "K", "M") else ""
    size = _unsigned(digits[: len(digits) - len(unit)].rstrip(" ") if unit else digits, notation)
    if size is None:
        return None
    value = sign * size * _UNITS[unit]
    return round(value, 6) if unit else value


def parse_money(text: str, notation: Notation = PLAIN) -> float | None:
    """Returns the amount of a text such as `-$1,234`, `$-5`, `+1.234 EUR` in its own sign, or `($20)`."""
    if text.startswith("(") and text.endswith(")"):  # as accountants write what is owed
        owed = parse_money(text[1:-1], notation)
        return -owed if owed is not None and owed > 0 else None
    sign, amount = _signed(text)
    has_sign = amount != text
    for currency in notation.currencies:
        if amount.startswith(currency):
            amount = amount[len(currency) :].lstrip(" ")
            break
        if amount.endswith(currency):
            amount = amount[: -len(currency)].rstrip(" ")
            break
    if has_sign and amount[:1] in ("+", "-"):
        return None
    size = parse_number(amount, notation)
    return None if size is None else sign * size


def parse_date(text: str, notation: Notation = PLAIN) -> Date | None:
    """Returns the date of a text such as `Mar 12, 1901`, `12.03.1901`, `1901-03-12`, `12 March 1901` or `Mar 1901`."""
    if not text.isascii():
        return None
    if match := _WORD_DATE.fullmatch(text):
        month = _MONTH_OF.get(match["month"].lower())
        if month is None or (match["day1"] and match["day2"]):
            return None
        return _checked(match["year"], month, match["day1"] or match["day2"] or "1")
    if match := _DOTTED_DATE.fullmatch(text) or _ISO_DATE.fullmatch(text):
        return _checked(match["year"], int(match["month"]), match["day"])
    match = _SLASHED_DATE.fullmatch(text)
    if match is None or notation.slashes == "unclear":
        return None
    day, month_text = match["first"], match["second"]
    if notation.slashes == "month first":
        day, month_text = month_text, day
    return _checked(match["year"], int(month_text), day)


def _checked(year: str, month: int, day: str) -> Date | None:
    """Calendars of games may have months of 30 or 31 days throughout, so only what no calendar has is refused."""
    if int(year) == 0 or not 1 <= month <= 12 or not 1 <= int(day) <= 31:
        return None
    return Date(int(year), month, int(day))


def _signed(text: str) -> tuple[int, str]:
    """Splits a sign off; a space may follow it."""
    if text[:1] in ("+", "-"):
        return (-1 if text[0] == "-" else 1), text[1:].lstrip(" ")
    return 1, text


def _unsigned(text: str, notation: Notation) -> float | None:
    """Returns the number of digits with whole groups of three and at most one point."""
    whole, point, fraction = text.partition(notation.point)
    if point and not (_digits(fraction) and fraction):
        return None
    groups = whole.split(notation.thousands) if notation.thousands else [whole]
    if not all(map(_digits, groups)):
        return None
    if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
        return None
    digits = "".join(groups)
    if notation.grouped and len(groups) == 1 and len(digits) > 3:
        return None
    if not digits or len(digits) + len(fraction) > _MAX_DIGITS or (len(digits) > 1 and digits[0] == "0"):
        return None
    return float(f"{digits}.{fraction or '0'}")


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
