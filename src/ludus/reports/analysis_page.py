"""The page of a strategy analysis: one HTML file made from `analysis.json` alone."""

import time
from collections.abc import Mapping
from pathlib import Path

from ludus.core.errors import ConfigError
from ludus.core.files import JSON, MAX_DOCUMENT_BYTES, read_json_object, write_text_atomic
from ludus.reports.page.document import fill_page, read_asset, round_document

PAGE = "analysis.html"
_TEMPLATE = "page.html"
_STYLES = ("page.css", "analysis.css")
# In the order in which they are read: each may use what those before it have.
_SCRIPTS = ("elements.js", "chart.js", "marks.js", "sections.js", "beliefs.js", "analysis.js")
_NEEDED = ("verdict", "belief", "behaviour", "styles", "times_s", "probes")
# What the page shows; the map of matches and much else in the file are for other readers.
_SHOWN = (
    "agent", "world", "features", "styles", "matches", "times_s", "chance", "probes", "drift", "ablation", "belief",
    "switching", "behaviour", "sets", "verdict", "notes", "seconds", "seed", "device",
)  # fmt: skip


def write_analysis_page(analysis: Path, page: Path) -> Path:
    """Write the page of an analysis and return its path.

    Args:
        analysis: File of `ludus analyze`, `analysis.json`.
        page: The HTML file.

    Raises:
        ConfigError: The file is one of an older version, or of something else.
        FormatError: It is not a JSON object.
        OSError: It cannot be read.
        StoreError: The page cannot be written.
    """
    document = read_json_object(analysis, limit=MAX_DOCUMENT_BYTES)
    missing = [name for name in _NEEDED if name not in document]
    if missing:
        raise ConfigError(
            f"{analysis} has no {', '.join(missing)}: it is not of this version of ludus analyze; write it again"
        )
    write_text_atomic(page, make_analysis_page(document))
    return page


def make_analysis_page(document: Mapping[str, JSON]) -> str:
    """Return the whole HTML file of an analysis."""
    shown = {name: round_document(document.get(name)) for name in _SHOWN}
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return fill_page(
        read_asset(_TEMPLATE),
        title=f"Ludus analysis: {document.get('agent') or 'agent'}",
        style="".join(map(read_asset, _STYLES)),
        scripts="\n".join(map(read_asset, _SCRIPTS)),
        document=shown | {"made": made},
    )
