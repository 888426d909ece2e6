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
        rest = self.rest
        if side in ("top", "bottom"):
            is_first = side == "top"
            self.rest = Box(rest.left, rest.top + (size if is_first else 0), rest.width, rest.height - size)
            return Box(rest.left, rest.top if is_first else rest.bottom - size, rest.width, size)
        is_first = side == "left"
        self.rest = Box(rest.left + (size if is_first else 0), rest.top, rest.width - size, rest.height)
        return Box(rest.left if is_first else rest.right - size, rest.top, size, rest.height)


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
    thick: int  # from one bar to the next
    tops: tuple[int, int, int]  # first row of each bar

    @property
    def height(self) -> int:
        """Rows of a bar."""
        return max(self.thick - 1, 1)

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
    thick = (box.height - 4) // 3
    top = box.top + (box.height - 3 * thick) // 2
    return DemandPlaces(box.left + box.width // 2, box.width // 2 - _EDGE, thick, (top, top + thick, top + 2 * thick))


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
    """What the fields need."""

    labels: dict[str, int]  # width of each label
    values: dict[str, int]  # width of each value
    buttons: dict[str, int]  # width of what stands behind each value
    line: int  # height of a field

    @property
    def demand_width(self) -> int:
        """Width of the bars of demand where they stand beside fields."""
        return 6 * self.line

    @property
    def panel_width(self) -> int:
        """Width of a panel in which fields stand one below the other."""
        buttons = max(self.values[name] + self.buttons[name] for name in FIELDS)
        return max(self.labels.values()) + buttons + 4

    def width(self, name: str) -> int:
        """Width of a field in a bar."""
        return self.labels[name] + self.values[name] + self.buttons[name]

    def rows(self, width: int) -> list[list[str]]:
        """Break the fields, and the bars of demand, into lines of a bar of this width."""
        rows: list[list[str]] = [[]]
        used = 0
        for name in (*FIELDS, "demand"):
            needed = (self.demand_width if name == "demand" else self.width(name)) + _FIELD_GAP
            if used + needed > width and rows[-1]:
                rows.append([])
                used = 0
            rows[-1].append(name)
            used += needed
        return rows

    def bar_height(self, width: int) -> int:
        """Height of a bar of this width, with a margin."""
        return len(self.rows(width)) * (self.line + 2) + 4


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
    labels = {name: face.width(theme.words[name]) + 5 if theme.words else line + 2 for name in FIELDS}
    buttons = {name: 2 * line + 2 if name == "tax" else 0 for name in FIELDS}
    return FieldSizes(labels, {name: width + 2 * _PAD for name, width in values.items()}, buttons, line)


def _widest(face: TextMeasure, text: str) -> int:
    """Width of a text if all its eights were the widest digit."""
    return max(face.width(text.replace("8", digit)) for digit in "0123456789")


def place_bar(area: Box, sizes: FieldSizes) -> tuple[dict[str, FieldPlace], Box]:
    """Place the fields in the lines of a bar; return them and where the bars of demand are."""
    places: dict[str, FieldPlace] = {}
    demand = Box(0, 0, 0, 0)
    for index, names in enumerate(sizes.rows(area.width)):
        left, top = area.left, area.top + index * (sizes.line + 2)
        for name in names:
            if name == "demand":
                demand = Box(left, top, sizes.demand_width, sizes.line)
                continue
            places[name] = _place(name, Box(left, top, sizes.width(name), sizes.line), sizes)
            left += sizes.width(name) + _FIELD_GAP
    return places, demand


def place_panel(area: Box, sizes: FieldSizes) -> tuple[dict[str, FieldPlace], Box, Box]:
    """Place the fields one below the other; return them, the place of the bars of demand, and what is left below."""
    places: dict[str, FieldPlace] = {}
    top = area.top
    for name in FIELDS:
        places[name] = _place(name, Box(area.left, top, area.width, sizes.line), sizes)
        top += sizes.line + 2
    demand = Box(area.left, top + 2, area.width, 2 * sizes.line)
    below = demand.bottom + 4
    return places, demand, Box(area.left, below, area.width, area.bottom - below)


def _place(name: str, box: Box, sizes: FieldSizes) -> FieldPlace:
    value = Box(box.right - sizes.values[name] - sizes.buttons[name], box.top, sizes.values[name], box.height)
    return FieldPlace(box, Box(box.left, box.top, sizes.labels[name], box.height), value)


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
    scrolls: tuple[Element, ...]  # buttons that move the camera; none where the whole map is shown


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
    panels: list[Box] = []
    if theme.arrangement in ("left", "right"):
        panel = sheet.cut(theme.arrangement, max(sizes.panel_width, 4 * button + 2 * _GAP))
        panels.append(panel)
        fields, demand, rest = place_panel(panel.inset(_GAP, _GAP), sizes)
        across = min(len(Tool), rest.width // button)
        tools = _place_tools(Box(rest.left, rest.top, across * button, rest.height), button, across)
    else:
        bar = sheet.cut("top" if theme.arrangement == "top" else "bottom", sizes.bar_height(size[0] - 2 * _GAP))
        panels.append(bar)
        fields, demand = place_bar(bar.inset(_GAP, _GAP), sizes)
        if theme.arrangement == "ribbon":
            panels.append(sheet.cut("top", button + 2 * _GAP))
            tools = _place_tools(panels[-1].inset(_GAP, _GAP), button, len(Tool))
        else:
            panels.append(sheet.cut("left" if theme.arrangement == "top" else "right", 2 * button + 2 * _GAP))
            tools = _place_tools(panels[-1].inset(_GAP, _GAP), button, 2)
    line = sheet.cut("top", strip) if theme.arrangement == "right" else sheet.cut("bottom", strip)
    label_width = max(face.width(f"{tool_name(t)} {theme.format.money(_most_cost(t))}") for t in Tool) + 10
    view = _make_view(sheet.rest, map_size, face.height)
    menus = _place_menus(menu_bar, face)
    tax_buttons = _tax_buttons(fields["tax"])
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


def _tax_buttons(place: FieldPlace) -> tuple[Element, Element]:
    side = place.box.height
    down = Box(place.box.right - 2 * side, place.box.top, side, side)
    up = Box(place.box.right - side, place.box.top, side, side)
    return Element("tax.down", "button", down, "-"), Element("tax.up", "button", up, "+")


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
