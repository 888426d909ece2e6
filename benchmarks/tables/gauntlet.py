"""Tables of the population of brawl's gauntlet, from `benchmarks/gauntlet.py`."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.tables.markdown import read_json, table
from benchmarks.tables.strategy import spread

_KINDS = {"blind": "sees the opponent alone", "oracle": "is told who the opponent is"}


def ceiling() -> str:
    """Returns how much agents with and without the opponent's identity win, over seeds with Student's intervals."""
    data = read_json("gauntlet.json")
    lines = []
    for kind, words in _KINDS.items():
        runs = [run for name, run in data["results"].items() if name.startswith(f"ceiling-{kind}-")]
        means = [_means(run["wins"], data["seen"]) for run in runs]
        shown = [spread([mean[place] for mean in means]) for place in (0, 1)]
        seeds = ", ".join(f"{100 * mean[0]:.1f}" for mean in means)
        lines.append([words, str(len(runs)), f"{runs[0]['env_steps'] / 1e6:.0f} M", *shown, seeds])
    return table(["agent", "seeds", "env steps", "seen members", "unseen members", "seen members, by seed"], lines)


def members() -> str:
    """Returns for each member how it fares, and how its best response and those to others fare against it."""
    data = read_json("gauntlet.json")
    results, seen = data["results"], data["seen"]
    lines = []
    for name in results["table-allround-0-0"]["wins"]:
        own = results[f"table-{name}-0"]["wins"]
        answers = {
            key.removeprefix("table-response-").removesuffix("-0"): run["wins"][name]
            for key, run in results.items()
            if key.startswith("table-response-")
        }
        others = [rate for key, rate in answers.items() if key != name]
        best = f"{100 * answers[name]:.0f}" if name in answers else ""
        family = name.rpartition("-")[0]
        against = _mean(rate for key, rate in own.items() if key != name)
        lines.append(
            [family, "yes" if seen[family] else "no", f"{100 * against:.0f}", best, f"{100 * _mean(others):.0f}"]
        )
    titles = ["family", "seen", "wins against the others", "its best response wins", "best responses to others win"]
    return table(titles, lines)


def _means(wins: dict[str, float], seen: dict[str, bool]) -> tuple[float, float]:
    """Returns the mean win rates against seen and against unseen members."""
    rates = [[rate for name, rate in wins.items() if seen[name.rpartition("-")[0]] is kind] for kind in (True, False)]
    return _mean(rates[0]), _mean(rates[1])


def _mean(values: Iterable[Any]) -> float:
    return statistics.fmean(values)
