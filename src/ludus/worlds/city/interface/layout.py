"""The static layout for a theme, a picture size and a map size: elements of the interface with their places."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ludus.core.errors import ConfigError
from ludus.worlds.city.drivers.driver import Box, Point
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import BUILDINGS, HILL_FACTOR, MOST_BRUSH, Tool
from ludus.worlds.city.interface.menus import MENUS
from ludus.worlds.city.interface.state import tool_name
from ludus.worlds.city.interface.theme import FIELDS, MIN_SIZE, TextMeasure, Theme
from ludus.worlds.city.perception.reading import Date

Side = Literal["top", "bottom", "left", "right"]


class Sheet:
    """A rectangle from which strips are cut until the rest is left."""

    def __init__(self, width: int, height: int) -> None:
        self.rest = Box(0, 0, width, height)

    def cut(self, side: Side, size: int) -> Box:
        """Cut a strip of this thickness off a side and return it."""
        left, top, width, height = self.rest
        if side in ("left", "right"):
            self.rest = Box(left + size * (side == "left"), top, width - size, height)
            return Box(left if side == "left" else self.rest.right, top, size, height)
        self.rest = Box(left, top + size * (side == "top"), width, height - size)
        return Box(left, top if side == "top" else self.rest.bottom, width, size)


def point_in(x: int, y: int, width: int, height: int) -> Point:
    """Return the middle of a pixel as fractions of a picture of this size."""
    return Point((x + 0.5) / width, (y + 0.5) / height)


ElementKind = Literal["tool", "menu", "item", "field", "button", "scroll", "map", "dialog", "window", "bar"]


@dataclass(frozen=True, slots=True)
class Element:
    """Something with a place on the screen."""

    name: str  # its path, such as `tool.road`, `menu.speed.pause`, `field.funds`, `dialog.ok`
    kind: ElementKind  # what sort of thing it is
    box: Box  # where it is, in pixels
    label: str = ""  # what is written on it, if anything


def find_at(elements: Sequence[Element], x: int, y: int) -> Element | None:
    """Return the topmost element at a pixel: the last of the list that holds it."""
    return next((element for element in reversed(elements) if element.box.holds(x, y)), None)


BARS = ("demand_homes", "demand_shops", "demand_industry")
_EDGE = 2  # pixels that a bar stays away from the end of its field


@dataclass(frozen=True, slots=True)
class DemandPlaces:
    """Where the bars of a field are."""

    middle: int  # column from which bars go, to the right for more and to the left for less; a line is drawn over it
    half: int  # length of a full bar in pixels
    height: int  # rows of a bar
    tops: tuple[int, int, int]  # first row of each bar

    def length(self, demand: int) -> int:
        """Return the length of the bar of a demand from -100 to 100."""
        return abs(demand) * self.half // 100

    def said(self, length: int, *, more: bool) -> float:
        """Return the demand that a bar of a length shows: the middle of its range; 0 for the shortest ones.

        The first pixel of a bar to the right is under the line in the middle, so a bar of one pixel is none.
        """
        if length < (2 if more else 1):
            return 0.0
        size = min((length + 0.5) * 100.0 / self.half, 100.0)
        return size if more else -size

    def shown(self, demand: int) -> float:
        """Return the demand that the bar shows."""
        return self.said(self.length(demand), more=demand >= 0)


def demand_places(box: Box) -> DemandPlaces:
    """Return where the bars are in the field of demand."""
    step = (box.height - 4) // 3
    top = box.top + (box.height - 3 * step) // 2
    tops = (top, top + step, top + 2 * step)
    return DemandPlaces(box.left + box.width // 2, box.width // 2 - _EDGE, max(step - 1, 1), tops)


_WIDE_MONEY = (-8_888, 88_888, -88_888, 888_888, -888_888, -8_888_888, 88_888_888)
_PAD = 3  # pixels around a value
_FIELD_GAP = 6  # pixels between fields


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Where a field is."""

    box: Box  # all of it, with label, value and buttons
    label: Box  # of its word or picture
    value: Box  # the value; nothing else is ever drawn there


