"""The menus with their submenus as a tree, and the commands of their entries."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

from ludus.config import read_yaml


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


_NUMBERS = {f"{kind.__name__}.{each.name}".lower(): int(each) for kind in (Speed, Overlay, Window) for each in kind}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a menu."""

    name: str  # its name among its siblings
    label: str  # what is written
    # What it does, by its name in a file; entries with children open them instead.
    command: Annotated[Command, BeforeValidator(lambda name: Command[name.upper()])] = Command.NOTHING
    number: Annotated[int, BeforeValidator(lambda number: _NUMBERS.get(number, number))] = 0  # what it is given
    children: tuple["Entry", ...] = ()  # entries of its submenu


MENUS = TypeAdapter(tuple[Entry, ...]).validate_python(
    read_yaml(Path(__file__).with_name("menus.yaml"), "menus", 20_000)
)


def all_entries(entries: tuple[Entry, ...] = MENUS, above: str = "menu") -> Iterator[tuple[str, Entry]]:
    """Yield every entry with its path, such as `menu.budget.taxes.raise`."""
    for entry in entries:
        path = f"{above}.{entry.name}"
        yield path, entry
        yield from all_entries(entry.children, path)
