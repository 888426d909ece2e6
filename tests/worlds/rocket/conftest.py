"""A pitch for tests: games of Rocket set up by hand, controls by name, and the state as plain numbers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from ludus.envs.base import StepResult
from ludus.envs.registry import make_env
from ludus.envs.warp_tools import struct_views
from ludus.worlds.rocket.env import RocketEnv
from ludus.worlds.rocket.kernels.structs import Ball, Match
from ludus.worlds.rocket.rules import CAR_REST_Z, CONTROLS, Control

LEVEL = {"x": (0.0, 0.0, 0.0, 1.0), "y": (0.0, 0.0, 0.5**0.5, 0.5**0.5), "-y": (0.0, 0.0, -(0.5**0.5), 0.5**0.5)}


class Pitch:
    """Games set up by hand; actions are continuous, so that controls can be named.

    Attributes:
        env: The environment.
        cars: Live views of the cars' fields, `(games, seats)` or `(games, seats, n)`.
        ball: Of the ball's, `(games,)` or `(games, n)`.
        match: Of the match's, `(games,)`.
    """

    def __init__(self, env: RocketEnv) -> None:
        self.env = env
        self.cars = env.fields()
        self.ball = struct_views(env.balls, Ball)
        self.match = struct_views(env.matches, Match)

    def park(
        self, seat: int, x: float, y: float, *, look: str = "y", speed: float = 0.0, z: float = CAR_REST_Z
    ) -> None:
        """Puts a car down level, looking along an axis and driving at a speed, in every game."""
        self.cars["position"][:, seat] = torch.tensor([x, y, z])
        self.cars["rotation"][:, seat] = torch.tensor(LEVEL[look])
        way = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "-y": (0.0, -1.0, 0.0)}[look]
        self.cars["velocity"][:, seat] = speed * torch.tensor(way)
        self.cars["spin"][:, seat] = 0.0

    def put_ball(self, x: float, y: float, z: float, velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> None:
        """Puts the ball somewhere, awake, in every game."""
        self.ball["position"][:] = torch.tensor([x, y, z])
        self.ball["velocity"][:] = torch.tensor(velocity)
        self.ball["spin"][:] = 0.0
        self.ball["asleep"][:] = 0

    def controls(self, *named: dict[str, float]) -> Tensor:
        """Returns the actions `(games, seats, 8)`, a mapping of names to values a seat; the others rest."""
        actions = torch.zeros((self.env.num_envs, self.env.spec.seats, CONTROLS))
        for seat, values in enumerate(named):
            for name, value in values.items():
                actions[:, seat, Control[name.upper()]] = value
        return actions

    def step(self, *named: dict[str, float], steps: int = 1) -> StepResult:
        """Holds the controls for some decisions and returns the last one's result."""
        for _ in range(steps):
            result = self.env.step(self.controls(*named))
        return result

    def events(self, *named: dict[str, float], steps: int) -> dict[str, list[float]]:
        """Holds the controls for some decisions and returns the sums of all events, a number a seat, of game 0."""
        total = torch.zeros(self.env.spec.seats, len(self.env.spec.events))
        for _ in range(steps):
            result = self.step(*named)
            total += torch.stack([result.events[name][0] for name in self.env.spec.events], -1)
        return {name: total[:, column].tolist() for column, name in enumerate(self.env.spec.events)}


MakePitch = Callable[..., Pitch]


@pytest.fixture
def make_pitch() -> Iterator[MakePitch]:
    """Makes pitches; the first argument is the number of games, settings are those of `RocketConfig`."""
    made: list[RocketEnv] = []

    def make(games: int = 1, *, seed: int = 0, **settings: Any) -> Pitch:
        config = {"actions": "continuous", "threads": 1, "no_touch_s": None} | settings
        env = make_env("rocket", games, seed=seed, config=config)
        assert isinstance(env, RocketEnv)
        made.append(env)
        return Pitch(env)

    yield make
    for env in made:
        env.close()


@pytest.fixture
def pitch(make_pitch: MakePitch) -> Pitch:
    """One game of one against one."""
    return make_pitch()