@dataclass(frozen=True, slots=True)
class FieldSizes:
    """What the fields and, by the name `demand`, the bars beside them need."""

    labels: dict[str, int]  # width of each label
    values: dict[str, int]  # width of each value
    buttons: dict[str, int]  # width of what stands behind each value
    line: int  # height of a field

    def width(self, name: str) -> int:
        """Width of a field in a bar."""
        return self.labels[name] + self.values[name] + self.buttons[name]

    def rows(self, width: int) -> list[list[str]]:
        """Break the fields into lines of a bar of this width."""
        rows: list[list[str]] = [[]]
        used = 0
        for name in self.labels:
            needed = self.width(name) + _FIELD_GAP
            if used + needed > width and rows[-1]:
                rows.append([])
                used = 0
            rows[-1].append(name)
            used += needed
        return rows


def field_sizes(theme: Theme, face: TextMeasure) -> FieldSizes:
    """Measure what the fields need at most."""
    form = theme.format
    share = _widest(face, form.share(100))
    values = {
        "date": max(_widest(face, form.day(Date(2088, month, 28))) for month in range(1, 13)),
        "funds": max(_widest(face, form.money(amount)) for amount in _WIDE_MONEY),
        "balance": max(_widest(face, form.money(amount, signed=True)) for amount in _WIDE_MONEY[:4]),
        "population": max(_widest(face, form.number(amount)) for amount in (88_888, 888_888)),
        **dict.fromkeys(("happiness", "traffic", "pollution", "land_value"), share),
        "tax": _widest(face, form.share(20)),
    }
    line = face.height + 4
    labels = {name: face.width(theme.words[name]) + 5 if theme.words else line + 2 for name in FIELDS} | {"demand": 0}
    buttons = {name: 2 * line + 2 if name == "tax" else 0 for name in labels}
    values = {name: width + 2 * _PAD for name, width in values.items()} | {"demand": 6 * line}
    return FieldSizes(labels, values, buttons, line)


def _widest(face: TextMeasure, text: str) -> int:
    """Width of a text if all its eights were the widest digit."""
    return max(face.width(text.replace("8", digit)) for digit in "0123456789")


def place_fields(
    area: Box, rows: list[list[str]], sizes: FieldSizes, *, fill: bool = False
) -> tuple[dict[str, FieldPlace], Box]:
    """Place rows of fields, each as wide as the area with `fill`; return them and where the bars of demand are."""
    boxes: dict[str, Box] = {}
    for index, names in enumerate(rows):
        left = area.left
        for name in names:
            width = area.width if fill else sizes.width(name)
            boxes[name] = Box(left, area.top + index * (sizes.line + 2), width, sizes.line)
            left += width + _FIELD_GAP
    demand = boxes.pop("demand")
    places: dict[str, FieldPlace] = {}
    for name, box in boxes.items():
        value = Box(box.right - sizes.values[name] - sizes.buttons[name], box.top, sizes.values[name], box.height)
        places[name] = FieldPlace(box, Box(box.left, box.top, sizes.labels[name], box.height), value)
    return places, demand


MIN_TILE = 16  # pixels; a map that does not fit at this size is scrolled
MAX_TILE = 48
_GAP = 2


