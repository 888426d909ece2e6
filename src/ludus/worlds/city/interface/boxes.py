"""Elements of the interface with their places, and cutting a picture into strips for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ludus.worlds.city.drivers.driver import Box, Point

Side = Literal["top", "bottom", "left", "right"]


class Sheet:
    """A rectangle from which strips are cut until the rest is left."""

    def __init__(self, width: int, height: int) -> None:
        self.rest = Box(0, 0, width, height)

    def cut(self, side: Side, size: int) -> Box:
        """Cut a strip of this thickness off a side and return it."""
        rest = self.rest
        if side in ("top", "bottom"):
            is_first = side == "top"
            self.rest = Box(rest.left, rest.top + (size if is_first else 0), rest.width, rest.height - size)
            return Box(rest.left, rest.top if is_first else rest.bottom - size, rest.width, size)
        is_first = side == "left"
        self.rest = Box(rest.left + (size if is_first else 0), rest.top, rest.width - size, rest.height)
        return Box(rest.left if is_first else rest.right - size, rest.top, size, rest.height)


def point_in(x: int, y: int, width: int, height: int) -> Point:
    """Return the middle of a pixel as fractions of a picture of this size."""
    return Point((x + 0.5) / width, (y + 0.5) / height)


ElementKind = Literal["tool", "menu", "item", "field", "button", "scroll", "map", "dialog", "window", "bar"]


@dataclass(frozen=True, slots=True)
class Element:
    """Something with a place on the screen."""

    name: str  # its path, such as `tool.road`, `menu.speed.pause`, `field.funds`, `dialog.ok`
    kind: ElementKind  # what sort of thing it is
    box: Box  # where it is, in pixels
    label: str = ""  # what is written on it, if anything


def find_at(elements: Sequence[Element], x: int, y: int) -> Element | None:
    """Return the topmost element at a pixel: the last of the list that holds it."""
    return next((element for element in reversed(elements) if element.box.holds(x, y)), None)
