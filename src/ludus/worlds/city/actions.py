"""Actions: the catalogue of a game's kinds by name, with what each needs, and the gestures that carry them out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.worlds.city.config import GROUPS, CellGrid, Group
from ludus.worlds.city.drivers.driver import Box, Click, Drag, Gesture, Key, Point, Region, Scroll
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import CityRules, Tool
from ludus.worlds.city.interface.layout import Layout, View, point_in
from ludus.worlds.city.interface.menus import MENUS, all_entries
from ludus.worlds.city.interface.panes import place_lists
from ludus.worlds.city.interface.theme import TextMeasure
from ludus.worlds.city.profile_schema import NEARLY, GameProfile, Lots, Menu, Operation, operations

CONFIRMED, REFUSED, NOT_JUDGED = 1, 0, -1  # the outcome of a placement
KindGroup: TypeAlias = Literal["wait"] | Group
KIND_GROUPS: tuple[KindGroup, ...] = ("wait", *GROUPS)
EXPLORATORY = ("explore_menu", "click_element", "random_click", "observe", "escape", "scroll_down", "scroll_up")
STREET_CELLS = 4  # that `street_across` and `street_down` build
STREETS = {"street_across": (STREET_CELLS - 1, 0), "street_down": (0, STREET_CELLS - 1)}  # columns, rows to the end
CAMERA = ("camera_left", "camera_right", "camera_up", "camera_down")
# The menus that no action ever opens: one ends the city, the other changes how much time a decision takes.
CLOSED_MENUS = ("file", "speed")


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind of action."""

    name: str  # its name, such as `road`, `tax_up` or `menu.windows.city`
    group: KindGroup  # what sort of thing it does
    uses_cell: bool = False  # whether it needs a cell of the map
    least_cost: float = 0.0  # least that the funds lose when it is done; 0 if it costs nothing
    most_cost: float = 0.0  # most that they lose
    columns: int = 1  # cells that it covers, from the chosen one to the right

    def judge(self, fall: float, grain: float = 0.0) -> int:
        """Return whether it was done, by the fall of the funds as read: `CONFIRMED`, `REFUSED` or `NOT_JUDGED`.

        `grain` is by how much a reading of them can be off, where not all digits are written.
        """
        if self.least_cost <= fall <= self.most_cost or (grain > 0.0 and 0.0 < fall <= self.most_cost + grain):
            return CONFIRMED
        return NOT_JUDGED if fall == 0.0 and self.least_cost < grain else REFUSED


class Catalogue:
    """The kinds of action of one game, and the cells of the map that is seen.

    Attributes:
        kinds: In the order of their numbers; number 0 waits.
        names: Of the kinds.
        is_placement: `(kinds,)` bool, kinds that are judged by the funds; other arrays are as in `ActionKind`.
        group: `(kinds,)` number of the group in `KIND_GROUPS`.
        exploratory: Numbers of the kinds that are there for exploring.
        cells: Number of cells, row by row from the upper left.
        credit: How far the funds may fall below zero by building.
    """

    def __init__(self, kinds: Sequence[ActionKind], columns: int, rows: int, credit: float = 0.0) -> None:
        self.kinds, self.credit = tuple(kinds), credit
        self.columns, self.rows, self.cells = columns, rows, columns * rows
        self.names = tuple(kind.name for kind in self.kinds)
        self.exploratory = tuple(number for number, kind in enumerate(self.kinds) if kind.group == "explore")
        self.least_cost: NDArray[np.float64] = np.array([kind.least_cost for kind in self.kinds])
        self.most_cost: NDArray[np.float64] = np.array([kind.most_cost for kind in self.kinds])
        self.is_placement: NDArray[np.bool_] = self.most_cost > 0.0
        self.uses_cell: NDArray[np.bool_] = np.array([kind.uses_cell for kind in self.kinds])
        self.group: NDArray[np.int64] = np.array([KIND_GROUPS.index(kind.group) for kind in self.kinds])
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.kinds)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def number(self, name: str) -> int:
        """Return the number of a kind; raise UnknownNameError if there is none of that name."""
        if name not in self._numbers:
            raise UnknownNameError("kind of action", name, self._numbers)
        return self._numbers[name]


def embedded_catalogue(rules: CityRules, view: View, groups: Sequence[Group]) -> Catalogue:
    """Return the embedded game's catalogue of some groups of kinds; raise ConfigError if they leave only waiting."""
    kinds = [kind for kind in _all_embedded(rules, view) if kind.group in groups]
    return _with_waiting(kinds, groups, view.columns, view.rows)


