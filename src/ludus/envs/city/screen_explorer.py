"""Exploring the interface of a real game: elements that were found, screens by their layout, and what clicks led to."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import FormatError
from ludus.envs.city.drivers.driver import Frame, Point, Region
from ludus.envs.city.explorer import Explorer
from ludus.envs.city.learned import cache_folder
from ludus.envs.city.perception.elements import SAME_PIXELS, UiElement, find_elements
from ludus.envs.city.perception.menu_graph import MenuGraph
from ludus.envs.city.profile import GameProfile
from ludus.envs.city.profile_gestures import ProfileGestures

CHANGED_SHARE = 0.002  # of the pixels of a picture that has changed
_ELEMENT_SHARE = 0.1  # of the pixels of an element that has come up


class SharedMenus:
    """The menu graph of one game, which all its instances share and which is kept in the user's cache.

    Attributes:
        graph: The screens; use it with `lock` held.
        lock: For threads of several games.
    """

    def __init__(self, profile: GameProfile, folder: Path | None = None) -> None:
        """Loads what was found before; a file that is none begins anew."""
        self._file = (folder or cache_folder()) / f"menus-{profile.name}-{profile.fingerprint}.json"
        self.lock = threading.Lock()
        self.graph = MenuGraph(profile.width, profile.height)
        if self._file.is_file():
            try:
                self.graph = MenuGraph.load(self._file)
            except FormatError:
                self._file.unlink()

    def save(self) -> None:
        """Keeps what was found, if anything was."""
        if self.graph.screens:
            self.graph.save(self._file)


class ScreenExplorer:
    """Explores one game.

    What is new counts by city: an element that was never seen in it within 20 pixels. The newest ones are remembered
    to be clicked.
    """

    def __init__(self, profile: GameProfile, gestures: ProfileGestures, menus: SharedMenus, size: int) -> None:
        """Prepares to explore; see `Explorer` for the size."""
        self._gestures, self._menus, self._size = gestures, menus, (profile.width, profile.height)
        self._newest = Explorer(1, size, self._size)
        figures = [spec.region for spec in profile.readings.values()]
        sign = profile.settle.sign
        self._figures: Sequence[Region] = figures if sign is None else [*figures, sign.region]
        self._seen: NDArray[np.float64] = np.zeros((0, 2))  # middles of all elements of this city, in pixels
        self._screen = ""
        self._clicked: UiElement | None = None

    def __len__(self) -> int:
        return self._newest.count(0)

    def forget(self) -> None:
        """Forgets the elements of a city; screens and ways between them are kept."""
        self._newest.forget(np.ones(1, np.bool_))
        self._seen, self._screen, self._clicked = np.zeros((0, 2)), "", None

    def next_in_menus(self, *, is_open: bool) -> Point | None:
        """Returns what to click to see more of the menus."""
        return self._newest.next_in_menus(0, self._gestures.headings, is_open=is_open)

    def next_element(self, *keys: int) -> Point | None:
        """Returns an element to click: one that nobody has tried on this screen, else any that is remembered."""
        with self._menus.lock:
            fresh = self._menus.graph.unexplored(self._screen) if self._screen in self._menus.graph.screens else []
        self._clicked = next((element for element in fresh if self._may_click(element.at)), None)
        return self._newest.any_element(0, *keys) if self._clicked is None else self._clicked.at

    def note(self, frame: Frame, differs: NDArray[np.bool_] | None) -> int:
        """Notes what a picture shows and returns how many elements of it are new in this city.

        Args:
            frame: The picture.
            differs: `(height, width)`, which pixels have changed: then elements count that they make up. None counts
                all but those of the map.
        """
        found = [element for element in find_elements(frame) if self._may_click(element.at)]
        with self._menus.lock:
            screen = self._menus.graph.visit(found, [self._gestures.region])
            if self._clicked is not None and self._screen in self._menus.graph.screens:
                self._menus.graph.clicked(self._screen, self._clicked, screen)
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
            return not _holds(self._gestures.region, element.at)
        left, top, right, bottom = element.region.pixels(*self._size)
        return bool(differs[top:bottom, left:right].mean() >= _ELEMENT_SHARE)

    def _may_click(self, point: Point) -> bool:
        """Figures are there to be read, and some menus are not to be opened."""
        return not self._gestures.is_forbidden(point) and not any(_holds(region, point) for region in self._figures)


def _holds(region: Region, point: Point) -> bool:
    return region.left <= point.x <= region.right and region.top <= point.y <= region.bottom
