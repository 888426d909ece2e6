"""The tree of a configuration document, in which every key and value knows where it was written, and its formatting."""

import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import ValidationError

from ludus.core.errors import nearest_name

Scalar: TypeAlias = str | int | float | bool | None
Plain: TypeAlias = "Scalar | dict[str, Plain] | list[Plain]"
KeyPath: TypeAlias = tuple[str | int, ...]

_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_KEY = 60
TOP_LEVEL = "top level"  # the path of the whole document
MAX_FAULTS = 30  # faults of a data file that are listed
_LONGEST = 60
_ADDRESS = re.compile(r"(\w+://)[^\s'\"]+")
_bounded = reprlib.Repr()
_bounded.maxlevel = 3
_bounded.maxlist = _bounded.maxdict = _bounded.maxtuple = _bounded.maxset = 4
_bounded.maxstring = _bounded.maxother = _LONGEST


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
        """The position as `file:line`."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document.

    Attributes:
        content: A scalar, or the nodes of a mapping or list.
        origin: Where the value is written.
        key_origin: Where its key is written; the value's own origin if it has none.
        adds: Whether a mapping with free keys adds to the one below it instead of replacing it.
    """

    content: "Scalar | dict[str, Node] | list[Node]"
    origin: Origin
    key_origin: Origin
    adds: bool = False

    def child(self, part: str | int) -> "Node | None":
        """Return the value of a key or index."""
        if isinstance(self.content, dict) and isinstance(part, str):
            return self.content.get(part)
        if isinstance(self.content, list) and isinstance(part, int) and 0 <= part < len(self.content):
            return self.content[part]
        return None

    def find(self, path: KeyPath) -> "Node | None":
        """Return the value at a path."""
        node: Node | None = self
        for part in path:
            node = node.child(part) if node is not None else None
        return node

    def plain(self) -> Plain:
        """Return the value as plain data."""
        if isinstance(self.content, dict):
            return {key: node.plain() for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.plain() for node in self.content]
        return self.content

    def without(self, key: str) -> "Node":
        """Return the mapping without a key."""
        if not isinstance(self.content, dict):
            return self
        return replace(self, content={name: node for name, node in self.content.items() if name != key})


def single(path: Iterable[str], leaf: Node) -> Node:
    """Return a document that holds only `leaf`, at a path."""
    for key in reversed(tuple(path)):
        leaf = Node({key: leaf}, leaf.key_origin, leaf.key_origin, adds=True)
    return leaf


def show_path(path: KeyPath) -> str:
    """Return a path in command-line syntax: `ppo.n_steps`, `opponents."based:delay=8"`."""
    return ".".join(show_key(str(part)) for part in path) or TOP_LEVEL


def show_key(key: str) -> str:
    """Return a key, quoted if it is not a plain name, and truncated if it is very long."""
    if len(key) <= _LONGEST_KEY and _SIMPLE_KEY.fullmatch(key):
        return key
    escaped = (
        (key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 3] + "...")
        .encode("unicode_escape")
        .decode("ascii")
        .replace('"', '\\"')
    )
    return f'"{escaped}"'


def short(value: object) -> str:
    """Return a bounded repr; of a URL only its scheme, since a webhook URL is a secret."""
    return cut(mask(_bounded.repr(value)), _LONGEST)


def mask(text: str) -> str:
    """Return a text with every URL cut to its scheme."""
    return _ADDRESS.sub(r"\1...", text)


def cut(text: str, longest: int) -> str:
    """Truncate a text to `longest` characters."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def suggest(name: str, valid: Iterable[str]) -> str:
    """Return the nearest valid name and all valid names: `did you mean 'steps'? valid: steps, epochs`."""
    names = tuple(valid)
    near = nearest_name(name, names)
    listed = f"valid: {', '.join(names) or 'none'}"
    return f"did you mean {near!r}? {listed}" if near is not None else listed


def list_faults(error: ValidationError) -> str:
    """Return the faults of a data file without positions, one per line."""
    faults = error.errors(include_url=False, include_context=False)
    lines = [f"  {_place(fault['loc'])}: {fault['msg']} (got {short(fault['input'])})" for fault in faults[:MAX_FAULTS]]
    if len(faults) > MAX_FAULTS:
        lines.append(f"  and {len(faults) - MAX_FAULTS} more")
    return f"{len(faults)} fault(s):\n" + "\n".join(lines)


def _place(location: KeyPath) -> str:
    return show_path(location) if location else "table"
