"""Elements found by their outlines, and the menu graph."""

import cv2
import numpy as np
import pytest

from ludus.core.errors import UnknownNameError
from ludus.worlds.city.drivers.driver import Frame, Region
from ludus.worlds.city.explorer import MenuGraph
from ludus.worlds.city.perception.elements import UiElement, find_elements, is_same, unique


def panel() -> Frame:
    frame = np.full((200, 300, 3), 190, np.uint8)
    for left in (20, 80, 140):
        cv2.rectangle(frame, (left, 30), (left + 40, 60), (60, 60, 60), 2)
    cv2.putText(frame, "Budget", (30, 150), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (0, 0, 0), 1)
    return frame


def test_finds_buttons_and_text() -> None:
    elements = find_elements(panel())
    buttons = sorted(round(e.at.x * 300) for e in elements if e.kind == "button" and e.at.y * 200 < 70)
    texts = [e for e in elements if e.at.y * 200 > 120]
    assert [abs(x - wanted) <= 2 for x, wanted in zip(buttons, (40, 100, 160), strict=True)] == [True] * 3
    assert texts
    assert find_elements(np.full((50, 50, 3), 9, np.uint8)) == []


def element(x: float, y: float, confidence: float = 0.5) -> UiElement:
    return UiElement("button", Region(x - 0.01, y - 0.01, x + 0.01, y + 0.01), confidence)


def test_elements_within_twenty_pixels_are_the_same() -> None:
    assert is_same(element(0.5, 0.5), element(0.515, 0.5), 1000, 1000)
    assert not is_same(element(0.5, 0.5), element(0.525, 0.5), 1000, 1000)
    unsure, sure = element(0.5, 0.5, 0.4), element(0.51, 0.5, 0.9)
    assert unique([unsure, sure], 1000, 1000) == [sure]


def test_the_graph_tells_screens_apart_and_knows_what_was_not_tried() -> None:
    graph = MenuGraph(1000, 1000)
    row = [element(x / 10, 0.05) for x in range(1, 7)]
    items = [element(0.1, y / 10) for y in range(2, 9)]
    base = graph.visit(row)
    menu = graph.visit([*row, *items])
    assert base != menu
    assert graph.visit(row[:5]) == base
    for one in row:
        graph.clicked(base, one, menu if one is row[2] else base)
    assert graph.unexplored(base) == []
    assert graph.unexplored(menu) == [*row, *items]
    on_map = element(0.8, 0.8)
    assert graph.visit([*row, on_map], ignored=[Region(0.5, 0.5, 1.0, 1.0)]) == base
    with pytest.raises(UnknownNameError):
        graph.unexplored("elsewhere")
