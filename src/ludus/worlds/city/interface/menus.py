"""The menus with their submenus as a tree, and the commands of their entries."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum


class Speed(IntEnum):
    """How fast the clock of the game runs."""

    PAUSE, SLOW, NORMAL, FAST = range(4)


SPEED_PERCENT = {Speed.PAUSE: 0, Speed.SLOW: 50, Speed.NORMAL: 100, Speed.FAST: 200}


class Overlay(IntEnum):
    """Overlays of the map."""

    NONE, POWER, WATER, TRAFFIC, POLLUTION, VALUE, POLICE, FIRE, CLINIC, SCHOOL = range(10)


class Window(IntEnum):
    """Windows with information; they stay open beside the game until they are closed."""

    NONE, BUDGET, CITY, DEMAND, MILESTONES, GRAPH, LEGEND, QUERY = range(8)


class Dialog(IntEnum):
    """Dialogs; the game waits until they are closed."""

    NONE, MILESTONE, FIRE, STORM, BOOM, RECESSION, DEBT, BANKRUPT, YEAR = range(9)
    ABANDON, DEMOLISH, ABOUT = range(9, 12)


class Command(IntEnum):
    """What an entry of a menu, a button or a key does; most take a number."""

    NOTHING, ASK_ABANDON, SHOW_ABOUT, SET_SPEED, CHANGE_TAX, SET_TAX = range(6)
    FUND_TRANSPORT, FUND_SAFETY, FUND_WELFARE = range(6, 9)
    SET_OVERLAY, OPEN_WINDOW, TOGGLE_HINTS, TOGGLE_REPORT, SELECT_TOOL = range(9, 14)
    SCROLL_ACROSS, SCROLL_DOWN, TOGGLE_PAUSE = range(14, 17)
    CHANGE_TRANSPORT, CHANGE_SAFETY, CHANGE_WELFARE = range(17, 20)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a menu."""

    name: str  # its name among its siblings
    label: str  # what is written
    command: Command = Command.NOTHING  # what it does; entries with children open them instead
    number: int = 0  # what the command is given
    children: tuple["Entry", ...] = ()  # entries of its submenu


def _menu(name: str, *children: Entry) -> Entry:
    return Entry(name, name.capitalize(), children=children)


def _each(command: Command, numbers: Iterable[Speed | Overlay | Window], ending: str = "") -> Iterator[Entry]:
    """Yield one entry per number, called as the number is."""
    return (Entry(each.name.lower(), each.name.capitalize() + ending, command, each) for each in numbers)


def _percents(command: Command, *percents: int) -> Iterator[Entry]:
    return (Entry(str(percent), f"{percent}%", command, percent) for percent in percents)


MENUS: tuple[Entry, ...] = (
    _menu("file", Entry("new", "New city...", Command.ASK_ABANDON), Entry("about", "About...", Command.SHOW_ABOUT)),
    _menu("speed", *_each(Command.SET_SPEED, Speed)),
    _menu(
        "budget",
        Entry("window", "Budget...", Command.OPEN_WINDOW, Window.BUDGET),
        _menu(
            "taxes",
            Entry("raise", "Raise", Command.CHANGE_TAX, 1),
            Entry("lower", "Lower", Command.CHANGE_TAX, -1),
            *_percents(Command.SET_TAX, 5, 7, 9, 12),
        ),
        _menu(
            "funding",
            _menu("transport", *_percents(Command.FUND_TRANSPORT, 0, 50, 80, 100)),
            _menu("safety", *_percents(Command.FUND_SAFETY, 0, 50, 80, 100)),
            _menu("welfare", *_percents(Command.FUND_WELFARE, 0, 50, 80, 100)),
        ),
    ),
    _menu(
        "overlays",
        *_each(Command.SET_OVERLAY, (Overlay.NONE, Overlay.POWER, Overlay.WATER, Overlay.TRAFFIC, Overlay.POLLUTION)),
        Entry("land_value", "Land value", Command.SET_OVERLAY, Overlay.VALUE),
        _menu("services", *_each(Command.SET_OVERLAY, (Overlay.POLICE, Overlay.FIRE, Overlay.CLINIC, Overlay.SCHOOL))),
    ),
    _menu(
        "windows",
        *_each(
            Command.OPEN_WINDOW, (Window.CITY, Window.DEMAND, Window.MILESTONES, Window.GRAPH, Window.LEGEND), "..."
        ),
    ),
    _menu(
        "options",
        Entry("hints", "Tooltips", Command.TOGGLE_HINTS),
        Entry("report", "Yearly report", Command.TOGGLE_REPORT),
    ),
)


def all_entries(entries: tuple[Entry, ...] = MENUS, above: str = "menu") -> Iterator[tuple[str, Entry]]:
    """Yield every entry with its path, such as `menu.budget.taxes.raise`."""
    for entry in entries:
        path = f"{above}.{entry.name}"
        yield path, entry
        yield from all_entries(entry.children, path)
