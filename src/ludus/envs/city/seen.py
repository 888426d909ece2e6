"""What was read of one game, field by field, as people and guides are shown it."""

from typing import NamedTuple

from ludus.envs.city.perception.reading import Kind
from ludus.envs.city.table import CityTable

UNREADABLE = "unreadable"
_YEAR_DAYS, _MONTH_DAYS = 360, 30
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Seen(NamedTuple):
    """A field as it was read last.

    Attributes:
        name: Its name.
        kind: What sort of value it is.
        value: What it says, dates in days of 30 a month since year 0; None if it could not be read.
        confidence: From 0 to 1.
        age: Decisions since it was last readable.
    """

    name: str
    kind: Kind
    value: float | None
    confidence: float
    age: int

    @property
    def text(self) -> str:
        """What it says, for people."""
        if self.value is None:
            return UNREADABLE
        if self.kind == "date":
            return day_text(int(self.value))
        if self.kind == "money":
            return f"{'-' if self.value < 0 else ''}${abs(self.value):,.0f}"
        return f"{self.value:,.0f}{'%' if self.kind == 'percent' else ''}"


def seen_fields(table: CityTable, game: int) -> tuple[Seen, ...]:
    """Returns what was read of a game, in the order of the table's fields."""
    sight = table.sight
    return tuple(
        Seen(
            field.name,
            field.kind,
            float(sight.values[game, number]) if sight.readable[game, number] else None,
            float(sight.confidence[game, number]),
            int(sight.age[game, number]),
        )
        for number, field in enumerate(table.fields)
    )


def day_text(days: int) -> str:
    """Returns a date, given in days of 30 a month since year 0, as `3 Mar 1987`."""
    year, rest = divmod(days, _YEAR_DAYS)
    month, day = divmod(rest, _MONTH_DAYS)
    return f"{day + 1} {_MONTHS[month]} {year}"
