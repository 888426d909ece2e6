"""What `ludus analyze` found out about a run's strategy encoder, if somebody asked: its map of latents, its probe."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ludus.reports.page.runs import Group

FILE = Path("analysis") / "analysis.json"
_MOST_BYTES = 64 << 20
_MOST_POINTS = 900

Point = tuple[float, float, int]


@dataclass(frozen=True, slots=True)
class Latents:
    """The strategy analysis of one run.

    Attributes:
        run: Its name.
        styles: Opponents.
        planes: For each kind of map, points: two coordinates and the number of the opponent's style.
        times_s: `(times,)` seconds that the agent has seen.
        accuracy: `(times,)` estimate, low and high of how well a probe tells the style from what was seen so far.
        chance: What guessing would give.
    """

    run: str
    styles: tuple[str, ...]
    planes: dict[str, tuple[Point, ...]]
    times_s: tuple[float, ...]
    accuracy: tuple[tuple[float, float, float], ...]
    chance: float | None


def read_latents(group: Group) -> Latents | None:
    """Returns the analysis of the first run of a group that has one; None if none has, or it cannot be used."""
    for run in group.runs:
        document = _read(run.folder / FILE)
        if document is not None:
            try:
                return _latents(run.name, document)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError):  # an older or a foreign file
                continue
    return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _latents(run: str, document: dict[str, Any]) -> Latents:
    styles = tuple(str(style) for style in document["styles"])
    maps = document["maps"]
    found = {
        "PCA of frames": _points(maps["frames"], maps["frame_labels"], len(styles)),
        "t-SNE of frames": _points(maps.get("neighbours") or (), maps["frame_labels"], len(styles)),
        "PCA of whole matches": _points(maps["matches"], maps["labels"], len(styles)),
    }
    rows = document["probes"]["trained"]["so_far"]
    pairs = [
        (float(time_s), _interval(row))
        for time_s, row in zip(document["times_s"], rows, strict=False)
        if row.get("estimate") is not None
    ]
    chance = document.get("chance")
    return Latents(
        run=run,
        styles=styles,
        planes={name: points for name, points in found.items() if points},
        times_s=tuple(time_s for time_s, _ in pairs),
        accuracy=tuple(interval for _, interval in pairs),
        chance=float(chance) if isinstance(chance, int | float) else None,
    )


def _interval(row: dict[str, Any]) -> tuple[float, float, float]:
    estimate = float(row["estimate"])
    low, high = (estimate if row.get(name) is None else float(row[name]) for name in ("low", "high"))
    return estimate, low, high


def _points(rows: Sequence[Sequence[float]], labels: Sequence[int], styles: int) -> tuple[Point, ...]:
    """Returns finite points with a valid label, evenly thinned."""
    found = [
        (float(row[0]), float(row[1]), int(label))
        for row, label in zip(rows, labels, strict=False)
        if 0 <= int(label) < styles and math.isfinite(row[0]) and math.isfinite(row[1])
    ]
    every = max(1, -(-len(found) // _MOST_POINTS))
    return tuple(found[::every])
