"""The parity table of rocket: golden values, ours and tolerances; of `benchmarks/rocket_parity.py`."""

from benchmarks.tables.markdown import read_json, table


def parity(part: str) -> str:
    """Returns the rows of one part, `Ball and contacts` or `Car`."""
    rows = [row for row in read_json("rocket_parity.json") if row["part"] == part]
    lines = [[row["name"], _number(row["golden"]), _number(row["ours"]), f"{row['tolerance']:.3g}"] for row in rows]
    return table(["what was measured", "golden", "ours", "tolerance"], lines)


def _number(value: float) -> str:
    """Five digits, without an exponent."""
    return f"{value:.5g}" if abs(value) < 99_999 else f"{value:.0f}"
