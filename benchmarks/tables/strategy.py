"""Tables of the comparison of agents with and without strategy encoder, from `benchmarks/strategy_results.py`."""

from collections.abc import Sequence
from typing import Any

from benchmarks.tables.markdown import percent, read_json, table

from ludus.core.intervals import mean_interval

AGENTS = {
    "full": "encoder and LSTM",
    "predicting": "predicting encoder and LSTM",
    "recognising": "recognising encoder and LSTM",
    "lstm": "LSTM",
    "mlp": "MLP",
}
GROUPS = ("styles", "switcher", "delay", "noise", "seeing late", "seeing noise")
BUDGETS = ("samples", "time")
KINDS = ("trained", "untrained", "observation")  # features: the agent's, those of fresh networks, what it sees
CONDITIONS = ("as is", "zeroed", "shuffled")  # what an ablation does with the latent
_CHANGED = CONDITIONS[1:]
_EVERY = 2_500_000  # env steps between the columns of the curves, which an evaluation follows within an iteration
_END = 1 << 30  # the last column


def compared() -> str:
    """Returns win rates by group of opponents: means over seeds with Student's intervals."""
    lines = []
    for budget, variant, runs in _by_agent():
        if not any(run["means"] for run in runs):
            continue
        seconds = sum(run["training_s"] for run in runs) / len(runs)
        numbers = [str(len(runs)), _millions(runs[0]["env_steps"]), f"{seconds:.0f}"]
        groups = [spread([run["means"][name] for run in runs if name in run["means"]]) for name in GROUPS]
        lines.append([budget, AGENTS[variant], *numbers, *groups])
    return table(["equal", "agent", "seeds", "env steps", "training, s", *GROUPS], lines)


def curves() -> str:
    """Returns the mean win rate over all bots by env steps, every seed."""
    found = [part for part in _by_agent() if part[:2] != ("time", "full")]  # the same runs as with equal samples
    names, points = [], []
    for _, variant, runs in found:
        for run in runs:
            *before, end = [(point["env_steps"], percent(_mean(point["win_rates"]))) for point in run["curve"]]
            names.append(f"{AGENTS[variant]}, {_millions(run['env_steps'])}, seed {run['seed']}")
            points.append({round(env_steps / _EVERY): mean for env_steps, mean in before} | {_END: end[1]})
    columns = sorted({column for row in points for column in row})
    titles = ["at the end" if column == _END else f"{column * _EVERY / 1e6:g} M" for column in columns]
    lines = [[name, *(row.get(column, "") for column in columns)] for name, row in zip(names, points, strict=True)]
    return table(["agent, env steps in all", *titles], lines)


def probes() -> str:
    """Returns how often a linear probe names the style of the opponent: by one frame, and by all of a match's first."""
    lines = []
    for budget, variant, runs in _by_agent():
        analyses = [run["analysis"] for run in runs if run["analysis"] is not None]
        if not analyses or (budget, variant) == ("time", "full"):
            continue
        shares = [
            spread([analysis["probes"][kind][part]["estimate"] for analysis in analyses])
            for part in ("frames", "matches")
            for kind in KINDS
        ]
        features = f"{analyses[0]['features']} of {AGENTS[variant]}, {_millions(runs[0]['env_steps'])}"
        lines.append([features, str(len(analyses)), str(analyses[0]["matches"]), *shares])
    titles = [f"{what}, {kind}" for what in ("one frame", "a match") for kind in KINDS]
    return table(["features", "seeds", "matches per style", *titles], lines)


def ablation() -> str:
    """Returns win rates with the latent as it is, zeroed and shuffled, and what is lost without it.

    Every opponent counts alike. Intervals of one seed are those of its matches, the last row's are over seeds.
    """
    lines = []
    for budget, variant, runs in _by_agent():
        found = [run for run in runs if run["analysis"] is not None and run["analysis"]["ablation"] is not None]
        if not found or (budget, variant) == ("time", "full"):
            continue
        means = [run["analysis"]["ablation"]["mean"] for run in found]
        for run, mean in zip(found, means, strict=True):
            losses = [mean["losses"][name] for name in _CHANGED]
            bounds = [_points(loss["estimate"], loss["low"], loss["high"]) for loss in losses]
            lines.append([f"{AGENTS[variant]}, seed {run['seed']}", *_scores([mean]), *bounds])
        if len(found) > 1:
            bounds = [
                _points(*mean_interval([mean["losses"][name]["estimate"] for mean in means])) for name in _CHANGED
            ]
            lines.append([f"{AGENTS[variant]}, over seeds", *_scores(means), *bounds])
    return table(["agent", *CONDITIONS, *(f"lost if {name}" for name in _CHANGED)], lines)


def _scores(means: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the win rate under every condition, the mean over some runs."""
    rates = [[mean["scores"][name]["estimate"] for mean in means] for name in CONDITIONS]
    return [f"{100 * sum(found) / len(found):.1f}" for found in rates]


def _points(estimate: float, low: float, high: float) -> str:
    """Returns a difference in points with its interval."""
    return f"{100 * estimate:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _by_agent() -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Returns budget, variant and runs of every agent that was trained."""
    found = read_json("strategy_results.json")["runs"]
    parts = [
        (budget, variant, [run for run in found if (run["budget"], run["variant"]) == (budget, variant)])
        for budget in BUDGETS
        for variant in AGENTS
    ]
    return [part for part in parts if part[2]]


def _millions(env_steps: int) -> str:
    return f"{env_steps / 1e6:.0f} M"


def _mean(rates: dict[str, float]) -> float:
    return sum(rates.values()) / len(rates)


def spread(values: Sequence[float]) -> str:
    """Returns mean and interval over seeds in %; only the mean of one seed, and nothing where none was measured."""
    if not values:
        return ""
    mean, low, high = mean_interval(list(values))
    if len(values) == 1:
        return f"{100 * mean:.1f}"
    return f"{100 * mean:.1f} ({100 * max(low, 0.0):.1f} to {100 * min(high, 1.0):.1f})"


def difference(values: Sequence[float]) -> str:
    """Returns the mean and interval over seeds of differences or shares that may be negative or above 1, in %."""
    mean, low, high = mean_interval(list(values))
    return f"{100 * mean:.1f} ({100 * low:.1f} to {100 * high:.1f})"
