"""Open menus: where their lists are, and which entries carry a mark."""

from dataclasses import dataclass

from ludus.envs.city.interface.boxes import Box
from ludus.envs.city.interface.elements import Element
from ludus.envs.city.interface.layout import Layout
from ludus.envs.city.interface.menus import MENUS, Entry
from ludus.envs.city.interface.theme import Measure


@dataclass(frozen=True, slots=True)
class MenuList:
    """An open list of entries.

    Attributes:
        box: All of it.
        entries: What it lists.
        elements: Where each entry is.
    """

    box: Box
    entries: tuple[Entry, ...]
    elements: tuple[Element, ...]


def place_lists(path: tuple[int, ...], layout: Layout, face: Measure) -> tuple[MenuList, ...]:
    """Places the lists of an open path: the menu at its heading, each submenu beside its entry."""
    if not path:
        return ()
    screen = Box(0, 0, layout.width, layout.height)
    heading = layout.menus[path[0]]
    entry, name = MENUS[path[0]], heading.name
    width, height = _list_size(entry.children, face)
    upward = layout.menu_bar.top > layout.height // 2
    top = heading.box.top - height if upward else heading.box.bottom
    lists = [_place_list(Box(heading.box.left, top, width, height).within(screen), entry, name, face)]
    for index in path[1:]:
        entry, row = entry.children[index], lists[-1].elements[index]
        if not entry.children:
            break
        width, height = _list_size(entry.children, face)
        outer = lists[-1].box
        left = outer.right - 2 if outer.right - 2 + width <= screen.right else outer.left - width + 2
        lists.append(_place_list(Box(left, row.box.top - 1, width, height).within(screen), entry, row.name, face))
    return tuple(lists)


def _list_size(entries: tuple[Entry, ...], face: Measure) -> tuple[int, int]:
    widest = max(face.width(entry.label) for entry in entries)
    return widest + 3 * face.height + 8, len(entries) * (face.height + 5) + 4


def _place_list(box: Box, parent: Entry, above: str, face: Measure) -> MenuList:
    line = face.height + 5
    elements = tuple(
        Element(
            f"{above}.{entry.name}", "item", Box(box.left + 2, box.top + 2 + i * line, box.width - 4, line), entry.label
        )
        for i, entry in enumerate(parent.children)
    )
    return MenuList(box, parent.children, elements)
