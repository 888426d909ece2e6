"""Trains a walker for every motion of the package, and one for all of them, and measures how well each is imitated.

    python benchmarks/mimic_motions.py --out motions.json                      # on two cores: hours
    python benchmarks/mimic_motions.py --device cuda --out motions.json        # on a GPU: minutes
    python benchmarks/mimic_motions.py --motions march stand --steps 2_000_000 --out few.json
    python benchmarks/mimic_motions.py --seeds 1 2 --out motions.json          # adds seeds to those that are there
    python benchmarks/mimic_motions.py --runs runs/motions --out motions.json  # evaluates what was trained already

Twenty walks of 15 s per motion from fixed starts, with deterministic actions, in MuJoCo on the CPU wherever the run was
trained. A walk is stable if it lasts to its end and goes most of the desired way. The agent for all is measured by
command, motion by motion, and in walks in which motion and speed change about every 3 s. With `--jobs`, seconds of
training are those of a shared device. Rows of other motions and seeds that the file already has are kept.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ludus.evaluation.evaluate import evaluate
from ludus.evaluation.players import load_agent
from ludus.worlds.mimic.motion.library import ENTRIES

LUDUS = [sys.executable, "-m", "ludus.cli.main"]
WALKS = 20
ALL = "all"  # the run that learns every motion
NUMBERS = ("stable_walks", "duration_s", "rmse_deg", "imitation", "speed_m_s", "speed_error")
IMITATED = tuple(ENTRIES)


def main() -> None:
    """Trains, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motions", nargs="+", default=[*IMITATED, ALL], choices=[*IMITATED, ALL])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, help="env steps of each run of one motion instead of its preset's")
    parser.add_argument("--jobs", type=int, default=1, help="runs that are trained side by side")
    parser.add_argument("--folder", type=Path, default=Path("runs/motions"))
    parser.add_argument("--runs", type=Path, help="evaluate the runs of this folder instead of training")
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings of every run as key=value, after --")
    asked = parser.parse_args()
    folder: Path = asked.runs or asked.folder
    runs = [(name, seed, folder / f"{name}-{seed}") for name in asked.motions for seed in asked.seeds]
    if asked.runs is None:
        with ThreadPoolExecutor(asked.jobs) as pool:
            commands = [
                command(name, seed, run, asked.device, asked.steps, asked.overrides) for name, seed, run in runs
            ]
            list(pool.map(train, commands))
    for name, seed, run in runs:
        if run.exists() and asked.out is not None:
            add_rows(asked.out, measure(name, seed, run))


def add_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Puts rows into the file, in place of those of the same policy, motion and seed."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    new = {identity(row) for row in rows}
    merged = [row for row in kept if identity(row) not in new] + rows
    merged.sort(key=lambda row: ([*IMITATED, ALL].index(row["policy"]), row["seed"]))
    path.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")


def identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns what a row is about."""
    return row["policy"], row["motion"], row["seed"]


def command(name: str, seed: int, run: Path, device: str, steps: int | None, overrides: Sequence[str]) -> list[str]:
    """Returns the command that trains one motion, or all."""
    gait = None if name == ALL else ENTRIES[name].gait
    if gait is not None and gait.stairs_m is not None:
        device = "cpu"  # MuJoCo Warp has no stairs
    on_gpu = device != "cpu"
    preset = {True: "motions-gpu", False: "motions"} if name == ALL else {True: "walk-gpu", False: "walk"}
    words = [
        "train",
        "mimic",
        "--preset",
        preset[on_gpu],
        "--device",
        device,
        "--seed",
        str(seed),
        "--run-dir",
        str(run),
    ]
    if name != ALL:
        entry = ENTRIES[name]
        words += [f"world.settings.motion={name}"]
        words += ["world.settings.walker=walker-13"] if entry.needs_rotation else []
        words += [] if entry.is_symmetric else ["world.settings.mirror=false"]
    budget = [] if steps is None or name == ALL else [f"total_env_steps={steps}"]
    return [*LUDUS, *words, *budget, *overrides]


def train(words: list[str]) -> None:
    """Runs a training; one that fails leaves its output and the others go on."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(f"[ERROR] {' '.join(words[3:])}\n{done.stdout[-3000:]}", file=sys.stderr, flush=True)


def measure(name: str, seed: int, run: Path) -> list[dict[str, Any]]:
    """Returns a row for a run of one motion; for one of all, a row for each and one for transitions."""
    description = json.loads((run / "run.json").read_text(encoding="utf-8"))
    agent = load_agent(str(run), "cpu")
    about = {
        "policy": name,
        "seed": seed,
        "walker": agent.settings.get("walker", "walker-8"),
        "env_steps": description["sessions"][-1]["env_steps"],
        "training_s": sum(session.get("training_s", 0.0) for session in description["sessions"]),
        "steps_to_convergence": description.get("steps_to_convergence"),
        "machine": description["sessions"][-1]["machine"],
    }
    settings = {**agent.settings, "physics": "mujoco"}
    told = [str(motion) for motion in settings.get("motions", ())]
    asked = {motion: (settings | {"command": motion}, "walk") for motion in told} or {name: (settings, "walk")}
    if told:
        asked["transitions"] = (settings, "changing")
    rows = []
    for motion, (config, scenario) in asked.items():
        found = evaluate(agent, scenarios=[scenario], config=config, matches=WALKS, seed=20, deterministic=True)
        (row,) = found.as_json()["opponents"]
        rows.append({"motion": motion, **about, **{key: row[key] for key in NUMBERS}})
        print(json.dumps(rows[-1]), flush=True)
    return rows


if __name__ == "__main__":
    main()
