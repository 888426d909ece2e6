"""Text for people: safe to show whatever its source, labels of matches, and the user's line behind an error.

A name or a text of a file is shown by one of four functions: `plain_text` escapes what a terminal would obey, and
`short_text` cuts it to a line besides; `markdown_text` and `markdown_code` put it into a document, `page_text` onto a
page, whose scripts make it a text node.
"""

import re
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_STANDARD = sysconfig.get_path("stdlib")
_INSTALLED = {"site-packages", "dist-packages", "gymnasium"}  # Gymnasium's wrappers, wherever they are installed
_MOST_LETTERS = 500  # of an exception's message
LONGEST_NAME = 200  # letters of a name or a text from a file
# What could begin markup, HTML or a link; an underscore within a word cannot.
_MARKUP = re.compile(r"[\\`*\[\]|~#]|://|(?<=www)\.|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_IN_CODE = str.maketrans({"`": "'", "|": "/", "<": "(", ">": ")"})  # no HTML, even if something ends the code early
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def plain_text(text: str) -> str:
    """Return printable ASCII lines; everything else is escaped, so that no terminal obeys it.

    Line feeds are kept, tabs become four spaces, and the escape character becomes four characters that show its code.
    """
    ascii_text = text.replace("\t", "    ").encode("ascii", "backslashreplace").decode("ascii")
    return "".join(
        letter if letter.isprintable() or letter == "\n" else f"\\x{ord(letter):02x}" for letter in ascii_text
    )


def short_text(text: str, limit: int = LONGEST_NAME) -> str:
    """Return one line of at most `limit` printable ASCII letters; what is longer ends in `...`."""
    line = " ".join(plain_text(text[: limit + 1]).split())
    return line if len(text) <= limit and len(line) <= limit else f"{line[: limit - 3]}..."


def markdown_text(text: str, limit: int = LONGEST_NAME) -> str:
    """Return a line that Markdown shows as it is, also in a table: neither markup nor HTML nor a link."""
    marked = _MARKUP.sub(lambda found: f"\\{found[0]}", short_text(text, limit))
    return marked.translate(_ENTITIES)


def markdown_code(text: str, limit: int = LONGEST_NAME) -> str:
    """Return a line as code in Markdown, where nothing can be escaped: what could end it or a cell is replaced."""
    return f"`{short_text(text, limit).translate(_IN_CODE)}`"


def page_text(text: str, limit: int = LONGEST_NAME) -> str:
    """Return at most `limit` letters of any script, for a page: what does not print or turns the order is escaped."""
    cut = text if len(text) <= limit else f"{text[: limit - 3]}..."
    if cut.isprintable():
        return cut
    return "".join(
        letter if letter.isprintable() or letter.isspace() else letter.encode("unicode_escape").decode("ascii")
        for letter in cut
    )


def match_label(opponent: str, side: str = "", mode: str = "") -> str:
    """Return a name that tells matches apart: the opponent, and before it the side and the mode where they matter.

    The side (`2v1`, the own team first) matters where the sizes are not alike, the mode where it is not just the sizes.
    """
    sizes = side.split("v")
    parts = [side] if len(set(sizes)) > 1 else []
    if mode and not (parts and mode == "v".join(sorted(sizes))):
        parts.insert(0, mode)
    return " ".join([*parts, opponent]) if opponent else " ".join(parts)


def row_label(row: Mapping[str, Any]) -> str:
    """Return what a row of an evaluation is of: its scenario, or else its opponent, mode and side; may be empty."""
    if row.get("trial"):
        return str(row["trial"])
    return match_label(*(str(row.get(key) or "") for key in ("opponent", "side", "mode")))


_PACKAGE = str(Path(__file__).parents[1])


def blame(error: BaseException) -> str:
    """Return `ValueError: no such level (myenv.py:12)` as printable text; the place only if it is known."""
    message, place = str(error).strip(), user_place(error)
    short = message if len(message) <= _MOST_LETTERS else f"{message[:_MOST_LETTERS]} ..."
    return plain_text(type(error).__name__ + (f": {short}" if short else "") + (f" ({place})" if place else ""))


def user_place(error: BaseException) -> str:
    """Return file and line of the innermost frame of the user's own code, or else of an installed environment.

    Empty if the exception passed through neither: then Ludus or Gymnasium raised it about a value.
    """
    if isinstance(error, SyntaxError) and error.filename:  # the code that it is in has not run
        return f"{error.filename}:{error.lineno}"
    frames = [
        (Path(frame.filename), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_PACKAGE, "<"))
    ]
    own = [frame for frame in frames if not _is_library(frame[0])]
    chosen = own or [frame for frame in frames if "gymnasium" not in frame[0].parts]
    return "{}:{}".format(*chosen[-1]) if chosen else ""


def is_own_file(file: str) -> bool:
    """Return whether a Python file is the user's: neither of this package nor of an installed one."""
    return not file.startswith(_PACKAGE) and not _is_library(Path(file))


def _is_library(file: Path) -> bool:
    return not _INSTALLED.isdisjoint(file.parts) or str(file).startswith(_STANDARD)
