"""Win rates of brawl's presets against opponents that they never met, by what they were trained against.

    python benchmarks/unknown_opponents.py --device cuda --lanes 6      # docs/data/unknown_opponents.json

Variants of a preset differ in their opponents alone: as the preset has them; also the styles without their reaction
delay and noise ("sharp"); also `habits`, bots whose rules, delay and noise are drawn for every match; and both. Of the
eight families of habits two are kept out of every training. Each agent is then measured against the known bots, the
sharp styles, and the families that were seen and those that were not. What is done is not done again: a run that is
there is measured.
"""

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

import ludus
from ludus.training.presets import load_run_config
from ludus.worlds.brawl.bots import BOT_NAMES
from ludus.worlds.brawl.kernels.bot_styles import FAMILIES

DATA = Path(__file__).parents[1] / "docs" / "data" / "unknown_opponents.json"
UNSEEN = (3, 6)  # families of habits that no agent trains against
STYLES = ("based", "based-safe", "aggressive", "defensive", "hit-and-run", "aerial", "heavy-spammer", "weapon-seeker")
SHARP = tuple(f"{style}:delay=0,noise=0" for style in (*STYLES, "edge-guarder"))
VARIANTS = ("preset", "sharp", "habits", "both")
EVALUATION_SEED = 30  # training uses others


def main() -> None:
    """Train and measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--weight", type=float, default=1.0, help="of the added opponents together, per preset's")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--set", nargs="*", default=[], help="settings of all variants, to try some out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lanes", type=int, default=4, help="trainings at a time")
    parser.add_argument("--work", type=Path, default=Path("runs/unknown"))
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    jobs = list(itertools.product(range(options.seeds), options.variants))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.lanes, mp_context=context) as pool:
        for line in pool.map(run_job, jobs, itertools.repeat(vars(options))):
            print(line, flush=True)
    results = {file.stem: json.loads(file.read_text()) for file in sorted(options.work.glob("*.json"))}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"unseen_families": UNSEEN, "results": results}, indent=1) + "\n")


def opponents_of(preset: str, variant: str, weight: float) -> dict[str, float]:
    """Return whom a variant meets; what is added weighs as much, times `weight`, as what the preset has."""
    mix = dict(load_run_config("brawl", preset).opponents or {})
    habits = tuple(f"habits:family={family}" for family in range(FAMILIES) if family not in UNSEEN)
    groups: dict[str, tuple[Sequence[str], ...]] = {
        "preset": (), "sharp": (SHARP,), "habits": (habits,), "both": (SHARP, habits),
    }  # fmt: skip
    share = weight * sum(mix.values()) / max(len(groups[variant]), 1)
    return mix | {name: share / len(group) for group in groups[variant] for name in group}


def run_job(job: tuple[int, str], options: dict[str, Any]) -> str:
    """Train and measure one agent in a process of its own; return a line about it."""
    torch.set_num_threads(1)
    seed, variant = job
    folder: Path = options["work"] / f"{options['preset']}-{variant}-{seed}"
    result = folder.with_suffix(".json")
    if result.exists():
        return f"{folder.name}: there already"
    if not folder.exists():
        ludus.train(
            "brawl",
            preset=options["preset"],
            seed=seed,
            device=options["device"],
            folder=folder,
            opponents=opponents_of(options["preset"], variant, options["weight"]),
            overrides=[*options["set"], "evaluation=null", "monitoring.console=off"],
        )
    session = json.loads((folder / "run.json").read_text())["sessions"][-1]
    wins = {group: win_rates(folder, names, options) for group, names in groups_to_meet().items()}
    found = {"env_steps": session["env_steps"], "seconds": round(session["training_s"], 1), "wins": wins}
    result.write_text(json.dumps(found, indent=1))
    means = {group: f"{100 * sum(rates.values()) / len(rates):.1f}" for group, rates in wins.items() if rates}
    return f"{folder.name}: {json.dumps(means)} in {session['training_s']:.0f} s"


def groups_to_meet() -> dict[str, list[str]]:
    """Return the opponents of the measurement, by group."""
    families = {family: f"habits:family={family}" for family in range(FAMILIES)}
    return {
        "known": list(BOT_NAMES),
        "sharp": list(SHARP),
        "habits, seen": [name for family, name in families.items() if family not in UNSEEN],
        "habits, unseen": [families[family] for family in UNSEEN],
    }


def win_rates(agent: Path, names: list[str], options: dict[str, Any]) -> dict[str, float]:
    """Return the share of matches won against each; draws are not won."""
    rows = ludus.evaluate(
        agent, names, matches=options["matches"], seed=EVALUATION_SEED, device=options["device"]
    ).rows  # fmt: skip
    return {Path(name).stem: float(row["win_rate"]) for name, row in zip(names, rows, strict=True)}


if __name__ == "__main__":
    main()
