"""Tables about brawl: bots, weapons, speed of the simulator, results of the presets."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from benchmarks.brawl_candidates import CANDIDATES
from benchmarks.tables.markdown import over_seeds, percent, read_all, read_csv, read_json, table

from ludus.core.intervals import t_quantile

_MORE = {"pick-ups": "pickups", "seconds": "survival_s"}
_LSTM = ("lstm", "time")
# The preset, and what it was before: a large agent with an encoder over two budgets.
_COMPETITIONS = {
    "`competition`": "brawl_competition.json",
    "first, 10 M": "brawl_competition_first.json",
    "first, 60 M": "brawl_competition_first_long.json",
}
_NAMED = ("constant", "random", "based", "based-safe")
# Numbers of the competition and what they shall be; a match may end sooner than in 60 s where it is won sooner.
_GOALS = {
    "constant": "99%",
    "random": "98%",
    "based": "95%",
    "lowest style": "85%",
    "all bots": "",
    "own snapshots": "60%",
    "damage ratio": "above 2",
    "knockouts": "above 2",
    "pick-ups": "above 1",
    "seconds per match": "60, or won",
}
_MILLIONS_FROM = 1e6  # steps a second are written in millions from this on
_WHOLE_FROM = 10.0  # ratios of speeds have a digit after the point below this
_NO_DAMAGE = 1000.0  # a damage ratio beyond this is one against a bot that deals none


def bot_scores(data: str = "brawl_bots") -> str:
    """Returns the score of the row bot against the column bot; `data` begins the name of the file."""
    rows = read_csv(f"{data}_scores.csv")
    names = list(dict.fromkeys(row["bot"] for row in rows))
    score = {(row["bot"], row["against"]): 100.0 * float(row["score"]) for row in rows}
    header = [f"score in % over {rows[0]['matches']} matches", *names, "mean"]
    lines = []
    for bot in names:
        others = [score[bot, other] for other in names if other != bot]
        means = [*(score[bot, other] for other in names), sum(others) / len(others)]
        lines.append([bot, *(f"{mean:.0f}" for mean in means)])
    return table(header, lines)


def bot_behaviour(data: str = "brawl_bots") -> str:
    """Returns what every bot does; `data` begins the name of the file."""
    rows = read_csv(f"{data}_behaviour.csv")
    numbers = [name for name in rows[0] if name != "bot"]
    return table(["bot", *numbers], [[row["bot"], *(f"{float(row[name]):.1f}" for name in numbers)] for row in rows])


def weapons() -> str:
    """Returns the scores of weapons against each other by style, and over all styles with an interval."""
    rows = read_csv("brawl_weapons.csv")
    styles = list(dict.fromkeys(row["style"] for row in rows))
    lines = []
    for pair in dict.fromkeys((row["weapon"], row["against"]) for row in rows):
        own = [row for row in rows if (row["weapon"], row["against"]) == pair]
        cells = [f"{100 * float(row['score']):.0f} %" for row in own]
        mean, margin = _joined(own)
        lines.append([*pair, *cells, f"{100 * mean:.1f} % ({100 * (mean - margin):.1f}-{100 * (mean + margin):.1f})"])
    return table(["weapon", "against", *styles, "all styles"], lines)


def _joined(rows: list[dict[str, str]]) -> tuple[float, float]:
    """Returns mean and margin over the matches of all groups, whose own means, margins and sizes are known."""
    total = squares = 0.0
    count = 0
    for row in rows:
        size, mean = int(row["matches"]), float(row["score"])
        deviation = (float(row["high"]) - mean) * math.sqrt(size) / t_quantile(0.975, size - 1)
        total, count = total + size * mean, count + size
        squares += (size - 1) * deviation**2 + size * mean**2
    mean = total / count
    deviation = math.sqrt((squares - count * mean**2) / (count - 1))
    return mean, t_quantile(0.975, count - 1) * deviation / math.sqrt(count)


def simulation() -> str:
    """Returns game steps a second by device and number of games."""
    return simulation_table("brawl_sim_*.json", "game step", "CartPole-v1")


def simulation_table(files: str, step: str, yardstick: str) -> str:
    """Returns steps a second of a world by device and number of games, of `benchmarks/speed.py sim`.

    Args:
        files: Pattern of the files.
        step: What is counted.
        yardstick: What was measured beside it.
    """
    lines = []
    for row in [row for rows in read_all(files) for row in rows]:
        device, rate = row["device"], row["steps_per_s"]
        if device == "cpu":
            device = f"{row['threads']} core{'s' if row['threads'] > 1 else ''} ({row['processor']})"
        lines.append(
            [
                device,
                f"{row['games']:,}",
                f"{rate / 1e6:.2f} M" if rate >= _MILLIONS_FROM else f"{rate:,.0f}",
                f"{row['yardstick_steps_per_s']:,.0f}",
                f"{row['ratio']:,.0f}" if row["ratio"] >= _WHOLE_FROM else f"{row['ratio']:.1f}",
                f"{1e9 / rate:.1f}",
            ]
        )
    return table(["device", "games", f"{step}s/s", f"{yardstick} steps/s", "ratio", "ns each"], lines)


def quick() -> str:
    """Returns win rates of the preset `quick` by opponent and seed."""
    return preset_results(read_json("brawl_quick_cpu.json"))


def competition() -> str:
    """Returns win rates of `competition` by opponent and seed; runs that were cut off are left out."""
    return preset_results(_whole("`competition`"), _MORE)


def competition_goals() -> str:
    """Returns what the preset and its predecessors reached of the goals, by seed; of runs that came to their end."""
    return _goal_table(
        {
            f"{name}, seed {result['seed']}": _reached(result["opponents"], result["own_snapshots"])
            for name in _COMPETITIONS
            for result in _whole(name)
        }
    )


def candidates() -> str:
    """Returns what candidates for `competition` win against each group of opponents, and their pick-ups."""
    groups = {
        "known": "known bots", "sharp": "without delay and noise", "habits, seen": "habits, seen",
        "habits, unseen": "habits, unseen", "own": "own snapshots",
    }  # fmt: skip
    data, lines = read_json("brawl_candidates.json"), []
    for name, candidate in CANDIDATES.items():
        runs = [run for title, run in data.items() if title.rpartition("-")[0] == name]
        means = [_mean([row["win_rate"] for run in runs for row in run[group].values()]) for group in groups]
        picked = _mean([row["pickups"] for run in runs for row in run["known"].values()])
        budget = f"{candidate.env_steps / 1e6:.0f} M"
        lines.append([candidate.label, budget, *(f"{100 * mean:.1f}" for mean in means), f"{picked:.1f}"])
    return table(["candidate", "env steps", *groups.values(), "pick-ups"], lines)


def competition_curves() -> str:
    """Returns the evaluations during the same runs: all bots, and in brackets the style that is won against least."""
    curves = {
        f"{name}, seed {run['seed']}": {_millions(point): point["win_rates"] for point in run["curve"]}
        for name, file in _COMPETITIONS.items()
        for run in read_json(file)
    }
    lines = []
    for steps in sorted({steps for curve in curves.values() for steps in curve}):
        found = [curve.get(steps, {}) for curve in curves.values()]
        lines.append([f"{steps} M", *(_all_and_lowest(rates) if rates else "" for rates in found)])
    return table(["env steps", *curves], lines)


def _whole(name: str) -> list[dict[str, Any]]:
    """Returns the seeds of a competition that came to their end."""
    return [result for result in read_json(_COMPETITIONS[name]) if result["opponents"]]


def _millions(point: dict[str, Any]) -> float:
    """Returns the env steps of an evaluation in millions, with one digit: rollouts of other sizes end elsewhere."""
    return round(int(point["env_steps"]) / 1e6, 1)


def _all_and_lowest(rates: Mapping[str, float]) -> str:
    return f"{percent(_mean(list(rates.values())))} ({percent(min(_styles(rates).values()))})"


def armed() -> str:
    """Returns win rates of the preset `armed` by opponent and seed."""
    return preset_results(read_json("brawl_armed.json"), _MORE)


def curriculum() -> str:
    """Returns win rates of the preset `curriculum` by opponent and seed."""
    return preset_results(read_json("brawl_curriculum.json"))


def phases() -> str:
    """Returns the evaluations during the first seed of `curriculum`, with the phase that they were in."""
    run = read_json("brawl_curriculum.json")[0]
    lines = []
    for point in run["curve"]:
        entered = [phase for phase in run["stages"] if phase["from_env_steps"] <= point["env_steps"]]
        rates = point["win_rates"]
        named = [rates[name] for name in _NAMED]
        styles = _mean([rate for name, rate in rates.items() if name not in _NAMED])
        cells = [percent(rate) for rate in (*named, styles, _mean(list(rates.values())))]
        lines.append([f"{point['env_steps'] / 1e6:.1f} M", entered[-1]["stage"], *cells])
    return table(["env steps", "phase", *_NAMED, "styles", "all"], lines)


def goals() -> str:
    """Returns what `armed` and `armed-lstm` reached of the competition's goals, by seed."""
    full = [_reached(result["opponents"], result["own_snapshots"]) for result in read_json("brawl_armed.json")]
    runs = [run for run in read_json("strategy_results.json")["runs"] if (run["variant"], run["budget"]) == _LSTM]
    lstm = [_reached_in_training(run["curve"][-1]) for run in runs]
    header = [f"`{name}`, seed {seed}" for name in ("armed", "armed-lstm") for seed in range(len(full))]
    return _goal_table(dict(zip(header, (*full, *lstm), strict=True)))


