"""Panes: what dialogs and windows are made of, and where their parts are."""

from dataclasses import dataclass

from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.elements import Element
from ludus.envs.city.interface.theme import Measure


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a pane.

    Attributes:
        label: What is written at its left.
        value: What is written at its right.
        adjust: Name of what its two buttons change; empty for none.
        swatch: Number of a colour that is shown before the label, -1 for none; see the map's legend.
    """

    label: str
    value: str = ""
    adjust: str = ""
    swatch: int = -1


@dataclass(frozen=True, slots=True)
class Pane:
    """What a dialog or a window says.

    Attributes:
        name: `dialog` or `window`.
        title: In its title bar.
        rows: Its lines.
        buttons: Names and labels of the buttons at its bottom; the first one is the default.
        graph: Numbers that are drawn as a curve above the lines, if any.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    buttons: tuple[tuple[str, str], ...] = ()
    graph: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedPane:
    """A pane on the screen.

    Attributes:
        pane: What it says.
        box: All of it.
        title: Its title bar.
        graph: Where its curve is; empty without one.
        rows: Where each of its lines is.
        elements: Everything of it that can be clicked, lowest first.
    """

    pane: Pane
    box: Box
    title: Box
    graph: Box
    rows: tuple[Box, ...]
    elements: tuple[Element, ...]


def place_pane(pane: Pane, face: Measure, outer: Box, *, at_right: bool) -> PlacedPane:
    """Places a pane in the middle of an area, or in its upper right corner."""
    line, pad = face.height + 5, max(face.height // 2 + 2, 6)
    side = line - 2  # of a button that adjusts
    text = max([_row_width(row, face, pad, side) for row in pane.rows], default=0)
    buttons = sum(_button_width(label, face, pad) + pad for _, label in pane.buttons)
    width = max(text, buttons, face.width(pane.title) + 3 * line, 18 * face.height) + 2 * pad
    chart = 6 * line if pane.graph else 0
    height = line + 2 + pad + chart + len(pane.rows) * line + (line + 2 * pad if pane.buttons else pad)
    left = outer.right - width - 4 if at_right else outer.left + (outer.width - width) // 2
    top = outer.top + 4 if at_right else outer.top + (outer.height - height) // 2
    box = Box(left, top, width, height).within(outer)
    title = Box(box.left, box.top, box.width, line + 2)
    graph = Box(box.left + pad, title.bottom + pad, box.width - 2 * pad, chart)
    first = graph.bottom
    rows = tuple(Box(graph.left, first + index * line, graph.width, line) for index in range(len(pane.rows)))
    elements = [Element(pane.name, "dialog" if pane.name == "dialog" else "window", box, pane.title)]
    if pane.name == "window":
        elements.append(Element("window.close", "button", Box(box.right - line, box.top + 2, line - 2, line - 2), "x"))
    for row, place in zip(pane.rows, rows, strict=True):
        if row.adjust:
            down = Box(place.right - 2 * side - 2, place.top, side, side)
            up = Box(place.right - side, place.top, side, side)
            elements.append(Element(f"window.{row.adjust}.down", "button", down, "-"))
            elements.append(Element(f"window.{row.adjust}.up", "button", up, "+"))
    right = box.right - pad
    for name, label in reversed(pane.buttons):
        wide = _button_width(label, face, pad)
        button = Box(right - wide, box.bottom - pad - line, wide, line)
        elements.append(Element(f"{pane.name}.{name}", "button", button, label))
        right -= wide + pad
    return PlacedPane(pane, box, title, graph, rows, tuple(elements))


def _row_width(row: Row, face: Measure, pad: int, side: int) -> int:
    width = face.width(row.label) + (face.height + 4 if row.swatch >= 0 else 0)
    if row.value:
        width += 2 * pad + face.width(row.value)
    return width + (2 * side + pad if row.adjust else 0)


def _button_width(label: str, face: Measure, pad: int) -> int:
    return max(face.width(label) + 2 * pad, 5 * face.height)
