"""Trains the runs of the search for the preset `competition` again, from their settings in docs/data.

The runs that the tables of docs/research/brawl.md show are trained, each once, and evaluated against every bot on the
way. What was measured takes the place of the old numbers in docs/data/brawl_competition_tuning.json and
brawl_competition_search.json. Hours on a CPU; meant for a GPU.

    python benchmarks/brawl_tuning.py --device cuda
    python benchmarks/brawl_tuning.py --runs B/s16 B/L1 --device cuda
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import ludus

DATA = Path(__file__).parents[1] / "docs" / "data"
TUNING, SEARCH = "brawl_competition_tuning.json", "brawl_competition_search.json"
SHOWN = (
    "search/M1", "A/base", "A/ent0", "A/g256", "A/long100", "B/s16", "B/s16r512", "B/L1", "B/L2rate.1", "B/L3scale.05",
    "B/L4both", "B/L6scale0", "C/b4k", "C/b4k-s1", "C/e3",
    *(f"F/{name}-s{seed}" for name in ("selfplay", "equip", "equip-styles", "armed") for seed in range(3)),
    *(f"G/{name}-s{seed}" for name in ("waiting", "coming") for seed in range(3)), "G/waiting-long", "G/small",
    *(f"H/{name}" for name in ("mlp-128", "mlp-512", "full-40", "full-60", "full-60-slow")),
)  # fmt: skip
MATCHES, SEED = 100, 77
_ALMOST_NOTHING = 1e-9  # a scale of 0, which settings refuse: it must be above 0
_LEARNING = ("entropy", "approx_kl", "clip_fraction", "explained_variance", "ratio_error")


def main() -> None:
    """Trains what is asked for, and writes the files after each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", nargs="*", default=SHOWN, metavar="BATCH/NAME")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--env-steps", type=int, default=None, help="another budget, to try it out")
    parser.add_argument("--folder", type=Path, default=Path("runs/tuning"))
    parser.add_argument("--data", type=Path, default=DATA, help="where the two files are")
    options = parser.parse_args()
    for place in options.runs:
        batch, name = place.split("/")
        file = options.data / (SEARCH if batch == "search" else TUNING)
        document = json.loads(file.read_text())
        part = document if batch == "search" else document["batches"][batch]
        settings = resolved(part["configs"][name], document)
        budget = options.env_steps or settings["total_env_steps"]
        settings |= {"total_env_steps": budget}
        settings["world"] |= {"device": options.device}
        settings["evaluation"] = {"every_env_steps": max(budget // 10, 1), "matches": MATCHES, "seed": SEED}
        run = ludus.train(settings, folder=options.folder / batch / name)
        if run.stop_reason:
            raise SystemExit(f"[ERROR] {place} ended early: {run.stop_reason}; the same command goes on")
        others = [row for row in part["evaluations"] if row["name"] != name]
        part["evaluations"] = others + evaluations(run.folder, name)
        file.write_text(json.dumps(document, indent=1) + "\n")
        print(f"[OK] {place}: {part['evaluations'][-1]['mean']:.1%} over all bots")


def resolved(config: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Returns settings of a run as they are written today; some were noted as differences or as variables."""
    if "like" in config:
        settings = json.loads(json.dumps(document["batches"]["D"]["configs"]["d1"]))
        settings["extends"] = "competition"
        del settings["policy"]
        settings["seed"] = config["seed"]
        settings["ppo"] |= {
            "memory_lr_scale": config["memory_rate"],
            "ent_coef": config["entropy"],
            "sequence_length": 16,
        }
        return dict(settings)
    settings = json.loads(json.dumps(config))
    variables = settings.pop("environment", {})
    if "MEMRATE" in variables:
        settings["ppo"]["memory_lr_scale"] = float(variables["MEMRATE"])
    if "MEMSCALE" in variables:
        settings["policy"]["recurrent"]["memory_feature_scale"] = float(variables["MEMSCALE"]) or _ALMOST_NOTHING
    for part in ("strategy", "recurrent"):  # of which there is one kind each today
        (settings.get("policy", {}).get(part) or {}).pop("kind", None)
    return dict(settings)


def evaluations(run: Path, name: str) -> list[dict[str, Any]]:
    """Returns all evaluations of a run in the form of the files."""
    with (run / "evaluation_results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = []
    for steps in dict.fromkeys(int(row["env_steps"]) for row in rows):
        own = [row for row in rows if int(row["env_steps"]) == steps]
        learning = next(line for line in metrics if line["env_steps"] == steps)

        def mean(number: str, own: list[dict[str, str]] = own) -> float:
            return round(sum(float(row[number]) for row in own) / len(own), 3)

        found.append(
            {
                "name": name,
                "steps": steps,
                "matches": MATCHES,
                "win": {row["opponent"]: float(row["win_rate"]) for row in own},
                "draws": {row["opponent"]: float(row["draws"]) / float(row["matches"]) for row in own},
                "mean": mean("win_rate"),
                "dr": {row["opponent"]: round(float(row["damage_ratio"]), 2) for row in own},
                "ko": mean("knockouts"),
                "pick": mean("pickups"),
                "surv": mean("survival_s"),
                "learning": {key: learning[key] for key in _LEARNING if key in learning},
            }
        )
    return found


if __name__ == "__main__":
    main()
