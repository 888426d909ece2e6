"""Readings: what a part of the screen says, as a value or as *unreadable*; never a number that was not there."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["number", "money", "percent", "date", "text"]


@dataclass(frozen=True, slots=True)
class Date:
    """A date of a game's calendar; `day` is 1 where a game shows none."""

    year: int
    month: int
    day: int = 1

    @property
    def days(self) -> int:
        """Days of 30 a month since year 0, to compare and subtract dates."""
        return (self.year * 12 + self.month - 1) * 30 + self.day - 1


Value: TypeAlias = float | Date | str


@dataclass(frozen=True, slots=True)
class Reading:
    """One field as it was read.

    Attributes:
        field: Its name, such as `funds`.
        value: What it says; None if it could not be read.
        confidence: From 0 to 1; 0 if it could not be read.
        age_s: Since it was last read well; the value is that old.
        text: The characters as they were read, for people.
        engine: Who read it: `glyphs`, `rapidocr`, `tesserocr` or `truth`.
    """

    field: str
    value: Value | None
    confidence: float
    age_s: float = 0.0
    text: str = ""
    engine: str = ""

    @property
    def is_readable(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def aged(self, seconds: float) -> "Reading":
        """Returns the same reading, some time later."""
        return replace(self, age_s=self.age_s + seconds)


def unreadable(field: str, text: str = "", engine: str = "") -> Reading:
    """Returns the reading of a field that says nothing that can be understood."""
    return Reading(field, None, 0.0, text=text, engine=engine)
