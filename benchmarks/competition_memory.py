"""Whether the agent of brawl's preset `competition` wins more with a strategy encoder of events.

    PYTHONPATH=. python benchmarks/competition_memory.py      # docs/data/competition_memory.json

Agents are trained by the rules of the tournament and by those with clashes, against the opponents of the preset; with
clashes also against six of nine families of the bots `duelist`. Then each plays sets of three matches against the bots
that it knows, those without reaction delay and noise, families that nobody met, and the agents without memory of all
seeds. What is done is not done again.
"""

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from benchmarks.gauntlet import DUELISTS, EVENTS, Start
from benchmarks.unknown_opponents import SHARP, UNSEEN

import ludus
from ludus.analysis.ablation import CONDITIONS, Shuffled
from ludus.analysis.analysed_policy import AnalysedPolicy, Change
from ludus.training.callbacks import BaseCallback
from ludus.training.presets import load_run_config
from ludus.worlds.brawl.bots import BOT_NAMES

DATA = Path(__file__).parents[1] / "docs" / "data" / "competition_memory.json"
RULES = ("standard", "clash")
DUELISTS_WEIGHT = 12.0  # of all together, as much as the families of habits have
EVALUATION_SEED = 30  # training uses others
BEST_OF = 3
# Rollouts as large as those of the preset, but of fewer games: a sequence has to hold several events.
LONG_SEQUENCES: dict[str, Any] = {
    "world": {"num_envs": 2048},
    "ppo": {"n_steps": 128, "sequence_length": 128},
    "league": {"best_of": BEST_OF},
}
MEMORY: dict[str, Any] = {**LONG_SEQUENCES, "policy": {"strategy": EVENTS}}
# What each kind changes in the preset; those that are late start as the blind agent of the same seed.
KINDS: dict[str, dict[str, Any]] = {
    "blind": {},
    "blind_long": {},
    "events": MEMORY,
    "late": MEMORY,
    "late_blind": LONG_SEQUENCES,
}
LATE_LEARNING_RATE = {"kind": "linear", "start": 5e-4, "end": 5e-5}


