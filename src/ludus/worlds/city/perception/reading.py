"""Readings: what a part of the screen says, as a typed value or as *unreadable*, never as a guess.

A wrong number is worse than none: groups of digits must be complete; a leading zero, a foreign digit or a misplaced
sign makes the text unreadable; a date that could be two dates is none.
"""

import re
import string
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from ludus.worlds.city.drivers.driver import Frame, Region

Kind: TypeAlias = Literal["number", "money", "percent", "date", "text"]


@dataclass(frozen=True, slots=True)
class Date:
    """A date of a game's calendar; `day` is 1 where a game shows none."""

    year: int
    month: int
    day: int = 1

    @property
    def days(self) -> int:
        """Days since year 0 (30 per month), to compare and subtract dates."""
        return (self.year * 12 + self.month - 1) * 30 + self.day - 1


Value: TypeAlias = float | Date | str


@dataclass(frozen=True, slots=True)
class Reading:
    """One field as it was read."""

    field: str  # its name, such as `funds`
    value: Value | None  # what it says; None if it could not be read
    confidence: float  # from 0 to 1; 0 if it could not be read
    age_s: float = 0.0  # since it was last read well; the value is that old
    text: str = ""  # the characters as they were read, for people
    engine: str = ""  # who read it: `glyphs`, `rapidocr`, `bars` or `truth`

    @property
    def is_readable(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


def unreadable(field: str, text: str = "", engine: str = "") -> Reading:
    """Return the reading of a field that says nothing that can be understood."""
    return Reading(field, None, 0.0, text=text, engine=engine)


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONG_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_OF = {name.lower(): index % 12 + 1 for index, name in enumerate(MONTHS + _LONG_MONTHS)} | {"sept": 9}
_EXPONENTS = {"": 0, "k": 3, "K": 3, "M": 6}
_MINUSES = str.maketrans({"\u2212": "-", "\u2013": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
_MAX_DIGITS = 15  # more than a double holds exactly, and more than any game shows
_MAX_LENGTH = 64
_DAY, _WORD = r"(?P<day>\d{1,2})", r"(?P<month>[A-Za-z]{3,9})\.?"
_SHORT_DATES = tuple(
    re.compile(rf"{day_and_month}(?P<year>0|[1-9]\d{{0,3}})")
    for day_and_month in (rf"{_DAY}\.? ?{_WORD} ?", rf"{_DAY}/(?P<month>\d{{1,2}})/")
)
_DATES = (
    re.compile(rf"(?:{_DAY}\.? ?)?{_WORD} ?(?P<year>\d{{4}})"),
    re.compile(rf"{_WORD} ?{_DAY}, ?(?P<year>\d{{4}})"),
    re.compile(rf"{_DAY}\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}})"),
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
)


@dataclass(frozen=True, slots=True)
class Notation:
    """How a game writes its numbers."""

    thousands: str = ","  # what may stand between groups of three digits; empty if nothing may
    point: str = "."  # what stands before the digits after the point
    # Whether numbers from 1,000 on must be in groups; a missing separator then makes them unreadable.
    grouped: bool = False
    # Signs of money, each before or after the number.
    currencies: tuple[str, ...] = ("$", "\u20ac", "\u00a3", "\u00a5", "cr", "\u00a7")
    # Whether a date such as `15. Jan 0` or `15/1/0` counts: day, month and a year of any length.
    short_years: bool = False


PLAIN = Notation()


def parse(text: str, kind: Kind, notation: Notation = PLAIN) -> Value | None:
    """Return what a text says as a value of this kind, or None if that is not perfectly clear."""
    if len(text) > _MAX_LENGTH:
        return None
    words = " ".join(text.translate(_MINUSES).split())
    if kind == "text":
        return words or None
    if kind == "date":
        return parse_date(words, short_years=notation.short_years)
    if kind == "percent":
        return parse_number(words[:-1].rstrip(" "), notation, units=False) if words.endswith("%") else None
    return parse_money(words, notation) if kind == "money" else parse_number(words, notation)


def parse_number(text: str, notation: Notation = PLAIN, *, units: bool = True) -> float | None:
    """Return the number of a text such as `-1,234.5` or, with units, `12.3k`."""
    match = _number(notation).fullmatch(text)
    if match is None or (match["unit"] and not units):
        return None
    digits, fraction = match["whole"].replace(notation.thousands, ""), match["fraction"] or "0"
    if len(digits) + len(match["fraction"] or "") > _MAX_DIGITS:
        return None
    # The exponent is parsed with the digits: 8373.7 times 1e6 is not 8373700000 in binary.
    size = float(f"{digits}.{fraction}e{_EXPONENTS[match['unit'] or '']}")
    return -size if match["sign"] == "-" else size


@cache
def _number(notation: Notation) -> re.Pattern[str]:
    """Return the pattern of a number: whole groups of three or, where they need not be, plain digits."""
    whole = rf"0|[1-9]\d{{0,2}}(?:{re.escape(notation.thousands)}\d{{3}}){'*' if notation.thousands else '{0}'}"
    whole += "" if notation.grouped else r"|[1-9]\d*"
    fraction = rf"(?:{re.escape(notation.point)}(?P<fraction>\d+))?"
    return re.compile(rf"(?:(?P<sign>[+-]) *)?(?P<whole>{whole}){fraction}(?: *(?P<unit>[kKM]))?", re.ASCII)


def parse_money(text: str, notation: Notation = PLAIN) -> float | None:
    """Return the amount of a text such as `-$1,234`, `$-5`, `+1.234 EUR` in its own sign, or `($20)`."""
    if text.startswith("(") and text.endswith(")"):  # as accountants write what is owed
        owed = parse_money(text[1:-1], notation)
        return -owed if owed is not None and owed > 0 else None
    sign = text[:1] if text[:1] in ("+", "-") else ""
    amount = text[1:].lstrip(" ") if sign else text
    currency = "|".join(map(re.escape, notation.currencies))
    amount = re.sub(rf"^(?:{currency}) *| *(?:{currency})$", "", amount, count=1)
    size = None if sign and amount[:1] in ("+", "-") else parse_number(amount, notation)
    return -size if size is not None and sign == "-" else size


def parse_date(text: str, *, short_years: bool = False) -> Date | None:
    """Return the date of a text such as `Mar 12, 1901`, `12.03.1901`, `1901-03-12`, `12 March 1901` or `Mar 1901`."""
    patterns = (*_SHORT_DATES, *_DATES) if short_years else _DATES
    match = next((match for pattern in patterns if (match := pattern.fullmatch(text))), None)
    if match is None or not text.isascii():
        return None
    year, word, day = int(match["year"]), match["month"], int(match["day"] or 1)
    month = int(word) if word.isdigit() else _MONTH_OF.get(word.lower(), 0)
    # Calendars of games may have months of 30 or 31 days throughout, so only what no calendar has is refused.
    is_date = (year > 0 or match.re in _SHORT_DATES) and 1 <= month <= 12 and 1 <= day <= 31
    return Date(year, month, day) if is_date else None


_NUMBER = string.digits + "+-\u2212.,' "
_LETTERS = string.ascii_letters


@dataclass(frozen=True, slots=True)
class Field:
    """Something that a game's picture says."""

    name: str  # its name, such as `funds`
    kind: Kind  # what sort of value it is
    region: Region  # where it stands
    notation: Notation = PLAIN  # how the game writes numbers
    prefix: str = ""  # words before the value, such as `Funds:`; without them the field is unreadable
    least: float | None = None  # values below are unreadable
    most: float | None = None  # values above are unreadable
    ink: tuple[int, int, int] | None = None  # colour of the letters, where they stand on a picture

    @property
    def alphabet(self) -> frozenset[str] | None:
        """Letters that can stand in it; None for all."""
        if self.kind == "text":
            return None
        extra = {"date": _LETTERS + "/", "percent": "%", "number": "kKM"}
        letters = _NUMBER + self.notation.thousands + self.prefix
        letters += extra.get(self.kind, "kKM()" + "".join(self.notation.currencies))
        return frozenset(letters)

    def cut(self, frame: Frame) -> Frame:
        """Return its part of a picture `(height, width, 3)`: dark letters on white if their colour is known."""
        crop = self.region.cut(frame)
        if self.ink is None:
            return crop
        apart = np.abs(crop.astype(np.int16) - np.array(self.ink, np.int16)).max(axis=2)
        return np.repeat(np.minimum(apart * 3 // 2, 255).astype(np.uint8)[:, :, None], 3, axis=2)

    def understood(self, text: str, confidence: float, engine: str) -> Reading:
        """Return what a text says of this field: a value within its limits, or unreadable."""
        words = self.value_text(text)
        value = parse(words, self.kind, self.notation) if words is not None and confidence > 0.0 else None
        is_less = self.least is not None and isinstance(value, float) and value < self.least
        is_more = self.most is not None and isinstance(value, float) and value > self.most
        if value is None or is_less or is_more:
            return unreadable(self.name, text, engine)
        return Reading(self.name, value, confidence, text=text, engine=engine)

    def value_text(self, text: str) -> str | None:
        """Return a text without the words before the value, spaces not counted; None if it does not begin with them.

        Engines take the colon of known words for a semicolon, which changes nothing.
        """
        letters = ("[:;]" if letter == ":" else re.escape(letter) for letter in "".join(self.prefix.split()))
        begin = re.match(" *".join(letters), text.strip())
        return text.strip()[begin.end() :].strip() if begin else None
