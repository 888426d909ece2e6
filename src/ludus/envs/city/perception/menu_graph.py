"""The menu graph: screens by their layout, clicks that led from one to another, and what was never clicked."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ludus.core.errors import FormatError, UnknownNameError
from ludus.core.files import JSON, write_atomic
from ludus.envs.city.drivers.driver import Region
from ludus.envs.city.perception.elements import UiElement, is_same
from ludus.store.documents import decode_document, encode_document
from ludus.store.limits import Limits

VERSION = 1
_FORMAT = "ludus menu graph"
_LIMITS = Limits(document_bytes=8 << 20, document_values=500_000, document_depth=8)
_CELLS = (32, 18)  # a layout is which of so many cells across and down hold the middle of an element
_ALIKE = 0.7  # share of common cells from which on two layouts are the same screen
_MAX_SCREENS = 1000


@dataclass(slots=True)
class Screen:
    """A screen.

    Attributes:
        name: Hash of the layout it was first seen with.
        cells: That layout.
        elements: What can be clicked on it.
        clicks: Element by its number -> name of the screen that the last click on it led to.
        visits: How often it was seen.
    """

    name: str
    cells: frozenset[int]
    elements: list[UiElement] = field(default_factory=list)
    clicks: dict[int, str] = field(default_factory=dict)
    visits: int = 0


class MenuGraph:
    """Screens and the clicks between them.

    Attributes:
        screens: By name.
    """

    def __init__(self, width: int, height: int) -> None:
        """Makes an empty graph for pictures of a size in pixels."""
        self.width, self.height = width, height
        self.screens: dict[str, Screen] = {}

    def visit(self, elements: Sequence[UiElement], ignored: Sequence[Region] = ()) -> str:
        """Notes that a screen is seen and returns its name, a new one if no known screen looks alike.

        Args:
            elements: What was found on it.
            ignored: Where the picture changes by itself, such as the map; elements there belong to no layout.
        """
        kept = [element for element in elements if not any(_holds(region, element) for region in ignored)]
        cells = frozenset(map(_cell, kept))
        screen = max(self.screens.values(), key=lambda known: _likeness(known.cells, cells), default=None)
        if screen is None or _likeness(screen.cells, cells) < _ALIKE:
            name = hashlib.sha256(",".join(map(str, sorted(cells))).encode()).hexdigest()[:16]
            screen = self.screens.setdefault(name, Screen(name, cells))
            if len(self.screens) > _MAX_SCREENS:
                del self.screens[min(self.screens, key=lambda known: (self.screens[known].visits, known == name))]
        screen.visits += 1
        for element in kept:
            if self._number(screen, element) is None:
                screen.elements.append(element)
        return screen.name

    def clicked(self, screen: str, element: UiElement, led_to: str) -> None:
        """Notes that a click on an element of a screen led to another screen, or to the same one."""
        known = self._screen(screen)
        number = self._number(known, element)
        if number is None:
            known.elements.append(element)
            number = len(known.elements) - 1
        known.clicks[number] = self._screen(led_to).name

    def unexplored(self, screen: str) -> list[UiElement]:
        """Returns the elements of a screen that were never clicked there."""
        known = self._screen(screen)
        return [element for number, element in enumerate(known.elements) if number not in known.clicks]

    def path_to_unexplored(self, screen: str) -> list[UiElement]:
        """Returns the fewest clicks that end with one never tried before; empty if there is none within reach."""
        before: dict[str, list[UiElement]] = {self._screen(screen).name: []}
        waiting = [screen]
        for name in waiting:
            fresh = self.unexplored(name)
            if fresh:
                return [*before[name], fresh[0]]
            for number, target in self.screens[name].clicks.items():
                if target in self.screens and target not in before:
                    before[target] = [*before[name], self.screens[name].elements[number]]
                    waiting.append(target)
        return []

    def save(self, file: Path) -> None:
        """Writes the graph, replacing the file as a whole."""
        file.parent.mkdir(parents=True, exist_ok=True)
        screens: list[JSON] = [_screen_document(screen) for screen in self.screens.values()]
        size: list[JSON] = [self.width, self.height]
        write_atomic(
            file, encode_document({"format": _FORMAT, "version": VERSION, "size": size, "screens": screens}, _LIMITS)
        )

    @classmethod
    def load(cls, file: Path) -> "MenuGraph":
        """Returns the graph in a file.

        Raises:
            FormatError: It is damaged, of another version, or no menu graph at all.
        """
        try:
            document: Any = decode_document(file.read_bytes(), _LIMITS)
            _check_version(document)
            width, height = document["size"]
            graph = cls(int(width), int(height))
            for item in document["screens"]:
                graph.screens[str(item["name"])] = _screen_of(item)
        except (FormatError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"{file} holds no menu graph: {error}; remove it to explore anew") from None
        return graph

    def _screen(self, name: str) -> Screen:
        if name not in self.screens:
            raise UnknownNameError("screen", name, list(self.screens)[:10])
        return self.screens[name]

    def _number(self, screen: Screen, element: UiElement) -> int | None:
        for number, known in enumerate(screen.elements):
            if is_same(known, element, self.width, self.height):
                return number
        return None


def _check_version(document: Any) -> None:  # noqa: ANN401 - whatever a file holds
    if document["format"] != _FORMAT or document["version"] != VERSION:
        raise FormatError(f"its version is {document['version']!r}, this is for {VERSION}")


def _cell(element: UiElement) -> int:
    across, down = _CELLS
    column, row = min(int(element.at.x * across), across - 1), min(int(element.at.y * down), down - 1)
    return row * across + column


def _holds(region: Region, element: UiElement) -> bool:
    return region.left <= element.at.x <= region.right and region.top <= element.at.y <= region.bottom


def _likeness(first: frozenset[int], second: frozenset[int]) -> float:
    return len(first & second) / len(first | second) if first or second else 1.0


def _screen_document(screen: Screen) -> JSON:
    elements: list[JSON] = [
        {
            "name": element.name,
            "kind": element.kind,
            "region": [element.region.left, element.region.top, element.region.right, element.region.bottom],
            "confidence": element.confidence,
            "step": element.step,
        }
        for element in screen.elements
    ]
    clicks: dict[str, JSON] = {str(number): target for number, target in screen.clicks.items()}
    cells: list[JSON] = [*sorted(screen.cells)]
    return {"name": screen.name, "cells": cells, "elements": elements, "clicks": clicks, "visits": screen.visits}


def _screen_of(item: dict[str, Any]) -> Screen:
    elements = []
    for saved in item["elements"]:
        left, top, right, bottom = map(float, saved["region"])
        if saved["kind"] not in ("text", "button"):
            raise FormatError(f"an element is a {saved['kind']!r}")
        region = Region(left, top, right, bottom)
        elements.append(
            UiElement(str(saved["name"]), saved["kind"], region, float(saved["confidence"]), int(saved["step"]))
        )
    clicks = {int(number): str(target) for number, target in item["clicks"].items()}
    if any(not 0 <= number < len(elements) for number in clicks):
        raise FormatError("a click is on an element that is not there")
    return Screen(str(item["name"]), frozenset(map(int, item["cells"])), elements, clicks, int(item["visits"]))
