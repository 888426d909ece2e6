"""How fast City's world steps with its games in this process and in worker processes.

Decisions are drawn at random among those that are allowed, which is not counted; they are of the kinds of the preset
quick unless `--actions` names other groups. `--json` prints one JSON object.

    python benchmarks/city_workers.py --games 64 --workers 0 1 2
"""

import argparse
import json
import time
from typing import Any

import torch

from ludus.envs.registry import make_env


def main() -> None:
    """Measures every number of workers, with figures from the screen and from the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, nargs="+", default=[64])
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--metrics", nargs="+", choices=("screen", "truth"), default=["screen"])
    parser.add_argument("--actions", nargs="+", default=["build", "street", "bulldoze", "tax"])
    parser.add_argument("--seconds", type=float, default=8.0, help="for each measurement")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    measured: dict[str, float] = {}
    for metrics in options.metrics:
        for games in options.games:
            for workers in options.workers:
                settings = {"workers": workers, "metrics": metrics, "actions": options.actions, "closes": True}
                steps_per_s, made_s = measure(games, options.seconds, settings)
                measured[f"{metrics}_{games}_games_{workers}_workers_per_s"] = steps_per_s
                measured[f"{metrics}_{games}_games_{workers}_workers_made_s"] = made_s
                if not options.json:
                    print(
                        f"{metrics:6} {games:4} games, {workers} workers: {steps_per_s:7.0f} steps/s, "
                        f"made in {made_s:.1f} s",
                        flush=True,
                    )
    if options.json:
        print(json.dumps(measured))


def measure(games: int, seconds: float, settings: dict[str, Any]) -> tuple[float, float]:
    """Returns the steps of single games in a second, and the seconds that it took to make them."""
    start = time.perf_counter()
    env = make_env("city-v1", games, seed=1, config=settings)
    made_s = time.perf_counter() - start
    with env:
        env.reset()
        players, everyone = env.bots(["random"]), torch.zeros((games, 1), dtype=torch.int32)
        actions = torch.zeros((games, 1, 2), dtype=torch.int64)
        steps, spent = 0, 0.0
        while spent < seconds:
            players.act(everyone, actions)
            start = time.perf_counter()
            env.step(actions)
            spent += time.perf_counter() - start
            steps += games
    return steps / spent, made_s


if __name__ == "__main__":
    main()
