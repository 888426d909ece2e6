"""The table about real games on their screens."""

from benchmarks.tables.markdown import read_json, table

_WHOLE_FROM = 100.0


def screens() -> str:
    """Returns how fast real games are seen, touched, begun and recovered."""
    rows = read_json("city_screens.json")["rows"]
    return table(["measured", "", ""], [[row["what"], _shown(row["value"]), row["unit"]] for row in rows])


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.3g}"
