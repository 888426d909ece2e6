"""The menus with their submenus, as a tree, and which entries carry a mark."""

from collections.abc import Iterator
from dataclasses import dataclass

from ludus.envs.city.interface.commands import Command, Overlay, Speed, Window


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a menu.

    Attributes:
        name: Its name among its siblings.
        label: What is written.
        command: What it does; entries with children open them instead.
        number: What the command is given.
        children: Entries of its submenu.
    """

    name: str
    label: str
    command: Command = Command.NOTHING
    number: int = 0
    children: tuple["Entry", ...] = ()


def _funding(name: str, label: str, command: Command) -> Entry:
    return Entry(name, label, children=tuple(Entry(str(p), f"{p}%", command, p) for p in (0, 50, 80, 100)))


MENUS: tuple[Entry, ...] = (
    Entry(
        "file",
        "File",
        children=(
            Entry("new", "New city...", Command.ASK_ABANDON),
            Entry("about", "About...", Command.SHOW_ABOUT),
        ),
    ),
    Entry(
        "speed",
        "Speed",
        children=tuple(Entry(s.name.lower(), s.name.capitalize(), Command.SET_SPEED, s) for s in Speed),
    ),
    Entry(
        "budget",
        "Budget",
        children=(
            Entry("window", "Budget...", Command.OPEN_WINDOW, Window.BUDGET),
            Entry(
                "taxes",
                "Taxes",
                children=(
                    Entry("raise", "Raise", Command.CHANGE_TAX, 1),
                    Entry("lower", "Lower", Command.CHANGE_TAX, -1),
                    *(Entry(str(p), f"{p}%", Command.SET_TAX, p) for p in (5, 7, 9, 12)),
                ),
            ),
            Entry(
                "funding",
                "Funding",
                children=(
                    _funding("transport", "Transport", Command.FUND_TRANSPORT),
                    _funding("safety", "Safety", Command.FUND_SAFETY),
                    _funding("welfare", "Welfare", Command.FUND_WELFARE),
                ),
            ),
        ),
    ),
    Entry(
        "overlays",
        "Overlays",
        children=(
            *(
                Entry(name.replace(" ", "_"), name.capitalize(), Command.SET_OVERLAY, overlay)
                for name, overlay in (
                    ("none", Overlay.NONE),
                    ("power", Overlay.POWER),
                    ("water", Overlay.WATER),
                    ("traffic", Overlay.TRAFFIC),
                    ("pollution", Overlay.POLLUTION),
                    ("land value", Overlay.VALUE),
                )
            ),
            Entry(
                "services",
                "Services",
                children=tuple(
                    Entry(o.name.lower(), o.name.capitalize(), Command.SET_OVERLAY, o)
                    for o in (Overlay.POLICE, Overlay.FIRE, Overlay.CLINIC, Overlay.SCHOOL)
                ),
            ),
        ),
    ),
    Entry(
        "windows",
        "Windows",
        children=tuple(
            Entry(w.name.lower(), f"{w.name.capitalize()}...", Command.OPEN_WINDOW, w)
            for w in (Window.CITY, Window.DEMAND, Window.MILESTONES, Window.GRAPH, Window.LEGEND)
        ),
    ),
    Entry(
        "options",
        "Options",
        children=(
            Entry("hints", "Tooltips", Command.TOGGLE_HINTS),
            Entry("report", "Yearly report", Command.TOGGLE_REPORT),
        ),
    ),
)


def opened(path: tuple[int, ...]) -> list[tuple[Entry, ...]]:
    """Returns the lists of entries that an open path shows, the menu itself first."""
    lists, level = [], MENUS
    for index in path:
        level = level[index].children
        if not level:
            break
        lists.append(level)
    return lists


def all_entries(entries: tuple[Entry, ...] = MENUS, above: str = "menu") -> Iterator[tuple[str, Entry]]:
    """Gives every entry with its path, such as `menu.budget.taxes.raise`."""
    for entry in entries:
        path = f"{above}.{entry.name}"
        yield path, entry
        yield from all_entries(entry.children, path)