def _with_waiting(
    kinds: list[ActionKind], groups: Sequence[Group], columns: int, rows: int, credit: float = 0.0
) -> Catalogue:
    if not kinds:
        raise ConfigError(
            f"actions {', '.join(groups)} leave no kinds of action in this game; valid: {', '.join(GROUPS)}"
        )
    return Catalogue([ActionKind("wait", "wait"), *kinds], columns, rows, credit)


def _all_embedded(rules: CityRules, view: View) -> Iterator[ActionKind]:
    for tool in Tool:
        if tool not in (Tool.QUERY, Tool.BULLDOZER):
            cells = rules.zone_brush**2 if tool in ZONES else 1
            yield _placement(tool.name.lower(), "build", tool, cells)
    yield _on_cell("bulldoze", "bulldoze", const.BULLDOZE_COST, const.BULLDOZE_COST)
    for name in STREETS:
        yield _placement(name, "street", Tool.ROAD, STREET_CELLS)
    yield from _up_and_down("tax", "tax")
    for department in const.FUNDED:
        yield from _up_and_down(department.name.lower(), "funding")
    for path, entry in all_entries():
        if not (entry.children or _is_closed(path) or path.startswith("menu.budget.funding.")):
            yield ActionKind(path, "menu")
    if (view.columns, view.rows) != (rules.columns, rules.rows):
        yield from (ActionKind(name, "camera") for name in CAMERA)
    yield from _exploring()


def _is_closed(path: str) -> bool:
    """Whether a menu, by the path of its heading or of an entry, is one of those that no action opens."""
    return path.split(".")[1] in CLOSED_MENUS


def _up_and_down(name: str, group: Group) -> Iterator[ActionKind]:
    return (ActionKind(f"{name}_{way}", group) for way in ("up", "down"))


def _exploring() -> Iterator[ActionKind]:
    return (ActionKind(name, "explore", uses_cell=name == "random_click") for name in EXPLORATORY)


def _on_cell(name: str, group: Group, least_cost: float, most_cost: float, columns: int = 1) -> ActionKind:
    return ActionKind(name, group, uses_cell=True, least_cost=least_cost, most_cost=most_cost, columns=columns)


def _placement(name: str, group: Literal["build", "street"], tool: Tool, cells: int) -> ActionKind:
    """Return a kind that builds up to `cells` cells: cheapest on plain land, most expensive on hills or over water."""
    cost = const.BUILDINGS[tool].cost
    over_water = {Tool.ROAD: const.BRIDGE_COST, Tool.LINE: const.WATER_LINE_COST}.get(tool, 0)
    most = max(const.HILL_FACTOR * cost, cost + const.TREE_COST, over_water)
    return _on_cell(name, group, cost, most * cells)


BULLDOZER, ROAD, TAX = "bulldozer", "road", "tax"  # names in a profile that mean the same in every game


def profile_catalogue(
    profile: GameProfile, groups: Sequence[Group], cells: CellGrid, names: Sequence[str] | None
) -> Catalogue:
    """Return the catalogue of a game: the kinds of some groups, or those of them in `names`, beside waiting.

    Raises:
        ConfigError: The game has no lots, or no kinds are left.
        UnknownNameError: A name is not a kind of these groups.
    """
    lots = profile.lots if cells == "lots" else None
    if cells == "lots" and lots is None:
        raise ConfigError(f"the profile of {profile.title} has no lots; use cells: tiles, or add a section lots to it")
    kinds = [kind for kind in _all_kinds(profile, lots) if kind.group in groups]
    unknown = [name for name in names or () if name not in {kind.name for kind in kinds}]
    if unknown:
        raise UnknownNameError(f"kind of action of {profile.title}", unknown[0], [kind.name for kind in kinds])
    kinds = [kind for kind in kinds if names is None or kind.name in names]
    grid = profile.grid if lots is None else profile.lot_grid
    return _with_waiting(kinds, groups, grid.columns, grid.rows, profile.credit)


def funded_sliders(profile: GameProfile) -> dict[str, tuple[str, Menu]]:
    """Return the sliders of departments: for each its dialog, and the menu, which may be opened, that opens this."""
    return {
        name: (slider.dialog, menu)
        for name, slider in profile.sliders.items()
        for menu in reversed(profile.menus.values())  # the first one counts
        if slider.dialog is not None and slider.dialog in menu.items and not menu.closed
    }


