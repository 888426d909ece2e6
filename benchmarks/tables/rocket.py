"""Tables about rocket: goals of the scripted players, and what the presets reach."""

from typing import Any

from benchmarks.tables.markdown import read_csv, read_json, table


def bot_goals(mode: str) -> str:
    """Returns the goals a minute that the row bot's team scores against the column bot's."""
    rows = read_csv(f"rocket_bots_{mode}_scores.csv")
    names = list(dict.fromkeys(row["bot"] for row in rows))
    goals = {(row["bot"], row["against"]): float(row["goals_a_minute"]) for row in rows}
    lines = [[bot, *(f"{goals[bot, other]:.2f}" for other in names)] for bot in names]
    return table(["goals a minute of the row", *names], lines)


def quick() -> str:
    """Returns win rates and goals of the preset quick by opponent and seed."""
    return preset_results(read_json("rocket_quick_cpu.json"))


def preset_results(results: list[dict[str, Any]]) -> str:
    """Returns win rates by opponent and seed, goals and kickoffs; of `benchmarks/preset_results.py`."""
    seeds = [f"seed {result['seed']}" for result in results]
    header = ["opponent", *seeds, "mean", "lowest to highest bound", "goals", "conceded", "kickoffs met in 5 s"]
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
                f"{sum(rates) / len(rates):.1%}",
                f"{low:.1%} - {high:.1%}",
                f"{sum(row['team_goals'] for row in rows) / len(rows):.2f}",
                f"{sum(row['conceded'] for row in rows) / len(rows):.2f}",
                f"{min(met):.1%} - {max(met):.1%}",
            ]
        )
    return table(header, lines)
