"""LinCity-NG, learned through the screen: an agent is trained, then players found cities in turn, two at a time.

    PYTHONPATH=. python benchmarks/city_lincity.py --folder runs/city-lincity --cities 12 --out lincity.json
    PYTHONPATH=. python benchmarks/city_lincity.py --judge --folder runs/city-lincity

The game runs by the wall clock, so a busy machine gives every city less time: players take turns, round by round. Needs
the Debian packages lincity-ng and xvfb.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from benchmarks.city_micropolis import AgentPlayer, BotPlayer, Player

import ludus
from ludus.envs.base import EnvRequest
from ludus.policies.agent import Agent
from ludus.worlds.city.env import CityEnv

SEED, GAMES = 20, 2


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cities", type=int, default=12, help="of every player")
    parser.add_argument("--folder", type=Path, default=Path("runs/city-lincity"))
    parser.add_argument("--judge", action="store_true", help="compare players of a run that is there")
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings as key=value, after --")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if not asked.judge:
        ludus.train("city", preset="lincity", overrides=asked.overrides, folder=asked.folder)
    agent = Agent.load(asked.folder, seed=SEED)
    players: dict[str, Player] = {
        "agent": AgentPlayer(agent),
        "random, the same kinds of action": BotPlayer("random"),
        "bot plan: wells around the houses": BotPlayer("plan"),
        "wait": BotPlayer("wait"),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in players}
    steps = int(agent.settings["steps"])
    with CityEnv(EnvRequest(GAMES, seed=SEED, config={**agent.settings, "steps": 10 * steps})) as env:
        for _ in range(-(-asked.cities // GAMES)):
            for name, player in players.items():
                found[name] += play(env, player, steps)
                print(f"[OK] {name}: {found[name][-GAMES:]}", file=sys.stderr, flush=True)
            if asked.out is not None:
                cities = {name: {"cities": mine} for name, mine in found.items()}
                asked.out.write_text(json.dumps({"decisions": steps, "players": cities}, indent=1) + "\n")


def play(env: CityEnv, player: Player, steps: int) -> list[dict[str, float]]:
    """Founds a city in every game and returns how they end, by what the screen says."""
    observations, started_s = env.reset(), time.monotonic()
    for step in range(steps):
        result = env.step(player.decide(env, observations, step))
        observations = result.observations
    wall_s = time.monotonic() - started_s
    said = {name: result.state_metrics[name][:, 0].tolist() for name in ("population", "funds", "year")}
    return [{**{name: values[game] for name, values in said.items()}, "wall_s": wall_s} for game in range(GAMES)]


if __name__ == "__main__":
    main()
