"""The table of the search for a faster recipe of brawl's preset `quick`."""

from collections.abc import Iterator
from typing import Any

from benchmarks.tables.markdown import read_json, rounded, table

_FILE = "quick_recipe.json"
_SCORES = (0.5, 0.6, 0.7, 0.8, 0.9)
_MILLION = 1e6


def changes(file: str = _FILE, *, short: bool = True) -> str:
    """Returns, for each change, its CPU time and the win rates of its seeds at the end of short or other runs."""
    lines = []
    for label, runs in _by_variant(file, short=short):
        ends = [run["points"][-1] for run in runs]
        each = sum(end["cpu_s"] / end["env_steps"] for end in ends) / len(ends)
        rates = [end["win_rate"] for end in ends]
        lines.append(
            [
                label,
                f"{ends[0]['env_steps'] / _MILLION:.1f} M",
                f"{rounded(each * _MILLION, 1)}",
                f"{rounded(sum(end['cpu_s'] for end in ends) / len(ends), 0)}",
                ", ".join(f"{rounded(100.0 * rate, 1)}%" for rate in rates),
            ]
        )
    header = ["change", "env steps", "CPU s per M env steps", "CPU s", "all bots at the end, by seed"]
    return table(header, lines)


def curves() -> str:
    """Returns when runs of the whole budget reach a win rate: env steps and CPU seconds, on a line between points."""
    lines = []
    for label, runs in _by_variant(_FILE, short=False):
        for run in runs:
            cells = [_reached(run["points"], score) for score in _SCORES]
            end = run["points"][-1]
            last = f"{rounded(100.0 * end['win_rate'], 1)}% ({end['env_steps'] / _MILLION:.1f} M, {end['cpu_s']:.0f} s)"
            lines.append([label, str(run["seed"]), *cells, last])
    header = ["recipe", "seed", *(f"{score:.0%}" for score in _SCORES), "end"]
    return table(header, lines)


def _by_variant(file: str, *, short: bool) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    document = read_json(file)
    chosen = [run for run in document["runs"] if (run["env_steps"] == document["short_env_steps"]) == short]
    for name in dict.fromkeys(run["variant"] for run in chosen):
        runs = [run for run in chosen if run["variant"] == name]
        yield runs[0]["label"], sorted(runs, key=lambda run: int(run["seed"]))


def _reached(points: list[dict[str, Any]], score: float) -> str:
    """Returns env steps and CPU seconds at which a curve first reaches a score; it starts at 0."""
    before = {"env_steps": 0, "cpu_s": 0.0, "win_rate": 0.0}
    for point in points:
        if point["win_rate"] >= score:
            share = (score - before["win_rate"]) / (point["win_rate"] - before["win_rate"])
            steps, seconds = (before[axis] + share * (point[axis] - before[axis]) for axis in ("env_steps", "cpu_s"))
            return f"{steps / _MILLION:.1f} M, {seconds:.0f} s"
        before = point
    return "-"
