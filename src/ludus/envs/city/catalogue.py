"""The catalogue: the kinds of action of a game by name, with what each of them needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.city.config import GROUPS, Group
from ludus.envs.city.game.placement import ZONES
from ludus.envs.city.game.rules import (
    BRIDGE_COST,
    BUILDINGS,
    BULLDOZE_COST,
    HILL_FACTOR,
    TREE_COST,
    WATER_LINE_COST,
    Department,
    Tool,
)
from ludus.envs.city.game.settings import CityRules
from ludus.envs.city.interface.layout import View
from ludus.envs.city.interface.menus import MENUS, all_entries

CONFIRMED, REFUSED, NOT_JUDGED = 1, 0, -1  # what became of a placement
KindGroup: TypeAlias = Literal["wait"] | Group
KIND_GROUPS: tuple[KindGroup, ...] = ("wait", *GROUPS)
EXPLORATORY = (
    "explore_menu",
    "click_element",
    "random_click",
    "observe",
    "escape",
    "scroll_down",
    "scroll_up",
)
STREET_CELLS = 4  # that `street_across` and `street_down` build
STREETS = {"street_across": (1, 0), "street_down": (0, 1)}
CAMERA = ("camera_left", "camera_right", "camera_up", "camera_down")
# The menus that no action ever opens: one ends the city, the other changes how much time a decision takes.
CLOSED_MENUS = ("file", "speed")
_DEPARTMENTS = (Department.TRANSPORT, Department.SAFETY, Department.WELFARE)


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind of action.

    Attributes:
        name: Its name, such as `road`, `tax_up` or `menu.windows.city`.
        group: What sort of thing it does.
        uses_cell: Whether it needs a cell of the map.
        least_cost: Least that the funds lose when it is done; 0 if it costs nothing.
        most_cost: Most that they lose.
    """

    name: str
    group: KindGroup
    uses_cell: bool = False
    least_cost: float = 0.0
    most_cost: float = 0.0

    def judge(self, fall: float, grain: float = 0.0) -> int:
        """Says whether it was done, by the fall of the funds: `CONFIRMED`, `REFUSED` or `NOT_JUDGED`.

        Args:
            fall: By how much the funds fell, as they were read.
            grain: By how much a reading of them can be off, where not all digits are written.
        """
        if self.least_cost <= fall <= self.most_cost or (grain > 0.0 and 0.0 < fall <= self.most_cost + grain):
            return CONFIRMED
        return NOT_JUDGED if fall == 0.0 and self.least_cost < grain else REFUSED


class Catalogue:
    """The kinds of action of one game, and the cells of the map that is seen.

    Attributes:
        kinds: In the order of their numbers; number 0 waits.
        columns: Of the cells that are seen.
        rows: Of the cells that are seen.
        least_cost: `(kinds,)`, as in `ActionKind`.
        most_cost: `(kinds,)`, as in `ActionKind`.
        is_placement: `(kinds,)` bool, kinds that are judged by the funds.
        uses_cell: `(kinds,)` bool.
        group: `(kinds,)` number of the group in `KIND_GROUPS`.
    """

    def __init__(self, kinds: Sequence[ActionKind], columns: int, rows: int) -> None:
        self.kinds = tuple(kinds)
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
        """Returns the number of a kind.

        Raises:
            UnknownNameError: There is none of that name.
        """
        if name not in self._numbers:
            raise UnknownNameError("kind of action", name, self._numbers)
        return self._numbers[name]


def embedded_catalogue(rules: CityRules, view: View, groups: Sequence[Group]) -> Catalogue:
    """Returns the catalogue of the embedded game.

    Args:
        rules: Of the game.
        view: What is seen of the map.
        groups: Groups that there are beside waiting.

    Raises:
        ConfigError: The groups leave nothing but waiting.
    """
    kinds = [ActionKind("wait", "wait"), *(kind for kind in _all_embedded(rules, view) if kind.group in groups)]
    if len(kinds) == 1:
        raise ConfigError(f"actions {', '.join(groups)} leave nothing to do in this game; valid: {', '.join(GROUPS)}")
    return Catalogue(kinds, view.columns, view.rows)


def _all_embedded(rules: CityRules, view: View) -> Iterator[ActionKind]:
    for tool in Tool:
        if tool not in (Tool.QUERY, Tool.BULLDOZER):
            cells = rules.zone_brush**2 if tool in ZONES else 1
            yield _placement(tool.name.lower(), "build", tool, cells)
    yield ActionKind("bulldoze", "bulldoze", uses_cell=True, least_cost=BULLDOZE_COST, most_cost=BULLDOZE_COST)
    for name in STREETS:
        yield _placement(name, "street", Tool.ROAD, STREET_CELLS)
    for name in ("tax_up", "tax_down"):
        yield ActionKind(name, "tax")
    for department in _DEPARTMENTS:
        for way in ("up", "down"):
            yield ActionKind(f"{department.name.lower()}_{way}", "funding")
    for path, entry in all_entries(tuple(menu for menu in MENUS if menu.name not in CLOSED_MENUS)):
        if not entry.children and not path.startswith("menu.budget.funding."):
            yield ActionKind(path, "menu")
    if (view.columns, view.rows) != (rules.columns, rules.rows):
        for name in CAMERA:
            yield ActionKind(name, "camera")
    for name in EXPLORATORY:
        yield ActionKind(name, "explore", uses_cell=name == "random_click")


def _placement(name: str, group: Literal["build", "street"], tool: Tool, cells: int) -> ActionKind:
    """A kind that builds up to so many cells: on plain land they cost the least, on hills or over water the most."""
    cost = BUILDINGS[tool].cost
    over_water = {Tool.ROAD: BRIDGE_COST, Tool.LINE: WATER_LINE_COST}.get(tool, 0)
    most = max(HILL_FACTOR * cost, cost + TREE_COST, over_water)
    return ActionKind(name, group, uses_cell=True, least_cost=cost, most_cost=most * cells)
