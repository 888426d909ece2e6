"""Trains Rocket's three stages with the command line and lets the last agent meet every scripted player in every mode.

    python benchmarks/rocket_stages.py --device cuda --out stages.json
    python benchmarks/rocket_stages.py --run runs/a            # judges a run that is there already

Whole matches of 300 s with overtime from the kickoff, half of them from each side, with a seed that training did not
use; in unequal modes each side counts on its own. The ratings are the live ones of the run, by mode. Training time is
the sum of the iterations; checkpoints and start-up are in the wall time beside it.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import PolicyEvaluator
from ludus.evaluation.players import find_players
from ludus.policies.agent import Agent
from ludus.training.presets import load_run_config
from ludus.training.resolve import resolve
from ludus.worlds.rocket.bots import BOT_NAMES

MODES = ("1v1", "1v2", "2v2")
SEED = 20
KEPT = ("opponent", "side", "matches", "wins", "draws", "losses", "win_rate", "win_rate_low", "win_rate_high")
COUNTED = ("team_goals", "conceded")
RATING = "rating_elo/"


def main() -> None:
    """Trains, judges and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="1v1-2v2")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--matches", type=int, default=200, help="against each player in each mode")
    parser.add_argument("--folder", type=Path, default=Path("runs/results/rocket-stages"))
    parser.add_argument("--run", type=Path, help="judge this one instead of training")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path, help="of the ratings")
    parser.add_argument("overrides", nargs="*", help="settings as key=value, after --")
    asked = parser.parse_args()
    run = asked.run or train(asked.preset, asked.folder, asked.device, asked.overrides)
    device = str(resolve(load_run_config("rocket", asked.preset, overrides=[f"world.device={asked.device}"])).device)
    agent = Agent.load(run / "checkpoints" / "final", device)
    document = described(run) | {"modes": {mode: judge(agent, mode, asked.matches, device) for mode in MODES}}
    if asked.out is not None:
        asked.out.write_text(json.dumps(document, indent=1) + "\n")
    if asked.picture is not None:
        draw(document, asked.picture)
    for mode, rows in document["modes"].items():
        print(mode, {" ".join((row["opponent"], row.get("side", ""))): f"{row['win_rate']:.1%}" for row in rows})


def train(preset: str, folder: Path, device: str, overrides: list[str]) -> Path:
    """Trains the preset; a run that is there already goes on or is taken as it is."""
    command = ["train", "rocket", "--preset", preset, "--run-dir", str(folder), "--device", device, *overrides]
    subprocess.run([sys.executable, "-m", "ludus.cli.main", *command], check=True, stdout=sys.stderr)
    return folder


def judge(agent: Agent, mode: str, matches: int, device: str) -> list[dict[str, Any]]:
    """Returns how an agent fares against every scripted player in a mode."""
    settings = {**(agent.settings or {}), "mode": mode, "episode": "match", "setters": {"kickoff": 1.0}}
    for setting in ("episode_s", "no_touch_s"):  # of episodes that end by a goal
        settings.pop(setting, None)
    with make_env("rocket", matches * len(BOT_NAMES), device, seed=SEED, config=settings) as env:
        rows = PolicyEvaluator(env, find_players(BOT_NAMES, env), matches=matches, seed=SEED).play(agent.policy).rows
    return [{name: row[name] for name in (*KEPT, *COUNTED) if name in row} for row in rows]


def described(run: Path) -> dict[str, Any]:
    """Returns what a run says of itself: budget, times and the ratings of every mode on the way."""
    sessions = json.loads((run / "run.json").read_text())["sessions"]
    ratings: dict[str, list[tuple[int, float]]] = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        for name in row:
            if name.startswith(RATING):
                ratings.setdefault(name.removeprefix(RATING), []).append((row["env_steps"], round(row[name], 1)))
    thinned = {mode: points[:: max(1, len(points) // 60)] for mode, points in ratings.items()}
    return {
        "env_steps": sessions[-1]["env_steps"],
        "training_s": sum(session["training_s"] for session in sessions),
        "wall_s": sum(_seconds(session["ended"]) - _seconds(session["started"]) for session in sessions),
        "ratings": thinned,
    }


def draw(document: dict[str, Any], path: Path) -> None:
    """Draws the ratings over the training, a line a mode."""
    figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
    for mode, points in document["ratings"].items():
        axis.plot([steps / 1e6 for steps, _ in points], [rating for _, rating in points], label=mode)
    axis.set(xlabel="env steps, millions", ylabel="Elo against past selves")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _seconds(moment: str) -> float:
    return time.mktime(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))


if __name__ == "__main__":
    main()
