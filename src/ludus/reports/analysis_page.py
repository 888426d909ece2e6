"""The page of a strategy analysis: one HTML file made from `analysis.json` alone."""

from pathlib import Path

from ludus.core.errors import ConfigError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object
from ludus.reports.page.document import write_page

PAGE = "analysis.html"
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
        ConfigError: The file holds something else.
        FormatError: It is not a JSON object.
        OSError: It cannot be read.
        StoreError: The page cannot be written.
    """
    document = read_json_object(analysis, limit=MAX_DOCUMENT_BYTES)
    missing = [name for name in _NEEDED if name not in document]
    if missing:
        raise ConfigError(f"{analysis} has no {', '.join(missing)}: it is not written by ludus analyze")
    title, shown = f"Ludus analysis: {document.get('agent') or 'agent'}", {name: document.get(name) for name in _SHOWN}
    write_page(page, title, shown, "beliefs.js", "analysis.js", style="analysis.css")
    return page
