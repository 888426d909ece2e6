"""An hour of the real Micropolis, unattended: an agent learns while its games are killed, stopped, closed and covered.

    python -m benchmarks.city_micropolis --minutes 65 --folder runs/city-micropolis --out micropolis.json
    python -m benchmarks.city_micropolis --judge --folder runs/city-micropolis     # players of a run that is there

Faults are done to the games in turn (`city_faults.py`). Then the agent and random players found cities on the same
lands, with the same number of decisions each; when a city is finished, the game's own prompt says how many of its zones
have power, which no player ever sees. Needs the Debian packages micropolis, micropolis-data and xvfb.
"""

import argparse
import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from benchmarks.city_faults import FaultyBackend
from benchmarks.micropolis_map import POWERED, TILE_MASK, ZONE_MIDDLE, MicropolisMap
from torch import Tensor

import ludus
from ludus.envs.base import EnvRequest, Observations, StepResult
from ludus.policies.agent import Agent
from ludus.worlds.city import env as city
from ludus.worlds.city.screen_backend import ScreenBackend

SEED = 20  # of the comparison
GAMES = 6
BLOCKS = ("homes", "works", "homes", "shops")
ZONES = (240, 692)  # tiles of homes, shops and works, from the first to the one behind the last
ROADS = (64, 206)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=65.0, help="of training")
    parser.add_argument("--every-s", type=float, default=180.0, help="seconds between faults")
    parser.add_argument("--cities", type=int, default=12, help="of every player in the comparison")
    parser.add_argument("--folder", type=Path, default=Path("runs/city-micropolis"))
    parser.add_argument("--same-kinds", action="store_true", help="leave out the random player with every tool")
    parser.add_argument("--agent-alone", action="store_true", help="leave out all other players")
    parser.add_argument("--judge", action="store_true", help="compare players of a run that is there")
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="*", help="settings as key=value, after --")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if not asked.judge:
        train("micropolis", asked.folder, asked.minutes, asked.every_s, asked.overrides)
    agent = Agent.load(asked.folder / "run", seed=SEED)
    # Random players and the plan do without the masks of sites, which the agent has.
    as_before = {**agent.settings, "sites": "all", "once": ()}
    every_tool = {} if asked.same_kinds else {"random, every tool on every lot": {"kinds": None, "lots": None}}
    players = {
        "agent": play(agent.settings, asked.cities, AgentPlayer(agent)),
        "agent, most likely actions": play(agent.settings, asked.cities, AgentPlayer(agent, deterministic=True)),
    }
    if not asked.agent_alone:
        players |= {
            "random, the same kinds of action": play(as_before, asked.cities, BotPlayer("random")),
            **{
                name: play({**as_before, **changed}, asked.cities, BotPlayer("random"))
                for name, changed in every_tool.items()
            },
            "scripted: a plant, then blocks around it": play(as_before, asked.cities, ScriptedPlayer()),
            "bot plan: the same, works apart from homes": play(as_before, asked.cities, BotPlayer("plan")),
        }
    document = {"run": run_record(asked.folder), "players": players}
    if asked.out is not None:
        asked.out.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(players, indent=1))


def train(preset: str, folder: Path, minutes: float, every_s: float, overrides: list[str]) -> None:
    """Trains by a preset on games that are disturbed, until the time is over."""
    folder.mkdir(parents=True)
    FaultyBackend.folder, FaultyBackend.every_s = folder, every_s
    setattr(city, "ScreenBackend", FaultyBackend)  # noqa: B010 - the name that the world uses
    started_s = time.monotonic()
    settings = ["evaluation.every_env_steps=1_000_000", "monitoring.console=plain"]
    stop = threading.Timer(60.0 * minutes, os.kill, (os.getpid(), signal.SIGTERM))
    stop.daemon = True
    stop.start()
    run = ludus.train("city", preset=preset, overrides=[*settings, *overrides], folder=folder / "run")
    stop.cancel()
    outcome = {"wall_s": time.monotonic() - started_s, "env_steps": run.env_steps, "why": run.stop_reason}
    (folder / "wall.json").write_text(json.dumps(outcome))
    setattr(city, "ScreenBackend", ScreenBackend)  # noqa: B010 - players are compared without faults


class Player(Protocol):
    """Somebody who founds cities."""

    def decide(self, env: city.CityEnv, observations: Observations, step: int) -> Tensor:
        """Returns decisions `(games, 1, 2)`."""


class AgentPlayer:
    """The agent, with actions drawn from its policy or the most likely ones; it forgets at the beginning of a city."""

    def __init__(self, agent: Agent, *, deterministic: bool = False) -> None:
        self._agent, self._deterministic = agent, deterministic
        self._memory: Any = None

    def decide(self, env: city.CityEnv, observations: Observations, step: int) -> Tensor:
        """Asks the agent."""
        seen = {name: entry[:, 0] for name, entry in observations.items()}
        memory = self._memory if step else None
        chosen, self._memory = self._agent.predict(seen, memory, deterministic=self._deterministic)
        return torch.as_tensor(chosen).reshape(env.num_envs, 1, 2)


