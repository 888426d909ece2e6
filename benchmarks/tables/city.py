"""The tables about City's game and about the agents that play it."""

from collections.abc import Mapping
from typing import Any

from benchmarks.tables.markdown import read_csv, read_json, rounded, table

from ludus.core.intervals import mean_interval

_STRATEGY_COLUMNS = ("population", "funds", "happiness", "traffic", "pollution", "bankrupt in %")
_OUTCOMES = ("population", "funds", "happiness", "bankrupt in %")


def strategies() -> str:
    """Returns how scripted strategies fare, means with 95 % intervals over the cities."""
    measured: dict[str, dict[str, str]] = {}
    for row in read_csv("city_strategies.csv"):
        mean, high = float(row["mean"]), float(row["high"])
        measured.setdefault(row["strategy"], {})[row["measure"]] = _shown(mean, high - mean)
    rows = [[name, *(mine[column] for column in _STRATEGY_COLUMNS)] for name, mine in measured.items()]
    return table(["strategy", *_STRATEGY_COLUMNS], rows)


def quick() -> str:
    """Returns how the cities of agents and of scripted players end, means with 95 % intervals."""
    document = read_json("city_quick.json")
    rows = [[f"agent, seed {agent['seed']}", *_outcome(agent["outcome"])] for agent in document["agents"]]
    for row, agent in zip(rows, document["agents"], strict=True):
        row.append(f"{rounded(agent['training_s'], 0):,}")
    means = [
        [sum(agent["outcome"][column]) / len(agent["outcome"][column]) for agent in document["agents"]]
        for column in _OUTCOMES
    ]
    rows.append([f"{len(document['agents'])} agents, over seeds", *map(shown_mean, means), ""])
    rows += [[name, *_outcome(outcome), ""] for name, outcome in document["bots"].items()]
    return table(["player", *_OUTCOMES, "training in s"], rows)


def _outcome(outcome: Mapping[str, Any]) -> list[str]:
    return [shown_mean(outcome[column]) for column in _OUTCOMES]


def shown_mean(values: list[float]) -> str:
    """Returns the mean with half of its 95 % interval, in whole numbers."""
    interval = mean_interval(values)
    return _shown(interval.estimate, interval.high - interval.estimate)


def _shown(mean: float, half: float) -> str:
    return f"{rounded(mean, 0):,}" + (f" ± {rounded(half, 0):,}" if half >= 0.5 else "")
