"""The contract of a driver: the one way in which City's world touches a game, embedded or on a real screen.

Places are fractions of the game's picture, `(0, 0)` its upper left corner and `(1, 1)` its lower right one, so that the
same profile holds at every size. Nothing but pictures comes back from a game: what they say is perception's business.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

Frame: TypeAlias = NDArray[np.uint8]  # (height, width, 3), RGB
Button: TypeAlias = Literal["left", "middle", "right"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the picture, as fractions of its width and height."""

    x: float
    y: float


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

    def pixels(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Returns left, top, right and bottom in pixels of a picture of this size, at least one pixel each way."""
        left, top = round(self.left * width), round(self.top * height)
        return left, top, max(left + 1, round(self.right * width)), max(top + 1, round(self.bottom * height))

    def cut(self, frame: Frame) -> Frame:
        """Returns this part of a picture, as a view of it."""
        left, top, right, bottom = self.pixels(frame.shape[1], frame.shape[0])
        return frame[top:bottom, left:right]


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
    """Presses a button at one place, moves to another and lets it go."""

    start: Point
    end: Point
    button: Button = "left"


@dataclass(frozen=True, slots=True)
class Key:
    """Presses and releases a key, by its X11 name such as `Escape`, `Return` or `a`."""

    name: str


@dataclass(frozen=True, slots=True)
class Scroll:
    """Turns the wheel at a place, so many notches; positive is up."""

    at: Point
    notches: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Lets the game run for some time: of the game's own clock where it has one, else of the wall clock."""

    seconds: float


Gesture: TypeAlias = Click | Move | Drag | Key | Scroll | Wait


class Driver(ABC):
    """One running game.

    Attributes:
        width: Of its picture, in pixels.
        height: Of its picture, in pixels.
    """

    width: int
    height: int

    @abstractmethod
    def launch(self) -> None:
        """Starts the game and waits until it can be seen.

        Raises:
            GameNotFoundError: The game, or a program that it needs, is not installed; names the packages.
            GameLostError: It did not come up.
        """

    @abstractmethod
    def capture(self) -> Frame:
        """Returns the present picture; the next call may overwrite it.

        Raises:
            GameLostError: The window or the game is gone.
        """

    @abstractmethod
    def act(self, gestures: Sequence[Gesture]) -> None:
        """Does the gestures one after the other; never outside the game's own window.

        Raises:
            GameLostError: The window or the game is gone.
        """

    @abstractmethod
    def reset(self, seed: int) -> None:
        """Begins a new city; equal seeds give equal terrain. Returns when that has been verified on the screen.

        Raises:
            GameLostError: It could not be verified, after several tries.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends the game and everything started for it; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
