"""Trains a preset over several seeds with the command line and evaluates the best agents against every bot.

    python benchmarks/preset_results.py --world brawl --preset quick --seeds 3
    python benchmarks/preset_results.py --runs runs/a runs/b runs/c     # evaluates runs that are there already

Runs with past selves are also evaluated against up to ten of their own snapshots, evenly spread over the training; with
`--no-own` they are not. Of agents of rocket it is also counted in how many games they touch the ball within five
seconds of the kickoff. When phases began and how the evaluations during the training went is kept too. Prints a table
in Markdown and writes everything, with the training times, to --out as JSON. Training time is the sum of the
iterations; evaluations, checkpoints and start-up are in the wall time beside it.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from ludus.envs.registry import make_env
from ludus.policies.agent import Agent
from ludus.worlds.rocket.bots import BOT_NAMES
from ludus.worlds.rocket.rules import KICKOFF_TOUCH_S

LUDUS = [sys.executable, "-m", "ludus.cli.main"]
OWN_SNAPSHOTS = 10


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="brawl")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--matches", type=int, default=400)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--folder", type=Path, default=Path("runs/results"))
    parser.add_argument("--no-own", action="store_true", help="do not play against own snapshots")
    parser.add_argument("--runs", type=Path, nargs="*", help="evaluate these instead of training")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    runs = arguments.runs or [
        train(
            arguments.world,
            arguments.preset,
            seed,
            arguments.folder / f"{arguments.world}-{Path(arguments.preset).stem}-{seed}",
            arguments.device,
        )
        for seed in range(arguments.seeds)
    ]
    results = [evaluate(run, arguments.matches, arguments.device, own=not arguments.no_own) for run in runs]
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


def train(world: str, preset: str, seed: int, folder: Path, device: str) -> Path:
    """Trains one seed; a run that is there already goes on or is taken as it is."""
    option = "--config" if preset.endswith(".yaml") else "--preset"
    command = ["train", world, option, preset, "--seed", str(seed), "--run-dir", str(folder), "--device", device]
    started_s = time.perf_counter()
    subprocess.run([*LUDUS, *command], check=True, stdout=sys.stderr)
    print(f"[OK] {folder}: {time.perf_counter() - started_s:.0f} s of wall time", file=sys.stderr)
    return folder


def evaluate(run: Path, matches: int, device: str, *, own: bool) -> dict[str, Any]:
    """Evaluates the best agent of a run with a seed that training did not use."""
    document = play(run, [], matches, device)
    snapshots = sorted((run / "snapshots").glob("self-*")) if own else []
    spread = snapshots[:: -(-len(snapshots) // OWN_SNAPSHOTS)] if snapshots else []
    against_own = play(run, spread, matches, device)["opponents"] if spread else []
    description = json.loads((run / "run.json").read_text())
    return {
        "run": run.name,
        "seed": description["seed"],
        "training_s": sum(session.get("training_s", 0.0) for session in description["sessions"]),
        "machine": description["sessions"][-1]["machine"],
        "mean_win_rate": document["mean_win_rate"],
        "opponents": document["opponents"],
        "own_snapshots": against_own,
        "kickoffs": kickoffs(run, matches),
        "stages": phases(run),
        "curve": curve(run),
    }


def phases(run: Path) -> list[dict[str, Any]]:
    """Returns the phases of a run in the order in which they were entered, with the env steps then."""
    entered: list[dict[str, Any]] = []
    before = 0
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "stage" in row and (not entered or entered[-1]["stage"] != row["stage"]):
            entered.append({"stage": row["stage"], "from_env_steps": before})
        before = row["env_steps"]
    return entered


def curve(run: Path) -> list[dict[str, Any]]:
    """Returns the win rates of every evaluation during the training by opponent, and by side where there are modes."""
    place = run / "evaluation_results.csv"
    points: dict[int, dict[str, float]] = {}
    for row in csv.DictReader(place.read_text().splitlines()) if place.is_file() else ():
        name = " ".join([row["opponent"], *([row["side"]] if "side" in row else [])])
        points.setdefault(int(row["env_steps"]), {})[name] = float(row["win_rate"])
    return [{"env_steps": env_steps, "win_rates": rates} for env_steps, rates in points.items()]


def play(run: Path, against: list[Path], matches: int, device: str) -> dict[str, Any]:
    """Returns what `ludus eval` says of a run's best agent against some agents, or every bot if none is given."""
    command = ["eval", str(run), "--matches", str(matches), "--seed", "20", "--device", device, "--json"]
    chosen = [part for folder in against for part in ("--against", str(folder))]
    done = subprocess.run([*LUDUS, *command, *chosen], check=True, stdout=subprocess.PIPE, text=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def kickoffs(run: Path, games: int) -> dict[str, float]:
    """Returns against each bot the share of games whose kickoff an agent of rocket meets in time; empty elsewhere.

    In one game after the other the agent is blue and orange; its mode is one against one.
    """
    agent = Agent.load(run)
    if agent.spec.name != "rocket":
        return {}
    settings = {
        **agent.settings,
        "mode": "1v1",
        "blue": 1,
        "orange": 1,
        "episode": "match",
        "setters": {"kickoff": 1.0},
    }
    shares = {}
    for bot in BOT_NAMES:
        with make_env("rocket", games, seed=20, config=settings) as env:
            observations, memory = env.reset()["vector"], None
            actions = torch.zeros((games, 2), dtype=torch.int64)
            seat = torch.arange(games) % 2
            assignment = torch.where(torch.arange(2) == seat[:, None], -1, 0).to(torch.int32)
            touched = torch.zeros(games, dtype=torch.bool)
            bots, rows = env.bots((bot,)), torch.arange(games)
            for step in range(int(KICKOFF_TOUCH_S * env.spec.rate_hz)):
                chosen, memory = agent.predict(observations[rows, seat], memory, episode_start=step == 0)
                actions[rows, seat] = torch.as_tensor(chosen)
                bots.act(assignment, actions)
                result = env.step(actions)
                observations = result.observations["vector"]
                touched |= result.events["touches"][rows, seat] > 0
        shares[bot] = touched.float().mean().item()
    return shares


def table(results: list[dict[str, Any]]) -> str:
    """Returns win rates by opponent and seed, with the lowest and highest end of the seeds' intervals."""
    names = [row["opponent"] for row in results[0]["opponents"]]
    header = ["opponent", *(f"seed {result['seed']}" for result in results), "mean", "interval"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for i, name in enumerate(names):
        rows = [result["opponents"][i] for result in results]
        rates = [row["win_rate"] for row in rows]
        low, high = min(row["win_rate_low"] for row in rows), max(row["win_rate_high"] for row in rows)
        cells = [name, *(f"{rate:.1%}" for rate in rates), f"{sum(rates) / len(rates):.1%}", f"{low:.1%} - {high:.1%}"]
        lines.append("| " + " | ".join(cells) + " |")
    if all(result["own_snapshots"] for result in results):
        means = [
            sum(row["win_rate"] for row in result["own_snapshots"]) / len(result["own_snapshots"]) for result in results
        ]
        cells = ["own snapshots", *(f"{mean:.1%}" for mean in means), f"{sum(means) / len(means):.1%}", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
