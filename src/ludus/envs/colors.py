"""Colours as renderers use them."""

from dataclasses import dataclass
from typing import TypeAlias

Color: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Team:
    """Name and colours of a team, or of a seat where everyone plays alone."""

    name: str
    base: Color
    dark: Color
    light: Color


def mixed(a: Color, b: Color, share: float) -> Color:
    """Return the colour at `share` (0 to 1) of the way from `a` to `b`."""
    t = min(max(share, 0.0), 1.0)
    return (round(a[0] + (b[0] - a[0]) * t), round(a[1] + (b[1] - a[1]) * t), round(a[2] + (b[2] - a[2]) * t))
