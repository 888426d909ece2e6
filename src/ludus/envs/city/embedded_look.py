"""How the embedded game is seen and touched in one theme at one size; games that look alike share it."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.catalogue import Catalogue
from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Point
from ludus.envs.city.gestures import Gestures, embedded_places
from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.layout import View
from ludus.envs.city.painting.faces import face_of
from ludus.envs.city.perception.covers import CoverSense
from ludus.envs.city.perception.demand import DemandReader
from ludus.envs.city.perception.elements import find_elements
from ludus.envs.city.perception.embedded import embedded_bank, embedded_fields
from ludus.envs.city.perception.look_reader import LookReader
from ludus.envs.city.perception.opencv import opencv

_HALVES = 4.0  # from this factor on pictures are halved first: nearly the same picture in a third of the time

_SCANS_KEPT = 512  # pictures of which is remembered what elements they show


class EmbeddedLook:
    """Reads and plays the games of one look.

    Attributes:
        gestures: Turns decisions into gestures.
        reader: Reads the fields.
        covers: Sees open menus, dialogs and windows.
    """

    def __init__(self, games: CityGames, game: int, catalogue: Catalogue, folder: Path | None) -> None:
        """Takes the look of a game of a batch; see `embedded_bank` for the folder."""
        interface, display = games.interfaces[game], games.display
        theme, layout = interface.theme, interface.layout
        face = face_of(theme.family, theme.size_for(display.height))
        size = (display.width, display.height)
        bank = embedded_bank(theme.name, *size, folder)
        self.gestures = Gestures(catalogue, embedded_places(layout, face))
        self.reader = LookReader(embedded_fields(layout, theme), bank, DemandReader(layout.demand, theme), size)
        self.covers = CoverSense(layout, theme, face)
        self.view: View = layout.view
        self._figures = [place.value for place in layout.fields.values()]
        self._figures += [layout.demand, layout.message, layout.tool_label, layout.speed]
        self._scanned: OrderedDict[tuple[int | bytes, ...], tuple[Point, ...]] = OrderedDict()
        self._cv2 = opencv("seeing the map")

    def scan(
        self, pixels: NDArray[np.uint8], words: NDArray[np.uint32], before: NDArray[np.uint32] | None
    ) -> tuple[Point, ...]:
        """Returns the middles of the elements of a picture that exploring may click.

        Of the map only what covers it counts: a dialog or a window, and what a menu has changed. What only shows
        figures is no element. Interfaces are few, so that most of them have been looked at before.

        Args:
            pixels: The picture `(height, width, 4)`.
            words: Its pixels as numbers `(height, width)`.
            before: Those of the picture before the last gestures, to look only where they changed it; None to look
                everywhere.
        """
        height, width = words.shape
        span = (0, height, 0, width) if before is None else _span(words != before)
        top, bottom, left, right = span
        blank = words.copy()
        self._blank_map(blank, before)
        for box in self._figures:
            blank[box.top : box.bottom, box.left : box.right] = 0
        part = np.ascontiguousarray(blank[top:bottom, left:right])
        key = (*span, hashlib.blake2b(part.tobytes(), digest_size=16).digest())
        known = self._scanned.get(key)
        if known is None:
            colors = part.view(np.uint8).reshape(*part.shape, pixels.shape[2])[..., :3]
            found = [element.at for element in find_elements(np.ascontiguousarray(colors))]
            points = [
                Point((left + at.x * (right - left)) / width, (top + at.y * (bottom - top)) / height) for at in found
            ]
            known = tuple(point for point in points if not self.gestures.places.is_forbidden(point))
            self._scanned[key] = known
            if len(self._scanned) > _SCANS_KEPT:
                self._scanned.popitem(last=False)
        return known

    def _blank_map(self, words: NDArray[np.uint32], before: NDArray[np.uint32] | None) -> None:
        """Blackens the map where nothing covers it, so that no building is taken for a button."""
        box = self.view.box
        area = (slice(box.top, box.bottom), slice(box.left, box.right))
        pane = self.covers.pane(words)
        if self.covers.look(words).menu >= 0 and before is not None:
            words[area] *= words[area] != before[area]
            return
        if pane is None:
            words[area] = 0
            return
        kept = (slice(pane.top, pane.bottom), slice(pane.left, pane.right))
        shown = words[kept].copy()
        words[area] = 0
        words[kept] = shown

    def shrink_map(self, pixels: NDArray[np.uint8], damage: Sequence[Box], out: NDArray[np.uint8]) -> None:
        """Resamples the map's part of a picture where it has changed.

        Cells are resampled by themselves, so that a part of the map gives just what all of it would.

        Args:
            pixels: The picture `(height, width, 4)`.
            damage: Parts of it that have changed since `out` was written.
            out: `(rows * side, columns * side, 3)`, what it was, and what it is then.
        """
        view, side = self.view, out.shape[0] // self.view.rows
        cells = {_cells(view, box) for box in damage if box.meets(view.box)}
        if sum((right - left) * (bottom - top) for left, top, right, bottom in cells) > view.columns * view.rows:
            cells = {(0, 0, view.columns, view.rows)}
        for left, top, right, bottom in cells:
            x, y = view.box.left + left * view.tile, view.box.top + top * view.tile
            part = pixels[y : y + (bottom - top) * view.tile, x : x + (right - left) * view.tile]
            self._shrink(part, out[top * side : bottom * side, left * side : right * side])

    def shrink_frame(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Writes a picture `(height, width, 4)`, resampled, to `out`, `(height, width, 3)`."""
        while min(pixels.shape[0] / out.shape[0], pixels.shape[1] / out.shape[1]) >= _HALVES:
            half = (pixels.shape[1] // 2, pixels.shape[0] // 2)
            pixels = self._cv2.resize(pixels, half, interpolation=self._cv2.INTER_AREA)
        self._shrink(pixels, out)

    def _shrink(self, pixels: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        small = self._cv2.resize(pixels, (out.shape[1], out.shape[0]), interpolation=self._cv2.INTER_AREA)
        out[...] = small[..., :3]


def _span(flags: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Returns the first row and the one behind the last, and the columns likewise, that hold all flags `(h, w)`."""
    rows, columns = np.flatnonzero(flags.any(axis=1)), np.flatnonzero(flags.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _cells(view: View, box: Box) -> tuple[int, int, int, int]:
    """Returns first column and row, and those behind the last, of the cells that a part of the picture touches."""
    left, top = (box.left - view.box.left) // view.tile, (box.top - view.box.top) // view.tile
    right, bottom = (
        (box.right - view.box.left - 1) // view.tile + 1,
        (box.bottom - view.box.top - 1) // view.tile + 1,
    )
    return max(left, 0), max(top, 0), min(right, view.columns), min(bottom, view.rows)
