"""Exploring the interfaces of many games: elements that were discovered, and which of them to try next.

What is remembered lies in arrays, so that it can be kept with the games. A game on a real screen, whose exploring need
not be repeatable, has `perception.menu_graph` for more: screens, and the ways between them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs.city.drivers.driver import Point
from ludus.envs.city.perception.elements import SAME_PIXELS


class Explorer:
    """The newest elements of every game's interface, each once, and how often each was clicked.

    Attributes:
        size: Elements that are remembered of a game.
    """

    def __init__(self, games: int, size: int, picture: tuple[int, int]) -> None:
        """Makes memories for pictures of a width and height in pixels."""
        self.size = size
        self._scale = np.array(picture, np.float64)
        self._places: NDArray[np.float64] = np.zeros((games, size, 2))  # middles, as fractions
        self._seen: NDArray[np.int64] = np.zeros((games, size), np.int64)  # number of the scan, 0 for an empty slot
        self._clicks: NDArray[np.int64] = np.zeros((games, size), np.int64)
        self._scans: NDArray[np.int64] = np.zeros(games, np.int64)
        self._heading: NDArray[np.int64] = np.zeros(games, np.int64)  # menu that is opened next

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Forgets everything about some games, `(games,)`."""
        for array in (self._places, self._seen, self._clicks, self._scans, self._heading):
            array[games] = 0

    def count(self, game: int) -> int:
        """Returns how many elements of a game are remembered."""
        return int(np.count_nonzero(self._seen[game]))

    def note(self, game: int, points: Sequence[Point]) -> int:
        """Notes the elements of a scan, by their middles, and returns how many were not known."""
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
        """Returns a remembered element by lot, which depends on the keys alone; None if there is none."""
        slots = np.flatnonzero(self._seen[game])
        return self._take(game, int(slots[stream_hash(*keys) % len(slots)])) if len(slots) else None

    def next_in_menus(self, game: int, headings: Sequence[Point], *, is_open: bool) -> Point | None:
        """Returns what to click to see more of the menus: an entry of an open one that was never tried, else a heading.

        Args:
            game: Number of the game.
            headings: Where menus are opened.
            is_open: Whether one is open.
        """
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
        """Returns everything that is remembered, as tensors that share its memory."""
        arrays = {
            "places": self._places,
            "seen": self._seen,
            "clicks": self._clicks,
            "scans": self._scans,
            "heading": self._heading,
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _apart(self, game: int, point: Point) -> NDArray[np.float64]:
        """Returns how far, in pixels and squared, every remembered element of a game is from a place, `(size,)`."""
        across, down = ((self._places[game] - (point.x, point.y)) * self._scale).T
        squared: NDArray[np.float64] = across * across + down * down
        return squared

    def _take(self, game: int, slot: int) -> Point:
        self._clicks[game, slot] += 1
        x, y = self._places[game, slot].tolist()
        return Point(x, y)
