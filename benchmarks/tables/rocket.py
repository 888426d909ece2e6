"""Tables about rocket: speed, goals of the scripted players, what the presets reach, and what was compared for them."""

from typing import Any

from benchmarks.tables.brawl import simulation_table
from benchmarks.tables.markdown import over_seeds, percent, read_csv, read_json, table


def bot_goals(mode: str) -> str:
    """Returns the goals per minute that the row bot's team scores against the column bot's."""
    rows = read_csv(f"rocket_bots_{mode}_scores.csv")
    names = list(dict.fromkeys(row["bot"] for row in rows))
    goals = {(row["bot"], row["against"]): float(row["goals_a_minute"]) for row in rows}
    lines = [[bot, *(f"{goals[bot, other]:.2f}" for other in names)] for bot in names]
    return table(["goals per minute of the row", *names], lines)


def simulation() -> str:
    """Returns decisions of cars a second by device and number of games."""
    return simulation_table("rocket_sim_*.json", "agent step", "yardstick")


def quick() -> str:
    """Returns win rates and goals of the preset quick by opponent and seed."""
    return preset_results(read_json("rocket_quick_cpu.json"))


def preset_results(results: list[dict[str, Any]]) -> str:
    """Returns win rates by opponent and seed, goals and kickoffs; of `benchmarks/preset_results.py`."""
    seeds = [f"seed {result['seed']}" for result in results]
    header = [
        "opponent",
        *seeds,
        "mean (95 % over seeds)",
        "lowest to highest bound",
        "goals",
        "conceded",
        "kickoffs met in 5 s",
    ]
    lines = []
    for index, name in enumerate(row["opponent"] for row in results[0]["opponents"]):
        rows = [result["opponents"][index] for result in results]
        rates = [row["win_rate"] for row in rows]
        low, high = min(row["win_rate_low"] for row in rows), max(row["win_rate_high"] for row in rows)
        met = [result["kickoffs"][name] for result in results]
        lines.append(
            [
                name,
                *(f"{rate:.1%}" for rate in rates),
                over_seeds(rates, "{:.1%}".format, most=1.0),
                f"{low:.1%} - {high:.1%}",
                f"{sum(row['team_goals'] for row in rows) / len(rows):.2f}",
                f"{sum(row['conceded'] for row in rows) / len(rows):.2f}",
                f"{min(met):.1%} - {max(met):.1%}",
            ]
        )
    return table(header, lines)


# What each run of the search changed, by name, in the order of the table.
_COMPARED = {
    "chase": "discount 0.995, entropy 0.01, batch 4,096",
    "chase1": "the same, another seed",
    "g99": "discount 0.99",
    "ent003": "entropy 0.003",
    "b2048": "batch 2,048",
    "big": "256 x 256",
    "retn": "normalised returns",
    "mix": "70 % of games against itself, 15 % chaser, 15 % shooter",
    "kick": "every episode begins with a kickoff",
    "goal": "twice the reward for goals",
    "zero": "zero-sum rewards (each seat less the other team's mean; removed)",
    "dense": "less reward for touches and the way to the ball",
}


def search() -> str:
    """Returns win rates of the runs of the search after 30 M env steps, or the nearest evaluation to that."""
    runs = read_json("rocket_search.json")
    bots = ("idle", "random", "chaser", "shooter", "goalkeeper")
    lines = []
    for name, words in _COMPARED.items():
        last = min(runs[name]["evaluations"], key=lambda row: abs(row["steps"] - 30_000_000))
        lines.append([words, f"{last['steps'] / 1e6:.0f} M", *(percent(last["win"][bot]) for bot in bots)])
    return table(["change", "env steps", *bots], lines)


def staged() -> str:
    """Returns win rates of the last agent of the three phases by mode and side, with goals where teams are equal."""
    lines = []
    for mode, rows in read_json("rocket_stages.json")["modes"].items():
        for side in dict.fromkeys(row.get("side", mode) for row in rows):
            mine = {row["opponent"]: row for row in rows if row.get("side", mode) == side}
            rates = [f"{row['win_rate']:.1%}" for row in mine.values()]
            low = min(row["win_rate_low"] for row in mine.values())
            lines.append([side, *rates, f"{low:.1%}"])
    return table(["mode", *mine, "lowest bound"], lines)


def rated() -> str:
    """Returns the live ratings of every mode, at the beginning of its phase, after each third of it and at its end."""
    lines = []
    for mode, points in read_json("rocket_stages.json")["ratings"].items():
        chosen = [points[round(share * (len(points) - 1) / 3)] for share in range(4)]
        lines.append([mode, *(f"{rating:.0f} at {steps / 1e6:.0f} M" for steps, rating in chosen)])
    return table(["mode", "first", "after a third", "after two thirds", "last"], lines)


def phases() -> str:
    """Returns win rates in two against two of the trial of the three phases."""
    bots = ("idle", "random", "chaser", "shooter", "goalkeeper")
    names = ("1v1", "1v2", "2v2")
    lines = [
        [f"{row['steps'] / 1e6:.0f} M ({name})", *(percent(row["win"][bot]) for bot in bots)]
        for name, row in zip(names, read_json("rocket_search.json")["three"]["evaluations"], strict=True)
    ]
    return table(["env steps", *bots], lines)
