"""The message line: what the game answers to a click, as a code with two numbers, and in words."""

from enum import IntEnum

from ludus.envs.city.game.placement import Fault
from ludus.envs.city.game.rules import BUILDINGS, Tool
from ludus.envs.city.interface.formats import Format


class Message(IntEnum):
    """What is said; `first` and `second` are its numbers."""

    WELCOME = 0
    BUILT = 1  # tool, cost
    CLEARED = 2  # -, cost
    REFUSED = 3  # fault, cost
    SELECTED = 4  # tool
    TAX = 5  # percent
    FUNDED = 6  # percent
    CLOSE_FIRST = 7
    PAUSED = 8
    RUNS = 9
    SHOWN = 10
    SCROLLED = 11
    BUILT_MANY = 12  # number, cost


_FAULTS = {
    Fault.OUTSIDE: "That is outside the map",
    Fault.OCCUPIED: "Something stands there already",
    Fault.ON_WATER: "That cannot be built on water",
    Fault.FAR_FROM_WATER: "A pump must stand beside water",
    Fault.NOTHING_THERE: "There is nothing to clear",
    Fault.OVER: "This city is bankrupt",
}


def tool_name(tool: int) -> str:
    """Returns what a tool is called."""
    if tool == Tool.QUERY:
        return "Query"
    return "Bulldozer" if tool == Tool.BULLDOZER else BUILDINGS[tool].name


def message_text(message: int, first: int, second: int, form: Format) -> str:
    """Writes a message."""
    if message == Message.REFUSED and first == Fault.TOO_EXPENSIVE:
        return f"Not enough money: costs {form.money(second)}"
    texts = {
        Message.WELCOME: "Welcome, mayor",
        Message.CLEARED: f"Cleared for {form.money(second)}",
        Message.REFUSED: _FAULTS.get(Fault(first), "") if message == Message.REFUSED else "",
        Message.TAX: f"Taxes are now {form.share(first)}",
        Message.FUNDED: f"Funding is now {form.share(first)}",
        Message.CLOSE_FIRST: "Close the dialog first",
        Message.PAUSED: "Paused",
        Message.RUNS: "The clock runs",
        Message.SHOWN: "",
        Message.SCROLLED: "",
        Message.BUILT_MANY: f"{first} built for {form.money(second)}",
    }
    if message == Message.BUILT:
        return f"{tool_name(first)} built for {form.money(second)}"
    if message == Message.SELECTED:
        return f"{tool_name(first)} selected"
    return texts[Message(message)]