def _all_kinds(profile: GameProfile, lots: Lots | None) -> Iterator[ActionKind]:
    tools = profile.tools
    if lots is not None:
        # Blocks cost what all their parts do on plain ground, and a little for clearing it, no less and no more.
        for name, steps in lots.blocks.items():
            cost = sum(tools[step.tool].cost * profile.cells_of(step) for step in steps)
            yield _on_cell(name, "build", cost, cost + lots.extra)
    for name, tool in tools.items():
        # A tool for a single cell does nothing for a lot; there are blocks for what it builds.
        if tool.cost > 0 and name != BULLDOZER and (lots is None or tool.cells > 1):
            wide = 1 if lots is None else math.ceil(tool.cells * profile.map.cell.x / lots.size.x - NEARLY)
            yield _on_cell(name, "build", tool.cost, tool.most_cost, wide)
    if BULLDOZER in tools:
        yield _on_cell("bulldoze", "bulldoze", tools[BULLDOZER].cost, tools[BULLDOZER].most_cost)
    if ROAD in tools and lots is None:
        for name in STREETS:
            yield _on_cell(name, "street", tools[ROAD].cost, tools[ROAD].most_cost * STREET_CELLS)
    if TAX in profile.sliders and TAX in profile.readings and profile.sliders[TAX].dialog is None:
        yield from _up_and_down("tax", "tax")
    for name in funded_sliders(profile):
        yield from _up_and_down(name, "funding")
    for menu, content in profile.menus.items():
        if not content.closed:
            yield from (ActionKind(f"menu.{menu}.{item}", "menu") for item in content.items)
    yield from (ActionKind(name, "camera") for name in CAMERA if name.removeprefix("camera_") in profile.camera)
    yield from _exploring()


FUNDING_LEVELS = (0, 50, 80, 100)  # percent, as the menu offers them
# One for each of the two dialogs that can come on one day, and one for a window behind them. None does harm alone.
CLEAR: tuple[Gesture, ...] = (Key("Escape"), Key("Escape"), Key("Escape"))


@dataclass(frozen=True, slots=True)
class Gestures:
    """Converts decisions to gestures on one kind of screen, where places never move; holds no state of a game."""

    catalogue: Catalogue  # what can be done
    tools: Mapping[str, tuple[Gesture, ...]]  # how the tool of a kind is chosen
    cells: Sequence[Point]  # middles of the cells that are seen, row by row
    headings: tuple[Point, ...]  # where menus are opened
    forbidden: tuple[Region, ...]  # where no exploring click ever goes
    fixed: Mapping[str, tuple[Gesture, ...]] = field(default_factory=dict)  # kinds that are always the same gestures
    after: Mapping[str, tuple[Gesture, ...]] = field(default_factory=dict)  # what follows a kind's click on a cell

    def is_forbidden(self, point: Point) -> bool:
        """Whether no exploring click may go there."""
        return any(region.holds(point) for region in self.forbidden)

    def of(self, kind: int, cell: int, target: Point | None = None) -> Sequence[Gesture]:
        """Return the gestures of a decision: a kind of the catalogue, and a cell for kinds that need one.

        Kinds that choose an element of the interface click on `target`; None clicks nowhere.
        """
        name, columns, rows = self.catalogue.kinds[kind].name, self.catalogue.columns, self.catalogue.rows
        row, column = divmod(cell, columns)
        if name in self.fixed:
            return self.fixed[name]
        if name in STREETS:  # cut off at the edge of the view
            across, down = STREETS[name]
            end = min(row + down, rows - 1) * columns + min(column + across, columns - 1)
            return (*self.tools[name], Drag(self.cells[cell], self.cells[end]))
        if name in self.tools:
            return (*self.tools[name], Click(self.cells[cell]), *self.after.get(name, ()))
        if name == "random_click":  # as if the grid covered the whole window
            target = Point((column + 0.5) / columns, (row + 0.5) / rows)
        return () if target is None or self.is_forbidden(target) else (Click(target),)