@dataclass(frozen=True, slots=True)
class View:
    """The part of the screen that shows the map."""

    frame: Box  # the whole area, with what is left over at its edges
    box: Box  # exactly the cells that are shown
    tile: int  # side of a cell in pixels
    columns: int  # columns of cells that are shown
    rows: int  # rows of cells that are shown
    scrolls: tuple[Element, ...]  # pairs of buttons that move the camera; none where the whole map is shown


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is."""

    width: int  # of the picture
    height: int  # of the picture
    menu_bar: Box  # strip of the menus
    menus: tuple[Element, ...]  # their headings
    speed: Box  # where the speed of the clock is written
    panels: tuple[Box, ...]  # backgrounds of HUD and palette
    fields: dict[str, FieldPlace]  # places of the HUD's fields by name
    demand: Box  # where the three bars of demand are
    tax_buttons: tuple[Element, Element]  # buttons beside the tax
    tools: tuple[Element, ...]  # buttons of the palette
    message: Box  # message line
    tool_label: Box  # where the selected tool is written
    view: View  # the map
    elements: tuple[Element, ...]  # all of the above that can be clicked, lowest first


def make_layout(theme: Theme, size: tuple[int, int], map_size: tuple[int, int], face: TextMeasure) -> Layout:
    """Lay out a screen of a size in pixels, for a map of a size in cells; raise ConfigError if it is too small."""
    if size[0] < MIN_SIZE[0] or size[1] < MIN_SIZE[1]:
        raise ConfigError(f"a picture of {size[0]}x{size[1]} is too small; use {MIN_SIZE[0]}x{MIN_SIZE[1]} or more")
    sheet = Sheet(*size)
    sizes = field_sizes(theme, face)
    strip = face.height + 6
    menu_bar = sheet.cut("bottom", strip) if theme.arrangement == "right" else sheet.cut("top", strip)
    button = 24 if size[1] < 500 else 30 if size[1] < 700 else 40
    if theme.arrangement in ("left", "right"):
        widest = max(sizes.labels.values()) + max(sizes.values[name] + sizes.buttons[name] for name in FIELDS) + 4
        panels = [sheet.cut(theme.arrangement, max(widest, 4 * button + 2 * _GAP))]
        area = panels[0].inset(_GAP, _GAP)
        fields, demand = place_fields(area, [[name] for name in sizes.labels], sizes, fill=True)
        demand = demand._replace(top=demand.top + 2, height=2 * sizes.line)
        area = area._replace(top=demand.bottom + 4)
        across = min(len(Tool), area.width // button)
    else:
        rows = sizes.rows(size[0] - 2 * _GAP)
        bar = sheet.cut("top" if theme.arrangement == "top" else "bottom", len(rows) * (sizes.line + 2) + 4)
        fields, demand = place_fields(bar.inset(_GAP, _GAP), rows, sizes)
        if theme.arrangement == "ribbon":
            across, panels = len(Tool), [bar, sheet.cut("top", button + 2 * _GAP)]
        else:
            side: Side = "left" if theme.arrangement == "top" else "right"
            across, panels = 2, [bar, sheet.cut(side, 2 * button + 2 * _GAP)]
        area = panels[-1].inset(_GAP, _GAP)
    tools = _place_tools(area, button, across)
    line = sheet.cut("top", strip) if theme.arrangement == "right" else sheet.cut("bottom", strip)
    label_width = max(face.width(f"{tool_name(t)} {theme.format.money(_most_cost(t))}") for t in Tool) + 10
    view = _make_view(sheet.rest, map_size, face.height)
    menus = _place_menus(menu_bar, face)
    tax_buttons = place_buttons("tax", fields["tax"].box, sizes.line)
    shown = [Element(f"field.{name}", "field", place.box) for name, place in fields.items()]
    shown += [Element("field.demand", "bar", demand), Element("map", "map", view.box)]
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
        elements=(*shown, *view.scrolls, *menus, *tools, *tax_buttons),
    )


def _most_cost(tool: Tool) -> int:
    """Return the most that one click with a tool can cost: on hills, with the largest brush."""
    cells = MOST_BRUSH**2 if tool in ZONES else 1
    return 0 if tool == Tool.BULLDOZER else BUILDINGS[tool].cost * HILL_FACTOR * cells


def _place_tools(area: Box, button: int, across: int) -> tuple[Element, ...]:
    """Place the palette in rows of some buttons, from the upper left corner of an area on."""
    elements = []
    for place, tool in enumerate(Tool):
        row, column = divmod(place, across)
        box = Box(area.left + column * button, area.top + row * button, button, button)
        elements.append(Element(f"tool.{tool.name.lower()}", "tool", box, tool_name(tool)))
    return tuple(elements)


def _place_menus(bar: Box, face: TextMeasure) -> tuple[Element, ...]:
    elements, left = [], bar.left + 2
    for entry in MENUS:
        width = face.width(entry.label) + 2 * max(face.height // 2, 5)
        elements.append(Element(f"menu.{entry.name}", "menu", Box(left, bar.top, width, bar.height), entry.label))
        left += width
    return tuple(elements)


def place_buttons(name: str, line: Box, side: int, gap: int = 0) -> tuple[Element, Element]:
    """Return the buttons at the right end of a line that lower and raise a number."""
    up = Box(line.right - side, line.top, side, side)
    down = up._replace(left=up.left - gap - side)
    return Element(f"{name}.down", "button", down, "-"), Element(f"{name}.up", "button", up, "+")


def _make_view(frame: Box, map_size: tuple[int, int], letter: int) -> View:
    """Choose the largest cells at which the whole map is seen; what does not fit at `MIN_TILE` is scrolled."""
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
    across, down = frame.right - thick, frame.bottom - thick
    places = {"up": (across, top), "down": (across, box.bottom - thick)} if right else {}
    places |= {"left": (left, down), "right": (box.right - thick, down)} if bottom else {}
    scrolls = tuple(Element(f"scroll.{way}", "scroll", Box(*at, thick, thick)) for way, at in places.items())
    return View(frame, box, tile, *shown, scrolls=scrolls)