def _goal_table(reached: Mapping[str, Mapping[str, str]]) -> str:
    """Returns all goals beside what runs reached of them, by the runs' titles."""
    lines = [[name, wanted, *(cells[name] for cells in reached.values())] for name, wanted in _GOALS.items()]
    return table(["number", "goal", *reached], lines)


def _reached(rows: list[dict[str, Any]], own: list[dict[str, Any]]) -> dict[str, str]:
    """Returns the numbers of an evaluation that there are goals for; `own` is empty if no past selves were met."""
    fighting = [row["damage_ratio"] for row in rows if row["opponent"] != "constant"]
    means = {name: _mean([row[name] for row in rows]) for name in ("knockouts", "pickups", "survival_s")}
    rates = {row["opponent"]: row["win_rate"] for row in rows}
    against_own = _mean([row["win_rate"] for row in own]) if own else None
    return _goal_cells(rates, means | {"damage_ratio": _mean(fighting)}, against_own)


def _reached_in_training(point: dict[str, Any]) -> dict[str, str]:
    """Returns the same of an evaluation during training, which has no matches against past selves."""
    return _goal_cells(point["win_rates"], point, None)


def _goal_cells(rates: dict[str, float], means: dict[str, float], own: float | None) -> dict[str, str]:
    styles = _styles(rates)
    lowest = min(styles, key=lambda name: styles[name])
    return {
        **{name: f"{rates[name]:.1%}" for name in ("constant", "random", "based")},
        "lowest style": f"{styles[lowest]:.1%} ({lowest})",
        "all bots": f"{_mean(list(rates.values())):.1%}",
        "own snapshots": "" if own is None else f"{own:.1%}",
        "damage ratio": f"{means['damage_ratio']:.2f}",
        "knockouts": f"{means['knockouts']:.2f}",
        "pick-ups": f"{means['pickups']:.2f}",
        "seconds per match": f"{means['survival_s']:.0f}",
    }


