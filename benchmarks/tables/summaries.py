"""One table per world: what its presets reach, for people who read nothing else."""

from collections.abc import Sequence
from typing import Any

from benchmarks.roshambo_training import VARIANTS
from benchmarks.tables.city import shown_mean
from benchmarks.tables.markdown import over_seeds, read_json, table

from ludus.core.intervals import mean_interval

_ARM, _H200 = "2 ARM cores", "H200"
# Presets of brawl: file, device and budget of the runs in it.
_BRAWL = {
    "quick": ("brawl_quick_cpu.json", _ARM, "10.5 M"),
    "curriculum": ("brawl_curriculum.json", _ARM, "20 M"),
    "competition": ("brawl_competition.json", _H200, "120 M"),
}
_MIMIC = {
    "walk": ("mimic_walk.json", _ARM),
    "walk-3d": ("mimic_walk_3d.json", _ARM),
    "walk-gpu": ("mimic_walk_gpu.json", _H200),
    "walk-3d-gpu": ("mimic_walk_3d_gpu.json", _H200),
}
_WALK_3D_STEPS = "3 M"  # its file does not say
_PUBLISHED = {"openspiel:greenberg": "284", "openspiel:iocainebot": "250"}  # aggregates of arXiv 2303.03196
_CITY_PLAYERS = ("random", "greedy", "balanced")
_HEADER = (
    "preset",
    "device",
    "env steps",
    "training in s",
    "seeds",
    "mean win rate (95 % over seeds)",
    "hardest opponent",
)


def peers() -> str:
    """Returns speeds beside other libraries, for people who compare."""
    learn, walker = read_json("learn_cpu.json"), read_json("mimic_learn.json")
    car, body = (_one_thread(read_json(file)) for file in ("rocket_sim_cpu.json", "mimic_sim_cpu.json"))
    rows = (
        ("PPO on CartPole-v1, 64x64", "SB3", *_pair(learn, "cartpole_ppo_", "peer_"), "learn"),
        ("PPO with two LSTMs of 256", "sb3-contrib", *_pair(learn, "cartpole_lstm_", "peer_"), "learn"),
        ("PPO on mimic, 2 cores", "SB3", *_pair(walker, "", "peer_"), "mimic-learn"),
        (
            "rocket's physics (plane walls), 1 core",
            "RocketSim, rlgym's simulator",
            *_pair(car, "", "yardstick_"),
            "rocket-sim",
        ),
        ("mimic's physics, 1 core", "Gymnasium's Walker2d-v5", *_pair(body, "", "yardstick_"), "mimic-sim"),
    )
    lines = [
        [what, f"{ours:,.0f}", f"{name}: {theirs:,.0f}", f"{ours / theirs:.1f}", f"`make results-{command}`"]
        for what, name, ours, theirs, command in rows
    ]
    return table(["on ARM Neoverse-N1", "Ludus, steps/s", "peer, steps/s", "ratio", "command"], lines)


def _pair(data: dict[str, Any], prefix: str, peer: str) -> tuple[float, float]:
    return data[f"{prefix}steps_per_s"], data[f"{prefix}{peer}steps_per_s"]


