"""Scripted strategies: what players of the embedded game want to do next, one placement per decision.

They plan a town: where roads, zones, plants and services would go next. They see the truth, not the picture: they are
baselines for the rules of the game and for agents that learn it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.city.actions import Catalogue
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.game.placement import ZONES
from ludus.worlds.city.game.rules import BUILDINGS, MAX_TAX, ROAD_REACH, Flag, Kind, Terrain, Tool
from ludus.worlds.city.interface.panes import DEMANDS
from ludus.worlds.city.interface.state import InterfaceState

Order: TypeAlias = tuple[Tool, int, int]
Mask: TypeAlias = NDArray[np.bool_]

_STREET_ROWS = 5  # from one street to the next: plots of two rows on both sides of each
_PLOT = 2
_RESERVE = 800  # $ that a thrifty mayor keeps
# A service, the flag that it gives, and the population from which a town wants it.
_SERVICES = (
    (Tool.TOWER, Flag.WATER, 60),
    (Tool.PARK, Flag.PARK, 150),
    (Tool.SCHOOL, Flag.SCHOOL, 250),
    (Tool.CLINIC, Flag.CLINIC, 250),
    (Tool.POLICE, Flag.POLICE, 350),
    (Tool.FIRE, Flag.FIRE, 350),
)


class TownPlan:
    """Streets in rows of five around a middle, joined by one street that crosses them; plots of 2 x 2 along them.

    Attributes:
        random: Decides what is left to chance.
        middle: Column and row of the crossing; None until it is chosen.
    """

    def __init__(
        self, games: CityGames, game: int, random: np.random.Generator, middle: tuple[int, int] | None = None
    ) -> None:
        """Plan a town of a batch; `random` decides what is left to chance, `middle` is what it was before."""
        self._game, self._city, self.random, self.middle = game, games.simulation.city, random, middle
        self._columns, self._rows = games.simulation.rules.columns, games.simulation.rules.rows
        cells = games.simulation.cells
        shape = (self._rows, self._columns)
        self._kind, self._terrain = cells.kind[game].reshape(shape), cells.terrain[game].reshape(shape)
        self._flags, self._amount = cells.flags[game].reshape(shape), cells.amount[game].reshape(shape)

    @property
    def tax(self) -> int:
        """The present tax, in percent."""
        return self._number("tax")

    def power(self, spare: float) -> Order | None:
        """A plant, if there is none or less than a share of the power is spare."""
        supply, need = self._number("power_supply"), self._number("power_need")
        built = int((self._kind == Kind.COAL).sum() + (self._kind == Kind.WIND).sum())
        if built and (need <= supply * (1.0 - spare) or self._number("population") == 0):
            return None
        tool = Tool.COAL if self._number("funds") >= BUILDINGS[Tool.COAL].cost else Tool.WIND
        return self._near_middle(tool)

    def most_wanted(self, *, apart: bool) -> Order | None:
        """The zone that is wanted most, or the road that it needs first; `apart` keeps industry to the east."""
        wanted = [float(self._city[name][self._game]) for name in DEMANDS]
        orders = (self._zone(ZONES[index], apart=apart) for index in np.argsort(wanted)[::-1].tolist())
        return next(filter(None, orders), None)

    def thrifty_zone(self) -> Order | None:
        """The zone that is wanted most, if it is wanted, leaves a reserve, and lots do not stand empty."""
        wanted = {zone: float(self._city[name][self._game]) for zone, name in zip(ZONES, DEMANDS, strict=True)}
        if self._number("funds") < _RESERVE:
            return None
        for zone in sorted(wanted, key=lambda zone: -wanted[zone]):
            lots = int(((self._kind == int(zone)) & (self._amount < 6)).sum())
            if wanted[zone] > 0.0 and lots < 16 and (order := self._zone(zone, apart=True)):
                return order
        return None

    def service(self) -> Order | None:
        """The service that most people miss, if the town is large enough and can afford it."""
        homes = np.where(self._kind == Kind.RESIDENTIAL, self._amount, 0)
        people, funds, balance = self._number("population"), self._number("funds"), self._number("balance")
        for tool, flag, from_people in _SERVICES:
            building = BUILDINGS[tool]
            missing = np.where(self._flags & int(flag) == 0, homes, 0)
            affordable = funds > building.cost + _RESERVE and (balance > building.upkeep or funds > 6 * building.cost)
            is_missed = people >= from_people and missing.sum() > 0.25 * people
            if is_missed and affordable and (order := self._best_site(tool, missing)):
                return order
        return None

    def repair(self) -> Order | None:
        """Rubble to clear."""
        rubble = np.argwhere(self._kind == Kind.RUBBLE)
        return (Tool.BULLDOZER, int(rubble[0][1]), int(rubble[0][0])) if len(rubble) else None

    def tax_change(self) -> int:
        """A step of the tax: up when money runs out, down when there is plenty and people are content."""
        tax, funds, balance = self.tax, self._number("funds"), self._number("balance")
        if funds < _RESERVE and balance < 0 and tax < 10:
            return 1
        if tax > 7 and funds > 4 * _RESERVE and balance > 0:
            return -1
        return 0

    def anywhere(self, tools: Sequence[Tool]) -> Order:
        """Use one of some tools at a random cell."""
        tool = tools[int(self.random.integers(len(tools)))]
        return tool, int(self.random.integers(self._columns)), int(self.random.integers(self._rows))

    def _number(self, name: str) -> int:
        return int(self._city[name][self._game])

    def _middle(self) -> tuple[int, int]:
        """Column and row of the crossing: the middle of the first street, else where the most land lies around."""
        if self.middle is None:
            self.middle = self._choose_middle()
        return self.middle

    def _choose_middle(self) -> tuple[int, int]:
        ys, xs = np.nonzero(self._kind == Kind.ROAD)
        if len(xs):
            return int(xs[len(xs) // 2]), int(ys[len(ys) // 2])
        land = (self._terrain == Terrain.LAND).astype(int) + (self._terrain == Terrain.TREES)
        best, chosen = -1, (self._columns // 2, self._rows // 2)
        for row in range(4, self._rows - 4):
            for column in range(8, self._columns - 8, 2):
                around = int(land[max(row - 7, 0) : row + 8, max(column - 9, 0) : column + 10].sum())
                street = int(land[row, max(column - 9, 0) : column + 10].sum())
                if around + 3 * street > best:
                    best, chosen = around + 3 * street, (column, row)
        return chosen

    def _plots(self) -> list[tuple[float, int, int, int]]:
        """Distance from the middle, left column, upper row and street of every plot, the nearest one first."""
        middle, row = self._middle()
        streets = [street for k in range(-4, 5) if 0 <= (street := row + k * _STREET_ROWS) < self._rows]
        return sorted(
            (abs(left + 1 - middle) + 1.5 * abs(street - row), left, top, street)
            for street in streets
            for top in (street - _PLOT, street + 1)
            for left in (*range(middle + 1, self._columns - 1, _PLOT), *range(middle - _PLOT, -1, -_PLOT))
            if 0 <= top < self._rows - 1
        )

    def _zone(self, zone: Tool, *, apart: bool) -> Order | None:
        """The nearest plot for a zone, or the first piece of road that it lacks."""
        middle, free = self._middle()[0], self._is_free()
        for _, left, top, street in self._plots():
            is_apart = (left > middle + 4) == (zone == Tool.INDUSTRIAL)
            if (is_apart or not apart) and free[top : top + _PLOT, left : left + _PLOT].sum() >= 3:
                return self._missing_road(left, street) or (zone, left, top)
        return None

    def _missing_road(self, left: int, street: int) -> Order | None:
        """The first cell without a road on the way from the middle to a plot."""
        column, row = self._middle()
        step = 1 if street >= row else -1
        way = [(column, y) for y in range(row, street + step, step)]
        side = 1 if left >= column else -1
        end = left + _PLOT - 1 if side > 0 else left
        way += [(x, street) for x in range(column, end + side, side)]
        return next(((Tool.ROAD, x, y) for x, y in way if self._kind[y, x] == Kind.EMPTY), None)

    def _near_middle(self, tool: Tool) -> Order | None:
        """A free cell to the east of the middle, near enough for power to be passed on."""
        column, row = self._middle()
        free = (self._kind == Kind.EMPTY) & (self._terrain == Terrain.LAND)
        ys, xs = np.nonzero(free)
        near = np.abs(xs - column - 3) + np.abs(ys - row - 1) + 20 * ((ys - row) % _STREET_ROWS == 0)
        if (self._kind >= Kind.ROAD).any():
            near = near + 100 * ~self._within(self._kind >= Kind.ROAD, 1)[ys, xs]
        if not len(xs):
            return None
        best = int(np.argmin(near))
        return tool, int(xs[best]), int(ys[best])

    def _best_site(self, tool: Tool, people: NDArray[np.int_]) -> Order | None:
        """The free cell beside a road, and so with power, from which a service reaches the most people."""
        ys, xs = np.nonzero(self._is_free() & self._within(self._kind == Kind.ROAD, ROAD_REACH))
        if not len(xs):
            return None
        home_ys, home_xs = np.nonzero(people)
        far = (ys[:, None] - home_ys) ** 2 + (xs[:, None] - home_xs) ** 2
        reached = ((far <= BUILDINGS[tool].reach ** 2) * people[home_ys, home_xs]).sum(1)
        best = int(np.argmax(reached))
        return (tool, int(xs[best]), int(ys[best])) if reached[best] > 0 else None

    def _is_free(self) -> Mask:
        """Which cells are empty land that is neither water nor a hill."""
        free: Mask = (self._kind == Kind.EMPTY) & (self._terrain != Terrain.WATER) & (self._terrain != Terrain.HILL)
        return free

    def _within(self, mask: Mask, reach: int) -> Mask:
        """Cells that have one of a mask within a square around them."""
        square = (2 * reach + 1, 2 * reach + 1)
        near: Mask = np.max(np.lib.stride_tricks.sliding_window_view(np.pad(mask, reach), square), axis=(2, 3))
        return near


_BUILDING = tuple(tool for tool in Tool if tool != Tool.QUERY)


Wish: TypeAlias = Order | int | None  # a step of the tax up (1) or down (-1), or nothing


def _play_randomly(plan: TownPlan) -> Wish:
    """Use random tools at random cells, and change the tax now and then."""
    if plan.random.random() < 0.1:
        return 1 if plan.random.random() < 0.5 else -1
    return plan.anywhere(_BUILDING)


def _be_greedy(plan: TownPlan) -> Wish:
    """Zone what is most wanted along a road that grows, with power but without water, services or thrift."""
    return plan.power(spare=0.0) or plan.most_wanted(apart=False)


def _tax_highly(plan: TownPlan) -> Wish:
    """Raise the tax as far as it goes, then be greedy."""
    return 1 if plan.tax < MAX_TAX else _be_greedy(plan)


def _balance(plan: TownPlan) -> Wish:
    """Zone by demand with industry apart, bring water and services, keep reserves and adjust the tax."""
    return plan.tax_change() or plan.power(spare=0.15) or plan.repair() or plan.service() or plan.thrifty_zone()


STRATEGIES: dict[str, Callable[[TownPlan], Wish]] = {
    "never-build": lambda _: None,
    "always-zone": lambda plan: plan.anywhere(ZONES),
    "random": _play_randomly,
    "high-tax": _tax_highly,
    "greedy": _be_greedy,
    "balanced": _balance,
}


NOWHERE = (-1, -1)


class Question(NamedTuple):
    """Asks what a strategy would do now."""

    strategy: str  # its name
    game: int  # number of the game
    seed: int  # of what it leaves to chance
    middle: tuple[int, int]  # column and row that the town is planned around; `NOWHERE` before that is settled


class Advice(NamedTuple):
    """The decision that brings a strategy nearer to what it wants."""

    kind: str  # name of the kind of action; it may be one that the world does not have
    cell: int  # number of the cell, 0 where none is needed
    middle: tuple[int, int]  # what is to be remembered of the town for the next question


def advise(games: CityGames, catalogue: Catalogue, question: Question) -> Advice:
    """Answer a question; all that a strategy remembers is in it."""
    random, middle = np.random.default_rng(question.seed), question.middle
    plan = TownPlan(games, question.game, random, None if middle == NOWHERE else middle)
    wish = STRATEGIES[question.strategy](plan)
    kind, cell = _decision(catalogue, games.interfaces[question.game].state, wish)
    return Advice(kind, cell, plan.middle or NOWHERE)


def _decision(catalogue: Catalogue, state: InterfaceState, wish: Wish) -> tuple[str, int]:
    """Return kind and cell of a wish; a cell that is not in view is moved toward first."""
    if wish is None:
        return "wait", 0
    if isinstance(wish, int):
        return ("tax_up" if wish > 0 else "tax_down"), 0
    tool, column, row = wish
    across, down = column - state.column, row - state.row
    if not 0 <= across < catalogue.columns:
        return ("camera_left" if across < 0 else "camera_right"), 0
    if not 0 <= down < catalogue.rows:
        return ("camera_up" if down < 0 else "camera_down"), 0
    return ("bulldoze" if tool == Tool.BULLDOZER else tool.name.lower()), down * catalogue.columns + across
