"""A real game, learned through the screen: an agent is trained, then players found cities in turn, some at a time.

    PYTHONPATH=. python benchmarks/city_game.py --game lincity --folder runs/city-lincity --out lincity.json
    PYTHONPATH=. python benchmarks/city_game.py --game lincity --folder runs/city-lincity --judge
    PYTHONPATH=. python benchmarks/city_game.py --game opencity --minutes 61 --every-s 90 --out opencity.json

With `--minutes`, training ends after that time, and faults are done to the games in turn while it lasts
(`city_faults.py`). The games run by the wall clock, so a busy machine gives every city less time: players take turns,
round by round. Needs the game's Debian packages and xvfb.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from benchmarks.city_faults import FaultyBackend
from benchmarks.city_micropolis import AgentPlayer, BotPlayer, Player, run_record, train

import ludus
from ludus.envs.base import EnvRequest
from ludus.policies.agent import Agent
from ludus.worlds.city.env import CityEnv

SEED = 20
GAMES = 2  # that are played side by side
PLANS = {"lincity": "bot plan: wells around the houses", "opencity": "bot plan: a power plant, then blocks around it"}
QUIET_DECISIONS = 100
FAULTS = ("game killed", "game stopped", "window destroyed", "screen killed")  # that every game can meet


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=sorted(PLANS), required=True)
    parser.add_argument("--minutes", type=float, help="of training with faults; all of the preset without by default")
    parser.add_argument("--every-s", type=float, default=60.0, help="seconds between faults")
    parser.add_argument("--cities", type=int, default=12, help="of every player")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--judge", action="store_true", help="compare players of a run that is there")
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings as key=value, after --")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    run = asked.folder if asked.minutes is None else asked.folder / "run"
    if not asked.judge and asked.minutes is None:
        ludus.train("city", preset=asked.game, overrides=asked.overrides, folder=run)
    elif not asked.judge:
        FaultyBackend.quiet_decisions, FaultyBackend.faults = QUIET_DECISIONS, FAULTS
        train(asked.game, asked.folder, asked.minutes, asked.every_s, asked.overrides)
    agent = Agent.load(run, seed=SEED)
    players: dict[str, Player] = {
        "agent": AgentPlayer(agent),
        "random, the same kinds of action": BotPlayer("random"),
        PLANS[asked.game]: BotPlayer("plan"),
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
                record = {} if asked.minutes is None else {"run": run_record(asked.folder)}
                asked.out.write_text(json.dumps({"decisions": steps, **record, "players": cities}, indent=1) + "\n")


def play(env: CityEnv, player: Player, steps: int) -> list[dict[str, float]]:
    """Founds a city in every game and returns how they end, by what the screen says."""
    observations, started_s = env.reset(), time.monotonic()
    for step in range(steps):
        result = env.step(player.decide(env, observations, step))
        observations = result.observations
    wall_s = time.monotonic() - started_s
    said = {name: result.state_metrics[name][:, 0].tolist() for name in ("population", "funds", "year")}
    return [{**{name: values[game] for name, values in said.items()}, "wall_s": wall_s} for game in range(env.num_envs)]


if __name__ == "__main__":
    main()
