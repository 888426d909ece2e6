"""Trains slow walking and the default range with schedules over a short and over the usual number of env steps.

    python benchmarks/mimic_slow.py --out docs/data/mimic_slow.json                 # an hour on two cores
    python benchmarks/mimic_slow.py --runs runs/slow --out docs/data/mimic_slow.json

The motion is the normal gait exported at 0.75 m/s, which walkers follow at 0.6 to 0.9 m/s. Every 400,000 env steps
twenty walks are evaluated with deterministic actions; the score is their mean return, 1,500 at most. `--runs` reads
runs that were trained already.
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LUDUS = [sys.executable, "-m", "ludus.cli.main"]
EVERY = 400_000
SHORT, USUAL = 1_700_000, 4_000_000
MOTIONS = {"slow": "normal gait at 0.75 m/s, 0.6 to 0.9 m/s", "default": "normal gait, 0.8 to 1.4 m/s"}
# Run -> its motion, and the env steps over which its schedules go.
RUNS = {"slow-short": ("slow", SHORT), "default-short": ("default", SHORT), "slow": ("slow", USUAL)}
NUMBERS = ("mean_return", "stable_walks", "duration_s", "rmse_deg", "speed_error")


def main() -> None:
    """Train what is not there, and write what the evaluations of all runs found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/slow"))
    parser.add_argument("--runs", type=Path, help="read the runs of this folder instead of training")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    folder: Path = asked.runs or asked.folder
    if asked.runs is None:
        train_all(folder)
    rows = [describe(name, folder / name) for name in RUNS if (folder / name).exists()]
    print(json.dumps(rows, indent=1))
    if asked.out is not None:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def train_all(folder: Path) -> None:
    """Train all runs, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    motion = folder / "slow.csv"
    subprocess.run([*LUDUS, "motion", "export", str(motion), "--speed", "0.75"], check=True)
    for name, (what, schedules) in RUNS.items():
        words = ["train", "mimic", "--preset", "walk", "--run-dir", str(folder / name), "schedule_env_steps=null"]
        words += [f"total_env_steps={schedules}", f"evaluation.every_env_steps={EVERY}", "evaluation.sooner=null"]
        words += [f"world.settings.motion={motion}"] if what == "slow" else []
        subprocess.run([*LUDUS, *words], check=True)


def describe(name: str, run: Path) -> dict[str, Any]:
    """Return what the evaluations of a run found."""
    what, schedules = RUNS[name]
    with (run / "evaluation_results.csv").open(encoding="utf-8", newline="") as file:
        points = [
            {"env_steps": int(row["env_steps"]), **{number: float(row[number]) for number in NUMBERS}}
            for row in csv.DictReader(file)
        ]
    return {"motion": MOTIONS[what], "schedule_env_steps": schedules, "points": points}


if __name__ == "__main__":
    main()
