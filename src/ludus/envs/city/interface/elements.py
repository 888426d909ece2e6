"""Elements: everything on the screen that has a place, for clicks, for drawing and for audits alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ludus.envs.city.interface.boxes import Box

ElementKind = Literal["tool", "menu", "item", "field", "button", "scroll", "map", "dialog", "window", "bar"]


@dataclass(frozen=True, slots=True)
class Element:
    """Something with a place on the screen.

    Attributes:
        name: Its path, such as `tool.road`, `menu.speed.pause`, `field.funds`, `dialog.ok`.
        kind: What sort of thing it is.
        box: Where it is, in pixels.
        label: What is written on it, if anything.
        enabled: Whether a click does something.
    """

    name: str
    kind: ElementKind
    box: Box
    label: str = ""
    enabled: bool = True


def find_at(elements: Sequence[Element], x: int, y: int) -> Element | None:
    """Returns the topmost element at a pixel: the last of the list that holds it."""
    for element in reversed(elements):
        if element.box.holds(x, y):
            return element
    return None
