"""Draws the pictures of docs/results/strategy.md from the raw data in docs/data.

python benchmarks/strategy_plots.py
"""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from benchmarks.roshambo_training import VARIANTS
from benchmarks.tables.markdown import read_json
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

PICTURES = Path(__file__).parents[1] / "docs" / "images"
BLIND, KNOWING, GREY = "#2563eb", "#ea580c", "#64748b"
REFERENCES = {"PopRL (paper)": 247, "greenberg (paper)": 284}
POPULATIONS = {
    "gauntlet.json": "self-play\nwith habits",
    "gauntlet_triangle.json": "guards, throws,\nreaction time",
    "gauntlet_predictable.json": "predictable\nmembers",
    "gauntlet_exploiters.json": "exploiters of\nstrong agents",
    "gauntlet_rounds.json": "five rounds\nof them",
    "gauntlet_duelists.json": "bots that\nguess",
    "gauntlet_clash.json": "hidden\nchoices",
}
KINDS = {  # of agents of the last population: words and colour
    "blind": ("no memory", "#64748b"),
    "blind_long": ("no memory, twice the env steps", "#94a3b8"),
    "lstm": ("LSTM", "#2563eb"),
    "chrono": ("LSTM that starts out holding long", "#0891b2"),
    "events": ("encoder of events", "#ea580c"),
    "told": ("is told who it is", "#16a34a"),
}


def main() -> None:
    """Draws all of them."""
    runs = read_json("roshambo_training.json")
    _draw("strategy-memory.png", lambda axis: memory(axis, runs), (6.4, 3.2))
    _draw("strategy-bots.png", lambda axis: by_bot(axis, runs), (6.4, 6.4))
    _draw("strategy-ceiling.png", ceiling, (6.8, 3.4))
    _draw("strategy-clash.png", learning, (6.4, 3.4))
    _draw("strategy-sets.png", by_match, (7.4, 3.4))


def memory(axis: Axes, runs: dict[str, Any]) -> None:
    """Draws the aggregate of every kind of memory, each seed a dot."""
    kinds = [name for name, variant in VARIANTS.items() if not variant.unmet][::-1]
    for place, kind in enumerate(kinds):
        scores = [run["aggregate"]["value"] for run in _seeds(runs, kind)]
        axis.barh(place, statistics.fmean(scores), color=BLIND, alpha=0.35)
        axis.plot(scores, [place] * len(scores), "o", color=BLIND)
    for words, score in REFERENCES.items():
        axis.axvline(score, color=GREY, linestyle="--", linewidth=1)
        axis.annotate(words, (score, len(kinds) - 0.45), color=GREY, fontsize=8, ha="right" if score < 260 else "left")
    axis.set_yticks(range(len(kinds)), [VARIANTS[kind].words for kind in kinds])
    axis.set_ylim(-0.6, len(kinds) - 0.1)
    axis.set_xlabel("return minus exploitability against the 43 bots, per 1,000 throws")


def by_bot(axis: Axes, runs: dict[str, Any]) -> None:
    """Draws the return against every bot without memory and with the encoder: where reading the opponent pays."""
    returns = {
        kind: {
            bot: statistics.fmean(run["returns"][bot]["value"] for run in _seeds(runs, kind))
            for bot in _seeds(runs, kind)[0]["returns"]
        }
        for kind in ("none", "streaming")
    }
    bots = sorted(returns["none"], key=lambda bot: returns["streaming"][bot] - returns["none"][bot])
    for place, bot in enumerate(bots):
        ends = [returns[kind][bot] for kind in ("none", "streaming")]
        axis.plot(ends, [place, place], color=GREY, linewidth=1, alpha=0.6)
        axis.plot(ends[0], place, "o", color=BLIND, markersize=4, label="no memory" if place == 0 else None)
        axis.plot(ends[1], place, "o", color=KNOWING, markersize=4, label="streaming encoder" if place == 0 else None)
    axis.set_yticks(range(len(bots)), [bot.removeprefix("openspiel:") for bot in bots], fontsize=6)
    axis.axvline(0.0, color=GREY, linewidth=0.8)
    axis.set_xlabel("return per match of 1,000 throws, mean of three seeds")
    axis.legend(frameon=False, loc="lower right")


