"""Tables of the search for the preset `competition`: single runs of many recipes, from their evaluations."""

from collections.abc import Sequence
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
    "the same, memory at a tenth of the learning rate (`memory_lr_scale: 0.1`)": "B/L2rate.1",
    "the same, memory's features times 0.05 (`memory_feature_scale: 0.05`)": "B/L3scale.05",
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
    "the same, 3 epochs: as the preset has it": "C/e3",
}
# Seeds 0, 1 and 2 of each.
WEAPONS = {
    "70 % past selves, `equip` 0.1 that is gone at 5 M steps (`competition` before)": "F/selfplay",
    "the same, `equip` 0.5 to 0.2, `drop` -0.5 to -0.3": "F/equip",
    "the same, half of the opponents styles": "F/equip-styles",
    "`equip` 0.5 to 0.3, `drop` -0.5, `armed` 0.03, half styles (`armed`)": "F/armed",
    "the same with `draw` -1, 70 % past selves": "G/waiting",
    "`damage_armed` 0.7 instead of `armed`, `closing` 0.5 to 0.2, entropy bonus (`competition`)": "G/coming",
}
# Paid for the time with a weapon or for damage with it.
WAITING = {"time with a weapon": "G/waiting", "damage with it, and coming near (`competition`)": "G/coming"}
# Runs over more than 10 M steps that are paid for weapons.
LONG_RUNS = {
    "time with a weapon, no entropy bonus, 1,024 games, batch 4,096, learning rate to 1e-4": "G/waiting-long",
    "`competition`, 4,096 games, batch 16,384, learning rate to 1e-4": "H/full-40",
    "the same over 60 M, learning rate to 1e-5": "H/full-60",
    "the same, learning rate 6e-4 to 1e-5, entropy bonus 0.002": "H/full-60-slow",
    "MLP 512 x 512 relu, 4,096 games, batch 16,384, learning rate to 1e-4": "H/mlp-512",
    "MLP 128 x 128 tanh, 64 steps, 4 epochs, lambda 0.95": "H/mlp-128",
}
SMALL = "G/small"  # named in the text alone
SEEDS = (0, 1, 2)
LONG = "A/long100"
_WHOLE_RUN = 10_000_000  # env steps
_LONG_STEPS = (10, 20, 30, 40, 50, 60)  # millions
_WAITS = (
    "all bots", "constant", "drawn", "defensive", "drawn", "pick-ups", "seconds per match",
    "entropy, nats",
)  # fmt: skip


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
    return table(["agent", "all bots", "KL divergence per update at 2.5 M steps"], lines)


def recipes() -> str:
    """Returns what each recipe reached at its last evaluation."""
    header = ["recipe", "constant", "random", "based", "lowest style", "styles", "all"]
    return table(header, [[name, *_wins(evaluations(run)[-1])] for name, run in RECIPES.items()])


def weapons() -> str:
    """Returns what rewards for weapons did by the first evaluation and the last: all bots and pick-ups, every seed.

    A run that was cut off has none at the end.
    """
    lines = []
    for name, run in WEAPONS.items():
        runs = [evaluations(f"{run}-s{seed}") for seed in SEEDS]
        lasts = [found[-1] if found[-1]["steps"] >= _WHOLE_RUN else None for found in runs]
        lines.append([name, *_weapons([found[0] for found in runs]), *(_weapons(lasts) if any(lasts) else ["", ""])])
    return table(["opponents and rewards", "2.5 M: all bots", "pick-ups", "10 M: all bots", "pick-ups"], lines)


def _weapons(rows: Sequence[dict[str, Any] | None]) -> list[str]:
    """Returns win rates over all bots and pick-ups of evaluations, a dash where there is none or it was not kept."""
    wins = [percent(row["mean"]) if row else "-" for row in rows]
    taken = [row["pick"] if row else None for row in rows]
    return [", ".join(wins), ", ".join("-" if pick is None else f"{pick:.1f}" for pick in taken)]


def waiting() -> str:
    """Returns who waits: the last evaluation of every seed of two ways to pay for weapons."""
    lines = []
    for name, run in WAITING.items():
        for seed in SEEDS:
            row = evaluations(f"{run}-s{seed}")[-1]
            lines.append([name, str(seed), f"{row['steps'] / 1e6:.1f} M", str(row["matches"]), *_waits(row)])
    return table(["paid for", "seed", "env steps", "matches", *_WAITS], lines)


def waiting_long() -> str:
    """Returns long runs that are paid for weapons: win rates over all bots by env steps, and numbers at their end."""
    lines = []
    for name, run in LONG_RUNS.items():
        found = {round(row["steps"] / 1e6): row for row in evaluations(run)}
        last = found[max(found)]
        lines.append(
            [
                name,
                *(percent(found[steps]["mean"]) if steps in found else "" for steps in _LONG_STEPS),
                percent(min(last["win"][style] for style in STYLES)),
                f"{last['pick']:.1f}",
                f"{found[20]['learning']['entropy']:.2f}" if 20 in found else "",
                f"{last['learning']['entropy']:.2f}",
            ]
        )
    steps = [f"{millions} M" for millions in _LONG_STEPS]
    last_numbers = ["lowest style, last", "pick-ups, last", "entropy at 20 M, nats", "entropy, last"]
    return table(["run", *steps, *last_numbers], lines)


def _waits(row: dict[str, Any]) -> list[str]:
    """Returns the numbers that tell whether an agent waits, and how sure it is of what it does."""
    shares = [row["mean"], row["win"]["constant"], row["draws"]["constant"], row["win"]["defensive"]]
    shares += [row["draws"]["defensive"]]
    numbers = [f"{row['pick']:.1f}", f"{row['surv']:.0f}", f"{row['learning']['entropy']:.2f}"]
    return [*map(percent, shares), *numbers]


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
