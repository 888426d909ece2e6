"""Values in error messages: short whatever the value is, and without addresses that could hold a secret."""

import re
import reprlib
from collections.abc import Iterable

from pydantic import ValidationError

from ludus.config.node import KeyPath, show_path
from ludus.core.errors import nearest_name

MAX_FAULTS = 30  # faults of a data file that are listed
_LONGEST = 60
_ADDRESS = re.compile(r"(\w+://)[^\s'\"]+")

_bounded = reprlib.Repr()
_bounded.maxlevel = 3
_bounded.maxlist = _bounded.maxdict = _bounded.maxtuple = _bounded.maxset = 4
_bounded.maxstring = _bounded.maxother = _LONGEST


def short(value: object) -> str:
    """Returns a bounded repr; of an address only its scheme, since a webhook's address is a secret."""
    return cut(mask(_bounded.repr(value)), _LONGEST)


def mask(text: str) -> str:
    """Returns a text with all but the scheme of each address left out."""
    return _ADDRESS.sub(r"\1...", text)


def cut(text: str, longest: int) -> str:
    """Returns a text, or its beginning if it is longer than `longest`."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def suggest(name: str, valid: Iterable[str]) -> str:
    """Returns the nearest valid name and all of them: `did you mean 'steps'? valid: steps, epochs`."""
    names = tuple(valid)
    near = nearest_name(name, names)
    listed = f"valid: {', '.join(names) or 'none'}"
    return f"did you mean {near!r}? {listed}" if near is not None else listed


def list_faults(error: ValidationError) -> str:
    """Returns the faults of a data file whose places are not known, one a line."""
    faults = error.errors(include_url=False, include_context=False)
    lines = [f"  {_place(fault['loc'])}: {fault['msg']} (got {short(fault['input'])})" for fault in faults[:MAX_FAULTS]]
    if len(faults) > MAX_FAULTS:
        lines.append(f"  and {len(faults) - MAX_FAULTS} more")
    return f"{len(faults)} fault(s):\n" + "\n".join(lines)


def _place(location: KeyPath) -> str:
    return show_path(location) if location else "table"
