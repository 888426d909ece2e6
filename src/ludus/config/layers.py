"""Layers of configuration: `extends`, and the merge in which the later layer wins and every value keeps its place."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ludus.config.node import Node, Origin
from ludus.config.reader import Document, read_document
from ludus.config.schema import child_annotation, chosen, shape_of
from ludus.config.shelf import Shelf
from ludus.config.shown import short, suggest
from ludus.core.faults import ConfigFault

EXTENDS = "extends"
MAX_PARENTS = 20
_FILE_ENDINGS = (".yaml", ".yml")


def read_layers(file: Path, shelf: Shelf) -> list[Document]:
    """Reads a file and all that it extends, the most general first.

    `extends: NAME` names a file on the shelf; `extends: other.yaml` or `extends: folder/other.yaml` a file, relative
    to the file that says so. What cannot be followed is a fault of the document that says so.
    """
    documents: list[Document] = []
    followed: list[Path] = []
    following: Path | None = file
    while following is not None:
        document = read_document(following)
        parent = document.root.child(EXTENDS)
        documents.append(replace(document, root=document.root.without(EXTENDS)))
        if parent is None:
            break
        followed.append(following.resolve())
        following, fault = _parent_file(parent, following, followed, shelf)
        if fault is not None:
            documents[-1] = replace(documents[-1], faults=(*documents[-1].faults, fault), readable=False)
    return documents[::-1]


def _parent_file(
    node: Node, child: Path, followed: Sequence[Path], shelf: Shelf
) -> tuple[Path | None, ConfigFault | None]:
    """Returns the file that is extended, or the fault that keeps it from being found."""

    def fault(expectation: str, hint: str = "") -> tuple[None, ConfigFault]:
        return None, ConfigFault(str(node.origin), EXTENDS, expectation, short(node.plain()), hint)

    name = node.content
    if not isinstance(name, str) or not name:
        return fault(f"should be the name of a {shelf.kind} or a file beside this one")
    if "/" in name or name.endswith(_FILE_ENDINGS):
        if Path(name).is_absolute():
            return fault("should be a path relative to this file")
        parent = child.parent / name
        if not _is_file(parent):
            return fault(f"there is no file {short(str(parent))}")
    elif name in shelf.names():
        parent = shelf.file(name)
    else:
        return fault(f"should be a {shelf.kind}, or the path of a file ending in .yaml", suggest(name, shelf.names()))
    if parent.resolve() in followed:
        chain = " -> ".join(path.name for path in (*followed[followed.index(parent.resolve()) :], parent))
        return fault(f"goes round in a circle: {chain}")
    if len(followed) > MAX_PARENTS:
        return fault(f"more than {MAX_PARENTS} files extend each other")
    return parent, None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no permission to look, or a name that is too long
        return False


def merge_layers(layers: Sequence[Node], annotation: Any = Any) -> Node:  # noqa: ANN401 - whatever a model says
    """Returns all layers in one: mappings are merged, the last word on a list or scalar (also null) counts.

    A mapping whose discriminator (`kind`) changes is another thing and replaces what was there. `annotation` says
    where there are such mappings.
    """
    start = Origin("command line")
    merged = Node({}, start, start)
    for layer in layers:
        merged = _merge(merged, layer, annotation)
    return merged


def _merge(lower: Node, upper: Node, annotation: Any) -> Node:  # noqa: ANN401
    if not isinstance(lower.content, dict) or not isinstance(upper.content, dict):
        return upper
    discriminator = shape_of(annotation).discriminator
    if discriminator is not None:
        before, after = lower.child(discriminator), upper.child(discriminator)
        if after is not None and before is not None and before.content != after.content:
            return upper
        annotation = chosen(annotation, upper if after is not None else lower)
    merged = dict(lower.content)
    for key, node in upper.content.items():
        earlier = merged.get(key)
        merged[key] = node if earlier is None else _merge(earlier, node, child_annotation(annotation, key))
    # The mappings that an override implies are written nowhere; a file is where a person would look.
    written = upper if upper.origin.line is not None or lower.origin.line is None else lower
    return Node(merged, written.origin, written.key_origin)
