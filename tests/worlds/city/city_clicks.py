"""For tests: an embedded game that is played by the names of what is on its screen."""

from dataclasses import replace

from ludus.worlds.city.drivers.city_games import CityGames
from ludus.worlds.city.drivers.driver import Button, Click, Key, Move, Point, Wait
from ludus.worlds.city.game.rules import CityRules, Terrain
from ludus.worlds.city.interface.layout import Element, find_at, point_in
from ludus.worlds.city.interface.machine import Interface
from ludus.worlds.city.interface.state import InterfaceState
from ludus.worlds.city.interface.theme import CityDisplay

PLAIN = CityRules(hamlet=False, events=False, yearly_report=False, threads=1)


def elements_of(interface: Interface) -> list[Element]:
    """Everything on the screen that has a place, lowest first, with the texts that are written there."""
    layout, texts, pane = interface.layout, interface.texts(), interface.pane()
    labels = {each.name: texts.get(each.name.removeprefix("field."), each.label) for each in layout.elements}
    elements = [replace(each, label=labels[each.name]) for each in layout.elements]
    lines = {"speed": layout.speed, "tool": layout.tool_label, "message": layout.message}
    elements += [Element(f"field.{name}", "field", box, texts[name]) for name, box in lines.items()]
    panes = pane.elements if pane is not None else ()
    menus = [element for menu in interface.lists() for element in menu.elements]
    return [*elements, *menus, *panes] if interface.state.dialogs else [*elements, *panes, *menus]


class Player:
    """Plays game 0 of its own batch of one; the land is flat and empty unless told otherwise."""

    def __init__(
        self, theme: str = "classic", size: tuple[int, int] = (640, 400), rules: CityRules = PLAIN, *, flat: bool = True
    ) -> None:
        self.games = CityGames(1, rules=rules, display=CityDisplay(themes=(theme,), width=size[0], height=size[1]))
        self.size = size
        if flat:
            self.games.simulation.cells.terrain[:] = Terrain.LAND

    @property
    def state(self) -> InterfaceState:
        return self.games.interfaces[0].state

    def number(self, name: str) -> float:
        return float(self.games.simulation.city[name][0])

    def element(self, name: str) -> Element:
        """The element of a name, which has to be the topmost at its own middle."""
        elements = elements_of(self.games.interfaces[0])
        found = next(element for element in elements if element.name == name)
        assert find_at(elements, *found.box.middle) == found, f"{name} is covered"
        return found

    def names(self) -> set[str]:
        return {element.name for element in elements_of(self.games.interfaces[0])}

    def point(self, name: str) -> Point:
        return point_in(*self.element(name).box.middle, *self.size)

    def click(self, *names: str) -> None:
        """Clicks on elements, one after the other."""
        for name in names:
            self.games.act(0, [Click(self.point(name))])

    def hover(self, name: str) -> None:
        self.games.act(0, [Move(self.point(name))])

    def at_cell(self, column: int, row: int) -> Point:
        """The middle of a cell of the map, which has to be in view."""
        view = self.games.layout(0).view
        x = view.box.left + (column - self.state.column) * view.tile + view.tile // 2
        y = view.box.top + (row - self.state.row) * view.tile + view.tile // 2
        assert view.box.holds(x, y)
        return point_in(x, y, *self.size)

    def click_cell(self, column: int, row: int, button: Button = "left") -> None:
        self.games.act(0, [Click(self.at_cell(column, row), button)])

    def key(self, *names: str) -> None:
        self.games.act(0, [Key(name) for name in names])

    def wait(self, seconds: float = 1.0) -> None:
        self.games.act(0, [Wait(seconds)])
        self.games.advance()

    def kind(self, column: int, row: int) -> int:
        return int(self.games.simulation.cells.kind[0, row * self.games.simulation.rules.columns + column])
