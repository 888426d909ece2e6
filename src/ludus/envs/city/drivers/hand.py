"""A hand: turns what a player wants into gestures on the screen of an embedded game, as it is at the moment."""

from ludus.envs.city.drivers.city_games import CityGames
from ludus.envs.city.drivers.driver import Click, Gesture, Key, Point
from ludus.envs.city.game.rules import Tool
from ludus.envs.city.interface.boxes import point_in
from ludus.envs.city.interface.orders import SCROLL_CELLS


class Hand:
    """Plays one game of a batch by gestures alone."""

    def __init__(self, games: CityGames, game: int) -> None:
        self._interface = games.interfaces[game]
        self._view = self._interface.layout.view
        self._rules = games.simulation.rules

    def clear(self) -> list[Gesture]:
        """Closes what is in the way: the dialogs that wait, an open menu, a window."""
        state = self._interface.state
        gestures: list[Gesture] = [Key("Return")] * len(state.dialogs)
        return gestures + [Key("Escape")] * ((1 if state.path else 0) + (1 if state.window else 0))

    def use(self, tool: Tool, column: int, row: int) -> list[Gesture]:
        """Selects a tool, brings a cell into view and clicks on it."""
        scrolls, left, top = self._bring_into_view(column, row)
        view = self._view
        x = view.box.left + (column - left) * view.tile + view.tile // 2
        y = view.box.top + (row - top) * view.tile + view.tile // 2
        button = self._interface.layout.tools[tool].box.middle
        return [*self.clear(), Click(self._point(*button)), *scrolls, Click(self._point(x, y))]

    def change_tax(self, step: int) -> list[Gesture]:
        """Clicks on the button that raises (1) or lowers (-1) the tax."""
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
