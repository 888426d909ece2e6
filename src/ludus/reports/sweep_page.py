"""The page of a sweep: one HTML file made from `results.json` alone."""

import time
from collections.abc import Mapping
from pathlib import Path

from ludus.core.errors import ConfigError
from ludus.core.files import JSON, MAX_DOCUMENT_BYTES, read_json_object, write_text_atomic
from ludus.reports.page.document import fill_page, read_asset, round_document

PAGE = "sweep.html"
_TEMPLATE, _STYLE = "page.html", "page.css"
# In the order in which they are read: each may use what those before it have.
_SCRIPTS = ("elements.js", "chart.js", "marks.js", "sections.js", "sweep.js")
_SHOWN = ("world", "state", "reason", "wall_s", "sweep", "keys", "trials", "ranking", "best", "front", "importance")
_NOT_SHOWN = ("points",)  # of a trial: the seeds' own evaluations, which are in the reports of its runs


def write_sweep_page(results: Path, page: Path | None = None) -> Path:
    """Write the page of a sweep and return its path.

    Args:
        results: File of `ludus sweep`, `results.json`.
        page: The HTML file; `sweep.html` beside the results if None.

    Raises:
        ConfigError: The file is of another version, or of something else.
        FormatError: It is not a JSON object.
        OSError: It cannot be read.
        StoreError: The page cannot be written.
    """
    document = read_json_object(results, limit=MAX_DOCUMENT_BYTES)
    missing = [name for name in _SHOWN if name not in document]
    if missing or not isinstance(document["trials"], list):
        raise ConfigError(
            f"{results} has no {', '.join(missing) or 'list of trials'}: it is not written by ludus sweep"
        )
    target = results.with_name(PAGE) if page is None else page
    write_text_atomic(target, make_sweep_page(document, results.resolve().parent.name))
    return target


def make_sweep_page(document: Mapping[str, JSON], name: str) -> str:
    """Return the whole HTML file of a sweep."""
    shown = {key: round_document(document.get(key)) for key in _SHOWN}
    trials = shown["trials"]
    shown["trials"] = [
        {key: value for key, value in trial.items() if key not in _NOT_SHOWN}
        for trial in (trials if isinstance(trials, list) else ())
        if isinstance(trial, dict)
    ]
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return fill_page(
        read_asset(_TEMPLATE),
        title=f"Ludus sweep: {name}",
        style=read_asset(_STYLE),
        scripts="\n".join(map(read_asset, _SCRIPTS)),
        document=shown | {"name": name, "made": made},
    )
