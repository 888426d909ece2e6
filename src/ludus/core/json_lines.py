"""Reads files of JSON objects, one a line, as they are while somebody writes them."""

import json
from pathlib import Path
from typing import Any


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the objects of a file; lines that are none are left out, and a file that is not there has none."""
    if not path.is_file():
        return []
    records = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                records.append(record)
    return records
