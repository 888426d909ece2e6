"""What a row of an evaluation or a curve of matches is called, where the same opponent is met in several modes."""

from collections.abc import Mapping
from typing import Any


def match_label(opponent: str, side: str = "", mode: str = "") -> str:
    """Returns a name that tells matches apart: the opponent, and before it the side and the mode where they matter.

    Args:
        opponent: Who was met.
        side: Sizes of the teams, the own one first, such as `2v1`; it matters where they are not alike.
        mode: Name of the mode; it goes without saying where it is just the sizes of the side.
    """
    sizes = side.split("v")
    parts = [side] if len(set(sizes)) > 1 else []
    if mode and not (parts and mode == "v".join(sorted(sizes))):
        parts.insert(0, mode)
    return " ".join([*parts, opponent]) if opponent else " ".join(parts)


def row_label(row: Mapping[str, Any]) -> str:
    """Returns what a row of an evaluation is of: its trial, or else its opponent, mode and side; may be empty."""
    if row.get("trial"):
        return str(row["trial"])
    return match_label(*(str(row.get(key) or "") for key in ("opponent", "side", "mode")))
