"""The way of the pointer in the course of a decision: where it is, and where it has clicked, at any share of it."""

from collections.abc import Sequence
from typing import NamedTuple

from ludus.envs.city.drivers.driver import Click, Drag, Gesture, Key, Move, Point, Scroll

ACTING = 0.6  # share of a decision in which gestures are shown; then what came of them


class Stop(NamedTuple):
    """A place that the pointer goes to.

    Attributes:
        share: When it is there.
        at: Where.
        presses: Whether a button goes down there.
        drags: Whether a button is held on the way to it.
    """

    share: float
    at: Point
    presses: bool
    drags: bool = False


class Track:
    """The pointer's way through the gestures of one decision.

    Attributes:
        start: Where the pointer was before.
        stops: Where it goes, in order.
        keys: Names of the keys that are pressed.
    """

    def __init__(self, start: Point, gestures: Sequence[Gesture] = ()) -> None:
        self.start = start
        self.keys = tuple(gesture.name for gesture in gestures if isinstance(gesture, Key))
        ways = [stop for gesture in gestures for stop in _stops(gesture)]
        each = ACTING / max(len(ways), 1)
        self.stops = tuple(stop._replace(share=each * (number + 1)) for number, stop in enumerate(ways))

    @property
    def end(self) -> Point:
        """Where the pointer is afterwards."""
        return self.stops[-1].at if self.stops else self.start

    def at(self, share: float) -> Point:
        """Returns where the pointer is."""
        before, since = self.start, 0.0
        for stop in self.stops:
            if share < stop.share:
                part = (share - since) / (stop.share - since)
                part = part * part * (3.0 - 2.0 * part)  # it sets off and arrives gently
                return Point(before.x + (stop.at.x - before.x) * part, before.y + (stop.at.y - before.y) * part)
            before, since = stop.at, stop.share
        return self.end

    def passed(self, share: float) -> tuple[Stop, ...]:
        """Returns the stops that the pointer has been at."""
        return tuple(stop for stop in self.stops if stop.share <= share)


def _stops(gesture: Gesture) -> list[Stop]:
    """Returns the places that a gesture goes to; when is not known yet."""
    if isinstance(gesture, Click):
        return [Stop(0.0, gesture.at, presses=True)]
    if isinstance(gesture, Drag):
        return [Stop(0.0, gesture.start, presses=True), Stop(0.0, gesture.end, presses=False, drags=True)]
    if isinstance(gesture, Move | Scroll):
        return [Stop(0.0, gesture.at, presses=False)]
    return []
