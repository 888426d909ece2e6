"""Strict JSON: what is written comes back equal, and what is read is bounded in size, depth and number of values."""

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from ludus.core.errors import FormatError
from ludus.core.files import JSON
from ludus.store.limits import Limits

_MAX_INTEGER_BITS = 4096  # Python refuses to read numbers of more than 4300 digits


def encode_document(document: JSON, limits: Limits) -> bytes:
    """Returns the bytes of a document that `decode_document` will take and give back equal.

    Raises:
        FormatError: A value is not JSON (NaN, a tuple, a key that is no string) or the document is too large.
    """
    check_document(document, limits)
    raw = json.dumps(document, indent=1, allow_nan=False).encode("ascii") + b"\n"
    _check_size(raw, limits)
    return raw


def decode_document(raw: bytes, limits: Limits) -> JSON:
    """Returns the document in `raw`.

    Raises:
        FormatError: It is not strict JSON, has a key twice, or is too large, too deep or too full.
    """
    _check_size(raw, limits)
    try:
        document: JSON = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise FormatError(f"JSON is nested deeper than {limits.document_depth}") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text at byte {error.start}") from None
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(f"not valid JSON: {error}") from None
    check_document(document, limits)
    return document


def check_document(document: JSON, limits: Limits) -> None:
    """Raises FormatError unless every value is plain, finite JSON within the limits; names where it is not."""
    values = 0
    path: list[object] = []
    # One iterator a level instead of recursion or a list of all values: memory grows with the depth alone.
    levels: list[Iterator[tuple[object, Any]]] = [iter([("document", document)])]
    while levels:
        item = next(levels[-1], None)
        if item is None:
            levels.pop()
            continue
        key, value = item
        path[len(levels) - 1 :] = [key]
        values += 1
        if values > limits.document_values:
            raise FormatError(f"more than {limits.document_values} values; keep large data in tensors")
        if len(levels) > limits.document_depth:
            raise FormatError(f"{_where(path)} is nested deeper than {limits.document_depth}")
        if type(value) is dict:
            if not all(isinstance(inner, str) for inner in value):
                raise FormatError(f"{_where(path)} has a key that is no string")
            levels.append(iter(value.items()))
        elif type(value) is list:
            levels.append(iter(enumerate(value)))
        else:
            _check_leaf(path, value)


def brief(value: object) -> str:
    """Returns the plain ASCII form of an untrusted value, cut to what fits into a message."""
    text = ascii(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _where(path: list[object]) -> str:
    return "/".join(brief(key).strip("'") for key in path[-6:])


def _check_leaf(path: list[object], value: object) -> None:
    if value is None or isinstance(value, bool | str):
        return
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise FormatError(f"{_where(path)} is a number of more than {_MAX_INTEGER_BITS} bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise FormatError(f"{_where(path)} is {value}; JSON has only finite numbers, use null")
    else:
        kind = type(value).__name__
        raise FormatError(f"{_where(path)} is a {kind}; valid: dict, list, str, int, float, bool, None")


def _check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.document_bytes:
        raise FormatError(f"{len(raw)} bytes of JSON; at most {limits.document_bytes} are allowed")
    # Every value but the first of its container follows a comma, every first one an opening bracket.
    values = raw.count(b",") + raw.count(b"[") + raw.count(b"{")
    if values > limits.document_values:
        raise FormatError(f"more than {limits.document_values} values; keep large data in tensors")


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise FormatError("a JSON mapping has the same key twice")
    return mapping


def _refuse_constant(name: str) -> NoReturn:
    raise FormatError(f"{name} is not a JSON number")
