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


def real_game(file: str) -> str:
    """Returns how the cities of a real game end under every player, means with 95 % intervals."""
    players = read_json(file)["players"]
    rows = [
        [
            name,
            str(len(played["cities"])),
            *(shown_mean([city[key] for city in played["cities"]]) for key in _REAL_GAME),
        ]
        for name, played in players.items()
    ]
    return table(["player", "cities", *_REAL_GAME], rows)


_REAL_GAME = ("population", "funds")
_MODE_COLUMNS = ("population", "funds", "happiness", "bankrupt in %", "discovered", "new_menus")
_GOALS = {"population": 400.0, "happiness": 60.0, "funds": 3_000.0}  # of the preset `goal`


def modes(file: str = "city_modes.json") -> str:
    """Returns how the cities of every mode end, means with 95 % intervals over seeds, or cities where there is one."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for run in read_json(file)["runs"]:
        runs.setdefault(run["label"], []).append(run)
    rows: list[list[str]] = []
    for label, seeds in sorted(runs.items(), key=lambda item: -_mean(_samples(item[1], "population"))):
        people, *found = (shown_mean(_samples(seeds, name)) for name in _MODE_COLUMNS)
        each = ", ".join(f"{rounded(mean, 0):,}" for mean in _samples(seeds, "population")) if len(seeds) > 1 else ""
        goals = _mean([_reached(run["outcome"]) for run in seeds])
        spent = [1_000.0 * run["training_s"] / run["env_steps"] for run in seeds if run["env_steps"]]
        time = f"{rounded(_mean(spent), 1)}" if spent else ""
        rows.append([label, people, each, *found, f"{rounded(goals, 1)}", time])
    columns = ["population", "seeds", "funds", "happiness", "bankrupt in %", "elements", "menus", "goals of 3"]
    return table(["player", *columns, "ms per decision"], rows)


def _samples(runs: list[Mapping[str, Any]], column: str) -> list[float]:
    """Returns the means of several seeds, or the cities of one."""
    if len(runs) > 1:
        return [_mean(run["outcome"][column]) for run in runs]
    return list(runs[0]["outcome"][column])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _reached(outcome: Mapping[str, list[float]]) -> float:
    """Returns how many goals a city has reached at its end, in the mean."""
    return sum(_mean([float(value >= target) for value in outcome[name]]) for name, target in _GOALS.items())


def _outcome(outcome: Mapping[str, Any]) -> list[str]:
    return [shown_mean(outcome[column]) for column in _OUTCOMES]


def shown_mean(values: list[float]) -> str:
    """Returns the mean with half of its 95 % interval, in whole numbers."""
    interval = mean_interval(values)
    return _shown(interval.estimate, interval.high - interval.estimate)


def _shown(mean: float, half: float) -> str:
    return f"{rounded(mean, 0):,}" + (f" ± {rounded(half, 0):,}" if half >= 0.5 else "")
