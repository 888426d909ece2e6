"""Reads small YAML files that anybody may have written: a hostile one is refused quickly and with a plain word."""

import reprlib
from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML

from ludus.core.errors import ConfigError

MAX_NESTING = 40  # brackets within brackets; the parser takes seconds to give up on thousands of them
MAX_FAULTS = 30  # faults that are listed

_bounded = reprlib.Repr()
_bounded.maxlevel = 3
_bounded.maxlist = _bounded.maxdict = _bounded.maxtuple = _bounded.maxset = 4
_bounded.maxstring = _bounded.maxother = 60


def read_yaml(file: Path, what: str, max_bytes: int) -> object:
    """Returns what is written in a YAML file; `what` names it in errors.

    Raises:
        ConfigError: It is not a file, too large, or not YAML.
    """
    if not file.is_file():  # a device or a pipe could be read for ever
        raise ConfigError(f"{what} {str(file)!r} cannot be read: there is no such file")
    try:
        with file.open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise ConfigError(f"{what} {file} cannot be read: {error.strerror}") from error
    if len(content) > max_bytes:
        raise ConfigError(f"{what} {file} is larger than {max_bytes} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {file} is not valid YAML: {error}") from error
    if _nesting(text) > MAX_NESTING:
        raise ConfigError(f"{what} {file} is not valid YAML: brackets are nested deeper than {MAX_NESTING}")
    try:
        return YAML(typ="safe", pure=True).load(text)
    except Exception as error:  # besides its own errors the parser raises KeyError, ValueError, RecursionError ...
        raise ConfigError(f"{what} {file} is not valid YAML: {error}") from error


def list_faults(error: ValidationError) -> str:
    """Returns the faults of a document, one a line; of values only as much as fits.

    A plain repr of the values would do: but a few hundred bytes of YAML with aliases can stand for a list of
    billions, whose repr never ends.
    """
    faults = error.errors(include_url=False, include_context=False)
    lines = [f"  {_place(fault['loc'])}: {fault['msg']} (got {short(fault['input'])})" for fault in faults[:MAX_FAULTS]]
    if len(faults) > MAX_FAULTS:
        lines.append(f"  and {len(faults) - MAX_FAULTS} more")
    return f"{len(faults)} fault(s):\n" + "\n".join(lines)


def short(value: object) -> str:
    """Returns a bounded repr."""
    text = _bounded.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(location: tuple[object, ...]) -> str:
    return ".".join(part if isinstance(part, str) and len(part) <= 60 else short(part) for part in location) or "table"


def _nesting(text: str) -> int:
    """Returns how deep brackets are nested at most, also those within quotes."""
    depth = deepest = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}" and depth:
            depth -= 1
    return deepest
