"""Small helpers for Markdown."""

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; pipes and line breaks in cells are escaped."""
    lines = [header, ["---"] * len(header), *([cell(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(text: str) -> str:
    """Return text that fits into a cell of a table."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def code(text: str) -> str:
    """Return text as inline code; nothing for nothing."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Return running text without the line breaks of a docstring."""
    return re.sub(r"\s+", " ", text).strip()
