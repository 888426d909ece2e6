"""The layout: where everything that never moves is, for a theme, a size of the picture and a size of the map."""

from collections.abc import Sequence
from dataclasses import dataclass

from ludus.core.errors import ConfigError
from ludus.envs.city.game.rules import BUILDINGS, Tool
from ludus.envs.city.interface.boxes import Box, Sheet
from ludus.envs.city.interface.elements import Element
from ludus.envs.city.interface.fields import FieldPlace, field_sizes, place_bar, place_panel
from ludus.envs.city.interface.menus import MENUS
from ludus.envs.city.interface.messages import tool_name
from ludus.envs.city.interface.theme import Measure, Theme

MIN_TILE = 16  # pixels; a map that does not fit at this size is scrolled
MAX_TILE = 48
MIN_SIZE = (560, 360)  # pixels; smaller pictures have no room for the HUD
_GAP = 2


@dataclass(frozen=True, slots=True)
class View:
    """The part of the screen that shows the map.

    Attributes:
        frame: The whole area, with what is left over at its edges.
        box: Exactly the cells that are shown.
        tile: Side of a cell in pixels.
        columns: Columns of cells that are shown.
        rows: Rows of cells that are shown.
        scrolls: Buttons that move the camera; none where the whole map is shown.
    """

    frame: Box
    box: Box
    tile: int
    columns: int
    rows: int
    scrolls: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is.

    Attributes:
        width: Of the picture.
        height: Of the picture.
        menu_bar: Strip of the menus.
        menus: Their headings.
        speed: Where the speed of the clock is written.
        panels: Backgrounds of HUD and palette.
        fields: Places of the HUD's fields by name.
        demand: Where the three bars of demand are.
        tax_buttons: Buttons beside the tax.
        tools: Buttons of the palette.
        message: Message line.
        tool_label: Where the selected tool is written.
        view: The map.
        elements: All of the above that can be clicked, lowest first.
    """

    width: int
    height: int
    menu_bar: Box
    menus: tuple[Element, ...]
    speed: Box
    panels: tuple[Box, ...]
    fields: dict[str, FieldPlace]
    demand: Box
    tax_buttons: tuple[Element, Element]
    tools: tuple[Element, ...]
    message: Box
    tool_label: Box
    view: View
    elements: tuple[Element, ...]


def make_layout(theme: Theme, size: tuple[int, int], map_size: tuple[int, int], face: Measure) -> Layout:
    """Lays out a screen.

    Args:
        theme: Its look.
        size: Width and height in pixels.
        map_size: Columns and rows of the map.
        face: The letters.

    Raises:
        ConfigError: The picture is too small.
    """
    if size[0] < MIN_SIZE[0] or size[1] < MIN_SIZE[1]:
        raise ConfigError(f"a picture of {size[0]}x{size[1]} is too small; use {MIN_SIZE[0]}x{MIN_SIZE[1]} or more")
    sheet = Sheet(*size)
    sizes = field_sizes(theme, face)
    strip = face.height + 6
    menu_bar = sheet.bottom(strip) if theme.arrangement == "right" else sheet.top(strip)
    button = _tool_size(size[1])
    panels: list[Box] = []
    if theme.arrangement in ("left", "right"):
        panel = _cut(sheet, theme.arrangement, max(sizes.panel_width, 4 * button + 2 * _GAP))
        panels.append(panel)
        fields, demand, rest = place_panel(panel.inset(_GAP, _GAP), sizes)
        across = min(len(Tool), rest.width // button)
        tools = _place_tools(Box(rest.left, rest.top, across * button, rest.height), button, across)
    else:
        bar = _cut(sheet, "top" if theme.arrangement == "top" else "bottom", sizes.bar_height(size[0] - 2 * _GAP))
        panels.append(bar)
        fields, demand = place_bar(bar.inset(_GAP, _GAP), sizes)
        if theme.arrangement == "ribbon":
            panels.append(sheet.top(button + 2 * _GAP))
            tools = _place_tools(panels[-1].inset(_GAP, _GAP), button, len(Tool))
        else:
            panels.append(_cut(sheet, "left" if theme.arrangement == "top" else "right", 2 * button + 2 * _GAP))
            tools = _place_tools(panels[-1].inset(_GAP, _GAP), button, 2)
    line = sheet.top(strip) if theme.arrangement == "right" else sheet.bottom(strip)
    label_width = max(face.width(f"{tool_name(t)} {theme.format.money(_cost(t))}") for t in Tool) + 10
    view = _make_view(sheet.rest, map_size, face.height)
    menus = _place_menus(menu_bar, face)
    tax_buttons = _tax_buttons(fields["tax"])
    return Layout(
        *size,
        menu_bar=menu_bar,
        menus=menus,
        speed=Box(menu_bar.right - face.width("Normal") - 14, menu_bar.top, face.width("Normal") + 14, strip),
        panels=tuple(panels),
        fields=fields,
        demand=demand,
        tax_buttons=tax_buttons,
        tools=tools,
        message=Box(line.left, line.top, line.width - label_width, strip),
        tool_label=Box(line.right - label_width, line.top, label_width, strip),
        view=view,
        elements=_all_elements(fields, demand, view, (*menus, *tools, *tax_buttons)),
    )


def _all_elements(
    fields: dict[str, FieldPlace], demand: Box, view: View, buttons: Sequence[Element]
) -> tuple[Element, ...]:
    shown = [Element(f"field.{name}", "field", place.box) for name, place in fields.items()]
    shown += [Element("field.demand", "bar", demand), Element("map", "map", view.box)]
    return (*shown, *view.scrolls, *buttons)


def _cost(tool: Tool) -> int:
    return 0 if tool == Tool.BULLDOZER else BUILDINGS[tool].cost


def _cut(sheet: Sheet, side: str, width: int) -> Box:
    cuts = {"top": sheet.top, "bottom": sheet.bottom, "left": sheet.left, "right": sheet.right}
    return cuts[side](width)


def _tool_size(height: int) -> int:
    return 24 if height < 500 else 30 if height < 700 else 40


def _place_tools(area: Box, button: int, across: int) -> tuple[Element, ...]:
    elements = []
    for place, tool in enumerate(Tool):
        row, column = divmod(place, across)
        box = Box(area.left + column * button, area.top + row * button, button, button)
        elements.append(Element(f"tool.{tool.name.lower()}", "tool", box, tool_name(tool)))
    return tuple(elements)


def _place_menus(bar: Box, face: Measure) -> tuple[Element, ...]:
    elements, left = [], bar.left + 2
    for entry in MENUS:
        width = face.width(entry.label) + 2 * max(face.height // 2, 5)
        elements.append(Element(f"menu.{entry.name}", "menu", Box(left, bar.top, width, bar.height), entry.label))
        left += width
    return tuple(elements)


def _tax_buttons(place: FieldPlace) -> tuple[Element, Element]:
    side = place.box.height
    down = Box(place.box.right - 2 * side, place.box.top, side, side)
    up = Box(place.box.right - side, place.box.top, side, side)
    return Element("tax.down", "button", down, "-"), Element("tax.up", "button", up, "+")


def _make_view(frame: Box, map_size: tuple[int, int], letter: int) -> View:
    """Chooses the largest cells at which the whole map is seen; what does not fit at `MIN_TILE` is scrolled."""
    columns, rows = map_size
    tile = max(MIN_TILE, min(frame.width // columns, frame.height // rows, MAX_TILE))
    thick = letter + 4
    right = thick if frame.height // tile < rows else 0
    bottom = thick if (frame.width - right) // tile < columns else 0
    right = thick if (frame.height - bottom) // tile < rows else 0
    shown = min(columns, (frame.width - right) // tile), min(rows, (frame.height - bottom) // tile)
    width, height = shown[0] * tile, shown[1] * tile
    left = frame.left + (frame.width - right - width) // 2
    top = frame.top + (frame.height - bottom - height) // 2
    box = Box(left, top, width, height)
    scrolls: list[Element] = []
    if right:
        across = frame.right - thick
        scrolls.append(Element("scroll.up", "scroll", Box(across, top, thick, thick)))
        scrolls.append(Element("scroll.down", "scroll", Box(across, box.bottom - thick, thick, thick)))
    if bottom:
        down = frame.bottom - thick
        scrolls.append(Element("scroll.left", "scroll", Box(left, down, thick, thick)))
        scrolls.append(Element("scroll.right", "scroll", Box(box.right - thick, down, thick, thick)))
    return View(frame, box, tile, *shown, scrolls=tuple(scrolls))
