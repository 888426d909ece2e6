"""The tree of a configuration document, in which every key and value knows where it was written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
Plain: TypeAlias = "Scalar | dict[str, Plain] | list[Plain]"
KeyPath: TypeAlias = tuple[str | int, ...]

_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_KEY = 60
TOP_LEVEL = "top level"  # what the path of the whole document is called


@dataclass(frozen=True, slots=True)
class Origin:
    """Where something was written.

    Attributes:
        source: The file, or the part of the command line.
        line: Line in the file, from 1; None on the command line.
        column: Column in the line, from 1.
    """

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"

    @property
    def without_column(self) -> str:
        """The place as `file:line`."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document.

    Attributes:
        content: A scalar, or the nodes of a mapping or list.
        origin: Where the value is written.
        key_origin: Where the key is written that leads to the value; the value's own place if none does.
    """

    content: "Scalar | dict[str, Node] | list[Node]"
    origin: Origin
    key_origin: Origin

    def child(self, part: str | int) -> "Node | None":
        """Returns what stands under a key or at an index."""
        if isinstance(self.content, dict) and isinstance(part, str):
            return self.content.get(part)
        if isinstance(self.content, list) and isinstance(part, int) and 0 <= part < len(self.content):
            return self.content[part]
        return None

    def find(self, path: KeyPath) -> "Node | None":
        """Returns what stands at a path."""
        node: Node | None = self
        for part in path:
            node = node.child(part) if node is not None else None
        return node

    def plain(self) -> Plain:
        """Returns the value as plain data."""
        if isinstance(self.content, dict):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.plain() for node in self.content]
        return self.content

    def without(self, key: str) -> "Node":
        """Returns the mapping without one of its keys."""
        if not isinstance(self.content, dict):
            return self
        return replace(self, content={name: node for name, node in self.content.items() if name != key})


def single(path: Iterable[str], leaf: Node) -> Node:
    """Returns a document in which nothing but `leaf` stands, at a path."""
    for key in reversed(tuple(path)):
        leaf = Node({key: leaf}, leaf.key_origin, leaf.key_origin)
    return leaf


def show_path(path: KeyPath) -> str:
    """Returns a path as it is written on a command line: `ppo.steps`, `opponents."based:delay=8"`."""
    return ".".join(show_key(str(part)) for part in path) or TOP_LEVEL


def show_key(key: str) -> str:
    """Returns a key, quoted if it has other characters than names have, and cut if it is very long."""
    if len(key) <= _LONGEST_KEY and _SIMPLE_KEY.fullmatch(key):
        return key
    escaped = (
        (key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 3] + "...")
        .encode("unicode_escape")
        .decode("ascii")
        .replace('"', '\\"')
    )
    return f'"{escaped}"'