def embedded_gestures(catalogue: Catalogue, layout: Layout, face: TextMeasure) -> Gestures:
    """Return the gestures of the embedded game in a layout."""
    box, tile = layout.view.box, layout.view.tile
    tools: dict[str, tuple[Gesture, ...]] = {
        tool.name.lower(): (Click(_middle(layout.tools[tool].box, layout)),) for tool in Tool
    }
    tools["bulldoze"] = tools.pop(Tool.BULLDOZER.name.lower())
    tools |= dict.fromkeys(STREETS, tools[Tool.ROAD.name.lower()])
    down, up = (Click(_middle(button.box, layout)) for button in layout.tax_buttons)
    return Gestures(
        catalogue,
        tools,
        cells=[
            _middle(Box(box.left + column * tile, box.top + row * tile, tile, tile), layout)
            for row in range(layout.view.rows)
            for column in range(layout.view.columns)
        ],
        headings=tuple(_middle(menu.box, layout) for menu in layout.menus if not _is_closed(menu.name)),
        forbidden=tuple(menu.box.region(layout.width, layout.height) for menu in layout.menus if _is_closed(menu.name)),
        fixed={
            **_basic(_middle(box, layout)),
            "tax_up": (up,),
            "tax_down": (down,),
            **{f"camera_{key.lower()}": (Key(key),) for key in ("Left", "Right", "Up", "Down")},
            **{path: clicks for path, clicks in _menu_clicks(layout, face) if not _is_closed(path)},
        },
        after={"bulldoze": (Key("Return"),)},  # answers the question that is asked before some buildings
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


def _menu_clicks(
    layout: Layout, face: TextMeasure, path: tuple[int, ...] = (), way: tuple[Click, ...] = ()
) -> Iterator[tuple[str, tuple[Click, ...]]]:
    """Yield every entry without a submenu, below an open path, with the clicks that lead to it."""
    entries, places = MENUS, layout.menus
    if path:
        shown = place_lists(path, layout, face)[-1]
        entries, places = shown.entries, shown.elements
    for index, (entry, place) in enumerate(zip(entries, places, strict=True)):
        clicks = (*way, Click(_middle(place.box, layout)))
        if entry.children:
            yield from _menu_clicks(layout, face, (*path, index), clicks)
        else:
            yield place.name, clicks


def _middle(box: Box, layout: Layout) -> Point:
    return point_in(*box.middle, layout.width, layout.height)


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
        grid = profile.grid if self._lots is None else profile.lot_grid
        self.region, numbers = grid.region, [divmod(cell, catalogue.columns)[::-1] for cell in range(catalogue.cells)]
        self._corners = [grid.corner(*place) for place in numbers]
        middles = [grid.cell(*place) for place in numbers]
        if self._lots is not None:
            at = self._lots.anchor
            middles = [Point(corner.x + at.x, corner.y + at.y) for corner in self._corners]
        self.plain = _plain_gestures(profile, catalogue, middles)
        self._fixed: Mapping[str, tuple[Operation, ...]] = {
            **_basic(self.region.middle),
            **{f"camera_{name}": operations(steps) for name, steps in profile.camera.items()},
            **{
                f"menu.{name}.{item}": (Click(menu.at), Click(at))
                for name, menu in profile.menus.items()
                for item, at in menu.items.items()
            },
        }
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
            each = ((*self.plain.tools[step.tool], step.gesture(corner)) for step in steps)
            return ([gesture for gestures in each for gesture in gestures],)
        return (self.plain.of(kind, cell, target),)

    def _fund(self, name: str, way: str) -> Sequence[Sequence[Operation]]:
        """Open the dialog by its menu, click on the slider of a department, and close the dialog."""
        dialog, menu = self._funded[name]
        level = min(max(self._levels[name] + (1 if way == "up" else -1), 0), len(FUNDING_LEVELS) - 1)
        self._levels[name] = level
        opens = (Click(menu.at), Click(menu.items[dialog]))
        close = operations(self._profile.dialogs[dialog].close)
        return (opens, (Click(self._profile.slider_point(name, FUNDING_LEVELS[level])),), close)


def _plain_gestures(profile: GameProfile, catalogue: Catalogue, cells: Sequence[Point]) -> Gestures:
    tools = dict(profile.tools)
    same = {"bulldoze": BULLDOZER, **dict.fromkeys(STREETS, ROAD)}
    tools |= {kind: tools[name] for kind, name in same.items() if name in tools}
    (wide, high), menus = _HEADING, profile.menus.values()
    closed = [menu.at for menu in menus if menu.closed]
    return Gestures(
        catalogue,
        {name: (*([] if tool.group is None else [Click(tool.group)]), tool.choice) for name, tool in tools.items()},
        cells,
        headings=tuple(menu.at for menu in menus if not menu.closed),
        forbidden=tuple(Region(at.x - wide, at.y - high, at.x + wide, at.y + high) for at in closed),
    )
