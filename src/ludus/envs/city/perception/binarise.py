"""From a crop to ink: which pixels belong to letters, as one whole number a column, split where columns are empty.

Columns as whole numbers (bit 0 is the upper row) make glyphs plain tuples: equal glyphs are equal keys, and how far two
are apart is a count of bits.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.envs.city.drivers.driver import Frame

Columns: TypeAlias = tuple[int, ...]
MAX_ROWS = 52  # of ink: a sum of so many bits is exact in a double, and matrix products of doubles are fast
_MIN_CONTRAST = 40  # of 255, between letters and what they stand on
_BITS = np.exp2(np.arange(MAX_ROWS))


@dataclass(frozen=True, slots=True)
class Segment:
    """Columns of ink between empty ones, with rows counted from the top of the line's ink."""

    start: int
    columns: Columns
    moved: Columns  # up to the first row of ink
    top: int
    bottom: int

    @property
    def end(self) -> int:
        """First column behind it."""
        return self.start + len(self.columns)

    @property
    def height(self) -> int:
        """Rows from its upper to its lower end."""
        return self.bottom - self.top


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text.

    Attributes:
        columns: All columns of the crop.
        segments: Its parts, from left to right.
        top: The first row of its tall letters.
        baseline: The row below its tall letters.
        tall: Rows of its tallest part.
    """

    columns: Columns
    segments: tuple[Segment, ...]
    top: int
    baseline: int
    tall: int


def ink_of(crop: Frame, level: float = 0.5) -> NDArray[np.bool_] | None:
    """Returns which pixels `(height, width)` stand out from the most common colour, or None if none do.

    Args:
        crop: Picture `(height, width, 3)`.
        level: Share of the strongest contrast from which on a pixel is ink.
    """
    red, green, blue = (crop[:, :, channel].astype(np.int16) for channel in range(3))
    shade = (red >> 1) + green + (blue >> 1)
    common = int(np.bincount(shade.reshape(-1)).argmax())
    row, column = divmod(int((shade == common).argmax()), shade.shape[1])
    apart = [abs(channel - channel[row, column]) for channel in (red, green, blue)]
    strength = np.maximum(np.maximum(apart[0], apart[1]), apart[2])
    strongest = int(strength.max())
    if strongest < _MIN_CONTRAST:
        return None
    ink: NDArray[np.bool_] = strength > level * strongest
    return ink


def line_of(crop: Frame, level: float = 0.5) -> Line | None:
    """Returns the line of text in a crop, or None if there is no ink or too much of it; `level` as in `ink_of`."""
    ink = ink_of(crop, level)
    if ink is None:
        return None
    rows = np.flatnonzero(ink.any(axis=1))
    first, height = int(rows[0]), int(rows[-1]) + 1 - int(rows[0])
    if height > MAX_ROWS:
        return None
    codes = _BITS[:height] @ ink[first : first + height].astype(np.float64)
    columns = tuple(map(int, codes.tolist()))
    return _line(columns)


def lowered(columns: Columns) -> tuple[Columns, int, int]:
    """Returns columns moved up to their first row of ink, that row, and the row below their last one."""
    union = 0
    for column in columns:
        union |= column
    top = (union & -union).bit_length() - 1
    moved = tuple([column >> top for column in columns]) if top else columns
    return moved, top, union.bit_length()


def _line(columns: Columns) -> Line:
    segments: list[Segment] = []
    start = -1
    for place, column in enumerate((*columns, 0)):
        if column and start < 0:
            start = place
        elif not column and start >= 0:
            part = columns[start:place]
            segments.append(Segment(start, part, *lowered(part)))
            start = -1
    tallest = max(segment.height for segment in segments)
    tall = [segment for segment in segments if segment.height * 5 >= tallest * 3]
    bottoms = [segment.bottom for segment in tall]
    baseline = max(sorted(set(bottoms)), key=bottoms.count)
    top = min(segment.top for segment in tall)
    return Line(columns, tuple(segments), top, baseline, tallest)
