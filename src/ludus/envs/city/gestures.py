"""From decisions to gestures: what is clicked and pressed for a kind of action at a cell, by known places alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ludus.envs.city.catalogue import CLOSED_MENUS, STREET_CELLS, STREETS, Catalogue
from ludus.envs.city.drivers.driver import Click, Drag, Gesture, Key, Point, Region, Scroll
from ludus.envs.city.game.rules import Department, Tool
from ludus.envs.city.interface.boxes import Box, point_in
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.menus import MENUS, all_entries
from ludus.envs.city.interface.open_menus import place_lists
from ludus.envs.city.interface.theme import Measure

FUNDING_LEVELS = (0, 50, 80, 100)  # percent, as the menu offers them
FUNDED = (Department.TRANSPORT, Department.SAFETY, Department.WELFARE)
# One for each of the two dialogs that can come on one day, and one for a window behind them. None does harm alone.
CLEAR: tuple[Gesture, ...] = (Key("Escape"), Key("Escape"), Key("Escape"))


@dataclass(frozen=True, slots=True)
class ScreenPlaces:
    """Where the things are that actions need, on a screen where they never move.

    Attributes:
        tools: Where the tool of a kind is chosen.
        cells: Middles of the cells that are seen, row by row.
        columns: Of these cells.
        fixed: Kinds that are always the same gestures.
        after: What follows the click of a kind on a cell.
        headings: Where menus are opened.
        forbidden: Where no exploring click ever goes.
    """

    tools: Mapping[str, Point]
    cells: tuple[Point, ...]
    columns: int
    fixed: Mapping[str, tuple[Gesture, ...]]
    after: Mapping[str, tuple[Gesture, ...]]
    headings: tuple[Point, ...]
    forbidden: tuple[Region, ...]

    def is_forbidden(self, point: Point) -> bool:
        """Whether no exploring click may go there."""
        return any(
            region.left <= point.x <= region.right and region.top <= point.y <= region.bottom
            for region in self.forbidden
        )


class Gestures:
    """Turns decisions into gestures on one kind of screen; keeps nothing of any game."""

    def __init__(self, catalogue: Catalogue, places: ScreenPlaces) -> None:
        self.catalogue, self.places = catalogue, places
        self._names = catalogue.names
        self._rows = len(places.cells) // places.columns

    def of(self, kind: int, cell: int, target: Point | None = None) -> Sequence[Gesture]:
        """Returns the gestures of a decision.

        Args:
            kind: Number of the kind in the catalogue.
            cell: Number of the cell, for kinds that need one.
            target: Where to click, for kinds that choose an element of the interface; None clicks nowhere.
        """
        name, places = self._names[kind], self.places
        fixed = places.fixed.get(name)
        if fixed is not None:
            return fixed
        if name in STREETS:
            return self._street(name, cell)
        tool = places.tools.get(name)
        if tool is not None:
            return (Click(tool), Click(places.cells[cell]), *places.after.get(name, ()))
        if name == "random_click":
            target = self._anywhere(cell)
        return () if target is None or places.is_forbidden(target) else (Click(target),)

    def _street(self, name: str, cell: int) -> Sequence[Gesture]:
        """A drag of some cells to the right or down, cut off at the edge of what is seen."""
        row, column = divmod(cell, self.places.columns)
        across, down = STREETS[name]
        last_column = min(column + across * (STREET_CELLS - 1), self.places.columns - 1)
        last_row = min(row + down * (STREET_CELLS - 1), self._rows - 1)
        end = self.places.cells[last_row * self.places.columns + last_column]
        return (Click(self.places.tools[name]), Drag(self.places.cells[cell], end))

    def _anywhere(self, cell: int) -> Point:
        """The place of the window that a cell stands for if the whole window is divided as the map is."""
        row, column = divmod(cell, self.places.columns)
        return Point((column + 0.5) / self.places.columns, (row + 0.5) / self._rows)


def embedded_places(layout: Layout, face: Measure) -> ScreenPlaces:
    """Returns the places of the embedded game in a layout."""
    size = (layout.width, layout.height)
    view = layout.view
    tools = {tool.name.lower(): point_in(*layout.tools[tool].box.middle, *size) for tool in Tool}
    tools["bulldoze"] = tools.pop(Tool.BULLDOZER.name.lower())
    tools |= dict.fromkeys(STREETS, tools[Tool.ROAD.name.lower()])
    cells = tuple(
        point_in(
            view.box.left + column * view.tile + view.tile // 2, view.box.top + row * view.tile + view.tile // 2, *size
        )
        for row in range(view.rows)
        for column in range(view.columns)
    )
    middle = point_in(*view.box.middle, *size)
    down, up = (point_in(*button.box.middle, *size) for button in layout.tax_buttons)
    fixed: dict[str, tuple[Gesture, ...]] = {
        "wait": (),
        "observe": (),
        "escape": (Key("Escape"),),
        "scroll_down": (Scroll(middle, -1),),
        "scroll_up": (Scroll(middle, 1),),
        "tax_up": (Click(up),),
        "tax_down": (Click(down),),
        **{f"camera_{key.lower()}": (Key(key),) for key in ("Left", "Right", "Up", "Down")},
        **_menu_clicks(layout, face),
    }
    return ScreenPlaces(
        tools=tools,
        cells=cells,
        columns=view.columns,
        fixed=fixed,
        after={"bulldoze": (Key("Return"),)},  # answers the question that is asked before some buildings
        headings=tuple(_middle(menu.box, size) for menu in layout.menus if not _is_closed(menu.name)),
        forbidden=tuple(menu.box.region(*size) for menu in layout.menus if _is_closed(menu.name)),
    )


def funding_kind(department: Department, level: int) -> str:
    """Returns the path of the menu's entry that funds a department at one of `FUNDING_LEVELS`."""
    return f"menu.budget.funding.{department.name.lower()}.{FUNDING_LEVELS[level]}"


def _menu_clicks(layout: Layout, face: Measure) -> dict[str, tuple[Gesture, ...]]:
    """For every entry without a submenu, the clicks that lead to it."""
    clicks: dict[str, tuple[Gesture, ...]] = {}
    size = (layout.width, layout.height)
    for name, entry in all_entries():
        if entry.children or _is_closed(name):
            continue
        path: list[int] = []
        level, way = MENUS, []
        for step in name.split(".")[1:]:
            index = next(number for number, child in enumerate(level) if child.name == step)
            shown = place_lists(tuple(path), layout, face)[-1].elements if path else layout.menus
            way.append(Click(_middle(shown[index].box, size)))
            path.append(index)
            level = level[index].children
        clicks[name] = tuple(way)
    return clicks


def _is_closed(name: str) -> bool:
    """Whether a menu, by the name of its heading or of an entry, is one of those that no action opens."""
    return name.split(".")[1] in CLOSED_MENUS


def _middle(box: Box, size: tuple[int, int]) -> Point:
    return point_in(*box.middle, *size)