def ceiling(axis: Axes) -> None:
    """Draws what agents win that see the opponent alone and that know who it is, in every population of brawl."""
    for place, file in enumerate(POPULATIONS):
        data = read_json(file)
        seen = data["seen"]
        results = {name: run for name, run in data["results"].items() if "wins" in run}
        everyone = results.pop("specialist-everyone-0", None)
        if everyone is None:
            pairs = [
                [_seen(run["wins"], seen) for name, run in results.items() if name.startswith(kinds)]
                for kinds in (("ceiling-blind-",), ("ceiling-oracle-", "ceiling-told-"))
            ]
        else:  # by equal env steps, after training went on
            alone = [rate for name, run in results.items() if "specialist-" in name for rate in run["wins"].values()]
            pairs = [[_seen(everyone["wins"], seen)], [100 * statistics.fmean(alone)]]
        for shift, color, values in zip((-0.2, 0.2), (BLIND, KNOWING), pairs, strict=True):
            middle = statistics.fmean(values)
            axis.hlines(middle, place + shift - 0.14, place + shift + 0.14, color=color, linewidth=3, alpha=0.5)
            axis.plot([place + shift] * len(values), values, "o", color=color, markersize=4)
    axis.set_xticks(range(len(POPULATIONS)), list(POPULATIONS.values()), fontsize=8)
    axis.set_ylim(55, 100)
    axis.set_xlim(-0.5, len(POPULATIONS) - 0.5)
    axis.set_ylabel("matches won against seen members, %")
    axis.plot([], [], "o", color=BLIND, label="sees the opponent alone")
    axis.plot([], [], "o", color=KNOWING, label="knows who it is")
    axis.legend(frameon=False, loc="lower left", fontsize=8)


def learning(axis: Axes) -> None:
    """Draws what every seed of every kind wins in training, by env steps, where choices are hidden."""
    results = read_json("gauntlet_clash.json")["results"]
    for kind, (words, color) in KINDS.items():
        for number, run in enumerate(_seeds(results, f"ceiling-{kind}")):
            points = run.get("curve")
            if points is None:  # not kept
                continue
            env_steps, shares = zip(*points, strict=True)
            axis.plot(
                [each / 1e6 for each in env_steps],
                [100 * share for share in shares],
                color=color,
                linewidth=1.3,
                label=words if number == 0 else None,
            )
    axis.set_xlabel("million env steps")
    axis.set_ylabel("matches won against seen members, %")
    axis.set_xlim(left=0)
    axis.legend(frameon=False, fontsize=8, loc="lower right")


def by_match(axis: Axes) -> None:
    """Draws what every kind wins in the first, second and third match against unseen members, each seed a dot."""
    data = read_json("gauntlet_clash.json")
    unseen = {family: not seen for family, seen in data["seen"].items()}
    for place, (kind, (words, color)) in enumerate(KINDS.items()):
        runs = _seeds(data["results"], f"ceiling-{kind}")
        seeds = [[_seen(wins, unseen) for wins in run["by_match"]] for run in runs]
        numbers = [number + 0.03 * (place - 2) for number in range(1, len(seeds[0]) + 1)]
        axis.plot(numbers, [statistics.fmean(each) for each in zip(*seeds, strict=True)], color=color, label=words)
        for seed in seeds:
            axis.plot(numbers, seed, "o", color=color, markersize=3, alpha=0.6)
    axis.set_xticks([1, 2, 3], ["first match", "second", "third"])
    axis.set_ylabel("matches won against unseen members, %")
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _seeds(runs: dict[str, Any], kind: str) -> list[Any]:
    return [run for name, run in runs.items() if name.rpartition("-")[0] == kind]


def _seen(wins: dict[str, float], seen: dict[str, bool]) -> float:
    family = {name: name if name in seen else name.rpartition("-")[0] for name in wins}
    return 100 * statistics.fmean(rate for name, rate in wins.items() if seen[family[name]])


def _draw(name: str, draw: Callable[[Axes], None], size: tuple[float, float]) -> None:
    figure, axis = plt.subplots(figsize=size)
    draw(axis)
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURES / name, dpi=110)
    plt.close(figure)
    print(f"[OK] {PICTURES / name}")


if __name__ == "__main__":
    main()
