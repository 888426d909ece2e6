"""Tables of the search for the preset `competition`: single runs of many recipes, from their evaluations."""

from typing import Any

from benchmarks.tables.markdown import percent, read_json, rounded, table

# All bots but constant, random and based.
STYLES = (
    "clockwork", "based-safe", "aggressive", "defensive", "hit-and-run", "aerial", "heavy-spammer", "weapon-seeker",
    "edge-guarder", "switcher",
)  # fmt: skip

# Row of a table -> batch and name of the run in the data.
MEMORY = {
    "MLP": "B/s16",
    "LSTM 256 beside the observation": "B/L1",
    "the same, memory at a tenth of the learning rate (`memory_rate: 0.1`)": "B/L2rate.1",
    "the same, memory's features times 0.05 (`skip_scale: 0.05`)": "B/L3scale.05",
    "both": "B/L4both",
    "memory's features times 0: the MLP with the LSTM's minibatches of segments": "B/L6scale0",
}
RECIPES = {
    "128 x 128 tanh, 1,024 games x 64 steps, batch 8,192, sparse (before)": "search/M1",
    "+ shaping that is gone at 5 M steps": "A/base",
    "+ no entropy bonus": "A/ent0",
    "+ 256 games, batch 2,048": "A/g256",
    "1,024 games x 16 steps, batch 2,048, 256 x 256 relu": "B/s16",
    "the same, 512 x 512": "B/s16r512",
    "+ batch 4,096, lambda 0.9, seed 0": "C/b4k",
    "the same, seed 1": "C/b4k-s1",
    "the same, 3 epochs: the preset's recipe": "C/e3",
}
# Seeds 0, 1 and 2 of each.
WEAPONS = {
    "70 % past selves, `equip` 0.1 that is gone at 5 M steps (`competition`)": "F/selfplay",
    "the same, `equip` 0.5 to 0.2, `drop` -0.5 to -0.3": "F/equip",
    "the same, half of the opponents styles": "F/equip-styles",
    "`equip` 0.5 to 0.3, `drop` -0.5, `armed` 0.03, half styles (`armed`)": "F/armed",
}
SEEDS = (0, 1, 2)
LONG = "A/long100"


def evaluations(run: str) -> list[dict[str, Any]]:
    """Returns all evaluations of a run, `batch/name`, by env steps."""
    batch, name = run.split("/")
    if batch == "search":
        found = read_json("brawl_competition_search.json")["evaluations"]
    else:
        found = read_json("brawl_competition_tuning.json")["batches"][batch]["evaluations"]
    return sorted((row for row in found if row["name"] == name), key=lambda row: int(row["steps"]))


def memory() -> str:
    """Returns what each kind of memory reached, and how far its updates moved the policy early on."""
    lines = []
    for name, run in MEMORY.items():
        first, *_, last = evaluations(run)
        lines.append([name, percent(last["mean"]), f"{first['learning']['approx_kl']:.3f}"])
    return table(["agent", "all bots", "KL divergence an update at 2.5 M steps"], lines)


def recipes() -> str:
    """Returns what each recipe reached at its last evaluation."""
    header = ["recipe", "constant", "random", "based", "lowest style", "styles", "all"]
    return table(header, [[name, *_wins(evaluations(run)[-1])] for name, run in RECIPES.items()])


def weapons() -> str:
    """Returns what rewards for weapons did by the first evaluation and the last: all bots and pick-ups, every seed."""
    lines = []
    for name, run in WEAPONS.items():
        runs = [evaluations(f"{run}-s{seed}") for seed in SEEDS]
        firsts, lasts = [found[0] for found in runs], [found[-1] for found in runs]
        cells = [", ".join(percent(row["mean"]) for row in firsts), ", ".join(f"{row['pick']:.1f}" for row in firsts)]
        is_complete = lasts != firsts
        cells += [", ".join(percent(row["mean"]) for row in lasts) if is_complete else ""]
        cells += [", ".join(f"{row['pick']:.1f}" for row in lasts) if is_complete else ""]
        lines.append([name, *cells])
    return table(["opponents and rewards", "2.5 M: all bots", "pick-ups", "10 M: all bots", "pick-ups"], lines)


def long() -> str:
    """Returns a long run of an MLP, evaluation by evaluation."""
    header = [
        "env steps",
        "constant",
        "random",
        "based",
        "lowest style",
        "all",
        "damage ratio",
        "knockouts",
        "pick-ups",
    ]
    lines = []
    for row in evaluations(LONG):
        *bots, _styles, everyone = _wins(row)
        ratios = [ratio for bot, ratio in row["dr"].items() if bot != "constant"]
        numbers = (sum(ratios) / len(ratios), row["ko"], row["pick"])
        lines.append([f"{row['steps'] / 1e6:.0f} M", *bots, everyone, *(str(rounded(number, 1)) for number in numbers)])
    return table(header, lines)


def _wins(row: dict[str, Any]) -> list[str]:
    """Returns win rates against constant, random and based, the lowest and the mean over the styles, and all."""
    win = row["win"]
    styles = [win[style] for style in STYLES if style in win]
    own = [percent(win[bot]) for bot in ("constant", "random", "based")]
    return [*own, percent(min(styles)), percent(sum(styles) / len(styles)), percent(row["mean"])]
