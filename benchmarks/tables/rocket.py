"""Tables about rocket: goals of the scripted players."""

from benchmarks.tables.markdown import read_csv, table


def bot_goals(mode: str) -> str:
    """Returns the goals a minute that the row bot's team scores against the column bot's."""
    rows = read_csv(f"rocket_bots_{mode}_scores.csv")
    names = list(dict.fromkeys(row["bot"] for row in rows))
    goals = {(row["bot"], row["against"]): float(row["goals_a_minute"]) for row in rows}
    lines = [[bot, *(f"{goals[bot, other]:.2f}" for other in names)] for bot in names]
    return table(["goals a minute of the row", *names], lines)
