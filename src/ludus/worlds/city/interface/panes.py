"""What covers the picture: dialogs, windows, open menus and tooltips; what they say, and where their parts are."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from ludus.worlds.city.drivers.driver import Box
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import FIRST_YEAR, MONTH_DAYS, YEAR_MONTHS, Flag, Kind, Notice, Terrain, Tool
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.layout import Element, Layout, find_at
from ludus.worlds.city.interface.menus import MENUS, Dialog, Entry, Window
from ludus.worlds.city.interface.state import WORDS, InterfaceState, tool_name
from ludus.worlds.city.interface.theme import FIELDS, Amount, Format, TextMeasure, Theme, whole
from ludus.worlds.city.perception.reading import Date, Value

_WHOLE = ("funds", "balance", "population", "tax")
_REAL = {"happiness": "happiness", "traffic": "traffic", "pollution": "pollution", "land_value": "value"}
DEMANDS = ("demand_residential", "demand_commercial", "demand_industrial")


class Figures:
    """Reads one city of a simulation."""

    def __init__(self, simulation: CitySimulation, game: int, form: Format) -> None:
        self._city, self._game, self.form = simulation.city, game, form

    def number(self, name: str) -> int:
        """Return a field of `structs.City` as an integer, rounded half up."""
        return whole(float(self._city[name][self._game]))

    def __getitem__(self, name: str) -> Amount:
        """Return a field for a text with placeholders."""
        return Amount(self.number(name), self.form)

    def date(self) -> Date:
        """Return the date of the city; it is founded on the first day of its first year."""
        months, day = divmod(int(self._city["day"][self._game]), MONTH_DAYS)
        years, month = divmod(months, YEAR_MONTHS)
        return Date(FIRST_YEAR + years, month + 1, day + 1)

    def values(self) -> dict[str, Value]:
        """Return the exact value of every field of the HUD, as it is shown: shares in whole percent."""
        values: dict[str, Value] = {"date": self.date()}
        values |= {name: float(self._city[name][self._game]) for name in _WHOLE}
        values |= {name: float(self.number(source)) for name, source in _REAL.items()}
        return {name: values[name] for name in FIELDS}

    def numbers(self) -> tuple[float, ...]:
        """Return the values of all fields in their order, the date in days since year 0, and the three demands."""
        values = self.values()
        days = float(self.date().days)
        return (*(value if isinstance(value, float) else days for value in values.values()), *self.demands())

    def said(self) -> dict[str, Value]:
        """Return the value that the text of every field shows; abbreviated texts are less exact."""
        form, values = self.form, self.values()
        for name in ("funds", "balance", "population"):
            values[name] = float(form.said(int(self._city[name][self._game])))
        values["date"] = form.said_date(self.date())
        return values

    def texts(self) -> dict[str, str]:
        """Return the text of every field of the HUD."""
        city, game, form = self._city, self._game, self.form
        return {
            "date": form.day(self.date()),
            "funds": form.money(int(city["funds"][game])),
            "balance": form.money(int(city["balance"][game]), signed=True),
            "population": form.number(int(city["population"][game])),
            **{name: form.share(int(city[source][game] + 0.5)) for name, source in _REAL.items()},
            "tax": form.share(int(city["tax"][game])),
        }

    def demands(self) -> tuple[int, int, int]:
        """Return the demand for homes, shops and industry, from -100 to 100."""
        first, second, third = (self.number(name) for name in DEMANDS)
        return first, second, third


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a pane."""

    label: str  # what is written at its left
    value: str = ""  # what is written at its right
    adjust: str = ""  # name of what its two buttons change; empty for none
    swatch: int = -1  # number of a colour that is shown before the label, -1 for none; see the map's legend


@dataclass(frozen=True, slots=True)
class Pane:
    """What a dialog or a window says."""

    name: str  # `dialog` or `window`
    title: str  # in its title bar
    rows: tuple[Row, ...]  # its lines
    # Names and labels of the buttons at its bottom; the first one is the default.
    buttons: tuple[tuple[str, str], ...] = ()
    graph: tuple[int, ...] = ()  # numbers that are drawn as a curve above the lines, if any


@dataclass(frozen=True, slots=True)
class PlacedPane:
    """A pane on the screen."""

    pane: Pane  # what it says
    box: Box  # all of it
    title: Box  # its title bar
    graph: Box  # where its curve is; empty without one
    rows: tuple[Box, ...]  # where each of its lines is
    elements: tuple[Element, ...]  # everything of it that can be clicked, lowest first


