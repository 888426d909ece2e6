"""The page of a sweep: one HTML file made from `results.json` alone."""

from pathlib import Path

from ludus.core.errors import ConfigError
from ludus.core.files import MAX_DOCUMENT_BYTES, read_json_object
from ludus.reports.page.document import write_page

PAGE = "sweep.html"
_SHOWN = ("world", "state", "reason", "wall_s", "sweep", "keys", "trials", "ranking", "best", "front", "importance")
_NOT_SHOWN = ("points",)  # of a trial: the seeds' own evaluations, which are in the reports of its runs


def write_sweep_page(results: Path, page: Path | None = None) -> Path:
    """Write the page of a sweep and return its path.

    Args:
        results: File of `ludus sweep`, `results.json`.
        page: The HTML file; `sweep.html` beside the results if None.

    Raises:
        ConfigError: The file holds something else.
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
    name, target = results.resolve().parent.name, results.with_name(PAGE) if page is None else page
    trials = [
        {key: value for key, value in trial.items() if key not in _NOT_SHOWN}
        for trial in document["trials"]
        if isinstance(trial, dict)
    ]
    shown = {key: document[key] for key in _SHOWN} | {"trials": trials, "name": name}
    write_page(target, f"Ludus sweep: {name}", shown, "sweep.js")
    return target
