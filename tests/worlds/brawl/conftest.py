"""A stage for tests: games of Brawl set up by hand, keys written as words, and the state as plain numbers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.envs.base import StepResult
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_views
from ludus.worlds.brawl.env import BrawlEnv
from ludus.worlds.brawl.kernels.structs import Item, Match
from ludus.worlds.brawl.rules import BODY_HALF_HEIGHT, HIGH_TOP, KEYS, LOW_TOP, Ground, Key, State

PLAIN_MOVES = Path(__file__).with_name("plain_moves.yaml")


class Stage:
    """Games set up by hand.

    Seat 0 starts on the low ground (left), seat 1 on the high one (right), whatever sides were drawn. Keys are words
    such as `"right jump"`; left and right are those of the stage for both seats. No weapons appear unless asked for,
    and the moves are those of `plain_moves.yaml`.
    """

    def __init__(self, env: BrawlEnv) -> None:
        self.env = env
        self.fields = env.fields()
        self.items = struct_views(env.items, Item)
        self.matches = struct_views(env.matches, Match)
        for seat, home in ((0, -1), (1, 1)):
            self.set(seat, home=home)
            self.stand(seat, 5.0 * home, facing=-home)

    def set(self, seat: int, **values: float) -> None:
        """Writes fields of `structs.Player`, in every game."""
        for name, value in values.items():
            self.fields[name][:, seat] = value

    def stand(self, seat: int, x: float, **values: float) -> None:
        """Puts a fighter at rest on the ground below x."""
        top = HIGH_TOP if x > 0 else LOW_TOP
        still = {"y": top - BODY_HALF_HEIGHT, "vx": 0.0, "vy": 0.0, "state": State.STANDING, "ground": Ground.SOLID}
        self.set(seat, x=x, **(still | values))

    def hang(self, seat: int, x: float, y: float, **values: float) -> None:
        """Puts a fighter into the air."""
        free = {"vx": 0.0, "vy": 0.0, "state": State.IN_AIR, "ground": Ground.NONE}
        self.set(seat, x=x, y=y, **(free | values))

    def keys(self, *held: str) -> Tensor:
        """Returns the actions `(games, 2, 10)` of both seats, the same in every game."""
        actions = torch.zeros((self.env.num_envs, 2, KEYS), dtype=torch.int8)
        for seat, words in enumerate(held):
            for word in words.split():
                actions[:, seat, Key[word.upper()]] = 1
        mirrored = self.fields["home"] > 0
        left, right = actions[..., Key.LEFT].clone(), actions[..., Key.RIGHT].clone()
        actions[..., Key.LEFT] = torch.where(mirrored, right, left)
        actions[..., Key.RIGHT] = torch.where(mirrored, left, right)
        return actions

    def step(self, first: str = "", second: str = "", frames: int = 1) -> StepResult:
        """Holds these keys for some frames and returns the last one's result."""
        for _ in range(frames):
            result = self.env.step(self.keys(first, second))
        return result

    def get(self, seat: int, name: str, game: int = 0) -> float:
        """Returns one field of a fighter."""
        return float(self.fields[name][game, seat])

    def place(self, seat: int) -> tuple[float, float]:
        """Returns where a fighter of game 0 is."""
        return self.get(seat, "x"), self.get(seat, "y")

    def state(self, seat: int = 0) -> State:
        """Returns what a fighter of game 0 does."""
        return State(int(self.get(seat, "state")))

    def drop_item(self, slot: int, x: float, y: float, weapon: int, *, life: int = 300, lock: int = 0) -> None:
        """Lays a weapon on the stage, in every game."""
        for name, value in {"x": x, "y": y, "weapon": weapon, "life": life, "lock": lock}.items():
            self.items[name][:, slot] = value


MakeStage = Callable[..., Stage]


@pytest.fixture(scope="session")
def idle_envs() -> Iterator[dict[str, list[BrawlEnv]]]:
    """Environments by their settings that no test uses at the moment: making one costs more than most tests."""
    envs: dict[str, list[BrawlEnv]] = {}
    yield envs
    for several in envs.values():
        for env in several:
            env.close()


@pytest.fixture
def make_stage(idle_envs: dict[str, list[BrawlEnv]]) -> Iterator[MakeStage]:
    """Makes stages: `make_stage(games, seed=..., step_limit=...)`, with settings by their names."""
    used: list[tuple[str, BrawlEnv]] = []

    def make(games: int = 1, *, seed: int = 0, **config: Any) -> Stage:
        settings = {"weapon_spawns": False, "threads": 1, "move_table": PLAIN_MOVES} | config
        key = f"{games} {sorted(settings.items())}"
        idle = idle_envs.setdefault(key, [])
        env = idle.pop() if idle else make_env("brawl", games, config=settings)
        assert isinstance(env, BrawlEnv)
        env.reset(seed=seed)
        used.append((key, env))
        return Stage(env)

    yield make
    for key, env in used:
        idle_envs[key].append(env)


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """One game without weapons."""
    return make_stage()
