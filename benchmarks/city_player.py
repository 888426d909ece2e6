"""The strategies of City as players of whole games: they act through the interface, with mouse and keys.

`ludus` itself only asks them which decision they would take; benchmarks and tests let them play without an environment.
"""

import numpy as np

from ludus.core.random import stream_hash
from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Click, Gesture, Key, Point, Wait
from ludus.worlds.city.game.rules import Tool
from ludus.worlds.city.interface.layout import point_in
from ludus.worlds.city.interface.machine import SCROLL_CELLS
from ludus.worlds.city.strategies import STRATEGIES, TownPlan

DECISION_S = 1.0  # of the game's clock, after every decision


class StrategyPlayer:
    """Plays one game of a batch as a strategy wants to, by gestures alone."""

    def __init__(self, name: str, games: CityGames, game: int, seed: int = 0) -> None:
        self._wish, self._plan = STRATEGIES[name], TownPlan(games, game, np.random.default_rng(stream_hash(seed, game)))
        self._days, self._game, self._day = games.simulation.city["day"], game, 0
        self._interface = games.interfaces[game]
        self._view = self._interface.layout.view
        self._rules = games.simulation.rules

    def decide(self) -> list[Gesture]:
        """Return the gestures of the next decision, with the time that passes after it."""
        if self._days[self._game] < self._day:  # a new city
            self._plan.middle = None
        self._day = int(self._days[self._game])
        wish = self._wish(self._plan)
        if wish is None:
            return [*self.clear(), Wait(DECISION_S)]
        gestures = self.change_tax(wish) if isinstance(wish, int) else self.use(*wish)
        return [*self.clear(), *gestures, Wait(DECISION_S)]

    def clear(self) -> list[Gesture]:
        """Close what is in the way: the dialogs that wait, an open menu, a window."""
        state = self._interface.state
        gestures: list[Gesture] = [Key("Return")] * len(state.dialogs)
        return gestures + [Key("Escape")] * ((1 if state.path else 0) + (1 if state.window else 0))

    def use(self, tool: Tool, column: int, row: int) -> list[Gesture]:
        """Select a tool, bring a cell into view and click on it."""
        scrolls, left, top = self._bring_into_view(column, row)
        view = self._view
        x = view.box.left + (column - left) * view.tile + view.tile // 2
        y = view.box.top + (row - top) * view.tile + view.tile // 2
        button = self._interface.layout.tools[tool].box.middle
        return [*self.clear(), Click(self._point(*button)), *scrolls, Click(self._point(x, y))]

    def change_tax(self, step: int) -> list[Gesture]:
        """Click on the button that raises (1) or lowers (-1) the tax."""
        button = self._interface.layout.tax_buttons[1 if step > 0 else 0]
        return [*self.clear(), Click(self._point(*button.box.middle))]

    def _bring_into_view(self, column: int, row: int) -> tuple[list[Gesture], int, int]:
        """Keys that move the camera, and the first column and row of the map after them."""
        view, state = self._view, self._interface.state
        across, left = _scroll(state.column, column, view.columns, self._rules.columns, ("Left", "Right"))
        down, top = _scroll(state.row, row, view.rows, self._rules.rows, ("Up", "Down"))
        return [*across, *down], left, top

    def _point(self, x: int, y: int) -> Point:
        layout = self._interface.layout
        return point_in(x, y, layout.width, layout.height)


def _scroll(first: int, wanted: int, shown: int, total: int, keys: tuple[str, str]) -> tuple[list[Gesture], int]:
    """Keys after which a row (or column) is among those that are shown, and the first one that is shown then."""
    gestures: list[Gesture] = []
    while not first <= wanted < first + shown:
        step = -SCROLL_CELLS if wanted < first else SCROLL_CELLS
        first = min(max(first + step, 0), total - shown)
        gestures.append(Key(keys[0] if step < 0 else keys[1]))
    return gestures, first
