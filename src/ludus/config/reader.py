"""The one YAML reader: small files that anybody may have written, with the place of every key and value.

A hostile file is refused quickly and with a plain word. Nothing in a file is ever made into an object: there are
mappings with text as keys, lists, text, numbers, true, false and null. An alias stands for what its anchor is on, as
long as that does not make the document large or deep. Tags, merge keys and directives are refused. Faults that leave
the rest readable are collected, so that all of them can be shown at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from ludus.config.node import KeyPath, Node, Origin, Plain, Scalar, show_path
from ludus.config.scalars import resolve_scalar
from ludus.config.shown import short
from ludus.core.errors import ConfigFileError
from ludus.core.faults import ConfigFault

MAX_NESTING = 40  # mappings and lists within each other
MAX_ALIASED = 10_000  # values that all aliases of a document stand for; a bomb of a few lines stands for billions
MAX_CONFIG_BYTES = 200_000  # a file of this size takes 2 s to read
MAX_FAULTS = 100  # faults that are listed


@dataclass(frozen=True, slots=True)
class Document:
    """What one file or one override says.

    Attributes:
        root: The whole document; null if it is empty.
        faults: What is wrong with it as YAML.
        readable: Whether all of it was read, so that it makes sense to look for faults in what it says.
    """

    root: Node
    faults: tuple[ConfigFault, ...] = ()
    readable: bool = True


def read_yaml(file: Path, what: str, max_bytes: int) -> Plain:
    """Returns what is written in a YAML file as plain data; `what` names it in errors.

    Raises:
        ConfigFileError: It is not a file, too large, or not YAML as we read it.
    """
    document = read_document(file, what, max_bytes)
    if document.faults:
        raise ConfigFileError(document.faults)
    return document.root.plain()


def read_document(file: Path, what: str = "configuration", max_bytes: int = MAX_CONFIG_BYTES) -> Document:
    """Reads a YAML file with the places of all keys and values; `what` names it in errors."""
    start = Origin(str(file), 1, 1)
    try:
        if not file.is_file():  # a device or a pipe could be read for ever
            return _unreadable(start, f"{what} cannot be read: there is no such file")
        with file.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        return _unreadable(start, f"{what} cannot be read: {error.strerror}")
    if len(content) > max_bytes:
        return _unreadable(start, f"{what} is larger than {max_bytes} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        return _unreadable(Origin(str(file), line, column), f"is not valid YAML: not UTF-8 text, {error.reason}")
    return parse_document(text, str(file))


def parse_document(text: str, source: str, *, on_command_line: bool = False) -> Document:
    """Reads YAML text; `source` is the file, or the words of the command line, that it comes from."""
    return _Builder(source, with_lines=not on_command_line).build(text)


def _unreadable(origin: Origin, expectation: str, path: KeyPath = ()) -> Document:
    fault = ConfigFault(str(origin), show_path(path), expectation)
    return Document(Node(None, origin, origin), (fault,), readable=False)


class _Unreadable(Exception):  # noqa: N818 - ends the reading of one document; never leaves this file
    """The rest of the document makes no sense."""


class _Level:
    """A mapping or list that is being filled."""

    def __init__(self, node: Node, anchor: str | None) -> None:
        self.node, self.anchor = node, anchor
        self.key: str | None = None  # of the value that comes next
        self.key_origin = node.origin

    def part(self) -> str | int | None:
        """Returns the key or index of the value that comes next."""
        return len(self.node.content) if isinstance(self.node.content, list) else self.key


def _extent(node: Node) -> tuple[int, int]:
    """Returns how many values there are in a node with all that aliases stand for, and how deep they are nested."""
    content = node.content
    if not isinstance(content, dict | list):
        return 1, 0
    inner = [_extent(child) for child in (content.values() if isinstance(content, dict) else content)]
    return 1 + sum(size for size, _ in inner), 1 + max((height for _, height in inner), default=0)


class _Builder:
    """Makes nodes of the parser's events, with a stack instead of recursion."""

    def __init__(self, source: str, *, with_lines: bool) -> None:
        self._source, self._with_lines = source, with_lines
        self._levels: list[_Level] = []
        self._root: Node | None = None
        self._documents = 0
        self._anchors: dict[str, Node] = {}  # of values that are complete, so that none can stand within itself
        self._aliased = 0
        self._faults: list[ConfigFault] = []

    def build(self, text: str) -> Document:
        start = self._origin(0, 0)
        readable = True
        try:
            for event in self._events(text):
                self._take(event)
        except _Unreadable:
            readable = False
        return Document(self._root or Node(None, start, start), tuple(self._faults), readable)

    def _events(self, text: str) -> Iterator[Any]:
        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            origin = self._origin(mark.line, mark.column) if mark else self._origin(0, 0)
            problem = " ".join(f"{error.context or ''} {error.problem or ''}".split())
            self._stop(origin, f"is not valid YAML: {problem[:200]}")
        except ReaderError as error:
            before = text[: error.position]
            origin = self._origin(before.count("\n"), len(before) - (before.rfind("\n") + 1))
            self._stop(origin, f"is not valid YAML: character #x{error.character:04x} is not allowed")
        except Exception as error:  # besides its own errors the parser raises ValueError, IndexError ...
            self._stop(self._origin(0, 0), f"is not valid YAML: {short(str(error))}")

    def _take(self, event: Any) -> None:  # noqa: ANN401 - events have no common type that tells their parts
        origin = self._origin(event.start_mark.line, event.start_mark.column)
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._stop(origin, "a second document begins here; a file is one document")
            if event.version or event.tags:
                self._note(origin, "directives are not allowed; leave the lines that begin with % out")
        elif isinstance(event, CollectionEndEvent):
            level = self._levels.pop()
            self._put(level.node, level.anchor)
        elif isinstance(event, NodeEvent):
            self._take_node(event, origin)

    def _take_node(self, event: Any, origin: Origin) -> None:  # noqa: ANN401
        if not isinstance(event, AliasEvent) and event.tag is not None:
            self._note(origin, f"tag {short(event.tag)} is not allowed; leave it out")
        awaits_key = bool(self._levels) and self._levels[-1].part() is None
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            if awaits_key:
                self._stop(origin, "a key must be text, not a mapping or a list")
            if len(self._levels) >= MAX_NESTING:
                self._stop(origin, f"mappings and lists are nested deeper than {MAX_NESTING}")
            empty: dict[str, Node] | list[Node] = {} if isinstance(event, MappingStartEvent) else []
            self._levels.append(_Level(Node(empty, origin, self._key_origin(origin)), event.anchor))
        elif awaits_key:
            self._take_key(event, origin)
        elif isinstance(event, AliasEvent):
            self._put(Node(self._aliased_content(event.anchor, origin), origin, self._key_origin(origin)))
        else:
            self._put(Node(self._scalar(event, origin), origin, self._key_origin(origin)), event.anchor)

    def _take_key(self, event: Any, origin: Origin) -> None:  # noqa: ANN401
        if isinstance(event, AliasEvent) or event.anchor is not None:
            self._stop(origin, "a key must be plain text, without an anchor or alias")
        level, key = self._levels[-1], event.value
        level.key, level.key_origin = key, origin
        self._check_text(key, origin)
        if key == "<<" and event.implicit[0]:
            self._note(origin, "merge keys are not allowed; write the values out or use extends")
        earlier = level.node.child(key)
        if earlier is not None:
            self._note(origin, f"key is given twice; the first is at {earlier.key_origin}; leave one out")

    def _aliased_content(self, name: str, origin: Origin) -> "Scalar | dict[str, Node] | list[Node]":
        """Returns what an alias stands for, unless that is too much."""
        node = self._anchors.get(name)
        if node is None:
            self._note(origin, f"alias *{short(name)[1:-1]} stands for nothing that comes before it")
            return None
        size, height = _extent(node)
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            self._stop(origin, f"all aliases together stand for more than {MAX_ALIASED} values")
        if len(self._levels) + height > MAX_NESTING:
            self._stop(origin, f"mappings and lists are nested deeper than {MAX_NESTING}")
        return node.content

    def _put(self, node: Node, anchor: str | None = None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._levels:
            self._root = node
            return
        level = self._levels[-1]
        if isinstance(level.node.content, list):
            level.node.content.append(node)
        elif isinstance(level.node.content, dict) and level.key is not None:
            level.node.content[level.key] = node
            level.key = None

    def _scalar(self, event: ScalarEvent, origin: Origin) -> Scalar:
        text: str = event.value
        self._check_text(text, origin)
        if not event.implicit[0]:  # quoted, or a block of text
            return text
        try:
            return resolve_scalar(text)
        except ValueError as error:
            self._note(origin, str(error))
            return None

    def _check_text(self, text: str, origin: Origin) -> None:
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            self._note(origin, f"is half a character, which no file can hold (got {short(text)})")

    def _note(self, origin: Origin, expectation: str) -> None:
        path = tuple(part for level in self._levels if (part := level.part()) is not None)
        self._faults.append(ConfigFault(str(origin), show_path(path), expectation))
        if len(self._faults) >= MAX_FAULTS:
            raise _Unreadable

    def _stop(self, origin: Origin, expectation: str) -> None:
        self._note(origin, expectation)
        raise _Unreadable

    def _key_origin(self, origin: Origin) -> Origin:
        level = self._levels[-1] if self._levels else None
        return level.key_origin if level is not None and level.key is not None else origin

    def _origin(self, line: int, column: int) -> Origin:
        return Origin(self._source, line + 1, column + 1) if self._with_lines else Origin(self._source)
