"""Exploring the interfaces of many games: elements that were discovered, and which of them to try next.

`Explorer` keeps its memory in arrays, so that it can be saved with the games. A game on a real screen, where exploring
need not be reproducible, also has a `MenuGraph`: screens, and the clicks between them.
"""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnknownNameError
from ludus.core.random import stream_hash
from ludus.worlds.city.actions import ProfileGestures
from ludus.worlds.city.drivers.driver import Frame, Point, Region
from ludus.worlds.city.perception.elements import SAME_PIXELS, UiElement, find_elements, is_same
from ludus.worlds.city.profile_schema import GameProfile


class Explorer:
    """The newest elements of every game's interface, each once, and how often each was clicked."""

    def __init__(self, games: int, size: int, picture: tuple[int, int]) -> None:
        """Make memories of `size` elements each, for pictures of this width and height in pixels."""
        self._scale = np.array(picture, np.float64)
        self._places: NDArray[np.float64] = np.zeros((games, size, 2))  # middles, as fractions
        self._seen: NDArray[np.int64] = np.zeros((games, size), np.int64)  # number of the scan, 0 for an empty slot
        self._clicks: NDArray[np.int64] = np.zeros((games, size), np.int64)
        self._scans: NDArray[np.int64] = np.zeros(games, np.int64)
        self._heading: NDArray[np.int64] = np.zeros(games, np.int64)  # menu that is opened next

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Forget everything about some games, `(games,)`."""
        for array in (self._places, self._seen, self._clicks, self._scans, self._heading):
            array[games] = 0

    def count(self, game: int) -> int:
        """Return how many elements of a game are remembered."""
        return int(np.count_nonzero(self._seen[game]))

    def note(self, game: int, points: Sequence[Point]) -> int:
        """Note the elements of a scan, by their middles, and return how many were not known."""
        self._scans[game] += 1
        places, seen = self._places[game], self._seen[game]
        found = 0
        for point in points:
            same = np.flatnonzero((self._apart(game, point) <= SAME_PIXELS**2) & (seen > 0))
            if len(same):
                slot = int(same[0])
            else:
                slot, found = int(seen.argmin()), found + 1
                self._clicks[game, slot] = 0
            places[slot], seen[slot] = (point.x, point.y), self._scans[game]
        return found

    def any_element(self, game: int, *keys: int) -> Point | None:
        """Return a random remembered element that depends on the keys alone; None if there is none."""
        slots = np.flatnonzero(self._seen[game])
        return self._take(game, int(slots[stream_hash(*keys) % len(slots)])) if len(slots) else None

    def next_in_menus(self, game: int, headings: Sequence[Point], *, is_open: bool) -> Point | None:
        """Return what to click to see more of the menus: an untried entry of an open one, else a heading."""
        if is_open:
            fresh = (self._seen[game] == self._scans[game]) & (self._seen[game] > 0) & (self._clicks[game] == 0)
            for heading in headings:  # a click on one would close its menu
                fresh &= self._apart(game, heading) > SAME_PIXELS**2
            if fresh.any():
                return self._take(game, int(fresh.argmax()))
        if not headings:
            return None
        number = int(self._heading[game]) % len(headings)
        self._heading[game] = number + 1
        return headings[number]

    def state(self) -> dict[str, Tensor]:
        """Return everything that is remembered, as tensors that share its memory."""
        names = ("places", "seen", "clicks", "scans", "heading")
        return {name: torch.from_numpy(getattr(self, f"_{name}")) for name in names}

    def _apart(self, game: int, point: Point) -> NDArray[np.float64]:
        """Return the squared distance in pixels of every remembered element of a game from a place, `(size,)`."""
        squared: NDArray[np.float64] = np.square((self._places[game] - (point.x, point.y)) * self._scale).sum(axis=1)
        return squared

    def _take(self, game: int, slot: int) -> Point:
        self._clicks[game, slot] += 1
        x, y = self._places[game, slot].tolist()
        return Point(x, y)


_CELLS = (32, 18)  # a layout is the set of cells of this grid that hold the middle of an element
_ALIKE = 0.7  # share of common cells from which on two layouts are the same screen
_MAX_SCREENS = 1000


@dataclass(slots=True)
class Screen:
    """A screen."""

    name: str  # hash of the layout it was first seen with
    cells: frozenset[int]  # that layout
    # What can be clicked on it -> name of the screen that the last click led to; empty before the first.
    elements: dict[UiElement, str] = field(default_factory=dict)
    visits: int = 0  # how often it was seen


class MenuGraph:
    """Screens, by name, and the clicks between them; threads that share a graph hold its `lock`."""

    def __init__(self, width: int, height: int) -> None:
        """Make an empty graph for pictures of a size in pixels."""
        self.width, self.height, self.lock = width, height, threading.Lock()
        self.screens: dict[str, Screen] = {}

    def visit(self, elements: Sequence[UiElement], ignored: Sequence[Region] = ()) -> str:
        """Note a visit to a screen and return its name, a new one if no known screen is similar.

        Elements in `ignored`, regions that change by themselves such as the map, are not part of a layout.
        """
        kept = [element for element in elements if not any(region.holds(element.at) for region in ignored)]
        places = (element.at.pixel(*_CELLS) for element in kept)
        cells = frozenset(row * _CELLS[0] + column for column, row in places)
        screen = max(self.screens.values(), key=lambda known: _likeness(known.cells, cells), default=None)
        if screen is None or _likeness(screen.cells, cells) < _ALIKE:
            name = hashlib.sha256(",".join(map(str, sorted(cells))).encode()).hexdigest()[:16]
            screen = self.screens.setdefault(name, Screen(name, cells))
            if len(self.screens) > _MAX_SCREENS:
                del self.screens[min(self.screens, key=lambda known: (self.screens[known].visits, known == name))]
        screen.visits += 1
        for element in kept:
            self._known(screen, element)
        return screen.name

    def clicked(self, screen: str, element: UiElement, led_to: str) -> None:
        """Note that a click on an element of a screen led to another screen, or to the same one."""
        known = self._screen(screen)
        known.elements[self._known(known, element)] = self._screen(led_to).name

    def unexplored(self, screen: str) -> list[UiElement]:
        """Return the elements of a screen that were never clicked there."""
        return [element for element, led_to in self._screen(screen).elements.items() if not led_to]

    def _screen(self, name: str) -> Screen:
        if name not in self.screens:
            raise UnknownNameError("screen", name, list(self.screens)[:10])
        return self.screens[name]

    def _known(self, screen: Screen, element: UiElement) -> UiElement:
        """Return the element of a screen that is the same as this one, which is added if there is none."""
        same = (known for known in screen.elements if is_same(known, element, self.width, self.height))
        known = next(same, element)
        screen.elements.setdefault(known, "")
        return known


def _likeness(first: frozenset[int], second: frozenset[int]) -> float:
    return len(first & second) / len(first | second) if first or second else 1.0


CHANGED_SHARE = 0.002  # of the pixels of a picture that has changed
_ELEMENT_SHARE = 0.1  # of the pixels of an element that has come up


class ScreenExplorer:
    """Explores one game.

    An element is new in a city if none was seen in it within 20 pixels. The newest ones are remembered for clicks.
    """

    def __init__(self, profile: GameProfile, gestures: ProfileGestures, menus: MenuGraph, size: int) -> None:
        """Prepare to explore, with a graph that all instances of the game share; see `Explorer` for the size."""
        self._gestures, self._menus, self._size = gestures, menus, (profile.width, profile.height)
        self._newest = Explorer(1, size, self._size)
        figures = [profile.regions[spec.region] for spec in profile.readings.values()]
        sign = profile.settle.sign
        self._figures: Sequence[Region] = figures if sign is None else [*figures, profile.regions[sign.region]]
        self._seen: NDArray[np.float64] = np.zeros((0, 2))  # middles of all elements of this city, in pixels
        self._screen = ""
        self._clicked: UiElement | None = None

    def __len__(self) -> int:
        return self._newest.count(0)

    def forget(self) -> None:
        """Forget the elements of a city; screens and ways between them are kept."""
        self._newest.forget(np.ones(1, np.bool_))
        self._seen, self._screen, self._clicked = np.zeros((0, 2)), "", None

    def next_in_menus(self, *, is_open: bool) -> Point | None:
        """Return what to click to see more of the menus."""
        return self._newest.next_in_menus(0, self._gestures.plain.headings, is_open=is_open)

    def next_element(self, *keys: int) -> Point | None:
        """Return an element to click: one not yet tried on this screen, else any remembered one."""
        with self._menus.lock:
            fresh = self._menus.unexplored(self._screen) if self._screen in self._menus.screens else []
        self._clicked = next((element for element in fresh if self._may_click(element.at)), None)
        return self._newest.any_element(0, *keys) if self._clicked is None else self._clicked.at

    def note(self, frame: Frame, differs: NDArray[np.bool_] | None) -> int:
        """Note what a picture shows and return how many elements of it are new in this city.

        Elements count that pixels of `differs`, `(height, width)`, make up; None counts all but those of the map.
        """
        found = [element for element in find_elements(frame) if self._may_click(element.at)]
        with self._menus.lock:
            screen = self._menus.visit(found, [self._gestures.region])
            if self._clicked is not None and self._screen in self._menus.screens:
                self._menus.clicked(self._screen, self._clicked, screen)
        self._screen, self._clicked = screen, None
        shown = [element.at for element in found if self._counts(element, differs)]
        self._newest.note(0, shown)
        return sum(map(self._is_new, shown))

    def _is_new(self, point: Point) -> bool:
        """Whether an element was never seen in this city; it is known from then on."""
        place = np.array((point.x * self._size[0], point.y * self._size[1]))
        if np.any(np.square(self._seen - place).sum(axis=1) <= SAME_PIXELS**2):
            return False
        self._seen = np.vstack((self._seen, place))
        return True

    def _counts(self, element: UiElement, differs: NDArray[np.bool_] | None) -> bool:
        if differs is None:
            return not self._gestures.region.holds(element.at)
        return bool(differs[element.region.box(*self._size).area].mean() >= _ELEMENT_SHARE)

    def _may_click(self, point: Point) -> bool:
        """Whether exploring may click here: not on figures, and not on closed menus."""
        return not self._gestures.plain.is_forbidden(point) and not any(region.holds(point) for region in self._figures)
