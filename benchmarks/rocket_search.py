"""Trains the runs that were compared for Rocket's presets again, from their settings in docs/data/rocket_search.json.

Each is trained once and evaluated on the way, in matches of two minutes from the kickoff; what was measured takes the
place of the old numbers. Hours on a CPU; meant for a GPU.

    python benchmarks/rocket_search.py --device cuda
    python benchmarks/rocket_search.py --runs g99 ent003 --device cuda
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import ludus

DATA = Path(__file__).parents[1] / "docs" / "data" / "rocket_search.json"
OPPONENTS = ("idle", "random", "chaser", "shooter", "goalkeeper")
MATCHES, SEED = 64, 77
MATCH = {"episode": "match", "match_s": 120.0, "overtime_s": 0.0, "setters": {"kickoff": 1.0}}


def main() -> None:
    """Trains what is asked for, and writes the file after each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="*", default=list(json.loads(DATA.read_text())), metavar="NAME")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--env-steps", type=int, default=None, help="another budget, to try it out")
    parser.add_argument("--folder", type=Path, default=Path("runs/rocket-search"))
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    for name in options.runs:
        document = json.loads(options.data.read_text())
        settings = json.loads(json.dumps(document[name]["settings"]))
        budget = options.env_steps or settings["total_env_steps"]
        settings["total_env_steps"] = budget
        settings["world"]["device"] = options.device
        settings["evaluation"] = {
            "every_env_steps": max(budget // 3, 1),
            "matches": MATCHES,
            "seed": SEED,
            "opponents": OPPONENTS,
            "settings": {**MATCH, "mode": "2v2" if "curriculum" in settings else "1v1"},
        }
        run = ludus.train(settings, folder=options.folder / name)
        if run.stop_reason:
            raise SystemExit(f"[ERROR] {name} ended early: {run.stop_reason}; the same command goes on")
        document[name]["evaluations"] = evaluations(run.folder)
        options.data.write_text(json.dumps(document, indent=1) + "\n")
        print(f"[OK] {name}: {document[name]['evaluations'][-1]['win']}")


def evaluations(run: Path) -> list[dict[str, Any]]:
    """Returns all evaluations of a run in the form of the file."""
    with (run / "evaluation_results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for steps in dict.fromkeys(int(row["env_steps"]) for row in rows):
        own = {row["opponent"]: row for row in rows if int(row["env_steps"]) == steps}
        found.append(
            {
                "steps": steps,
                "win": {name: float(row["win_rate"]) for name, row in own.items()},
                "goals": {name: [float(row["team_goals"]), float(row["conceded"])] for name, row in own.items()},
            }
        )
    return found


if __name__ == "__main__":
    main()
