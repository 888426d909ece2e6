"""Elements of a user interface, found by flat ground, contrast and outlines: words and buttons; no letter is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.city.drivers.driver import Box, Frame, Point, Region
from ludus.worlds.city.perception.pictures import opencv

_FLAT = 8  # how much the colours of neighbours may differ on flat ground
_PANEL_AREA = 150  # pixels of flat ground from which on something can stand on it
_GROUNDS, _WIDE_AREA = 8, 1500
_LINE = 48  # pixels: what is as long and straight is a frame, which descending letters may touch
_PIECE_HEIGHTS = (5, 26)  # of letters
_LEAST_PIECE_WIDTH, _LEAST_WORD_WIDTH = 3, 6
_LEAST_INK = 0.2  # of the box of a letter
_BUTTON_SIDES = (12, 160)
_INSIDE_SIDES = (10, 160)
_INSIDE_FILL = 0.3  # of its box that the ground of a button fills, around its icon
_LEAST_SIDE = 0.6  # of each side of a frame that is drawn: corners are round, and some frames dashed
_DARK = 90  # the brightest gray of a dark frame
_WORD_GAP, _LETTER_GAP = 0.3, 0.5  # of the height: the widest gap between parts of words, and beside a single letter
_LETTER_WIDTH = 0.75  # of the height


class Outlines:
    """What can be seen in one picture without reading it.

    Attributes:
        words: Boxes of words, and of other small things in a row.
        buttons: Boxes of buttons and icons, some of them several times.
    """

    def __init__(self, frame: Frame) -> None:
        """Look at a picture `(height, width, 3)`."""
        self._cv2 = opencv("finding elements")
        frame = np.ascontiguousarray(frame)
        flat = (self._contrast(frame) <= _FLAT).astype(np.uint8)
        labels, grounds = self._components(flat)
        is_panel = grounds[:, 4] >= _PANEL_AREA
        is_panel[0] = False
        ink = 1 - np.take(is_panel.view(np.uint8), labels)
        across, down = (
            self._cv2.morphologyEx(ink, self._cv2.MORPH_OPEN, np.ones(shape, np.uint8))
            for shape in ((1, _LINE), (_LINE, 1))
        )
        ink &= 1 - (across | down)
        _, marks = self._components(ink)
        self.words = _words(_pieces(marks, frame.shape[1] // 2))
        inside = grounds[_fit(grounds, _INSIDE_SIDES)]
        inside = inside[inside[:, 4] >= _INSIDE_FILL * inside[:, 2] * inside[:, 3]]
        _, icons = self._components(self._strange(frame, labels, grounds))
        outside = [boxes[_fit(boxes, _BUTTON_SIDES)] for boxes in (marks, icons)]
        self.buttons = [*_boxes(np.concatenate((inside, *outside))), *self._framed(frame)]

    def _contrast(self, frame: Frame) -> NDArray[np.uint8]:
        """Return how much every pixel and its eight neighbours differ in any colour, `(height, width)`."""
        span = self._cv2.morphologyEx(frame, self._cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
        red, green, blue = self._cv2.split(span)
        most: NDArray[np.uint8] = self._cv2.max(self._cv2.max(red, green), blue)
        return most

    def _strange(self, frame: Frame, labels: NDArray[np.int32], grounds: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return where the picture has none of the colours of its widest flat grounds: icons that nearly touch."""
        strange = np.ones(frame.shape[:2], np.uint8)
        for number in [number for number in np.argsort(-grounds[:, 4]).tolist() if number][:_GROUNDS]:
            left, top, width, _, area = grounds[number].tolist()
            if area < _WIDE_AREA:
                break
            column = left + int(np.argmax(labels[top, left : left + width] == number))
            color = frame[top, column].astype(np.int16)
            low, high = np.clip((color - _FLAT, color + _FLAT), 0, 255).astype(np.uint8)
            strange &= self._cv2.inRange(frame, low, high) == 0
        return strange

    def _framed(self, frame: Frame) -> Iterator[Box]:
        """Return boxes whose sides are dark nearly throughout."""
        dark = self._cv2.threshold(self._cv2.cvtColor(frame, self._cv2.COLOR_RGB2GRAY), _DARK, 1, 1)[1]
        labels, marks = self._components(dark)
        for number in np.flatnonzero(_fit(marks, _BUTTON_SIDES)).tolist():
            box = Box(*marks[number, :4].tolist())
            inside = labels[box.area] == number
            sides = (inside[0], inside[-1], inside[:, 0], inside[:, -1])
            if min(np.count_nonzero(side) / side.size for side in sides) >= _LEAST_SIDE:
                yield box

    def _components(self, mask: NDArray[np.uint8]) -> tuple[Any, NDArray[np.int32]]:
        """Return the number of each pixel's component, and left, top, width, height and area of all; 0 is none."""
        _, labels, boxes, _ = self._cv2.connectedComponentsWithStats(mask, connectivity=8)
        return labels, boxes