def main() -> None:
    """Train and measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", nargs="*", choices=RULES, default=list(RULES))
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--blind-steps", type=int, default=120_000_000)
    parser.add_argument("--long-steps", type=int, default=360_000_000)
    parser.add_argument("--events-steps", type=int, default=80_000_000)
    parser.add_argument("--late-steps", type=int, default=40_000_000, help="on top of those of the agent it starts as")
    parser.add_argument("--matches", type=int, default=99, help="against each opponent")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all trainings, to try some out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lanes", type=int, default=15, help="trainings at a time")
    parser.add_argument("--work", type=Path, default=Path("runs/competition-memory"))
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    jobs = list(itertools.product(options.kinds, options.rules, range(options.seeds)))
    first = [job for job in jobs if job[0] == "blind"]  # others start as they, and everyone plays against them
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.lanes, mp_context=context) as pool:
        for todo in (first, [job for job in jobs if job not in first]):
            for line in pool.map(train, todo, itertools.repeat(vars(options))):
                print(line, flush=True)
        for line in pool.map(measure, jobs, itertools.repeat(vars(options))):
            print(line, flush=True)
    results = {file.stem: json.loads(file.read_text()) for file in sorted(options.work.glob("*.json"))}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"best_of": BEST_OF, "results": results}, indent=1) + "\n")


def train(job: tuple[str, str, int], options: dict[str, Any]) -> str:
    """Train one agent in a process of its own; return a line about it."""
    torch.set_num_threads(1)
    kind, rules, seed = job
    folder = folder_of(job, options)
    if folder.exists():
        return f"{folder.name}: there already"
    steps = {"blind": "blind_steps", "blind_long": "long_steps", "events": "events_steps"}
    changes = json.loads(json.dumps(KINDS[kind]))
    callbacks: list[BaseCallback] = []
    if kind.startswith("late"):
        callbacks.append(Start(folder_of(("blind", rules, seed), options)))
        changes["ppo"]["learning_rate"] = LATE_LEARNING_RATE
    world = {**changes.pop("world", {}), "settings": {"rules": rules}}
    run = ludus.train(
        "brawl",
        preset="competition",
        seed=seed,
        device=options["device"],
        folder=folder,
        callbacks=callbacks,
        total_env_steps=options[steps.get(kind, "late_steps")],
        world=world,
        opponents=opponents_in(rules),
        evaluation=None,
        monitoring={"console": "off"},
        overrides=options["set"],
        **changes,
    )
    return f"{folder.name}: {run.env_steps:,} env steps in {training_seconds(folder):.0f} s"


def measure(job: tuple[str, str, int], options: dict[str, Any]) -> str:
    """Let one agent play against everyone, also without its latent; return a line about it."""
    torch.set_num_threads(1)
    folder = folder_of(job, options)
    result = folder.with_suffix(".json")
    if result.exists():
        return f"{folder.name}: measured already"
    session = json.loads((folder / "run.json").read_text())["sessions"][-1]
    agent = ludus.load_agent(folder, options["device"])
    groups = groups_in(job[1], options)
    found: dict[str, Any] = {
        "env_steps": session["env_steps"],
        "seconds": round(training_seconds(folder), 1),
        "wins": by_group(agent, groups, job[1], options),
    }
    changes: tuple[Change, ...] = (torch.zeros_like, Shuffled()) if agent.policy.config.strategy is not None else ()
    for condition, change in zip(CONDITIONS[1:], changes, strict=False):
        found[condition] = by_group(AnalysedPolicy(agent.policy, "latent", change), groups, job[1], options)
    result.write_text(json.dumps(found, indent=1))
    means = {
        group: round(100 * sum(rates[0] for rates in wins.values()) / len(wins), 1)
        for group, wins in found["wins"].items()
    }
    return f"{folder.name}: {found['seconds']:.0f} s, wins {json.dumps(means)}"


def folder_of(job: tuple[str, str, int], options: Mapping[str, Any]) -> Path:
    """Return where a training is."""
    kind, rules, seed = job
    work: Path = options["work"]
    return work / f"{kind}-{rules}-{seed}"


def training_seconds(folder: Path) -> float:
    """Return how long the iterations of a run took."""
    sessions = json.loads((folder / "run.json").read_text())["sessions"]
    return float(sum(session["training_s"] for session in sessions))


def opponents_in(rules: str) -> dict[str, float]:
    """Return whom agents meet in training."""
    mix = dict(load_run_config("brawl", "competition").opponents or {})
    seen = [name for name, is_seen in DUELISTS.items() if is_seen] if rules == "clash" else []
    return mix | {name: DUELISTS_WEIGHT / len(seen) for name in seen}


def groups_in(rules: str, options: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the opponents of the measurement by group, each with what plays as it."""
    groups = {
        "known": list(BOT_NAMES),
        "sharp": list(SHARP),
        "habits, unseen": [f"habits:family={family}" for family in UNSEEN],
    }
    if rules == "clash":
        groups["duelists, seen"] = [name for name, is_seen in DUELISTS.items() if is_seen]
        groups["duelists, unseen"] = [name for name, is_seen in DUELISTS.items() if not is_seen]
    blind = [folder_of(("blind", rules, seed), options) for seed in range(options["seeds"])]
    return {group: {name: name for name in names} for group, names in groups.items()} | {
        "agents without memory": {folder.name: str(folder) for folder in blind}
    }


def by_group(
    agent: ludus.Agent | AnalysedPolicy, groups: Mapping[str, Mapping[str, str]], rules: str, options: dict[str, Any]
) -> dict[str, dict[str, list[float]]]:
    """Return for every opponent the share of matches won, then that of each match of a set; draws are not won."""
    players = {name: player for members in groups.values() for name, player in members.items()}
    rows = ludus.evaluate(
        agent,
        list(players.values()),
        matches=options["matches"],
        best_of=BEST_OF,
        config={"rules": rules},
        seed=EVALUATION_SEED,
        device=options["device"],
    ).rows
    columns = ["win_rate", *(f"win_rate_match_{number}" for number in range(1, BEST_OF + 1))]
    rates = {
        name: [round(float(row[column]), 4) for column in columns] for name, row in zip(players, rows, strict=True)
    }
    return {group: {name: rates[name] for name in members} for group, members in groups.items()}


if __name__ == "__main__":
    main()
