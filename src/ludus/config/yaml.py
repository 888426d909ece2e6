"""Read and write YAML: small files from untrusted sources, with the position of every key and value.

A hostile file is rejected quickly with a clear message. A document holds mappings with text keys, lists, text, numbers,
true, false and null; no other object is ever built. An alias stands for the value of its anchor, as long as that does
not make the document large or deep. Tags, merge keys and directives are rejected. Faults that leave the rest readable
are collected, so that all of them can be shown at once. The reader works on ruamel's event stream: its composer is
recursive (a file of brackets overflows the stack) and expands aliases before anything can be counted.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

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

from ludus.config.nodes import KeyPath, Node, Origin, Plain, Scalar, short, show_path
from ludus.core.errors import ConfigFault, ConfigFileError, FormatError

MAX_NESTING = 40  # levels of mappings and lists
MAX_ALIASED = 10_000  # values that all aliases expand to; a bomb of a few lines expands to billions
MAX_CONFIG_BYTES = 200_000  # a file of this size takes 2 s to read
MAX_FAULTS = 100  # faults that are listed
_LONGEST_CACHED = 10_000  # characters of a document that is kept after it was read
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9](?:_?[0-9])*")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9](?:_?[0-9])*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NOT_A_NUMBER = frozenset({".nan", ".NaN", ".NAN"})
_LONGEST_NUMBER = 400  # digits; parsing longer ones is slow in Python
_LINE_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+@=-]*(?:[ :][A-Za-z0-9_./+@=-]+)*")
_OTHER_MEANING = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})  # also in YAML 1.1
_ESCAPES = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
Comment: TypeAlias = Callable[[KeyPath], str]
"""Returns the comment on the line of a value; empty for none."""


@dataclass(frozen=True, slots=True)
class Document:
    """Content of one file or one override.

    Attributes:
        root: The whole document; null if it is empty.
        faults: What is wrong with it as YAML.
        readable: Whether all of it was read, so that its content can be validated.
    """

    root: Node
    faults: tuple[ConfigFault, ...] = ()
    readable: bool = True


def read_yaml(file: Path, what: str, max_bytes: int) -> Plain:
    """Read a YAML file as plain data; `what` names it in errors.

    Raises:
        ConfigFileError: It is not a file, too large, or not valid YAML of our subset.
    """
    document = read_document(file, what, max_bytes)
    if document.faults:
        raise ConfigFileError(document.faults)
    return document.root.plain()


def read_document(file: Path, what: str = "configuration", max_bytes: int = MAX_CONFIG_BYTES) -> Document:
    """Read a YAML file with the positions of all keys and values; `what` names it in errors."""
    start = Origin(str(file), 1, 1)
    try:
        if not file.is_file():  # a device or a pipe may never end
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
    """Parse YAML text; `source` is its file or its command-line argument."""
    parse = _parse_cached if len(text) <= _LONGEST_CACHED else _parse
    return parse(text, source, not on_command_line)


def _parse(text: str, source: str, with_lines: bool) -> Document:
    return _Builder(source, with_lines=with_lines).build(text)


# Documents are never changed. A run's settings take 13 ms to parse and a resumed run reads them twice; presets and what
# they extend are read for every run of a process.
_parse_cached = lru_cache(maxsize=32)(_parse)


def _unreadable(origin: Origin, expectation: str, path: KeyPath = ()) -> Document:
    fault = ConfigFault(str(origin), show_path(path), expectation)
    return Document(Node(None, origin, origin), (fault,), readable=False)


class _Unreadable(Exception):  # noqa: N818 - ends the reading of one document; never leaves this file
    """The rest of the document cannot be parsed."""


class _Level:
    """A mapping or list under construction."""

    def __init__(self, node: Node, anchor: str | None) -> None:
        self.node, self.anchor = node, anchor
        self.key: str | None = None  # of the next value
        self.key_origin = node.origin

    def part(self) -> str | int | None:
        """Return the key or index of the next value."""
        return len(self.node.content) if isinstance(self.node.content, list) else self.key


def _extent(node: Node) -> tuple[int, int]:
    """Return the number of values in a node with aliases expanded, and its depth."""
    content = node.content
    if not isinstance(content, dict | list):
        return 1, 0
    inner = [_extent(child) for child in (content.values() if isinstance(content, dict) else content)]
    return 1 + sum(size for size, _ in inner), 1 + max((height for _, height in inner), default=0)


class _Builder:
    """Builds nodes from the parser's events with a stack instead of recursion."""

    def __init__(self, source: str, *, with_lines: bool) -> None:
        self._source, self._with_lines = source, with_lines
        self._levels: list[_Level] = []
        self._root: Node | None = None
        self._documents = 0
        self._anchors: dict[str, Node] = {}  # of complete values, so that no alias can contain itself
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
                self._stop(origin, "a second document starts here; a file is one document")
            if event.version or event.tags:
                self._note(origin, "directives are not allowed; remove the lines that start with %")
        elif isinstance(event, CollectionEndEvent):
            level = self._levels.pop()
            self._put(level.node, level.anchor)
        elif isinstance(event, NodeEvent):
            self._take_node(event, origin)

    def _take_node(self, event: Any, origin: Origin) -> None:  # noqa: ANN401
        if not isinstance(event, AliasEvent) and event.tag is not None:
            self._note(origin, f"tag {short(event.tag)} is not allowed; remove it")
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
            self._note(origin, f"duplicate key, first at {earlier.key_origin}; remove one")

    def _aliased_content(self, name: str, origin: Origin) -> "Scalar | dict[str, Node] | list[Node]":
        """Return the value of an alias, unless that is too large."""
        node = self._anchors.get(name)
        if node is None:
            self._note(origin, f"alias *{short(name)[1:-1]} refers to no anchor before it")
            return None
        size, height = _extent(node)
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            self._stop(origin, f"all aliases together expand to more than {MAX_ALIASED} values")
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
            self._note(origin, f"is an unpaired surrogate, which no file can hold (got {short(text)})")

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


