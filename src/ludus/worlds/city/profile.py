"""Load game profiles, with checks across their sections: names that must exist, positions that must lie in the picture.

The schema says where names and positions are (`Reference`, `Position`), so the checks walk its annotations beside the
document, where every value knows the line that it was written on.
"""

import hashlib
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ludus.config import (
    KeyPath,
    Node,
    PresetDirectory,
    dump_yaml,
    read_config_with_origins,
    read_layers,
    show_path,
    suggest,
)
from ludus.config.layers import child_annotation, key_annotation
from ludus.core.errors import ConfigFault, UnknownNameError
from ludus.worlds.city.drivers.driver import Point, Region
from ludus.worlds.city.profile_schema import NEEDS_PROMPT, GameProfile, Position, Reference

PROFILES = PresetDirectory("ludus.worlds.city", kind="profile")
_FILE_ENDINGS = (".yaml", ".yml")
_T = TypeVar("_T")


def load_profile(name: str) -> GameProfile:
    """Return a profile by its name, or by the path of a file ending in .yaml, which may extend another.

    Raises:
        UnknownNameError: There is no profile of this name.
        ConfigFileError: The file has faults; all of them are listed, each with its place.
    """
    if "/" in name or name.endswith(_FILE_ENDINGS):
        file = Path(name)
    elif name in PROFILES.names():
        file = PROFILES.file(name)
    else:
        raise UnknownNameError("game profile", name, (*PROFILES.names(), "the path of a file ending in .yaml"))
    written, origins = read_config_with_origins(GameProfile, read_layers(file, PROFILES), (check_profile,))
    fingerprint = hashlib.sha256(dump_yaml(origins.root.plain()).encode()).hexdigest()[:16]
    return _scaled(written, *written.measured_on).named(file.stem, fingerprint)


def _scaled(value: _T, width: float, height: float) -> _T:
    """Return a value in which all positions are fractions of a picture of this size."""
    result: Any = value
    if isinstance(value, Point):
        result = Point(value.x / width, value.y / height)
    elif isinstance(value, Region):
        result = Region(value.left / width, value.top / height, value.right / width, value.bottom / height)
    elif isinstance(value, BaseModel):
        fields = type(value).model_fields
        result = value.model_copy(update={name: _scaled(getattr(value, name), width, height) for name in fields})
    elif isinstance(value, dict):
        result = {key: _scaled(item, width, height) for key, item in value.items()}
    elif isinstance(value, tuple):
        result = tuple(_scaled(item, width, height) for item in value)
    return result  # type: ignore[no-any-return]


def check_profile(root: Node) -> Sequence[ConfigFault]:
    """Return all faults that need more than one value to see, each at its place."""
    size = _numbers(root.find(("measured_on",)))
    has_prompt = root.find(("launch", "prompt")) is not None
    faults = list(_window_faults(root))
    for path, node, is_key, marker in _marked(root, GameProfile, ()):
        if isinstance(marker, Reference):
            faults += _unknown_name(root, path, node, marker.section, is_key=is_key)
        elif isinstance(marker, Position) and size is not None and len(size) == 2:
            faults += _outside(path, node, size)
        elif marker == NEEDS_PROMPT and not has_prompt:
            faults.append(ConfigFault(str(node.origin), show_path(path), f"{NEEDS_PROMPT}: the game has no prompt"))
    return faults


def _marked(node: Node, annotation: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Node, bool, object]]:  # noqa: ANN401
    """Yield every value that the schema marks: its path, its node, whether the mark is of its key, and the mark."""
    yield from ((path, node, False, marker) for marker in _metadata(annotation))
    children: list[tuple[str | int, Node]] = []
    if isinstance(node.content, dict):
        children += node.content.items()
        for marker in _metadata(key_annotation(annotation)):
            yield from (((*path, key), child, True, marker) for key, child in children)
    elif isinstance(node.content, list):
        children += enumerate(node.content)
    for part, child in children:
        yield from _marked(child, child_annotation(annotation, part), (*path, part))


def _metadata(annotation: Any) -> Iterator[object]:  # noqa: ANN401
    """Yield the metadata of an annotation, also of one that may be None."""
    if isinstance(annotation, FieldInfo):
        yield from annotation.metadata
    elif get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _metadata(inner)
        for item in metadata:
            yield from _metadata(item) if isinstance(item, FieldInfo) else (item,)
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _metadata(member)


def _unknown_name(root: Node, path: KeyPath, node: Node, section: str, *, is_key: bool) -> Iterator[ConfigFault]:
    found = root.find((section,))
    names = tuple(found.content) if found is not None and isinstance(found.content, dict) else ()
    name = path[-1] if is_key else node.content
    if isinstance(name, str) and name not in names:
        place, got = (node.key_origin, "") if is_key else (node.origin, repr(name))
        yield ConfigFault(str(place), show_path(path), f"should be one of {section}", got, suggest(name, names))


def _outside(path: KeyPath, node: Node, size: Sequence[float]) -> Iterator[ConfigFault]:
    values = _numbers(node)
    if values is None:
        return
    fault = ""
    if any(not 0 <= value <= size[index % 2] for index, value in enumerate(values)):
        fault = f"should lie in the picture of {size[0]:g}x{size[1]:g}"
    elif path[0] == "regions" and len(values) == 4 and (values[0] >= values[2] or values[1] >= values[3]):
        fault = "should be left, top, right, bottom"
    if fault:
        yield ConfigFault(str(node.origin), show_path(path), fault, str(node.plain()))


def _window_faults(root: Node) -> Iterator[ConfigFault]:
    node = root.find(("window", "size"))
    screen, size = _numbers(root.find(("screen",))), _numbers(node)
    if node is not None and screen and size and any(map(float.__gt__, size, screen)):
        yield ConfigFault(str(node.origin), "window.size", f"should fit on the screen of {screen[0]:g}x{screen[1]:g}")


def _numbers(node: Node | None) -> list[float] | None:
    """Return the numbers of a list; None for anything else, which the schema refuses."""
    if node is None or not isinstance(node.content, list):
        return None
    values = [item.content for item in node.content]
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return numbers if len(numbers) == len(values) else None
