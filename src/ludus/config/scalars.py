"""What a plain word of YAML stands for: null, true or false, a number, or text (YAML 1.2, with 1_000 for 1000)."""

import math
import re

from ludus.config.node import Scalar

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9](?:_?[0-9])*")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9](?:_?[0-9])*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NOT_A_NUMBER = frozenset({".nan", ".NaN", ".NAN"})
_LONGEST_NUMBER = 400  # digits; longer ones take Python long and mean nothing


def resolve_scalar(word: str) -> Scalar:
    """Returns what an unquoted word stands for.

    Dates stay text, because no setting is a date.

    Raises:
        ValueError: It is a number of absurd length.
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
