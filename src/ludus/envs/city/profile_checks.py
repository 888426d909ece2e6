"""What the shape of a profile cannot say: names that must exist, places that must lie in the picture, and patterns."""

import re
from collections.abc import Iterator, Sequence

from ludus.config import KeyPath, Node, show_path, suggest
from ludus.core.faults import ConfigFault

_STEP_LISTS: tuple[KeyPath, ...] = (
    ("pause", "steps"),
    ("settle", "sign", "first"),
    ("settle", "sign", "second"),
    ("reset", "steps"),
)
_REGION_NAMES: tuple[KeyPath, ...] = (
    ("map", "region"),
    ("lots", "region"),
    ("pause", "region"),
    ("settle", "sign", "region"),
    ("reset", "terrain"),
)
_REGION_LISTS: tuple[KeyPath, ...] = (("templates",), ("settle", "watch"), ("reset", "fresh"))
_REGION_OWNERS = ("readings", "landmarks", "sliders")
_PATTERNS = (("window", "title"),)
_PLACES = {"click": 2, "move": 2, "at": 2, "drag": 4}  # keys of a step that are places, and how many numbers they have


def check_profile(root: Node) -> Sequence[ConfigFault]:
    """Returns all faults that need more than one value to see, each at its place."""
    return [*_unknown_names(root), *_places_outside(root), *_window_faults(root), *_pattern_faults(root)]


def _unknown_names(root: Node) -> Iterator[ConfigFault]:
    regions = _keys(root, ("regions",))
    for path, node in _region_references(root):
        if isinstance(node.content, str) and node.content not in regions:
            hint = suggest(node.content, regions)
            yield ConfigFault(str(node.origin), show_path(path), "should be one of regions", repr(node.content), hint)
    readings = _keys(root, ("readings",))
    for name, node in _mapping(root, ("reset", "expect")):
        if name not in readings:
            key, hint = show_path(("reset", "expect", name)), suggest(name, readings)
            yield ConfigFault(str(node.key_origin), key, "should be one of readings", "", hint)
    tools = _keys(root, ("tools",))
    for path, tool in _block_tools(root):
        if isinstance(tool.content, str) and tool.content not in tools:
            hint = suggest(tool.content, tools)
            yield ConfigFault(str(tool.origin), show_path(path), "should be one of tools", repr(tool.content), hint)
    dialogs = _keys(root, ("dialogs",))
    for name, slider in _mapping(root, ("sliders",)):
        dialog = slider.child("dialog")
        if dialog is not None and isinstance(dialog.content, str) and dialog.content not in dialogs:
            key, hint = show_path(("sliders", name, "dialog")), suggest(dialog.content, dialogs)
            yield ConfigFault(str(dialog.origin), key, "should be one of dialogs", repr(dialog.content), hint)


def _block_tools(root: Node) -> Iterator[tuple[KeyPath, Node]]:
    for name, block in _mapping(root, ("lots", "blocks")):
        for index, step in enumerate(block.content if isinstance(block.content, list) else ()):
            if (tool := step.child("tool")) is not None:
                yield ("lots", "blocks", name, index, "tool"), tool


def _region_references(root: Node) -> Iterator[tuple[KeyPath, Node]]:
    for path in _REGION_NAMES:
        if (node := root.find(path)) is not None:
            yield path, node
    for path in _REGION_LISTS:
        node = root.find(path)
        if node is not None and isinstance(node.content, list):
            yield from (((*path, index), item) for index, item in enumerate(node.content))
    for owner in _REGION_OWNERS:
        for name, entry in _mapping(root, (owner,)):
            if (node := entry.child("region")) is not None:
                yield (owner, name, "region"), node


