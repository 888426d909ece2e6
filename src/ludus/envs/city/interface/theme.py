"""What a theme is: colours, letters, places, words and formats. Pure data: nothing here draws."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from ludus.envs.city.interface.formats import Format
from ludus.envs.colors import Color

Arrangement = Literal["top", "bottom", "left", "right", "ribbon"]
Family = Literal["pixel", "pixel bold", "crisp", "smooth", "smooth bold"]
Style = Literal["bevel", "flat", "round", "line"]
FIELDS = ("date", "funds", "balance", "population", "happiness", "traffic", "pollution", "land_value", "tax")


class Measure(Protocol):
    """How much room letters take; painting gives it to whoever lays out words."""

    height: int

    def width(self, text: str) -> int:
        """Returns the width of a line of text in pixels."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of the interface."""

    panel: Color
    light: Color
    dark: Color
    ink: Color
    dim: Color
    accent: Color
    accent_ink: Color
    field: Color
    field_ink: Color
    gain: Color
    loss: Color
    frame: Color


@dataclass(frozen=True, slots=True)
class Country:
    """Colours of the map."""

    grass: Color
    grass_dark: Color
    water: Color
    water_light: Color
    tree: Color
    trunk: Color
    hill: Color
    hill_light: Color
    road: Color
    mark: Color
    residential: Color
    commercial: Color
    industrial: Color
    wall: Color
    roof: Color
    glass: Color


@dataclass(frozen=True, slots=True)
class Theme:
    """A look of the game.

    Attributes:
        name: Its name.
        arrangement: Where HUD, palette and menus are.
        family: Its letters.
        sizes: Of the letters in small, middle and large pictures: a factor for pixel letters, else a height.
        style: How panels and buttons are framed.
        palette: Colours of the interface.
        country: Colours of the map.
        format: How numbers are written.
        words: What each field of the HUD is called; an empty word shows a picture instead.
        right_aligned: Whether values stand at the right end of their fields.
    """

    name: str
    arrangement: Arrangement
    family: Family
    sizes: tuple[int, int, int]
    style: Style
    palette: Palette
    country: Country
    format: Format
    words: dict[str, str] = field(default_factory=dict)
    right_aligned: bool = False

    def size_for(self, height: int) -> int:
        """Returns the size of the letters in a picture of this height."""
        return self.sizes[0] if height < 500 else self.sizes[1] if height < 700 else self.sizes[2]
