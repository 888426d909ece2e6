"""Themes: colours, letters, places, words and formats of the same content. Pure data: nothing here draws."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import BeforeValidator, Field, TypeAdapter, field_validator

from ludus.config import read_yaml
from ludus.core.errors import UnknownNameError, did_you_mean
from ludus.envs.colors import Color
from ludus.envs.settings import EnvSettings
from ludus.worlds.city.perception.reading import MONTHS, Date

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
    """Number and date formats."""

    thousands: str = ","  # what stands between groups of three digits
    point: str = "."  # what stands before tenths
    currency: str = "$"  # the sign of money
    currency_first: bool = True  # whether it stands before the number
    percent: str = "%"  # what stands after a percentage
    date: DateStyle = "Mar 12, 1901"  # written as the 12th of March 1901 in the name
    # Numbers of at least this size are written in k or M with one digit after the point; 0 for never.
    short_from: int = 0

    def number(self, value: int) -> str:
        """Format an integer."""
        sign, size = ("-" if value < 0 else ""), abs(value)
        if self.short_from and size >= self.short_from:
            unit, letter = (1_000_000, "M") if size >= 1_000_000 else (1_000, "k")
            tenths = size * 10 // unit
            return f"{sign}{tenths // 10}{self.point}{tenths % 10}{letter}"
        return sign + f"{size:,}".replace(",", self.thousands)

    def money(self, value: int, *, signed: bool = False) -> str:
        """Write dollars, with a plus sign before gains if `signed`."""
        sign = "-" if value < 0 else "+" if signed and value > 0 else ""
        number = self.number(abs(value))
        return f"{sign}{self.currency}{number}" if self.currency_first else f"{sign}{number} {self.currency}"

    def share(self, value: int) -> str:
        """Write a percentage."""
        return f"{value}{self.percent}"

    def day(self, date: Date) -> str:
        """Write a date."""
        return _DATES[self.date](date)

    def said(self, value: int) -> int:
        """Return the number that `number` writes, which in k or M is not quite the value itself."""
        size = abs(value)
        if self.short_from and size >= self.short_from:
            tenth = 100_000 if size >= 1_000_000 else 100
            size = size // tenth * tenth
        return -size if value < 0 else size

    def said_date(self, date: Date) -> Date:
        """Return the date that `day` writes, which may have no day."""
        return Date(date.year, date.month) if self.date == "Mar 1901" else date


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text with placeholders: `{funds:money}` is written as `Format.money` does."""

    value: int
    form: Format

    def __format__(self, style: str) -> str:
        if style in ("signed", "owed"):
            return self.form.money(self.value if style == "signed" else -self.value, signed=style == "signed")
        return str(getattr(self.form, style)(self.value)) if style else str(self.value)


def whole(value: float) -> int:
    """Round half up, as figures are shown."""
    return int(value + 0.5) if value >= 0 else -int(0.5 - value)


Hue = Annotated[Color, BeforeValidator(lambda digits: tuple(bytes.fromhex(digits)))]  # `c0c0ba` in a file
Arrangement = Literal["top", "bottom", "left", "right", "ribbon"]
Family = Literal["pixel", "pixel bold", "crisp", "smooth", "smooth bold"]
Style = Literal["bevel", "flat", "round", "line"]
FIELDS = ("date", "funds", "balance", "population", "happiness", "traffic", "pollution", "land_value", "tax")


class TextMeasure(Protocol):
    """Measures text; painting provides it to the layout."""

    height: int

    def width(self, text: str) -> int:
        """Return the width of a line of text in pixels."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of the interface."""

    panel: Hue
    light: Hue
    dark: Hue
    ink: Hue
    dim: Hue
    accent: Hue
    accent_ink: Hue
    field: Hue
    field_ink: Hue
    gain: Hue
    loss: Hue
    frame: Hue


@dataclass(frozen=True, slots=True)
class MapColors:
    """Colours of the map."""

    grass: Hue
    grass_dark: Hue
    water: Hue
    water_light: Hue
    tree: Hue
    trunk: Hue
    hill: Hue
    hill_light: Hue
    road: Hue
    mark: Hue
    residential: Hue
    commercial: Hue
    industrial: Hue
    wall: Hue
    roof: Hue
    glass: Hue


@dataclass(frozen=True, slots=True)
class Theme:
    """Appearance of the game."""

    name: str  # its name
    arrangement: Arrangement  # where HUD, palette and menus are
    family: Family  # its letters
    # Of the letters in small, middle and large pictures: a factor for pixel letters, else a height.
    sizes: tuple[int, int, int]
    style: Style  # how panels and buttons are framed
    palette: Palette  # colours of the interface
    map_colors: MapColors  # colours of the map
    format: Format  # how numbers are written
    # What each field of the HUD is called; an empty word shows a picture instead.
    words: dict[str, str] = field(default_factory=dict)
    right_aligned: bool = False  # whether values stand at the right end of their fields

    def size_for(self, height: int) -> int:
        """Return the size of the letters in a picture of this height."""
        return self.sizes[0] if height < 500 else self.sizes[1] if height < 700 else self.sizes[2]


_FILE = Path(__file__).with_name("themes.yaml")
THEMES = {
    theme.name: theme for theme in TypeAdapter(tuple[Theme, ...]).validate_python(read_yaml(_FILE, "themes", 50_000))
}


def theme_of(name: str) -> Theme:
    """Return a theme by its name; raise UnknownNameError if there is none."""
    if name not in THEMES:
        raise UnknownNameError("theme", name, THEMES)
    return THEMES[name]


MIN_SIZE = (560, 360)  # pixels; smaller pictures have no room for the HUD
RESOLUTIONS = ((640, 400), (800, 600), (1280, 720))  # that are drawn and tested in every theme


class CityDisplay(EnvSettings):
    """How the game looks.

    Attributes:
        themes: Names of themes; the games of a batch use them in turn.
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
    """

    themes: Annotated[tuple[str, ...], Field(min_length=1, max_length=64, strict=False)] = ("classic",)
    width: Annotated[int, Field(ge=MIN_SIZE[0], le=3840)] = 640
    height: Annotated[int, Field(ge=MIN_SIZE[1], le=2160)] = 400

    @field_validator("themes")
    @classmethod
    def _known(cls, themes: tuple[str, ...]) -> tuple[str, ...]:
        for name in themes:
            if name not in THEMES:
                raise ValueError(f"unknown theme {name!r}{did_you_mean(name, THEMES)}; valid: {', '.join(THEMES)}")
        return themes
