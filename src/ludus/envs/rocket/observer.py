"""One game described in plain numbers, and what a seat sees of it: by the very kernels that agents are trained with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.rocket.kernels import observe as observe_kernels
from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.layout import PAD_COUNT
from ludus.envs.rocket.observation import LAYOUTS
from ludus.envs.rocket.rules import MAX_CARS, MAX_TEAM
from ludus.envs.rocket.view import Quaternion, Vector
from ludus.envs.warp_tools import fill_struct, load_kernels, struct_array, struct_views, struct_words


@dataclass(frozen=True, slots=True)
class CarState:
    """All of a car that observations read; names, units and axes are those of `structs.Car`."""

    position: Vector
    velocity: Vector
    spin: Vector
    rotation: Quaternion
    team: int
    boost: float
    supersonic: bool
    on_ground: bool
    jumping: bool
    jumped: bool
    double_jumped: bool
    dodged: bool
    dodging: bool
    air_since_jump_s: float
    jump_before: bool
    handbrake_value: float
    demolished_s: float


@dataclass(frozen=True, slots=True)
class BallState:
    """All of the ball that observations read; see `structs.Ball`."""

    position: Vector
    velocity: Vector
    spin: Vector
    asleep: bool


PartT = TypeVar("PartT", CarState, BallState)


@dataclass(frozen=True, slots=True)
class GameState:
    """One game at one moment.

    Attributes:
        cars: Blue's first, then orange's; at most 3 a team.
        ball: The ball.
        pad_ticks: Until each pad of `layout.PADS` is back; 0 if it is there.
        clock_s: As `structs.Match.clock_s`.
        kickoff: Whether nobody has touched the ball since the kickoff.
        goals: Of blue and of orange.
    """

    cars: tuple[CarState, ...]
    ball: BallState
    pad_ticks: tuple[int, ...]
    clock_s: float
    kickoff: bool
    goals: tuple[int, int]

    @classmethod
    def of(cls, cars: Tensor, ball: Tensor, match: Tensor, pads: Tensor) -> Self:
        """Reads a game of an environment.

        Args:
            cars: `(seats, words)` int32, structs of `Car`.
            ball: `(words,)` int32, a struct `Ball`.
            match: `(words,)` int32, a struct `Match`.
            pads: `(34,)` int32, the tick from which each pad is there again.
        """
        shared = struct_views(match.cpu(), Match)
        tick = int(shared["tick"])
        return cls(
            cars=tuple(_plain(struct_views(cars.cpu(), Car), CarState)),
            ball=next(_plain(struct_views(ball.cpu().unsqueeze(0), Ball), BallState)),
            pad_ticks=tuple(max(back - tick, 0) for back in pads.tolist()),
            clock_s=float(shared["clock_s"]),
            kickoff=bool(shared["kickoff"]),
            goals=(int(shared["blue_goals"]), int(shared["orange_goals"])),
        )


def _plain(views: Mapping[str, Tensor], kind: type[PartT]) -> Iterator[PartT]:
    """Reads the fields of `kind` from structs `(count, ...)`, as plain numbers."""
    columns: list[list[Any]] = []
    for field in fields(kind):
        column = views[field.name].tolist()
        plain = tuple if isinstance(column[0], list) else bool if field.type is bool else None
        columns.append([plain(value) for value in column] if plain is not None else column)
    for row in zip(*columns, strict=True):
        yield kind(*row)


class Observer:
    """Sees games that are described in plain numbers, in one of the layouts of `observation`.

    Other cars lie in their slots in the order of their seats, as with the setting `shuffle: false`.
    """

    def __init__(self, layout: str) -> None:
        """Makes room for one game; `layout` is `compact` or `full`."""
        self._cars = torch.zeros((1, MAX_CARS, struct_words(Car)), dtype=torch.int32)
        self._balls = torch.zeros((1, struct_words(Ball)), dtype=torch.int32)
        self._matches = torch.zeros((1, struct_words(Match)), dtype=torch.int32)
        self._pads = torch.zeros((1, PAD_COUNT), dtype=torch.int32)
        self._seen = torch.zeros((1, MAX_CARS, LAYOUTS[layout].size))
        self._car_views = [struct_views(car, Car) for car in self._cars[0]]
        self._ball_views, self._match_views = struct_views(self._balls[0], Ball), struct_views(self._matches[0], Match)
        self._kernel = observe_kernels.KERNELS[layout][0]
        self._rules = Rules()
        load_kernels(observe_kernels, self._cars.device)

    def observe(self, state: GameState, seat: int) -> NDArray[np.float32]:
        """Returns what a seat sees, `(values,)`.

        Raises:
            ConfigError: A team has more than three cars, cars are out of order, or there is no such seat.
        """
        teams = [car.team for car in state.cars]
        blue, orange = teams.count(0), teams.count(1)
        if max(blue, orange) > MAX_TEAM or teams != [0] * blue + [1] * orange:
            raise ConfigError(
                f"cars must be those of team 0, then of team 1, at most {MAX_TEAM} each; got teams {teams}"
            )
        if not 0 <= seat < len(teams):
            raise ConfigError(f"seat {seat} does not exist; valid: 0 to {len(teams) - 1}")
        self._write(state)
        fill_struct(self._rules, {"blue": blue, "orange": orange, "shuffle": 0})
        row = wp.types.vector(length=self._seen.shape[-1], dtype=wp.float32)
        arrays = [
            struct_array(self._cars, Car),
            struct_array(self._balls, Ball),
            struct_array(self._matches, Match),
            wp.from_torch(self._pads, dtype=PadRow),
        ]
        wp.launch(self._kernel, 1, inputs=[*arrays, self._rules, wp.from_torch(self._seen, dtype=row), 0], device="cpu")
        seen: NDArray[np.float32] = self._seen[0, seat].numpy().copy()
        return seen

    def _write(self, state: GameState) -> None:
        for seat, car in enumerate(state.cars):
            _fill(self._car_views[seat], car)
        _fill(self._ball_views, state.ball)
        self._match_views["clock_s"].fill_(state.clock_s)
        self._match_views["kickoff"].fill_(state.kickoff)
        self._match_views["blue_goals"].fill_(state.goals[0])
        self._match_views["orange_goals"].fill_(state.goals[1])
        self._pads[0] = torch.tensor(state.pad_ticks, dtype=torch.int32)  # the tick of the match is 0


def _fill(views: Mapping[str, Tensor], part: CarState | BallState) -> None:
    """Writes a part of the state into the fields of its struct."""
    for field in fields(part):
        views[field.name].copy_(torch.tensor(getattr(part, field.name)))