def _fit(boxes: NDArray[np.int32], sides: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which boxes are as wide and high as that, without the first, which is none."""
    corners, sizes = boxes[:, :2], boxes[:, 2:4]  # what extends beyond the picture, from 0 on, is incomplete
    fitting: NDArray[np.bool_] = np.all((corners > 0) & (sizes >= sides[0]) & (sizes <= sides[1]), axis=1)
    fitting[0] = False
    return fitting


def _boxes(boxes: NDArray[np.int32]) -> list[Box]:
    return [Box(*sides) for sides in boxes[:, :4].tolist()]


def _pieces(marks: NDArray[np.int32], most_width: int) -> list[Box]:
    """Return the boxes of letters and of words whose letters touch, from left to right."""
    width, height, area = marks[:, 2], marks[:, 3], marks[:, 4]
    kept = (height >= _PIECE_HEIGHTS[0]) & (height <= _PIECE_HEIGHTS[1])
    kept &= (width >= _LEAST_PIECE_WIDTH) & (width <= most_width) & (area >= _LEAST_INK * width * height)
    kept[0] = False
    return sorted(_boxes(marks[kept]))


def _words(pieces: list[Box]) -> list[Box]:
    """Join letters to words: what is beside each other, equally high and close together."""
    done: list[Box] = []
    growing: list[tuple[Box, int]] = []  # words with the widths of their last pieces
    for piece in pieces:
        first = piece.left - _LETTER_GAP * _PIECE_HEIGHTS[1]  # words that end before it are complete
        done += [word for word, _ in growing if word.right < first]
        growing = [(word, last) for word, last in growing if word.right >= first]
        fitting = [(word, last) for word, last in growing if _belong(word, last, piece)]
        nearest = max(fitting, key=lambda entry: entry[0].right, default=None)
        if nearest is not None:
            growing.remove(nearest)
        growing.append((piece if nearest is None else nearest[0].around(piece), piece.width))
    done += [word for word, _ in growing]
    return [word for word in done if word.width >= _LEAST_WORD_WIDTH]


def _belong(word: Box, last_width: int, piece: Box) -> bool:
    gap, (low, high) = piece.left - word.right, sorted((word.height, piece.height))
    if not share_rows(word, piece) or high > 2.2 * low or gap < -high:
        return False
    is_letter = min(last_width, piece.width) <= _LETTER_WIDTH * high
    return gap <= (_LETTER_GAP if is_letter else _WORD_GAP) * high


def share_rows(first: Box, second: Box) -> bool:
    """Return whether two boxes are equally high in the picture: most rows of the lower one are rows of both."""
    overlap = min(first.bottom, second.bottom) - max(first.top, second.top)
    return overlap >= 0.6 * min(first.height, second.height)


ElementKind: TypeAlias = Literal["text", "button"]
SAME_PIXELS = 20.0  # elements whose middles are nearer are the same
_WORD_CONFIDENCE, _BUTTON_CONFIDENCE = 0.6, 0.5


@dataclass(frozen=True, slots=True)
class UiElement:
    """Something on the screen that can perhaps be clicked."""

    kind: ElementKind  # what it looks like
    region: Region  # where it is
    confidence: float  # from 0 to 1

    @property
    def at(self) -> Point:
        """Where to click it."""
        return self.region.middle


def find_elements(frame: Frame) -> list[UiElement]:
    """Return the words and buttons of a picture `(height, width, 3)`, by their outlines; milliseconds."""
    outlines, size = Outlines(frame), (frame.shape[1], frame.shape[0])
    found = [UiElement("text", box.region(*size), _WORD_CONFIDENCE) for box in outlines.words]
    found += [UiElement("button", box.region(*size), _BUTTON_CONFIDENCE) for box in outlines.buttons]
    return unique(found, *size)


def unique(elements: Sequence[UiElement], width: int, height: int) -> list[UiElement]:
    """Return elements without those that are the same as a surer one."""
    kept: dict[tuple[int, int], list[UiElement]] = {}  # by squares of that size: what is the same is in one or beside
    for element in sorted(elements, key=lambda element: -element.confidence):
        column, row = int(element.at.x * width / SAME_PIXELS), int(element.at.y * height / SAME_PIXELS)
        around = ((column + across, row + down) for across in (-1, 0, 1) for down in (-1, 0, 1))
        if not any(is_same(element, other, width, height) for square in around for other in kept.get(square, ())):
            kept.setdefault((column, row), []).append(element)
    return sorted((element for square in kept.values() for element in square), key=lambda element: -element.confidence)


def is_same(first: UiElement, second: UiElement, width: int, height: int) -> bool:
    """Whether the middles of two elements are within `SAME_PIXELS` of each other in a picture of this size."""
    across, down = (first.at.x - second.at.x) * width, (first.at.y - second.at.y) * height
    return across * across + down * down <= SAME_PIXELS * SAME_PIXELS
