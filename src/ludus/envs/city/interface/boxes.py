"""Rectangles in pixels, and cutting strips off them."""

from typing import NamedTuple

from ludus.envs.city.drivers.driver import Point, Region


class Box(NamedTuple):
    """A rectangle in pixels of the game's picture."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """First column to the right of it."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """First row below it."""
        return self.top + self.height

    @property
    def middle(self) -> tuple[int, int]:
        """The pixel in the middle of it."""
        return self.left + self.width // 2, self.top + self.height // 2

    def holds(self, x: int, y: int) -> bool:
        """Whether a pixel lies in it."""
        return self.left <= x < self.left + self.width and self.top <= y < self.top + self.height

    def meets(self, other: "Box") -> bool:
        """Whether it shares a pixel with another."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def inset(self, across: int, down: int) -> "Box":
        """Returns the box without a margin on each side."""
        return Box(self.left + across, self.top + down, self.width - 2 * across, self.height - 2 * down)

    def within(self, outer: "Box") -> "Box":
        """Returns the box moved, as little as possible, so that it does not stick out of another."""
        left = max(min(self.left, outer.right - self.width), outer.left)
        top = max(min(self.top, outer.bottom - self.height), outer.top)
        return Box(left, top, self.width, self.height)

    def region(self, width: int, height: int) -> Region:
        """Returns it as fractions of a picture of this size."""
        return Region(self.left / width, self.top / height, self.right / width, self.bottom / height)


class Sheet:
    """A rectangle from which strips are cut until the rest is left."""

    def __init__(self, width: int, height: int) -> None:
        self.rest = Box(0, 0, width, height)

    def top(self, height: int) -> Box:
        """Cuts a strip off the upper side."""
        rest = self.rest
        self.rest = Box(rest.left, rest.top + height, rest.width, rest.height - height)
        return Box(rest.left, rest.top, rest.width, height)

    def bottom(self, height: int) -> Box:
        """Cuts a strip off the lower side."""
        rest = self.rest
        self.rest = Box(rest.left, rest.top, rest.width, rest.height - height)
        return Box(rest.left, rest.bottom - height, rest.width, height)

    def left(self, width: int) -> Box:
        """Cuts a strip off the left side."""
        rest = self.rest
        self.rest = Box(rest.left + width, rest.top, rest.width - width, rest.height)
        return Box(rest.left, rest.top, width, rest.height)

    def right(self, width: int) -> Box:
        """Cuts a strip off the right side."""
        rest = self.rest
        self.rest = Box(rest.left, rest.top, rest.width - width, rest.height)
        return Box(rest.right - width, rest.top, width, rest.height)


def point_in(x: int, y: int, width: int, height: int) -> Point:
    """Returns the middle of a pixel as fractions of a picture of this size."""
    return Point((x + 0.5) / width, (y + 0.5) / height)
