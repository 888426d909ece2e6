"""Elements of a user interface, found by their looks alone: lines of text and framed buttons."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ludus.core.errors import ConfigError
from ludus.envs.city.drivers.driver import Frame, Point, Region
from ludus.envs.city.perception.ocr import FoundText
from ludus.envs.city.perception.opencv import opencv

ElementKind: TypeAlias = Literal["text", "button"]
SAME_PIXELS = 20.0  # elements whose middles are nearer are the same
_EDGE_LEVELS = (40, 120)
_BUTTON_SIDES = (12, 160)  # pixels
_TEXT_HEIGHTS = (6, 40)
_LEAST_FILL = 0.75  # of its box that a button's outline covers


@dataclass(frozen=True, slots=True)
class UiElement:
    """Something on the screen that can perhaps be clicked.

    Attributes:
        name: What is written on it, or else a name made of its looks.
        kind: What it looks like.
        region: Where it is.
        confidence: From 0 to 1.
        step: When it was seen last.
    """

    name: str
    kind: ElementKind
    region: Region
    confidence: float
    step: int = 0

    @property
    def at(self) -> Point:
        """Where to click it."""
        return self.region.middle


def find_elements(frame: Frame, step: int = 0) -> list[UiElement]:
    """Returns the buttons and lines of text of a picture `(height, width, 3)`, by edges and outlines; milliseconds."""
    cv2 = opencv("finding elements")
    height, width = frame.shape[:2]
    gray = cv2.cvtColor(np.ascontiguousarray(frame), cv2.COLOR_RGB2GRAY)
    edges = cv2.Canny(gray, *_EDGE_LEVELS)
    found: list[UiElement] = []
    outlines, _ = cv2.findContours(edges, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    least, most = _BUTTON_SIDES
    for outline in outlines:
        x, y, w, h = cv2.boundingRect(outline)
        if not (least <= w <= most and least <= h <= most):
            continue
        fill = cv2.contourArea(cv2.convexHull(outline)) / (w * h)
        if fill >= _LEAST_FILL:
            found.append(_element(frame, "button", (x, y, w, h), min(fill, 1.0), step))
    # Letters are edges close to each other: closed along the line they become one bar.
    bars = cv2.morphologyEx(edges, cv2.MORPH_CLOSE, np.ones((3, 9), np.uint8))
    outlines, _ = cv2.findContours(bars, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    for outline in outlines:
        x, y, w, h = cv2.boundingRect(outline)
        if _TEXT_HEIGHTS[0] <= h <= _TEXT_HEIGHTS[1] and w >= 1.5 * h and w <= width // 2:
            inked = float((edges[y : y + h, x : x + w] > 0).mean())
            if 0.1 <= inked <= 0.7:
                found.append(_element(frame, "text", (x, y, w, h), 0.5 + inked / 2.0, step))
    return unique(found, width, height)


def elements_of_texts(texts: Sequence[FoundText], step: int = 0) -> list[UiElement]:
    """Returns what a discovery scan found as elements, named by what is written on them."""
    return [UiElement(text.text, "text", text.region, text.confidence, step) for text in texts]


def unique(elements: Sequence[UiElement], width: int, height: int) -> list[UiElement]:
    """Returns elements without those that are the same as a surer one."""
    kept: list[UiElement] = []
    for element in sorted(elements, key=lambda element: -element.confidence):
        if not any(is_same(element, other, width, height) for other in kept):
            kept.append(element)
    return kept


def is_same(first: UiElement, second: UiElement, width: int, height: int) -> bool:
    """Whether the middles of two elements are within `SAME_PIXELS` of each other in a picture of this size."""
    across, down = (first.at.x - second.at.x) * width, (first.at.y - second.at.y) * height
    return across * across + down * down <= SAME_PIXELS * SAME_PIXELS


class ElementMemory:
    """The newest elements of one screen, each once.

    Attributes:
        size: How many are kept: `menu_exploration_buffer_size`.
    """

    def __init__(self, width: int, height: int, size: int = 50) -> None:
        """Makes an empty memory for pictures of a size in pixels."""
        if size < 1:
            raise ConfigError(f"menu_exploration_buffer_size is {size}; valid: at least 1")
        self.size = size
        self._width, self._height = width, height
        self._elements: OrderedDict[int, UiElement] = OrderedDict()
        self._next = 0

    def __len__(self) -> int:
        return len(self._elements)

    @property
    def elements(self) -> list[UiElement]:
        """All elements, the one that was seen longest ago first."""
        return list(self._elements.values())

    def add(self, element: UiElement) -> bool:
        """Remembers an element; returns whether it is new. One that is known becomes the newest."""
        for key, known in self._elements.items():
            if is_same(known, element, self._width, self._height):
                self._elements[key] = element
                self._elements.move_to_end(key)
                return False
        self._elements[self._next] = element
        self._next += 1
        if len(self._elements) > self.size:
            self._elements.popitem(last=False)
        return True


def _element(
    frame: Frame, kind: ElementKind, box: tuple[int, int, int, int], confidence: float, step: int
) -> UiElement:
    x, y, w, h = box
    height, width = frame.shape[:2]
    looks = hashlib.sha256(frame[y : y + h, x : x + w].tobytes()).hexdigest()[:8]
    region = Region(x / width, y / height, (x + w) / width, (y + h) / height)
    return UiElement(f"{kind}-{looks}", kind, region, confidence, step)
