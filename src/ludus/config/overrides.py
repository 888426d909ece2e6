"""Overrides from the command line: `ppo.steps=128`, a path of keys and a value in YAML."""

import re
from collections.abc import Sequence
from dataclasses import replace

from ludus.config.node import Node, Origin, show_path, single
from ludus.config.reader import MAX_NESTING, Document, parse_document
from ludus.config.shown import cut, mask, short
from ludus.core.faults import ConfigFault

_PART = re.compile(r'"([^"]*)"|([^".=]+)')
_LONGEST_SHOWN = 80
_EXAMPLE = "write key.path=value, such as ppo.steps=128"


def read_overrides(words: Sequence[str]) -> list[Document]:
    """Returns a layer for each `key.path=value`, in their order.

    A key with dots or equals signs of its own is quoted: `opponents."based:delay=8"=0.5`.
    """
    return [_read_override(word) for word in words]


def _read_override(word: str) -> Document:
    origin = Origin(f"command line: {_shown(word)}")
    path, value = _split(word)
    if not path:
        return _refused(origin, word, f"should be a key, an equals sign and a value; {_EXAMPLE}")
    if len(path) > MAX_NESTING:
        return _refused(origin, word, f"is a path of more than {MAX_NESTING} keys")
    document = parse_document(value, origin.source, on_command_line=True)
    faults = tuple(replace(fault, key=show_path(tuple(path))) for fault in document.faults)
    return Document(single(path, document.root), faults, document.readable)


def _split(word: str) -> tuple[list[str], str]:
    """Returns the keys and the value of an override; no keys if it is none."""
    keys: list[str] = []
    place = 0
    while part := _PART.match(word, place):
        keys.append(part.group(1) if part.group(2) is None else part.group(2).strip())
        place = part.end()
        if word[place : place + 1] == "=":
            return keys, word[place + 1 :]
        if word[place : place + 1] != ".":
            break
        place += 1
    return [], ""


def _refused(origin: Origin, word: str, expectation: str) -> Document:
    fault = ConfigFault(str(origin), short(word), expectation)
    return Document(Node({}, origin, origin), (fault,), readable=False)


def _shown(word: str) -> str:
    return cut(mask(word.encode("unicode_escape").decode("ascii")), _LONGEST_SHOWN)
