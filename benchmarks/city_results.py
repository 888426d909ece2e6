"""Trains a preset of city over several seeds with the command line, and holds its cities against scripted players'.

    python benchmarks/city_results.py --preset quick --seeds 3 --cities 48 --out city.json
    python benchmarks/city_results.py --runs runs/a runs/b runs/c     # judges runs that are there already

Everybody plays the same cities, of a seed that training did not use, for the same number of decisions. Agents see
pictures and readings alone; the scripted strategies see the truth. Population, funds and happiness are what the screen
said last in an episode. Training time is the sum of the iterations; evaluations, checkpoints and start-up
are in the wall time, which is printed beside it. Prints a table in Markdown and writes everything to --out as JSON.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus.core.intervals import mean_interval
from ludus.envs.base import EnvRequest
from ludus.policies.agent import Agent
from ludus.worlds.city.env import CityEnv

LUDUS = [sys.executable, "-m", "ludus.cli.main"]
SEED = 20  # of the cities that everybody is judged by
BOTS = ("random", "random-tools", "always-zone", "greedy", "balanced")
COLUMNS = ("population", "funds", "happiness", "bankrupt in %")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cities", type=int, default=48)
    parser.add_argument("--folder", type=Path, default=Path("runs/results"))
    parser.add_argument("--runs", type=Path, nargs="*", help="judge these instead of training")
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings as key=value, after --")
    asked = parser.parse_args()
    runs = asked.runs or [
        train(asked.preset, seed, asked.folder / f"city-{asked.preset}-{seed}", asked.overrides)
        for seed in range(asked.seeds)
    ]
    results = [judge(run, asked.cities) for run in runs]
    settings = Agent.load(runs[0]).settings
    players = {name: play(settings, asked.cities, bot=name) for name in BOTS}
    document = {"cities": asked.cities, "seed": SEED, "agents": results, "bots": players}
    if asked.out is not None:
        asked.out.write_text(json.dumps(document, indent=1) + "\n")
    print(table(document))


def train(preset: str, seed: int, folder: Path, overrides: list[str]) -> Path:
    """Trains one seed; a run that is there already goes on or is taken as it is."""
    command = ["train", "city", "--preset", preset, "--seed", str(seed), "--run-dir", str(folder), *overrides]
    started_s = time.perf_counter()
    subprocess.run([*LUDUS, *command], check=True, stdout=sys.stderr)
    print(f"[OK] {folder}: {time.perf_counter() - started_s:.0f} s of wall time", file=sys.stderr)
    return folder


def judge(run: Path, cities: int) -> dict[str, Any]:
    """Returns how the cities of a run's best agent end, and what its training took."""
    agent = Agent.load(run, seed=SEED)
    description = json.loads((run / "run.json").read_text())
    return {
        "run": run.name,
        "seed": description["seed"],
        "training_s": sum(session.get("training_s", 0.0) for session in description["sessions"]),
        "machine": description["sessions"][-1]["machine"],
        "outcome": play(agent.settings, cities, agent=agent),
    }


def play(
    settings: Mapping[str, Any],
    cities: int,
    *,
    agent: Agent | None = None,
    bot: str | None = None,
    sums: Sequence[str] = (),
) -> dict[str, list[float]]:
    """Plays an episode in every city and returns how each ends, `(cities,)` a measure; `sums` are events to add up."""
    env = CityEnv(EnvRequest(cities, seed=SEED, config=settings))
    observations, memory = env.reset(), None
    actions = torch.zeros((cities, 1, 2), dtype=torch.int64)
    bots = env.bots((bot,)) if bot is not None else None
    assignment = torch.zeros((cities, 1), dtype=torch.int32)
    final = {name: np.zeros(cities) for name in (*COLUMNS, *sums)}
    open_games = np.ones(cities, np.bool_)
    for _ in range(env.config.steps):
        if agent is not None:
            chosen, memory = agent.predict({name: entry[:, 0] for name, entry in observations.items()}, memory)
            actions[:, 0] = torch.as_tensor(chosen)
        if bots is not None:
            bots.act(assignment, actions)
        result = env.step(actions)
        observations = result.observations
        ended, lost = result.ended.numpy() & open_games, result.events["bankrupt"][:, 0].numpy() > 0
        for name in ("population", "funds", "happiness"):
            final[name][ended] = result.events[f"final_{name}"][:, 0].numpy()[ended]
        final["bankrupt in %"][ended & lost] = 100.0
        for name in sums:
            final[name][open_games] += result.events[name][:, 0].numpy()[open_games]
        open_games &= ~ended
        if not open_games.any():
            break
    env.close()
    return {name: values.tolist() for name, values in final.items()}


def table(document: Mapping[str, Any]) -> str:
    """Returns the outcomes as a table, a row a player, with 95 % intervals over the cities."""
    rows = [(f"agent, seed {result['seed']}", result["outcome"], result["training_s"]) for result in document["agents"]]
    rows += [(name, outcome, None) for name, outcome in document["bots"].items()]
    lines = [f"| player | {' | '.join(COLUMNS)} | training in s |", f"|---|{'---:|' * (len(COLUMNS) + 1)}"]
    for name, outcome, seconds in rows:
        cells = []
        for column in COLUMNS:
            interval = mean_interval(outcome[column])
            cells.append(f"{interval.estimate:,.0f} ({interval.low:,.0f} to {interval.high:,.0f})")
        lines.append(f"| {name} | {' | '.join(cells)} | {'' if seconds is None else f'{seconds:,.0f}'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
