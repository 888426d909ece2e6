"""Which opponents share a curve or a line: a long run meets thousands of snapshots, and nobody reads as many lines."""

import re
from collections.abc import Iterable, Mapping

_NUMBERED = re.compile(r"(.*?)[-_:@# ]*\d+")  # snapshots differ in a number at the end
_FEW = 3  # members of a family that still have lines of their own


def group_opponents(names: Iterable[str], kinds: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns for each name the group it belongs to: itself, or `family (size)` of a family of many.

    Args:
        names: The opponents.
        kinds: What each of them is, where that is known. A bot stands for itself, other kinds are families; where it
            is not known, names that differ in a number at their end are.
    """
    kinds = kinds or {}
    families: dict[str, set[str]] = {}
    for name in names:
        families.setdefault(_family(name, kinds.get(name, "")), set()).add(name)
    return {
        name: f"{family} ({len(members)})" if family and len(members) > _FEW else name
        for family, members in families.items()
        for name in members
    }


def _family(name: str, kind: str) -> str:
    if kind:
        return "" if kind == "bot" else kind
    numbered = _NUMBERED.fullmatch(name)
    return "" if numbered is None else numbered.group(1) or "numbered"
