"""Candidates for brawl's preset `competition`: networks and rewards with the same opponents, games and learner.

    python benchmarks/brawl_candidates.py --device cuda --lanes 3      # docs/data/brawl_candidates.json

Each is trained once per seed and measured against the known bots, those without reaction delay and noise, bots of
random habits that it met and did not meet, and ten of its own snapshots. What is done is not done again.
"""

import argparse
import itertools
import json
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from benchmarks.unknown_opponents import EVALUATION_SEED, groups_to_meet

import ludus
from ludus.training.presets import load_run_config

DATA = Path(__file__).parents[1] / "docs" / "data" / "brawl_candidates.json"
SHOWN = ("win_rate", "damage_ratio", "knockouts", "pickups")
OWN_SNAPSHOTS = 10
# Rewards that count until half of the run or change until then, as the first competition had them: start and end.
FADING = {
    "closing": (0.5, 0.2), "equip": (0.5, 0.3), "fall": (-0.5, 0.0), "danger": (-0.5, 0.0), "combo": (0.02, 0.0),
    "many_keys": (-0.01, 0.0), "attack_spam": (-0.01, 0.0),
}  # fmt: skip


class Candidate(NamedTuple):
    """A network, its rewards and its budget: what it differs from the preset in."""

    label: str
    network: str  # "mlp", "lstm" or "full"
    env_steps: int
    sparse: bool = False


CANDIDATES = {
    "mlp-dense": Candidate("MLP 256x256, dense rewards (`competition`)", "mlp", 120_000_000),
    "mlp": Candidate("MLP 256x256, sparse rewards with shaping that fades", "mlp", 120_000_000, sparse=True),
    "full-dense": Candidate("encoder and LSTM, 192x192, dense rewards (`strategy`)", "full", 60_000_000),
    "lstm": Candidate("LSTM, 192x192, sparse rewards", "lstm", 80_000_000, sparse=True),
    "full": Candidate("encoder and LSTM, 192x192, sparse rewards", "full", 60_000_000, sparse=True),
}


def main() -> None:
    """Train and measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="*", metavar="CANDIDATE", help=", ".join(CANDIDATES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lanes", type=int, default=3, help="trainings at a time")
    parser.add_argument("--set", nargs="*", default=[], help="settings of all, to try some out")
    parser.add_argument("--work", type=Path, default=Path("runs/candidates"))
    parser.add_argument("--out", type=Path, default=DATA)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    jobs = list(itertools.product(options.candidates or CANDIDATES, range(options.seeds)))
    with ProcessPoolExecutor(options.lanes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for line in pool.map(run_job, jobs, itertools.repeat(vars(options))):
            print(line, flush=True)
    results = {file.stem: json.loads(file.read_text()) for file in sorted(options.work.glob("*.json"))}
    options.out.write_text(json.dumps(results, indent=1) + "\n")


def run_job(job: tuple[str, int], options: Mapping[str, Any]) -> str:
    """Train and measure one candidate in a process of its own; return a line about it."""
    torch.set_num_threads(1)
    name, seed = job
    folder: Path = options["work"] / f"{name}-{seed}"
    result = folder.with_suffix(".json")
    if result.exists():
        return f"{folder.name}: there already"
    candidate = CANDIDATES[name]
    preset = "strategy" if candidate.network == "full" else "competition"
    changes = [f"total_env_steps={candidate.env_steps}", "evaluation=null", "monitoring.console=off", *options["set"]]
    if candidate.network == "lstm":
        shared = load_run_config("brawl", "strategy").policy
        changes.append(f"policy.recurrent={json.dumps(shared.model_dump(mode='json')['recurrent'])}")
        changes += ["policy.net_arch={pi: [192, 192], vf: [192, 192]}", "ppo.sequence_length=16"]
    if candidate.sparse:
        changes.append(f"rewards={json.dumps(sparse_rewards(candidate.env_steps))}")
    run = ludus.train("brawl", preset=preset, seed=seed, device=options["device"], folder=folder, overrides=changes)
    session = json.loads((folder / "run.json").read_text())["sessions"][-1]
    groups = groups_to_meet()
    snapshots = sorted((folder / "snapshots").glob("self-*"))
    groups["own"] = list(map(str, snapshots[:: max(len(snapshots) // OWN_SNAPSHOTS, 1)][:OWN_SNAPSHOTS]))
    found: dict[str, Any] = {"env_steps": run.env_steps, "seconds": session["training_s"]}
    for group, names in groups.items():
        if names:
            evaluation = ludus.evaluate(
                folder, names, matches=options["matches"], seed=EVALUATION_SEED, device=options["device"]
            )
            rows = zip(names, evaluation.rows, strict=True)
            found[group] = {Path(each).name: {key: round(float(row[key]), 4) for key in SHOWN} for each, row in rows}
    result.write_text(json.dumps(found))
    return f"{folder.name}: {found['seconds']:.0f} s"


def sparse_rewards(env_steps: int) -> dict[str, Any]:
    """Return the rewards of the first competition, with shaping that ends at half of the budget."""
    fading = {name: {"points": [[0, start], [env_steps // 2, end]]} for name, (start, end) in FADING.items()}
    return {"base": "sparse", "weights": {"draw": -1.0, "drop": -0.5, "damage_armed": 0.7, **fading}}


if __name__ == "__main__":
    main()