def _styles(rates: Mapping[str, float]) -> dict[str, float]:
    """Returns the win rates against styled bots alone."""
    return {name: rate for name, rate in rates.items() if name not in ("constant", "random", "based")}


def preset_results(results: list[dict[str, Any]], more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Returns win rates by opponent and seed, and how the matches went; of `benchmarks/preset_results.py`.

    Args:
        results: What the script wrote.
        more: Further numbers of the rows, by title.
    """
    seeds = [f"seed {result['seed']}" for result in results]
    bounds = ["mean (95 % over seeds)", "lowest to highest bound"] if len(results) > 1 else ["interval"]
    header = ["opponent", *seeds, *bounds, "damage ratio", "knockouts", *more]
    lines = []
    for index, name in enumerate(row["opponent"] for row in results[0]["opponents"]):
        rows = [result["opponents"][index] for result in results]
        rates = [row["win_rate"] for row in rows]
        low, high = min(row["win_rate_low"] for row in rows), max(row["win_rate_high"] for row in rows)
        ratio = _mean([row["damage_ratio"] for row in rows])
        lines.append(
            [
                name,
                *(f"{rate:.1%}" for rate in rates),
                *([over_seeds(rates, "{:.1%}".format, most=1.0)] if len(results) > 1 else []),
                f"{low:.1%} - {high:.1%}",
                "-" if ratio > _NO_DAMAGE else f"{ratio:.2f}",
                f"{_mean([row['knockouts'] for row in rows]):.2f}",
                *(f"{_mean([row[number] for row in rows]):.2f}" for number in more.values()),
            ]
        )
    return table(header, lines)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