def _one_thread(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the measurement on one thread with most games."""
    return max((row for row in rows if row["threads"] == 1), key=lambda row: row["games"])


def brawl() -> str:
    """Returns what the presets of brawl win against the thirteen bots."""
    lines = []
    for preset, (file, device, steps) in _BRAWL.items():
        runs = [run for run in read_json(file) if run["opponents"]]
        lines.append([f"`{preset}`", device, steps, *_won(runs)])
    return table(_HEADER, lines)


def rocket() -> str:
    """Returns what the presets of rocket win against the scripted players."""
    stages = read_json("rocket_stages.json")
    steps, seconds = f"{stages['env_steps'] / 1e6:.0f} M", stages["training_s"]
    lines = [["`quick`, 1v1", _ARM, "12 M", *_won(read_json("rocket_quick_cpu.json"))]]
    for mode in ("1v1", "2v2"):
        run = {"training_s": seconds, "opponents": stages["modes"][mode]}
        lines.append([f"`1v1-2v2`, {mode}", "H200", steps, *_won([run])])
    return table(_HEADER, lines)


def _won(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Returns time, seeds, the mean over all opponents, and the opponent with the lowest mean over the seeds."""
    names = [row["opponent"] for row in runs[0]["opponents"]]
    rates = {
        name: sum(run["opponents"][index]["win_rate"] for run in runs) / len(runs) for index, name in enumerate(names)
    }
    hardest = min(names, key=lambda name: rates[name])
    by_seed = [sum(row["win_rate"] for row in run["opponents"]) / len(names) for run in runs]
    return [
        _span([run["training_s"] for run in runs]),
        str(len(runs)),
        over_seeds(by_seed, "{:.1%}".format, most=1.0),
        f"{rates[hardest]:.1%} ({hardest})",
    ]


def mimic() -> str:
    """Returns how the walkers of the presets walk."""
    lines = []
    for preset, (file, device) in _MIMIC.items():
        runs = read_json(file)
        first = [run["trials"][0] for run in runs]
        pushed = [next(row for row in run["trials"] if row["trial"] == "pushes")["survived"] for run in runs]
        columns = [
            f"`{preset}`",
            device,
            f"{runs[0]['env_steps'] / 1e6:.1f} M" if "env_steps" in runs[0] else _WALK_3D_STEPS,
            _span([run["training_s"] for run in runs]),
            str(len(runs)),
            over_seeds([row["imitation"] for row in first], "{:.2f}".format, most=1.0),
            over_seeds([row["rmse_deg"] for row in first], "{:.1f}".format),
            over_seeds([row["speed_error"] for row in first], "{:.1%}".format),
            _span([row["stable_walks"] for row in first]) + " of 20",
            _span([100.0 * share for share in pushed]) + " %",
        ]
        lines.append(columns)
    header = ["preset", "device", "env steps", "training in s", "seeds", "imitation (95 % over seeds)"]
    return table([*header, "joint error in degrees", "speed error", "stable walks", "survive pushes"], lines)


def city() -> str:
    """Returns how cities end, of the agent, of random play and of scripted players that see the truth."""
    quick, hour = read_json("city_quick.json"), read_json("city_guided.json")["players"]
    agents = [agent["outcome"] for agent in quick["agents"]]
    lines = [["embedded", f"agent, seed {index}", *_ended(outcome)] for index, outcome in enumerate(agents)]
    means = {key: [sum(outcome[key]) / len(outcome[key]) for outcome in agents] for key in agents[0]}
    lines.append(["embedded", f"{len(agents)} agents, over seeds", *_ended(means)])
    lines += [["embedded", name, *_ended(quick["bots"][name])] for name in _CITY_PLAYERS]
    for name, played in hour.items():
        people, funds = ([town[key] for town in played["cities"]] for key in ("population", "funds"))
        lines.append(["Micropolis", name, shown_mean(people), shown_mean(funds), ""])
    return table(["game", "player", "population", "funds", "bankrupt in %"], lines)


def _ended(outcome: dict[str, list[float]]) -> list[str]:
    return [shown_mean(outcome[key]) for key in ("population", "funds", "bankrupt in %")]


def roshambo() -> str:
    """Returns how bots score against the 43 bots of OpenSpiel."""
    lines = []
    for bot, scored in read_json("roshambo_population.json").items():
        aggregate = scored["aggregate"]
        lines.append(
            [
                f"`{bot}`",
                *(f"{scored[key]['value']:,.0f}" for key in ("mean_return", "exploitability")),
                scored["exploiter"].removeprefix("openspiel:"),
                f"{aggregate['value']:,.0f} ({aggregate['low']:,.0f} to {aggregate['high']:,.0f})",
                _PUBLISHED.get(bot, ""),
            ]
        )
    return table(["player", "return", "exploitability", "by", "aggregate", "in the paper"], lines)


def _with_interval(values: list[float]) -> str:
    """Returns the mean over seeds with Student's 95 % interval."""
    middle, low, high = mean_interval(values)
    return f"{middle:,.0f} ({low:,.0f} to {high:,.0f})" if len(values) > 1 else f"{middle:,.0f}"


def roshambo_trained() -> str:
    """Returns how trained agents score against the 43 bots, a line per variant with all its seeds."""
    runs = read_json("roshambo_training.json")
    lines = []
    for name, variant in VARIANTS.items():
        seeds = [run for key, run in runs.items() if key.rpartition("-")[0] == name]
        if not seeds:
            continue
        means = [[run[key]["value"] for run in seeds] for key in ("mean_return", "exploitability", "aggregate")]
        exploiters = dict.fromkeys(run["exploiter"].removeprefix("openspiel:") for run in seeds)
        lines.append(
            [
                variant.words,
                "no" if variant.unmet else "yes",
                _span([run["env_steps"] / 1e6 for run in seeds]) + " M",
                f"{_span([run['matches'] for run in seeds])}",
                *(f"{_with_interval(values)}: {', '.join(f'{value:,.0f}' for value in values)}" for values in means),
                ", ".join(exploiters),
            ]
        )
    header = [
        "memory",
        "met the 43 bots",
        "throws",
        "matches per bot",
        "return",
        "exploitability",
        "aggregate",
        "exploited by",
    ]
    return table(header, lines)


def _span(values: Sequence[float], digits: int = 0) -> str:
    """Returns the lowest and the highest of several numbers, or the one that they all are."""
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return low if low == high else f"{low} - {high}"
