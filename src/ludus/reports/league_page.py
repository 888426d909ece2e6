"""The page of a league: one HTML file made from `state.json` and `payoffs.jsonl` alone."""

from pathlib import Path
from typing import Any

from ludus.core.errors import ConfigError, brief
from ludus.core.files import JSON, MAX_DOCUMENT_BYTES, read_json_lines, read_json_object
from ludus.reports.page.document import write_page

PAGE = "league.html"
STATE, PAYOFFS = "state.json", "payoffs.jsonl"
_SHOWN = ("world", "state", "reason", "wall_s", "evaluators", "matches", "total_env_steps", "learners", "members")
_MOST_COLUMNS = 40  # of the table of payoffs: the best members


_LEARNER = {
    "name": str, "state": str, "generation": int, "env_steps": int, "earlier_env_steps": int, "replaced": int,
    "reason": str,
}  # fmt: skip
_MEMBER = {"name": str, "env_steps": int, "rating": int | float}


def read_league_state(folder: Path) -> dict[str, Any]:
    """Return the content of a league's `state.json`.

    Raises:
        ConfigError: The folder holds no league.
        FormatError: The file is damaged.
    """
    if not (folder / STATE).is_file():
        raise ConfigError(f"{folder} holds no league: it has no {STATE}; start one with: ludus league start brawl")
    document = read_json_object(folder / STATE, limit=MAX_DOCUMENT_BYTES)
    missing = [name for name in _SHOWN if name not in document]
    lists = [document.get(name) for name in ("learners", "members")]
    if missing or not all(isinstance(each, list) for each in lists) or type(document["matches"]) is not int:
        raise ConfigError(f"{folder / STATE} has no {', '.join(missing) or 'lists'}: it is not written by ludus league")
    listed = [(_LEARNER, each) for each in document["learners"]] + [(_MEMBER, each) for each in document["members"]]
    for kinds, each in listed:
        if not isinstance(each, dict) or not all(isinstance(each.get(key), kind) for key, kind in kinds.items()):
            raise ConfigError(f"{folder / STATE} lists {brief(each)}: it is not written by ludus league")
    return document


def write_league_page(folder: Path, page: Path | None = None) -> Path:
    """Write the page of a league and return its path.

    Args:
        folder: League folder.
        page: The HTML file; `league.html` in the folder if None.

    Raises:
        ConfigError: The folder holds no league.
        FormatError: A file is damaged.
        StoreError: The page cannot be written.
    """
    document = read_league_state(folder)
    target = folder / PAGE if page is None else page
    name, payoffs = folder.resolve().name, _payoffs(folder, document["members"])
    shown = {key: document[key] for key in _SHOWN} | {"payoffs": payoffs, "name": name}
    write_page(target, f"Ludus league: {name}", shown, "league.js")
    return target


def _payoffs(folder: Path, members: list[dict[str, Any]]) -> JSON:
    """Return names of the best members and `[wins, draws, losses]` of the row against the column; None if not met."""
    best = sorted(members, key=lambda member: -float(member.get("rating", 0.0)))[:_MOST_COLUMNS]
    names = [str(member.get("name")) for member in best]
    place = {name: index for index, name in enumerate(names)}
    cells: list[list[list[int] | None]] = [[None] * len(names) for _ in names]
    known: set[str] = set()
    for line in read_json_lines(folder / PAYOFFS):
        if str(line.get("id")) in known or not isinstance(line.get("matches"), list):
            continue
        known.add(str(line.get("id")))
        for row in filter(_is_row, line["matches"]):
            first, second = (place.get(str(name)) for name in row[:2])
            if first is not None and second is not None:
                wins, draws, losses = row[2:]
                for one, two, counts in (
                    (first, second, (wins, draws, losses)),
                    (second, first, (losses, draws, wins)),
                ):
                    before = cells[one][two] or [0, 0, 0]
                    cells[one][two] = [old + new for old, new in zip(before, counts, strict=True)]
    table: JSON = [[None if cell is None else list(cell) for cell in row] for row in cells]
    return {"names": list(names), "table": table}


def _is_row(row: object) -> bool:
    """Return whether a row has two names, and wins, draws and losses."""
    return isinstance(row, list) and len(row) == 5 and all(type(each) is int for each in row[2:])