def place_pane(pane: Pane, face: TextMeasure, outer: Box, *, at_right: bool) -> PlacedPane:
    """Place a pane in the middle of an area, or in its upper right corner."""
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


def _row_width(row: Row, face: TextMeasure, pad: int, side: int) -> int:
    width = face.width(row.label) + (face.height + 4 if row.swatch >= 0 else 0)
    if row.value:
        width += 2 * pad + face.width(row.value)
    return width + (2 * side + pad if row.adjust else 0)


def _button_width(label: str, face: TextMeasure, pad: int) -> int:
    return max(face.width(label) + 2 * pad, 5 * face.height)


_OK = (("ok", "OK"),)
_YES_NO = (("yes", "Yes"), ("no", "No"))
# In the order in which dialogs follow each other when several things happen on one day.
_NOTICES = ("MILESTONE", "FIRE", "STORM", "BOOM", "RECESSION", "YEAR", "DEBT", "BANKRUPT")
NOTICES = {Notice[name]: Dialog[name] for name in _NOTICES}

_NEEDS = ((Flag.ROAD, "road"), (Flag.POWER, "power"), (Flag.WATER, "water"))
_LEGEND = (Kind.RESIDENTIAL, Kind.COMMERCIAL, Kind.INDUSTRIAL, Kind.ROAD, Kind.PARK)


class PaneWriter:
    """Writes the dialogs and windows of one city."""

    def __init__(self, simulation: CitySimulation, figures: Figures, game: int) -> None:
        self._simulation, self._figures, self._game, self._form = simulation, figures, game, figures.form

    def dialog(self, dialog: Dialog, amount: int, cell: int) -> Pane:
        """Return what a dialog says; `amount` and `cell` come from what happened."""
        name, (row, column) = dialog.name.lower(), divmod(cell, self._simulation.rules.columns)
        said: dict[str, object] = {
            "amount": Amount(amount, self._form),
            "column": column + 1,
            "row": row + 1,
            "people": Amount(const.MILESTONES[max(self._figures.number("milestones"), 1) - 1], self._form),
            "building": const.BUILDINGS[self._simulation.cells.kind[self._game, cell]].name,
            "debt_limit": Amount(const.DEBT_LIMIT, self._form),
            "debt_months": const.DEBT_MONTHS,
            "market_months": const.MARKET_MONTHS,
        }
        lines = tuple(Row(line.format_map(said)) for line in WORDS.dialogs.get(name, ()))
        buttons = _YES_NO if dialog in (Dialog.ABANDON, Dialog.DEMOLISH) else _OK
        rows = self._report(name) if name in WORDS.reports else lines
        return Pane("dialog", WORDS.titles.get(name, name.capitalize()), rows, buttons)

    def _report(self, name: str) -> tuple[Row, ...]:
        figures, parts = self._figures, WORDS.reports[name]
        rows = ((label.format_map(figures), value.format_map(figures), adjust) for label, value, *adjust in parts)
        return tuple(Row(label, value, adjust="".join(adjust)) for label, value, adjust in rows)

    def window(self, window: Window, cell: int) -> Pane:
        """Return what a window says; `cell` is what a query asks about."""
        if window == Window.GRAPH:
            graph, now = self._history(), self._figures.number("population")
            rows = Row("Most", self._form.number(max(graph))), Row("Now", self._form.number(now))
            return Pane("window", "Population", rows, graph=graph)
        writers: dict[Window, Callable[[], tuple[Row, ...]]] = {
            Window.BUDGET: functools.partial(self._report, "budget"),
            Window.CITY: functools.partial(self._report, "city"),
            Window.DEMAND: self._demand,
            Window.MILESTONES: self._milestones,
            Window.LEGEND: self._legend,
            Window.QUERY: functools.partial(self._query, cell),
        }
        return Pane("window", window.name.capitalize(), writers[window]())

    def _history(self) -> tuple[int, ...]:
        """Population of the last ten years, the oldest month first."""
        months = int(self._simulation.city["day"][self._game]) // const.MONTH_DAYS
        kept = self._simulation.history[self._game]
        first = max(months - const.HISTORY_MONTHS, 0)
        return (0, *(int(kept[month % const.HISTORY_MONTHS]) for month in range(first, months)))

    def _demand(self) -> tuple[Row, ...]:
        return tuple(
            Row(tool.name.capitalize(), f"{demand:+d}", swatch=tool)
            for tool, demand in zip(ZONES, self._figures.demands(), strict=True)
        )

    def _milestones(self) -> tuple[Row, ...]:
        reached = self._figures.number("milestones")
        marks = ((size, "reached" if index < reached else "-") for index, size in enumerate(const.MILESTONES[:8]))
        return tuple(Row(self._form.number(size), mark) for size, mark in marks)

    def _legend(self) -> tuple[Row, ...]:
        return tuple(Row(const.BUILDINGS[kind].name, swatch=kind) for kind in _LEGEND)

    def _query(self, cell: int) -> tuple[Row, ...]:
        cells, game, form = self._simulation.cells, self._game, self._form
        kind, flags = int(cells.kind[game, cell]), int(cells.flags[game, cell])
        terrain = Terrain(int(cells.terrain[game, cell])).name.capitalize()
        rows = [Row("Here", const.BUILDINGS[kind].name if kind else terrain)]
        if Kind.RESIDENTIAL <= kind <= Kind.INDUSTRIAL:
            rows.append(Row("People" if kind == Kind.RESIDENTIAL else "Jobs", str(cells.amount[game, cell])))
        if Kind.RESIDENTIAL <= kind < Kind.RUBBLE:
            rows += [Row(name.capitalize(), "yes" if flags & flag else "no") for flag, name in _NEEDS]
        rows.append(Row("Land value", form.share(whole(float(cells.value[game, cell])))))
        rows.append(Row("Pollution", form.share(whole(float(cells.air[game, cell])))))
        return tuple(rows)


