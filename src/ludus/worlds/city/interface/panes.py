"""What covers the picture: dialogs, windows, open menus and tooltips; what they say, and where their parts are."""

from dataclasses import dataclass, field

from ludus.worlds.city.drivers.driver import Box
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import FIRST_YEAR, MONTH_DAYS, YEAR_MONTHS, Flag, Kind, Notice, Terrain
from ludus.worlds.city.game.simulation import CitySimulation
from ludus.worlds.city.interface.layout import Element, Layout, place_buttons
from ludus.worlds.city.interface.menus import MENUS, Dialog, Entry, Window
from ludus.worlds.city.interface.state import WORDS
from ludus.worlds.city.interface.theme import FIELDS, Amount, Format, TextMeasure, whole
from ludus.worlds.city.perception.reading import Date, Value

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
        return {"date": self.date(), **{name: float(self.number(_REAL.get(name, name))) for name in FIELDS[1:]}}

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
    # Number of a colour that is shown before the label, -1 for none; see the map's legend.
    swatch: int = field(default=-1, kw_only=True)


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


def place_pane(pane: Pane, face: TextMeasure, outer: Box) -> PlacedPane:
    """Place a dialog in the middle of an area, or a window in its upper right corner."""
    line, pad = face.height + 5, max(face.height // 2 + 2, 6)
    side = line - 2  # of a button that adjusts
    text = max([_row_width(row, face, pad, side) for row in pane.rows], default=0)
    buttons = sum(_button_width(label, face, pad) + pad for _, label in pane.buttons)
    width = max(text, buttons, face.width(pane.title) + 3 * line, 18 * face.height) + 2 * pad
    chart = 6 * line if pane.graph else 0
    height = line + 2 + pad + chart + len(pane.rows) * line + (line + 2 * pad if pane.buttons else pad)
    left, top = outer.left + (outer.width - width) // 2, outer.top + (outer.height - height) // 2
    if pane.name == "window":
        left, top = outer.right - width - 4, outer.top + 4
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
            elements += place_buttons(f"window.{row.adjust}", place, side, gap=2)
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

_NEEDS = (Flag.ROAD, Flag.POWER, Flag.WATER)
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
        buttons = _YES_NO if dialog in (Dialog.ABANDON, Dialog.DEMOLISH) else _OK
        lines = [Row(line.format_map(said)) for line in WORDS.dialogs.get(name, ())]
        rows = self._report(name) if name in WORDS.reports else lines
        return Pane("dialog", WORDS.titles.get(name, name.capitalize()), tuple(rows), buttons)

    def _report(self, name: str) -> list[Row]:
        return [Row(*(part.format_map(self._figures) for part in parts)) for parts in WORDS.reports[name]]

    def window(self, window: Window, cell: int) -> Pane:
        """Return what a window says; `cell` is what a query asks about."""
        figures, form = self._figures, self._form
        graph = self._history() if window == Window.GRAPH else ()
        match window:
            case Window.GRAPH:
                rows = [Row("Most", form.number(max(graph))), Row("Now", form.number(figures.number("population")))]
            case Window.DEMAND:
                demands = zip(ZONES, figures.demands(), strict=True)
                rows = [Row(tool.name.capitalize(), f"{demand:+d}", swatch=tool) for tool, demand in demands]
            case Window.MILESTONES:
                marks = ["reached" if index < figures.number("milestones") else "-" for index in range(8)]
                rows = [Row(form.number(size), mark) for size, mark in zip(const.MILESTONES, marks, strict=False)]
            case Window.LEGEND:
                rows = [Row(const.BUILDINGS[kind].name, swatch=kind) for kind in _LEGEND]
            case Window.QUERY:
                rows = self._query(cell)
            case _:
                rows = self._report(window.name.lower())
        return Pane("window", "Population" if graph else window.name.capitalize(), tuple(rows), graph=graph)

    def _history(self) -> tuple[int, ...]:
        """Population of the last ten years, the oldest month first."""
        months = int(self._simulation.city["day"][self._game]) // const.MONTH_DAYS
        kept = self._simulation.history[self._game]
        first = max(months - const.HISTORY_MONTHS, 0)
        return (0, *(int(kept[month % const.HISTORY_MONTHS]) for month in range(first, months)))

    def _query(self, cell: int) -> list[Row]:
        cells, game, form = self._simulation.cells, self._game, self._form
        kind, flags = int(cells.kind[game, cell]), int(cells.flags[game, cell])
        terrain = Terrain(int(cells.terrain[game, cell])).name.capitalize()
        rows = [Row("Here", const.BUILDINGS[kind].name if kind else terrain)]
        if Kind.RESIDENTIAL <= kind <= Kind.INDUSTRIAL:
            rows.append(Row("People" if kind == Kind.RESIDENTIAL else "Jobs", str(cells.amount[game, cell])))
        if Kind.RESIDENTIAL <= kind < Kind.RUBBLE:
            rows += [Row(flag.name.capitalize(), "yes" if flags & flag else "no") for flag in _NEEDS]
        rows.append(Row("Land value", form.share(whole(float(cells.value[game, cell])))))
        rows.append(Row("Pollution", form.share(whole(float(cells.air[game, cell])))))
        return rows


@dataclass(frozen=True, slots=True)
class MenuList:
    """An open list of entries."""

    box: Box  # all of it
    entries: tuple[Entry, ...]  # what it lists
    elements: tuple[Element, ...]  # where each entry is


def place_lists(path: tuple[int, ...], layout: Layout, face: TextMeasure) -> tuple[MenuList, ...]:
    """Place the lists of an open path: the menu at its heading, each submenu beside its entry."""
    screen, line = Box(0, 0, layout.width, layout.height), face.height + 5
    lists: list[MenuList] = []
    entries, elements = MENUS, layout.menus
    for index in path:
        anchor, entries = elements[index], entries[index].children
        width = max(face.width(entry.label) for entry in entries) + 3 * face.height + 8
        height = len(entries) * line + 4
        left, top = anchor.box.left, anchor.box.bottom
        if lists:
            outer, top = lists[-1].box, anchor.box.top - 1
            left = outer.right - 2 if outer.right - 2 + width <= screen.right else outer.left - width + 2
        elif layout.menu_bar.top > layout.height // 2:
            top = anchor.box.top - height
        box = Box(left, top, width, height).within(screen)
        places = [Box(box.left + 2, box.top + 2 + number * line, width - 4, line) for number in range(len(entries))]
        elements = tuple(
            Element(f"{anchor.name}.{entry.name}", "item", place, entry.label)
            for entry, place in zip(entries, places, strict=True)
        )
        lists.append(MenuList(box, entries, elements))
    return tuple(lists)


@dataclass(frozen=True, slots=True)
class Hint:
    """A tooltip."""

    text: str
    box: Box
