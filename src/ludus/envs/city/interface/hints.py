"""Tooltips: what is said about the thing under the pointer, and where."""

from dataclasses import dataclass

from ludus.envs.city.game.rules import BUILDINGS, BULLDOZE_COST, Tool
from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.elements import find_at
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.messages import tool_name
from ludus.envs.city.interface.state import InterfaceState
from ludus.envs.city.interface.theme import Measure, Theme

_MEANINGS = {
    "date": "Date",
    "funds": "Money of the city",
    "balance": "Result of the last month",
    "population": "Inhabitants",
    "happiness": "Happiness",
    "traffic": "Traffic",
    "pollution": "Pollution",
    "land_value": "Land value",
    "tax": "Taxes",
    "demand": "Demand: homes, shops, industry",
}


@dataclass(frozen=True, slots=True)
class Hint:
    """A tooltip."""

    text: str
    box: Box


def hint_at(state: InterfaceState, layout: Layout, theme: Theme, face: Measure) -> Hint | None:
    """Returns the tooltip for what is under the pointer: tools and fields have one."""
    x, y = state.pointer_x, state.pointer_y
    if layout.view.box.holds(x, y):
        return None
    element = find_at(layout.elements, x, y)
    if element is None or element.kind not in ("tool", "field", "bar"):
        return None
    name = element.name.partition(".")[2]
    if element.kind == "tool":
        tool = Tool[name.upper()]
        cost = BULLDOZE_COST if tool == Tool.BULLDOZER else BUILDINGS[tool].cost
        text = f"{tool_name(tool)} {theme.format.money(cost)}" if cost else tool_name(tool)
    else:
        text = _MEANINGS[name]
    screen = Box(0, 0, layout.width, layout.height)
    wanted = Box(x + 10, y + 14, face.width(text) + 8, face.height + 6)
    if wanted.bottom > layout.height:  # above the pointer, so that it does not hide what is pointed at
        wanted = Box(wanted.left, y - wanted.height - 4, wanted.width, wanted.height)
    return Hint(text, wanted.within(screen))