def _places_outside(root: Node) -> Iterator[ConfigFault]:
    size = _numbers(root.find(("measured_on",)), 2)
    if size is None:
        return
    for path, node, count in _places(root):
        place = _numbers(node, count)
        if place is None:
            continue
        shown = f"{size[0]:g}x{size[1]:g}"
        if any(not 0 <= value <= size[index % 2] for index, value in enumerate(place)):
            yield ConfigFault(
                str(node.origin), show_path(path), f"should lie in the picture of {shown}", str(node.plain())
            )
        elif path[0] == "regions" and (place[0] >= place[2] or place[1] >= place[3]):
            yield ConfigFault(
                str(node.origin), show_path(path), "should be left, top, right, bottom", str(node.plain())
            )


def _places(root: Node) -> Iterator[tuple[KeyPath, Node, int]]:
    yield from ((("regions", name), node, 4) for name, node in _mapping(root, ("regions",)))
    for group in ("tools", "menus"):
        for name, entry in _mapping(root, (group,)):
            if (node := entry.child("at")) is not None:
                yield (group, name, "at"), node, 2
            yield from (
                ((group, name, "items", item), place, 2) for item, place in _mapping(root, (group, name, "items"))
            )
    if (park := root.find(("input", "park"))) is not None:
        yield ("input", "park"), park, 2
    for path, step in _steps(root):
        for key, count in _PLACES.items():
            if (node := step.child(key)) is not None:
                yield (*path, key), node, count


def _steps(root: Node) -> Iterator[tuple[KeyPath, Node]]:
    lists: list[KeyPath] = list(_STEP_LISTS)
    lists += [("camera", name) for name, _ in _mapping(root, ("camera",))]
    lists += [("dialogs", name, "close") for name, _ in _mapping(root, ("dialogs",))]
    lists += [("landmarks", name, "restore") for name, _ in _mapping(root, ("landmarks",))]
    for path in lists:
        node = root.find(path)
        if node is not None and isinstance(node.content, list):
            yield from (((*path, index), step) for index, step in enumerate(node.content))


def _window_faults(root: Node) -> Iterator[ConfigFault]:
    screen, size = _numbers(root.find(("screen",)), 2), _numbers(root.find(("window", "size")), 2)
    if screen is not None and size is not None and any(map(float.__gt__, size, screen)):
        node = root.find(("window", "size"))
        place = str(node.origin) if node is not None else ""
        yield ConfigFault(place, "window.size", f"should fit on the screen of {screen[0]:g}x{screen[1]:g}")
    if root.find(("launch", "prompt")) is None:
        prompts = [(path, step) for path, step in _steps(root) if step.child("prompt") is not None]
        truth = root.find(("reset", "truth"))
        prompts += [(("reset", "truth"), truth)] if truth is not None and truth.content else []
        for path, node in prompts:
            yield ConfigFault(
                str(node.origin), show_path(path), "needs launch.prompt: the game has no prompt otherwise"
            )


def _pattern_faults(root: Node) -> Iterator[ConfigFault]:
    paths: list[KeyPath] = [*_PATTERNS, *((("dialogs", name, "window")) for name, _ in _mapping(root, ("dialogs",)))]
    for path in paths:
        node = root.find(path)
        if node is None or not isinstance(node.content, str):
            continue
        try:
            re.compile(node.content)
        except re.error as error:
            expectation = f"should be a regular expression: {error}"
            yield ConfigFault(str(node.origin), show_path(path), expectation, repr(node.content))


def _mapping(root: Node, path: KeyPath) -> Sequence[tuple[str, Node]]:
    node = root.find(path)
    return tuple(node.content.items()) if node is not None and isinstance(node.content, dict) else ()


def _keys(root: Node, path: KeyPath) -> tuple[str, ...]:
    return tuple(name for name, _ in _mapping(root, path))


def _numbers(node: Node | None, count: int) -> list[float] | None:
    """Returns the numbers of a list, or None if it is not such a list; that is a fault of the shape."""
    if node is None or not isinstance(node.content, list) or len(node.content) != count:
        return None
    values = [item.content for item in node.content]
    return (
        [float(value) for value in values if isinstance(value, int | float)]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        else None
    )