def resolve_scalar(word: str) -> Scalar:
    """Return the value of an unquoted word (YAML 1.2, with 1_000 for 1000); dates stay text.

    Raises:
        ValueError: It is a number of more than 400 characters.
    """
    if word in _NULLS:
        return None
    if word in _TRUTHS:
        return _TRUTHS[word]
    if word in _NOT_A_NUMBER:
        return math.nan
    if infinity := _INFINITY.fullmatch(word):
        return -math.inf if infinity.group(1) == "-" else math.inf
    is_integer, is_based = _INTEGER.fullmatch(word), _BASED.fullmatch(word)
    if not (is_integer or is_based or _FLOAT.fullmatch(word)):
        return word
    if len(word) > _LONGEST_NUMBER:
        raise ValueError(f"is a number of {len(word)} characters; at most {_LONGEST_NUMBER} are read")
    if is_integer:
        return int(word)
    return int(word, 0) if is_based else float(word)


def dump_yaml(data: object, comment: Comment | None = None) -> str:
    """Return plain data (mappings with text as keys, lists, scalars) as YAML; reading it gives the data back.

    Args:
        data: The data.
        comment: Returns the comment on a line, by the path of its value.

    Raises:
        FormatError: A value is not plain data.
    """
    lines = list(_lines(data, (), 0))
    if comment is None:
        return "".join(f"{text}\n" for text, _ in lines)
    commented = [(text, comment(path).encode("unicode_escape").decode("ascii")) for text, path in lines]
    width = max(len(text) for text, _ in commented)
    return "".join(f"{text.ljust(width)}  # {words}\n" if words else f"{text}\n" for text, words in commented)


def _lines(data: object, path: KeyPath, indent: int) -> Iterator[tuple[str, KeyPath]]:
    """Yield each line with the path of its value."""
    space = " " * indent
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            if not isinstance(key, str):
                raise FormatError(f"key {key!r} of {path} cannot be written as YAML: keys are text")
            in_line = _in_line(value, _LINE_WIDTH - indent - len(key))
            below = (*path, key)
            yield f"{space}{_text(key)}:" + (f" {in_line}" if in_line is not None else ""), below
            if in_line is None:
                yield from _lines(value, below, indent + 2)
    elif _is_list(data) and data:
        for index, value in enumerate(data):
            in_line = _in_line(value, _LINE_WIDTH - indent)
            below = (*path, index)
            if in_line is not None:
                yield f"{space}- {in_line}", below
                continue
            first, *others = _lines(value, below, indent + 2)
            yield f"{space}- {first[0].lstrip(' ')}", first[1]
            yield from others
    else:
        yield f"{space}{_in_line(data, _LINE_WIDTH)}", path


def _in_line(data: object, width: int) -> str | None:
    """Return scalars and short lists of scalars in one line; None for what needs its own lines."""
    if isinstance(data, Mapping):
        return None if data else "{}"
    if _is_list(data):
        if any(isinstance(item, Mapping) or _is_list(item) for item in data):
            return None
        text = f"[{', '.join(_scalar(item) for item in data)}]"
        return text if len(text) <= width else None
    return _scalar(data)


def _is_list(data: object) -> TypeGuard[Sequence[object]]:
    return isinstance(data, Sequence) and not isinstance(data, str | bytes)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _text(value)
    raise FormatError(f"{value!r} cannot be written as YAML: {type(value).__name__} is not plain data")


def _float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}.0e{power}" if exponent and "." not in mantissa else text  # YAML 1.1 needs the point


def _text(text: str) -> str:
    """Return a text, quoted unless every YAML reader reads it as text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _OTHER_MEANING:
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if " " <= character <= "~":
        return character
    return f"\\U{ord(character):08x}"
