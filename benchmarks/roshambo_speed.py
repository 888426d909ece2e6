"""How fast Roshambo is played: throws per second beside a yardstick measured in the same run.

The yardstick is OpenSpiel's repeated matrix game of the same rules and length, one game with random
throws (extra `openspiel`); without OpenSpiel it is Gymnasium's CartPole with random actions. A throw here includes the
choice of a scripted opponent, all styles in equally many games; the other seat throws at random. `--openspiel` also
measures the 43 bots of OpenSpiel in worker processes.

    PYTHONPATH=. python benchmarks/roshambo_speed.py --device cuda --games 65536
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from importlib.util import find_spec

import torch
from benchmarks.sim_speed import gymnasium_yardstick

from ludus.envs.base import BatchedEnv
from ludus.envs.registry import make_env
from ludus.worlds.roshambo.openspiel import OPENSPIEL_BOTS

THROWS = 1_000  # of a match


def main() -> None:
    """Measures and prints what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="device of the games")
    parser.add_argument("--games", type=int, default=8192, help="games in the batch")
    parser.add_argument("--matches", type=int, default=1, help="matches that are played in every game")
    parser.add_argument("--openspiel", action="store_true", help="measure the bots of OpenSpiel as well")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    name, yardstick = yardstick_rate()
    row: dict[str, str | float] = {"device": arguments.device, "games": arguments.games}
    with make_env("roshambo", arguments.games, arguments.device) as env:
        row["throws per second"] = rate(env, list(env.spec.bots), arguments.matches)
        row["throws per second, no opponent"] = rate(env, [], arguments.matches)
    if arguments.openspiel:
        with make_env("roshambo", 4 * len(OPENSPIEL_BOTS), arguments.device) as env:
            row["throws per second, bots of OpenSpiel"] = rate(env, [f"openspiel:{bot}" for bot in OPENSPIEL_BOTS], 1)
    row |= {"yardstick": name, "yardstick steps per second": yardstick}
    for part in ("", ", no opponent"):  # the yardstick has no opponent that thinks
        row[f"ratio{part}"] = float(row[f"throws per second{part}"]) / yardstick
    if arguments.json:
        print(json.dumps(row, indent=2))
        return
    for key, value in row.items():
        print(f"{key:40}{value:,.1f}" if isinstance(value, float) else f"{key:40}{value}")


def rate(env: BatchedEnv, bots: list[str], matches: int) -> float:
    """Return throws per second of whole matches against each bot in equally many games."""
    roster = env.bots(bots) if bots else None
    place = torch.arange(env.num_envs, device=env.device) % max(len(bots), 1)
    assignment = torch.stack([torch.full_like(place, -1), place], 1).int()
    drawn = torch.randint(0, 3, (16, env.num_envs, 2), device=env.device)

    def play(steps: int) -> None:
        for step in range(steps):
            actions = drawn[step % len(drawn)]
            if roster is not None:
                roster.act(assignment, actions)
            env.step(actions)
        if env.device.type == "cuda":
            torch.cuda.synchronize()

    play(20)  # compiles kernels, starts processes
    env.reset(seed=1)
    started_s = time.perf_counter()
    play(THROWS * matches)
    return env.num_envs * THROWS * matches / (time.perf_counter() - started_s)


def yardstick_rate(seconds: float = 3.0) -> tuple[str, float]:
    """Return the name of the yardstick and its steps per second."""
    if find_spec("pyspiel") is None:
        other = gymnasium_yardstick("CartPole-v1")
        return other.name, _calls_per_second(other.step, seconds)
    import pyspiel

    game = pyspiel.load_game(f"repeated_game(stage_game=matrix_rps(),num_repetitions={THROWS})")
    state = game.new_initial_state()
    chance = random.Random(0)  # noqa: S311 - nothing here is secret

    def step() -> None:
        nonlocal state
        state.apply_actions([chance.randrange(3), chance.randrange(3)])
        if state.is_terminal():
            state = game.new_initial_state()

    return "OpenSpiel repeated matrix_rps, one game", _calls_per_second(step, seconds)


def _calls_per_second(step: Callable[[], None], seconds: float) -> float:
    count, started_s = 0, time.perf_counter()
    while time.perf_counter() - started_s < seconds:
        for _ in range(1000):
            step()
        count += 1000
    return count / (time.perf_counter() - started_s)


if __name__ == "__main__":
    main()
