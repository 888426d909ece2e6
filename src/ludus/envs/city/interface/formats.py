"""How numbers, money and dates are written; every theme has its own way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ludus.envs.city.perception.reading import Date

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DateStyle = Literal["Mar 12, 1901", "12.03.1901", "1901-03-12", "12 Mar 1901", "Mar 1901"]
_DATES: dict[DateStyle, Callable[[Date], str]] = {
    "Mar 12, 1901": lambda date: f"{MONTHS[date.month - 1]} {date.day}, {date.year}",
    "12.03.1901": lambda date: f"{date.day:02d}.{date.month:02d}.{date.year}",
    "1901-03-12": lambda date: f"{date.year}-{date.month:02d}-{date.day:02d}",
    "12 Mar 1901": lambda date: f"{date.day} {MONTHS[date.month - 1]} {date.year}",
    "Mar 1901": lambda date: f"{MONTHS[date.month - 1]} {date.year}",
}


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write numbers.

    Attributes:
        thousands: What stands between groups of three digits.
        point: What stands before tenths.
        currency: The sign of money.
        currency_first: Whether it stands before the number.
        percent: What stands after a percentage.
        date: Written as the 12th of March 1901 in the name.
        short_from: Numbers of at least this size are written in k or M with one digit after the point; 0 for never.
    """

    thousands: str = ","
    point: str = "."
    currency: str = "$"
    currency_first: bool = True
    percent: str = "%"
    date: DateStyle = "Mar 12, 1901"
    short_from: int = 0

    def number(self, value: int) -> str:
        """Writes a whole number."""
        sign, size = ("-" if value < 0 else ""), abs(value)
        if self.short_from and size >= self.short_from:
            unit, letter = (1_000_000, "M") if size >= 1_000_000 else (1_000, "k")
            tenths = size * 10 // unit
            return f"{sign}{tenths // 10}{self.point}{tenths % 10}{letter}"
        return sign + f"{size:,}".replace(",", self.thousands)

    def money(self, value: int, *, signed: bool = False) -> str:
        """Writes dollars, with a plus sign before gains if `signed`."""
        sign = "-" if value < 0 else "+" if signed and value > 0 else ""
        number = self.number(abs(value))
        return f"{sign}{self.currency}{number}" if self.currency_first else f"{sign}{number} {self.currency}"

    def share(self, value: int) -> str:
        """Writes a percentage."""
        return f"{value}{self.percent}"

    def day(self, date: Date) -> str:
        """Writes a date."""
        return _DATES[self.date](date)

    def said(self, value: int) -> int:
        """Returns the number that `number` writes, which in k or M is not quite the value itself."""
        size = abs(value)
        if self.short_from and size >= self.short_from:
            tenth = 100_000 if size >= 1_000_000 else 100
            size = size // tenth * tenth
        return -size if value < 0 else size

    def said_date(self, date: Date) -> Date:
        """Returns the date that `day` writes, which may have no day."""
        return Date(date.year, date.month) if self.date == "Mar 1901" else date


def whole(value: float) -> int:
    """Rounds half up, as figures are shown."""
    return int(value + 0.5) if value >= 0 else -int(0.5 - value)
