"""Compares rewards at equal env steps: terms that were weighed by hand, and a discriminator that learns to rate.

    python benchmarks/mimic_style.py --out docs/data/mimic_style.json                        # an hour on two cores
    python benchmarks/mimic_style.py --device cuda --jobs 6 --steps 15_000_000 --out docs/data/mimic_style.json
    python benchmarks/mimic_style.py --runs runs/style --out docs/data/mimic_style.json      # reads what was trained

Both are the preset `walk`, on a GPU `walk-gpu`, with everything but the rewards alike; those of the discriminator are
the preset `walk-style`'s. Twenty walks are evaluated every third of the budget with deterministic actions, by numbers
that depend on neither reward. With `--jobs`, seconds of training are those of a shared device.
"""

import argparse
import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.mimic_motions import LUDUS, train

from ludus.training.presets import load_run_config

REWARDS = ("hand-weighted", "style")
NUMBERS = ("stable_walks", "duration_s", "rmse_deg", "speed_error", "imitation")


def main() -> None:
    """Trains and prints what the evaluations found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="env steps of each run instead of those of its preset")
    parser.add_argument("--jobs", type=int, default=1, help="runs that are trained side by side")
    parser.add_argument("--folder", type=Path, default=Path("runs/style"))
    parser.add_argument("--runs", type=Path, help="read the runs of this folder instead of training")
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings of every run as key=value, after --")
    asked = parser.parse_args()
    folder: Path = asked.runs or asked.folder
    runs = {f"{reward}-{seed}": (reward, seed) for seed in range(asked.seeds) for reward in REWARDS}
    if asked.runs is None:
        with ThreadPoolExecutor(asked.jobs) as pool:
            commands = [
                command(reward, seed, folder / name, asked.device, asked.steps, asked.overrides)
                for name, (reward, seed) in runs.items()
            ]
            list(pool.map(train, commands))
    rows = [describe(*run, folder / name) for name, run in runs.items() if (folder / name / "run.json").exists()]
    print(json.dumps(rows, indent=1))
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def command(reward: str, seed: int, run: Path, device: str, steps: int | None, overrides: list[str]) -> list[str]:
    """Returns the command that trains one seed with one of the rewards."""
    preset = "walk" if device == "cpu" else "walk-gpu"
    budget = steps or load_run_config("mimic", preset=preset).total_env_steps
    words = ["train", "mimic", "--preset", preset, "--device", device, "--seed", str(seed), "--run-dir", str(run)]
    words += [f"total_env_steps={budget}", f"schedule_env_steps={budget}"]
    words += [f"evaluation.every_env_steps={budget // 3}", "evaluation.sooner=null"]
    if reward == "style":
        rewards = load_run_config("mimic", preset="walk-style").rewards.model_dump(mode="json", exclude_defaults=True)
        words += ["rewards.base=null", *(f"rewards.{key}={json.dumps(value)}" for key, value in rewards.items())]
    return [*LUDUS, *words, *overrides]


def describe(reward: str, seed: int, run: Path) -> dict[str, Any]:
    """Returns what the evaluations of a run found."""
    session = json.loads((run / "run.json").read_text(encoding="utf-8"))["sessions"][-1]
    with (run / "evaluation_results.csv").open(encoding="utf-8", newline="") as file:
        points = [
            {"env_steps": int(row["env_steps"]), **{number: float(row[number]) for number in NUMBERS}}
            for row in csv.DictReader(file)
        ]
    about = {"training_s": session.get("training_s"), "machine": session["machine"]}
    return {"reward": reward, "seed": seed, **about, "points": points}


if __name__ == "__main__":
    main()
