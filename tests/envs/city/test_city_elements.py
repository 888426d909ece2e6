"""Templates at several scales, elements found and remembered, the menu graph."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from ludus.core.errors import ConfigError, FormatError, UnknownNameError
from ludus.envs.city.drivers.driver import Frame, Region
from ludus.envs.city.perception.elements import ElementMemory, UiElement, find_elements, is_same, unique
from ludus.envs.city.perception.menu_graph import MenuGraph
from ludus.envs.city.perception.templates import find_template


def icon(side: int = 40) -> Frame:
    """A picture with fine parts, which plain matching loses at other scales."""
    canvas = np.full((side, side, 3), 200, np.uint8)
    for offset in range(2, side - 2, 6):
        cv2.line(canvas, (offset, 4), (side - 5, offset), (20, 40, 160), 1)
    cv2.circle(canvas, (side // 2, side // 2), side // 5, (180, 30, 30), 2)
    return canvas


def scene(scale: float, at: tuple[int, int]) -> Frame:
    random = np.random.default_rng(3)
    frame = random.integers(90, 160, (240, 320, 3)).astype(np.uint8)
    side = round(40 * scale)
    scaled = cv2.resize(icon(), (side, side), interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    frame[at[1] : at[1] + side, at[0] : at[0] + side] = scaled
    return frame


@pytest.mark.parametrize("scale", [0.8, 0.9, 1.0, 1.1, 1.25])
def test_finds_a_template_at_other_scales_where_plain_matching_fails(scale: float) -> None:
    frame = scene(scale, (150, 90))
    match = find_template(frame, icon())
    assert match is not None
    assert match.scale == scale
    assert match.score > 0.95
    assert match.region.pixels(320, 240)[:2] == (150, 90)
    plain = find_template(frame, icon(), scales=(1.0,))
    assert plain is not None
    assert (plain.score > 0.95) == (scale == 1.0)
    if scale != 1.0:
        assert plain.score < 0.8


def test_looks_only_where_it_is_told_to() -> None:
    frame = scene(1.0, (150, 90))
    inside = find_template(frame, icon(), Region(0.4, 0.3, 0.8, 0.8))
    outside = find_template(frame, icon(), Region(0.0, 0.0, 0.4, 1.0))
    assert inside is not None
    assert inside.region.pixels(320, 240) == (150, 90, 190, 130)
    assert outside is not None
    assert outside.score < 0.5
    assert find_template(frame, icon(), Region(0.0, 0.0, 0.05, 0.05)) is None


def test_a_template_must_show_something() -> None:
    with pytest.raises(ConfigError, match="one colour"):
        find_template(scene(1.0, (0, 0)), np.full((9, 9, 3), 7, np.uint8))


def panel() -> Frame:
    frame = np.full((200, 300, 3), 190, np.uint8)
    for left in (20, 80, 140):
        cv2.rectangle(frame, (left, 30), (left + 40, 60), (60, 60, 60), 2)
    cv2.putText(frame, "Budget", (30, 150), cv2.FONT_HERSHEY_SIMPLEX, 0.6, (0, 0, 0), 1)
    return frame


def test_finds_buttons_and_text() -> None:
    elements = find_elements(panel(), step=7)
    buttons = sorted(round(e.at.x * 300) for e in elements if e.kind == "button" and e.at.y * 200 < 70)
    texts = [e for e in elements if e.at.y * 200 > 120]
    assert [abs(x - wanted) <= 2 for x, wanted in zip(buttons, (40, 100, 160), strict=True)] == [True] * 3
    assert texts
    assert all(e.step == 7 for e in elements)
    assert find_elements(np.full((50, 50, 3), 9, np.uint8)) == []


def element(x: float, y: float, name: str = "e", confidence: float = 0.5) -> UiElement:
    return UiElement(name, "button", Region(x - 0.01, y - 0.01, x + 0.01, y + 0.01), confidence)


def test_elements_within_twenty_pixels_are_the_same() -> None:
    assert is_same(element(0.5, 0.5), element(0.515, 0.5), 1000, 1000)
    assert not is_same(element(0.5, 0.5), element(0.525, 0.5), 1000, 1000)
    kept = unique([element(0.5, 0.5, "a", 0.4), element(0.51, 0.5, "b", 0.9)], 1000, 1000)
    assert [e.name for e in kept] == ["b"]


def test_the_memory_keeps_the_newest() -> None:
    memory = ElementMemory(1000, 1000, size=3)
    assert all(memory.add(element(x, 0.5, str(x))) for x in (0.1, 0.2, 0.3))
    assert not memory.add(element(0.105, 0.5, "again"))
    assert memory.add(element(0.4, 0.5, "0.4"))
    assert [e.name for e in memory.elements] == ["0.3", "again", "0.4"]
    with pytest.raises(ConfigError):
        ElementMemory(10, 10, size=0)


def test_the_graph_tells_screens_apart_and_leads_to_what_was_not_tried(tmp_path: Path) -> None:
    graph = MenuGraph(1000, 1000)
    row = [element(x / 10, 0.05, f"menu{x}") for x in range(1, 7)]
    items = [element(0.1, y / 10, f"item{y}") for y in range(2, 9)]
    base = graph.visit(row)
    menu = graph.visit([*row, *items])
    assert base != menu
    assert graph.visit(row[:5]) == base
    for one in row:
        graph.clicked(base, one, menu if one is row[2] else base)
    assert graph.unexplored(base) == []
    assert [e.name for e in graph.path_to_unexplored(base)] == ["menu3", "menu1"]
    on_map = element(0.8, 0.8, "house")
    assert graph.visit([*row, on_map], ignored=[Region(0.5, 0.5, 1.0, 1.0)]) == base
    file = tmp_path / "graph.json"
    graph.save(file)
    again = MenuGraph.load(file)
    assert again.screens == graph.screens
    with pytest.raises(UnknownNameError):
        graph.unexplored("elsewhere")


@pytest.mark.parametrize("content", ["[]", "{}", "nonsense", '{"format": "ludus menu graph", "version": 9}'])
def test_damaged_graphs_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "graph.json"
    file.write_text(content)
    with pytest.raises(FormatError, match="holds no menu graph"):
        MenuGraph.load(file)
