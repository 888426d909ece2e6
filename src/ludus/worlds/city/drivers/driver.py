"""Gestures, positions and failures: the vocabulary between City and a game, embedded or on a real screen.

Positions are fractions of the game's picture, `(0, 0)` its upper left corner and `(1, 1)` its lower right one, so that
a profile holds at every size. Only pictures come back from a game; perception reads them.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Frame: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Button: TypeAlias = Literal["left", "middle", "right"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the picture, as fractions of its width and height."""

    x: float
    y: float

    def pixel(self, width: int, height: int) -> tuple[int, int]:
        """Return its pixel in a picture of this size; places beyond the edge are moved onto it."""
        return min(max(int(self.x * width), 0), width - 1), min(max(int(self.y * height), 0), height - 1)


class Box(NamedTuple):
    """A rectangle in pixels of a picture or of the screen."""

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

    @property
    def area(self) -> tuple[slice, slice]:
        """Its rows and columns, as the index of a picture."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def holds(self, x: int, y: int) -> bool:
        """Whether a pixel lies in it."""
        return self.left <= x < self.left + self.width and self.top <= y < self.top + self.height

    def meets(self, other: "Box") -> bool:
        """Whether it shares a pixel with another."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def around(self, other: "Box") -> "Box":
        """Return the box around it and another."""
        left, top = min(self.left, other.left), min(self.top, other.top)
        return Box(left, top, max(self.right, other.right) - left, max(self.bottom, other.bottom) - top)

    def inset(self, across: int, down: int) -> "Box":
        """Return the box without a margin on each side."""
        return Box(self.left + across, self.top + down, self.width - 2 * across, self.height - 2 * down)

    def within(self, outer: "Box") -> "Box":
        """Return the box moved, as little as possible, so that it does not stick out of another."""
        left = max(min(self.left, outer.right - self.width), outer.left)
        top = max(min(self.top, outer.bottom - self.height), outer.top)
        return Box(left, top, self.width, self.height)

    def region(self, width: int, height: int) -> "Region":
        """Return it as fractions of a picture of this size."""
        return Region(self.left / width, self.top / height, self.right / width, self.bottom / height)


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of the picture, as fractions of its width and height."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> Point:
        """The point in the middle of it."""
        return Point((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0)

    def holds(self, point: Point) -> bool:
        """Whether a place lies in it."""
        return self.left <= point.x <= self.right and self.top <= point.y <= self.bottom

    def box(self, width: int, height: int) -> Box:
        """Return it in pixels of a picture of this size, at least one pixel each way."""
        left, top = round(self.left * width), round(self.top * height)
        return Box(left, top, max(round(self.right * width) - left, 1), max(round(self.bottom * height) - top, 1))

    def cut(self, frame: Frame) -> Frame:
        """Return this part of a picture, as a view of it."""
        return frame[self.box(frame.shape[1], frame.shape[0]).area]


@dataclass(frozen=True, slots=True)
class Click:
    """Moves the pointer to a place and clicks."""

    at: Point
    button: Button = "left"


@dataclass(frozen=True, slots=True)
class Move:
    """Moves the pointer to a place."""

    at: Point


@dataclass(frozen=True, slots=True)
class Drag:
    """Presses a button at one place, moves to another and releases it."""

    start: Point
    end: Point
    button: Button = "left"


@dataclass(frozen=True, slots=True)
class Key:
    """Presses and releases a key, by its X11 name such as `Escape`, `Return` or `a`."""

    name: str


@dataclass(frozen=True, slots=True)
class Scroll:
    """Turns the wheel at a place by a number of notches; positive is up."""

    at: Point
    notches: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Lets the game run for some time, by its own clock where it has one, else by the wall clock."""

    seconds: float


Gesture: TypeAlias = Click | Move | Drag | Key | Scroll | Wait


TroubleKind: TypeAlias = Literal["screen", "process", "window", "frozen", "over", "dialog", "layout"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure of the game or its screen."""

    # `screen`, `process` or `window` if that is gone, `frozen` if nothing moves any more, `over` if the city is over,
    # `dialog` if a window covers the picture, `layout` if a landmark is not visible.
    kind: TroubleKind
    what: str  # in words, for people


@dataclass(frozen=True, slots=True)
class Incident:
    """A failure, and whether the same city continued after it."""

    trouble: Trouble
    city_went_on: bool
    seconds: float
