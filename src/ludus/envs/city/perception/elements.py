"""Elements of a user interface, found by their looks alone: lines of text and framed buttons."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ludus.core.errors import ConfigError
from ludus.envs.city.drivers.driver import Frame, Point, Region
from ludus.envs.city.perception.ocr import FoundText, Scanner
from ludus.envs.city.perception.outlines import Outlines, PixelBox

ElementKind: TypeAlias = Literal["text", "button"]
SAME_PIXELS = 20.0  # elements whose middles are nearer are the same
_WORD_CONFIDENCE, _BUTTON_CONFIDENCE = 0.6, 0.5


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
    """Returns the words and buttons of a picture `(height, width, 3)`, by their outlines; milliseconds."""
    outlines = Outlines(frame)
    height, width = frame.shape[:2]
    found = [_element(frame, "text", box, _WORD_CONFIDENCE, step) for box in outlines.words]
    found += [_element(frame, "button", box, _BUTTON_CONFIDENCE, step) for box in outlines.buttons]
    return unique(found, width, height)


def discover(frame: Frame, scanner: Scanner, step: int = 0) -> list[UiElement]:
    """Returns the elements of a picture with what is written on them; seconds, for discovery alone.

    A line of text whose words stand apart is one element a word, because a bar of menus is read as one line.
    """
    found, named = find_elements(frame, step), list[UiElement]()
    for text in scanner.scan(frame):
        inside = [element for element in found if element.kind == "text" and _holds(text.region, element.at)]
        parts = _words_of(text) if len(inside) > 1 else [text]
        named += [UiElement(part.text, "text", part.region, part.confidence, step) for part in parts]
    return unique([*named, *found], frame.shape[1], frame.shape[0])


def _words_of(line: FoundText) -> list[FoundText]:
    """Returns the words of a line, as far to the right as there are letters before them."""
    region, words, before = line.region, list[FoundText](), 0
    width = (region.right - region.left) / max(len(line.text), 1)
    for word in line.text.split():
        before = line.text.index(word, before)
        left = region.left + before * width
        before += len(word)
        place = Region(left, region.top, left + len(word) * width, region.bottom)
        words.append(FoundText(word, place, line.confidence))
    return words


def unique(elements: Sequence[UiElement], width: int, height: int) -> list[UiElement]:
    """Returns elements without those that are the same as a surer one."""
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


def _holds(region: Region, point: Point) -> bool:
    return region.left <= point.x <= region.right and region.top <= point.y <= region.bottom


def _element(frame: Frame, kind: ElementKind, box: PixelBox, confidence: float, step: int) -> UiElement:
    x, y, w, h = box
    height, width = frame.shape[:2]
    looks = hashlib.sha256(frame[y : y + h, x : x + w].tobytes()).hexdigest()[:8]
    region = Region(x / width, y / height, (x + w) / width, (y + h) / height)
    return UiElement(f"{kind}-{looks}", kind, region, confidence, step)
