"""Rocket beside RocketSim: golden values (`benchmarks/rocket_parity.py`) and random states (`rocket_oracle.py`)."""

from collections.abc import Sequence

import numpy as np
from benchmarks.tables.markdown import read_json, table


def parity(part: str) -> str:
    """Returns the rows of one part, `Ball and contacts` or `Car`."""
    rows = [row for row in read_json("rocket_parity.json") if row["part"] == part]
    lines = [[row["name"], _number(row["golden"]), _number(row["ours"]), f"{row['tolerance']:.3g}"] for row in rows]
    return table(["what was measured", "golden", "ours", "tolerance"], lines)


def random_states() -> str:
    """Return the errors over random states: median, 90 % and maximum per category."""
    header = ["random states", "scenes", "place after 0.5 s, uu", "place after 1 s, uu", "spin after 1 s, rad/s"]
    rows = read_json("rocket_oracle.json")["scenes"]
    errors = ("place_half_s", "place_1s", "spin_1s")
    lines = [
        [row["category"], str(len(row["place_1s"])), *(_spread(row[name], (50, 90, 100)) for name in errors)]
        for row in rows
    ]
    return table(header, lines)


def facets() -> str:
    """Return what one bounce off an arc differs by, with meshes of different fineness: median and 90 %."""
    header = [
        "one bounce off",
        "facets per quarter circle",
        "RocketSim's normal off ours, degrees",
        "velocity, uu/s",
        "left with RocketSim's normal",
        "spin, rad/s",
        "left with RocketSim's normal",
    ]
    errors = ("angle", "velocity", "velocity_left", "spin", "spin_left")
    rows = read_json("rocket_oracle.json")["bounces"]
    lines = [[row["surface"], str(row["facets"]), *(_spread(row[name], (50, 90)) for name in errors)] for row in rows]
    return table(header, lines)


def _spread(errors: Sequence[float], percentiles: Sequence[float]) -> str:
    """Percentiles of errors, of two digits."""
    found = np.percentile(errors, percentiles).tolist()
    return " / ".join("<0.001" if value < 0.001 else f"{value:{'.0f' if value >= 10.0 else '.2g'}}" for value in found)


def _number(value: float) -> str:
    """Five digits, without an exponent."""
    return f"{value:.5g}" if abs(value) < 99_999 else f"{value:.0f}"
