"""The catalogue: the kinds of action of a game by name, with what each of them needs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.worlds.city.config import GROUPS, CellGrid, Group
from ludus.worlds.city.drivers.driver import Point
from ludus.worlds.city.game import rules as const
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import CityRules, Tool
from ludus.worlds.city.interface.layout import View
from ludus.worlds.city.interface.menus import MENUS, all_entries
from ludus.worlds.city.profile_schema import NEARLY, GameProfile, Lots, Slider

CONFIRMED, REFUSED, NOT_JUDGED = 1, 0, -1  # the outcome of a placement
KindGroup: TypeAlias = Literal["wait"] | Group
KIND_GROUPS: tuple[KindGroup, ...] = ("wait", *GROUPS)
EXPLORATORY = ("explore_menu", "click_element", "random_click", "observe", "escape", "scroll_down", "scroll_up")
STREET_CELLS = 4  # that `street_across` and `street_down` build
STREETS = {"street_across": (1, 0), "street_down": (0, 1)}
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
        is_placement: `(kinds,)` bool, kinds that are judged by the funds; other arrays are as in `ActionKind`.
        group: `(kinds,)` number of the group in `KIND_GROUPS`.
        credit: How far the funds may fall below zero by building.
    """

    def __init__(self, kinds: Sequence[ActionKind], columns: int, rows: int, credit: float = 0.0) -> None:
        self.kinds, self.credit = tuple(kinds), credit
        self.columns, self.rows = columns, rows
        self.least_cost: NDArray[np.float64] = np.array([kind.least_cost for kind in self.kinds])
        self.most_cost: NDArray[np.float64] = np.array([kind.most_cost for kind in self.kinds])
        self.is_placement: NDArray[np.bool_] = self.most_cost > 0.0
        self.uses_cell: NDArray[np.bool_] = np.array([kind.uses_cell for kind in self.kinds])
        self.group: NDArray[np.int64] = np.array([KIND_GROUPS.index(kind.group) for kind in self.kinds])
        self._numbers = {kind.name: number for number, kind in enumerate(self.kinds)}

    def __len__(self) -> int:
        return len(self.kinds)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    @property
    def cells(self) -> int:
        """Cells of the map that are seen."""
        return self.columns * self.rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kinds."""
        return tuple(kind.name for kind in self.kinds)

    @property
    def exploratory(self) -> tuple[int, ...]:
        """Numbers of the kinds that are there for exploring."""
        return tuple(number for number, kind in enumerate(self.kinds) if kind.group == "explore")

    def number(self, name: str) -> int:
        """Return the number of a kind; raise UnknownNameError if there is none of that name."""
        if name not in self._numbers:
            raise UnknownNameError("kind of action", name, self._numbers)
        return self._numbers[name]

    def street_end(self, name: str, cell: int) -> int:
        """Return the last cell of a street that starts at a cell, cut off at the edge of the view."""
        row, column = divmod(cell, self.columns)
        across, down = STREETS[name]
        last_column = min(column + across * (STREET_CELLS - 1), self.columns - 1)
        return min(row + down * (STREET_CELLS - 1), self.rows - 1) * self.columns + last_column

    def window_point(self, cell: int) -> Point:
        """Return the middle of a cell if the grid covered the whole window."""
        row, column = divmod(cell, self.columns)
        return Point((column + 0.5) / self.columns, (row + 0.5) / self.rows)


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
    for path, entry in all_entries(tuple(menu for menu in MENUS if menu.name not in CLOSED_MENUS)):
        if not entry.children and not path.startswith("menu.budget.funding."):
            yield ActionKind(path, "menu")
    if (view.columns, view.rows) != (rules.columns, rules.rows):
        yield from (ActionKind(name, "camera") for name in CAMERA)
    yield from _exploring()


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
    if cells == "lots" and profile.lots is None:
        raise ConfigError(f"the profile of {profile.title} has no lots; use cells: tiles, or add a section lots to it")
    kinds = [kind for kind in _all_kinds(profile, cells) if kind.group in groups]
    unknown = [name for name in names or () if name not in {kind.name for kind in kinds}]
    if unknown:
        raise UnknownNameError(f"kind of action of {profile.title}", unknown[0], [kind.name for kind in kinds])
    kinds = [kind for kind in kinds if names is None or kind.name in names]
    grid = profile.lot_grid if cells == "lots" and profile.lot_grid is not None else profile.grid
    return _with_waiting(kinds, groups, grid.columns, grid.rows, profile.credit)


def funded_sliders(profile: GameProfile) -> dict[str, Slider]:
    """Return the sliders of departments: those in a dialog that an item of a menu, which may be opened, opens."""
    return {
        name: slider
        for name, slider in profile.sliders.items()
        if slider.dialog is not None
        and any(slider.dialog in menu.items for menu in profile.menus.values() if not menu.closed)
    }


def _all_kinds(profile: GameProfile, cells: CellGrid) -> Iterator[ActionKind]:
    if cells == "lots" and profile.lots is not None:
        yield from _block_kinds(profile, profile.lots)
    tools = profile.tools
    for name, tool in tools.items():
        # A tool for a single cell does nothing for a lot; there are blocks for what it builds.
        if tool.cost > 0 and name != BULLDOZER and (cells == "tiles" or tool.cells > 1):
            wide = 1
            if cells == "lots" and profile.lots is not None:
                wide = math.ceil(tool.cells * profile.map.cell.x / profile.lots.size.x - NEARLY)
            yield _on_cell(name, "build", tool.cost, tool.most_cost, wide)
    if BULLDOZER in tools:
        yield _on_cell("bulldoze", "bulldoze", tools[BULLDOZER].cost, tools[BULLDOZER].most_cost)
    if ROAD in tools and cells == "tiles":
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


def _block_kinds(profile: GameProfile, lots: Lots) -> Iterator[ActionKind]:
    """Blocks cost what all their parts do on plain ground, and a little for clearing it, no less and no more."""
    for name, steps in lots.blocks.items():
        cost = sum(profile.tools[step.tool].cost * profile.cells_of(step) for step in steps)
        yield _on_cell(name, "build", cost, cost + lots.extra)
