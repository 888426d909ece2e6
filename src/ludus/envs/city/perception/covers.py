"""Sees what covers the map of the embedded game: an open menu, a dialog, a window, by the colour of their heads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.theme import Measure, Theme
from ludus.envs.colors import Color

_COLOR = 0xFFFFFF  # the bytes of a pixel that mean something
_MARGIN = 4  # pixels between a window and the corner of the map's area


class Cover(NamedTuple):
    """What covers the map.

    Attributes:
        menu: Number of the open menu, -1 for none.
        dialog: Whether a dialog is open.
        window: Whether a window is open.
    """

    menu: int
    dialog: bool
    window: bool

    @property
    def is_any(self) -> bool:
        """Whether something does."""
        return self.menu >= 0 or self.dialog or self.window


class CoverSense:
    """Looks for covers in pictures of one layout in one theme."""

    def __init__(self, layout: Layout, theme: Theme, face: Measure) -> None:
        self._accent, self._frame = _word(theme.palette.accent), _word(theme.palette.frame)
        outer, line = layout.view.frame, face.height + 5
        self._title = line + 2  # rows of a title
        # Left of the button that closes it, where no title is so long that its letters could be there.
        self._corner = (outer.right - _MARGIN - line - 4, outer.top + _MARGIN + 1)
        # Every dialog stands in the middle and reaches beyond this column, the letters of its title do not.
        self._column = outer.left + outer.width // 2 + 7 * face.height
        self._rows = slice(outer.top + _MARGIN + self._title, outer.bottom)
        # Rows of that column so near to each other that one of them meets every title.
        steps = range(self._rows.start, self._rows.stop, self._title - 2)
        points = [(menu.box.left + 1, menu.box.top + 1) for menu in layout.menus]
        points += [self._corner, *((self._column, row) for row in steps)]
        self._menus = len(layout.menus)
        self._points = np.array([y * layout.width + x for x, y in points])

    def pane(self, pixels: NDArray[np.uint32]) -> Box | None:
        """Returns where the dialog or the window of a picture is; None if there is none. Arguments as in `look`."""
        seen = self.look(pixels)
        if not (seen.dialog or seen.window):
            return None
        column = self._column if seen.dialog else self._corner[0]
        first = self._rows.start if seen.dialog else self._corner[1] - 1
        top = first + int(((pixels[first:, column] & _COLOR) == self._accent).argmax())
        heads = np.flatnonzero((pixels[top] & _COLOR) != self._accent)
        left = int(heads[heads < column].max(initial=-1)) + 1
        right = int(heads[heads > column].min(initial=pixels.shape[1]))
        below = pixels[top + self._title :, left] & _COLOR
        height = int((below != self._frame).argmax()) if (below != self._frame).any() else len(below)
        return Box(left, top, right - left, self._title + height)

    def look(self, pixels: NDArray[np.uint32]) -> Cover:
        """Returns what covers a picture `(height, width)` whose pixels are red, green, blue and an unused byte."""
        heads = ((pixels.reshape(-1).take(self._points) & _COLOR) == self._accent).tolist()
        count = self._menus
        menu = heads.index(True) if True in heads[:count] else -1
        return Cover(menu, True in heads[count + 1 :] and self._has_title(pixels), heads[count])

    def _has_title(self, pixels: NDArray[np.uint32]) -> bool:
        """Whether the title of a dialog is in the column that all of them reach."""
        column = (pixels[self._rows, self._column] & _COLOR) == self._accent
        return bool(column.any()) and _longest(column) >= self._title - 2


def _word(color: Color) -> int:
    red, green, blue = color
    return red | green << 8 | blue << 16


def _longest(flags: NDArray[np.bool_]) -> int:
    """Returns how many flags in a row are set, at most."""
    ends = np.flatnonzero(np.diff(np.concatenate(([0], flags.view(np.int8), [0]))))
    return int((ends[1::2] - ends[::2]).max())