@dataclass(frozen=True, slots=True)
class MenuList:
    """An open list of entries."""

    box: Box  # all of it
    entries: tuple[Entry, ...]  # what it lists
    elements: tuple[Element, ...]  # where each entry is


def place_lists(path: tuple[int, ...], layout: Layout, face: TextMeasure) -> tuple[MenuList, ...]:
    """Place the lists of an open path: the menu at its heading, each submenu beside its entry."""
    if not path:
        return ()
    screen = Box(0, 0, layout.width, layout.height)
    heading = layout.menus[path[0]]
    entry, name = MENUS[path[0]], heading.name
    width, height = _list_size(entry.children, face)
    upward = layout.menu_bar.top > layout.height // 2
    top = heading.box.top - height if upward else heading.box.bottom
    lists = [_place_list(Box(heading.box.left, top, width, height).within(screen), entry, name, face)]
    for index in path[1:]:
        entry, row = entry.children[index], lists[-1].elements[index]
        if not entry.children:
            break
        width, height = _list_size(entry.children, face)
        outer = lists[-1].box
        left = outer.right - 2 if outer.right - 2 + width <= screen.right else outer.left - width + 2
        lists.append(_place_list(Box(left, row.box.top - 1, width, height).within(screen), entry, row.name, face))
    return tuple(lists)


def _list_size(entries: tuple[Entry, ...], face: TextMeasure) -> tuple[int, int]:
    widest = max(face.width(entry.label) for entry in entries)
    return widest + 3 * face.height + 8, len(entries) * (face.height + 5) + 4


def _place_list(box: Box, parent: Entry, above: str, face: TextMeasure) -> MenuList:
    line = face.height + 5
    elements = tuple(
        Element(
            f"{above}.{entry.name}", "item", Box(box.left + 2, box.top + 2 + i * line, box.width - 4, line), entry.label
        )
        for i, entry in enumerate(parent.children)
    )
    return MenuList(box, parent.children, elements)


@dataclass(frozen=True, slots=True)
class Hint:
    """A tooltip."""

    text: str
    box: Box


def hint_at(
    state: InterfaceState, layout: Layout, theme: Theme, face: TextMeasure, cost_of: Callable[[int], int]
) -> Hint | None:
    """Return the tooltip for what is under the pointer: tools, with what a click of theirs costs, and fields."""
    x, y = state.pointer_x, state.pointer_y
    if layout.view.box.holds(x, y):
        return None
    element = find_at(layout.elements, x, y)
    if element is None or element.kind not in ("tool", "field", "bar"):
        return None
    name = element.name.partition(".")[2]
    if element.kind == "tool":
        tool = Tool[name.upper()]
        cost = cost_of(tool)
        text = f"{tool_name(tool)} {theme.format.money(cost)}" if cost else tool_name(tool)
    else:
        text = WORDS.hints.get(name, name.replace("_", " ").capitalize())
    screen = Box(0, 0, layout.width, layout.height)
    wanted = Box(x + 10, y + 14, face.width(text) + 8, face.height + 6)
    if wanted.bottom > layout.height:  # above the pointer, so that it does not hide what is pointed at
        wanted = Box(wanted.left, y - wanted.height - 4, wanted.width, wanted.height)
    return Hint(text, wanted.within(screen))