class BotPlayer:
    """One of the world's own bots: `random` draws from what is allowed, `plan` follows the profile's plan."""

    def __init__(self, name: str) -> None:
        self._name = name

    def decide(self, env: city.CityEnv, observations: Observations, step: int) -> Tensor:
        """Asks the bot."""
        actions = torch.zeros((env.num_envs, 1, 2), dtype=torch.int64)
        env.bots((self._name,)).act(torch.zeros((env.num_envs, 1), dtype=torch.int32), actions)
        return actions


class ScriptedPlayer:
    """Builds a power plant in the middle, and blocks from there on outwards; sees nothing but what it can pay for."""

    def decide(self, env: city.CityEnv, observations: Observations, step: int) -> Tensor:
        """Takes the next step of the plan in all games."""
        catalogue = env.backend.catalogue
        row, column = catalogue.rows // 2, (catalogue.columns - 1) // 2
        cells = [(y, x) for y in range(catalogue.rows) for x in range(catalogue.columns)]
        cells.sort(key=lambda cell: abs(cell[0] - row) + abs(cell[1] - column))
        # The plant reaches over to the lot beside it.
        plan = [("coal", (row, column)), *zip(itertools.cycle(BLOCKS), _without(cells, row, column), strict=False)]
        name, (y, x) = plan[step] if step < len(plan) else ("wait", (0, 0))
        decision = torch.tensor([[catalogue.number(name), y * catalogue.columns + x]]).repeat(env.num_envs, 1, 1)
        is_allowed = observations["mask"][:, 0, catalogue.number(name)].bool()
        return decision * is_allowed[:, None, None]


def _without(cells: list[tuple[int, int]], row: int, column: int) -> list[tuple[int, int]]:
    return [cell for cell in cells if cell not in ((row, column), (row, column + 1))]


def play(settings: Mapping[str, Any], cities: int, player: Player) -> dict[str, Any]:
    """Founds cities with a player, on the same lands, and returns how they end."""
    steps, finals, started_s = int(settings["steps"]), list[dict[str, float]](), time.monotonic()
    # One more than are played: at the end of an episode the games would be gone before they are judged.
    with city.CityEnv(EnvRequest(GAMES, seed=SEED, config={**settings, "steps": steps + 1})) as env:
        kinds, placed = np.zeros(len(env.backend.catalogue), np.int64), 0
        for _ in range(-(-cities // GAMES)):
            observations = env.reset()
            for step in range(steps):
                actions = player.decide(env, observations, step)
                result = env.step(actions)
                observations = result.observations
                kinds += np.bincount(actions[:, 0, 0].numpy(), minlength=len(kinds))
                placed += int(result.events["placed"].sum())
            finals += [final(env, game, result) for game in range(GAMES)]
            print(f"[OK] {finals[-GAMES:]}", file=sys.stderr, flush=True)
    shares = dict(zip(env.backend.catalogue.names, (kinds / kinds.sum()).round(3).tolist(), strict=True))
    return {"cities": finals, "wall_s": round(time.monotonic() - started_s, 1), "kinds": shares, "placed": placed}


def final(env: city.CityEnv, game: int, result: StepResult) -> dict[str, float]:
    """Returns what the screen says of a city, and what the game knows of its zones."""
    said = {name: float(result.state_metrics[name][game, 0]) for name in ("population", "funds", "year")}
    backend = env.backend
    if not isinstance(backend, ScreenBackend):
        raise TypeError("games on real screens are judged here")
    driver = backend.games[game].driver
    tiles = MicropolisMap(driver).tiles()
    kinds = tiles & TILE_MASK
    is_zone = ((tiles & ZONE_MIDDLE) > 0) & (kinds >= ZONES[0]) & (kinds < ZONES[1])
    rows, columns = np.nonzero(is_zone)
    is_road = (kinds >= ROADS[0]) & (kinds < ROADS[1])
    beside = [
        bool(is_road[max(y - 2, 0) : y + 3, max(x - 2, 0) : x + 3].any()) for y, x in zip(rows, columns, strict=True)
    ]
    powered = int(np.count_nonzero(is_zone & ((tiles & POWERED) > 0)))
    return {**said, "land": driver.seed, "zones": len(rows), "powered": powered, "at_road": sum(beside)}


def run_record(folder: Path) -> dict[str, Any]:
    """Returns what was written down while the agent learned."""
    record: dict[str, Any] = {}
    for name in ("faults", "troubles", "cities"):
        file = folder / f"{name}.jsonl"
        record[name] = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    wall = folder / "wall.json"
    return record | (json.loads(wall.read_text()) if wall.exists() else {})


if __name__ == "__main__":
    main()
