"""Writes plain data as YAML that people read: keys in their order, short lists in one line, plain ASCII."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeGuard

from ludus.config.node import KeyPath
from ludus.core.errors import FormatError

_LINE_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+@=-]*(?:[ :][A-Za-z0-9_./+@=-]+)*")
_OTHER_MEANING = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})  # also in YAML 1.1
_ESCAPES = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}

Comment: TypeAlias = Callable[[KeyPath], str]
"""Returns what is said behind the line of a value; nothing for an empty text."""


def dump_yaml(data: object, comment: Comment | None = None) -> str:
    """Returns plain data (mappings with text as keys, lists, scalars) as YAML; reading it gives the data back.

    Args:
        data: What is written.
        comment: Says what stands behind each line, by the path of its value.

    Raises:
        FormatError: A value is nothing that YAML can hold as plain data.
    """
    lines = list(_lines(data, (), 0))
    if comment is None:
        return "".join(f"{text}\n" for text, _ in lines)
    said = [(text, comment(path).encode("unicode_escape").decode("ascii")) for text, path in lines]
    width = max(len(text) for text, _ in said)
    return "".join(f"{text.ljust(width)}  # {words}\n" if words else f"{text}\n" for text, words in said)


def _lines(data: object, path: KeyPath, indent: int) -> Iterator[tuple[str, KeyPath]]:
    """Yields each line with the path of the value that it shows."""
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
    """Returns what fits behind a key: scalars, and short lists of scalars; None for what needs lines of its own."""
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
    raise FormatError(f"{value!r} cannot be written as YAML: {type(value).__name__} is no plain data")


def _float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}.0e{power}" if exponent and "." not in mantissa else text  # YAML 1.1 needs the point


def _text(text: str) -> str:
    """Returns a text, quoted unless every YAML reader takes it for text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _OTHER_MEANING:
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if " " <= character <= "~":
        return character
    return f"\\U{ord(character):08x}"
