"""From decisions to gestures: what is clicked and pressed for a kind of action at a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ludus.worlds.city.catalogue import BULLDOZER, CLOSED_MENUS, ROAD, STREETS, TAX, Catalogue, funded_sliders
from ludus.worlds.city.config import CellGrid
from ludus.worlds.city.drivers.driver import Box, Click, Drag, Gesture, Key, Point, Region, Scroll
from ludus.worlds.city.game.rules import Department, Tool
from ludus.worlds.city.interface.boxes import point_in
from ludus.worlds.city.interface.layout import Layout
from ludus.worlds.city.interface.menus import MENUS, all_entries
from ludus.worlds.city.interface.panes import place_lists
from ludus.worlds.city.interface.theme import TextMeasure
from ludus.worlds.city.profile_schema import GameProfile, Operation, operations

FUNDING_LEVELS = (0, 50, 80, 100)  # percent, as the menu offers them
# One for each of the two dialogs that can come on one day, and one for a window behind them. None does harm alone.
CLEAR: tuple[Gesture, ...] = (Key("Escape"), Key("Escape"), Key("Escape"))


@dataclass(frozen=True, slots=True)
class Gestures:
    """Converts decisions to gestures on one kind of screen, where places never move; holds no state of a game."""

    catalogue: Catalogue  # what can be done
    tools: Mapping[str, Click | Key]  # how the tool of a kind is chosen
    cells: tuple[Point, ...]  # middles of the cells that are seen, row by row
    headings: tuple[Point, ...]  # where menus are opened
    forbidden: tuple[Region, ...]  # where no exploring click ever goes
    fixed: Mapping[str, tuple[Gesture, ...]] = field(default_factory=dict)  # kinds that are always the same gestures
    after: Mapping[str, tuple[Gesture, ...]] = field(default_factory=dict)  # what follows a kind's click on a cell
    groups: Mapping[str, Point] = field(default_factory=dict)  # where the group of a kind's tool is opened, if in one

    def choose(self, name: str) -> tuple[Gesture, ...]:
        """Return the gestures that choose the tool of a kind."""
        return (*([Click(self.groups[name])] if name in self.groups else []), self.tools[name])

    def is_forbidden(self, point: Point) -> bool:
        """Whether no exploring click may go there."""
        return any(region.holds(point) for region in self.forbidden)

    def of(self, kind: int, cell: int, target: Point | None = None) -> Sequence[Gesture]:
        """Return the gestures of a decision: a kind of the catalogue, and a cell for kinds that need one.

        Kinds that choose an element of the interface click on `target`; None clicks nowhere.
        """
        name = self.catalogue.kinds[kind].name
        if name in self.fixed:
            return self.fixed[name]
        if name in STREETS:
            end = self.cells[self.catalogue.street_end(name, cell)]
            return (*self.choose(name), Drag(self.cells[cell], end))
        if name in self.tools:
            return (*self.choose(name), Click(self.cells[cell]), *self.after.get(name, ()))
        if name == "random_click":
            target = self.catalogue.window_point(cell)
        return () if target is None or self.is_forbidden(target) else (Click(target),)


def embedded_gestures(catalogue: Catalogue, layout: Layout, face: TextMeasure) -> Gestures:
    """Return the gestures of the embedded game in a layout."""
    size = (layout.width, layout.height)
    view = layout.view
    tools = {tool.name.lower(): Click(point_in(*layout.tools[tool].box.middle, *size)) for tool in Tool}
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
        **_basic(middle),
        "tax_up": (Click(up),),
        "tax_down": (Click(down),),
        **{f"camera_{key.lower()}": (Key(key),) for key in ("Left", "Right", "Up", "Down")},
        **_menu_clicks(layout, face),
    }
    return Gestures(
        catalogue,
        tools=tools,
        cells=cells,
        fixed=fixed,
        after={"bulldoze": (Key("Return"),)},  # answers the question that is asked before some buildings
        headings=tuple(_middle(menu.box, size) for menu in layout.menus if not _is_closed(menu.name)),
        forbidden=tuple(menu.box.region(*size) for menu in layout.menus if _is_closed(menu.name)),
    )


def _basic(middle: Point) -> dict[str, tuple[Gesture, ...]]:
    """Return the kinds that are the same gestures in every game; `middle` is that of the map."""
    return {
        "wait": (),
        "observe": (),
        "escape": (Key("Escape"),),
        "scroll_down": (Scroll(middle, -1),),
        "scroll_up": (Scroll(middle, 1),),
    }


def funding_kind(department: Department, level: int) -> str:
    """Return the path of the menu's entry that funds a department at one of `FUNDING_LEVELS`."""
    return f"menu.budget.funding.{department.name.lower()}.{FUNDING_LEVELS[level]}"


def _menu_clicks(layout: Layout, face: TextMeasure) -> dict[str, tuple[Gesture, ...]]:
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


_HEADING = (0.025, 0.014)  # half the width and height around a menu's heading where exploring never clicks
_TAX_STEP = 1.0  # percent


class ProfileGestures:
    """Converts decisions to operations in one game, and remembers the levels of funding.

    Attributes:
        plain: The gestures of kinds that need no more than places.
        region: The part of the picture that the cells cover.
    """

    def __init__(self, profile: GameProfile, catalogue: Catalogue, cells: CellGrid) -> None:
        self._profile, self._catalogue = profile, catalogue
        self._lots = profile.lots if cells == "lots" else None
        grid = profile.lot_grid if self._lots is not None and profile.lot_grid is not None else profile.grid
        self.region, numbers = grid.region, [divmod(cell, catalogue.columns)[::-1] for cell in range(catalogue.cells)]
        self._corners = [grid.corner(*place) for place in numbers]
        anchor = None if self._lots is None else self._lots.anchor
        middles = tuple(
            grid.cell(*place) if anchor is None else Point(corner.x + anchor.x, corner.y + anchor.y)
            for place, corner in zip(numbers, self._corners, strict=True)
        )
        self.plain = _plain_gestures(profile, catalogue, middles)
        self._fixed = _profile_fixed(profile, self.region.middle)
        self._funded = funded_sliders(profile)
        self._levels: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        """Note the start of a new city, in which all departments are funded."""
        self._levels = dict.fromkeys(self._funded, len(FUNDING_LEVELS) - 1)

    def of(self, kind: int, cell: int, tax: float | None, target: Point | None = None) -> Sequence[Sequence[Operation]]:
        """Return the operations of a decision in one or several parts; each part is drawn before the next.

        `tax` is what was read last, None if it is not known; the other arguments are those of `Gestures.of`.
        """
        name, group = self._catalogue.kinds[kind].name, self._catalogue.kinds[kind].group
        if name in self._fixed:
            return (self._fixed[name],)
        if group == "tax":
            # One step on the slider from its value; nothing if that cannot be read.
            step = _TAX_STEP if name == "tax_up" else -_TAX_STEP
            return (() if tax is None else (Click(self._profile.slider_point(TAX, tax + step)),),)
        if group == "funding":
            return self._fund(*name.rsplit("_", 1))
        if self._lots is not None and name in self._lots.blocks:
            steps, corner = self._lots.blocks[name], self._corners[cell]
            each = ((*self.plain.choose(step.tool), step.gesture(corner)) for step in steps)
            return ([gesture for gestures in each for gesture in gestures],)
        return (self.plain.of(kind, cell, target),)

    def _fund(self, name: str, way: str) -> Sequence[Sequence[Operation]]:
        """Open the dialog by its menu, click on the slider of a department, and close the dialog."""
        dialog = self._funded[name].dialog or ""
        level = min(max(self._levels[name] + (1 if way == "up" else -1), 0), len(FUNDING_LEVELS) - 1)
        self._levels[name] = level
        opens = next(
            (Click(menu.at), Click(menu.items[dialog]))
            for menu in self._profile.menus.values()
            if dialog in menu.items and not menu.closed
        )
        close = operations(self._profile.dialogs[dialog].close)
        return (opens, (Click(self._profile.slider_point(name, FUNDING_LEVELS[level])),), close)


def _plain_gestures(profile: GameProfile, catalogue: Catalogue, cells: tuple[Point, ...]) -> Gestures:
    tools = {name: tool.choice for name, tool in profile.tools.items()}
    groups = {name: tool.group for name, tool in profile.tools.items() if tool.group is not None}
    same = {"bulldoze": BULLDOZER, **dict.fromkeys(STREETS, ROAD)}
    tools |= {kind: tools[name] for kind, name in same.items() if name in tools}
    groups |= {kind: groups[name] for kind, name in same.items() if name in groups}
    (wide, high), menus = _HEADING, profile.menus.values()
    closed = [menu.at for menu in menus if menu.closed]
    forbidden = tuple(Region(at.x - wide, at.y - high, at.x + wide, at.y + high) for at in closed)
    headings = tuple(menu.at for menu in menus if not menu.closed)
    return Gestures(catalogue, tools, cells, headings, forbidden, groups=groups)


def _profile_fixed(profile: GameProfile, middle: Point) -> Mapping[str, tuple[Operation, ...]]:
    """Return the kinds that are always the same operations; `middle` is that of the cells."""
    menus = {
        f"menu.{name}.{item}": (menu, at) for name, menu in profile.menus.items() for item, at in menu.items.items()
    }
    camera = {f"camera_{name}": operations(steps) for name, steps in profile.camera.items()}
    return {**_basic(middle), **camera, **{path: (Click(menu.at), Click(at)) for path, (menu, at) in menus.items()}}
