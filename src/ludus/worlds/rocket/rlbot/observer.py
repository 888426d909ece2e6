"""One game described in plain numbers, observed and acted on by the same kernels that agents are trained with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import ActionError, ConfigError
from ludus.envs.base import action_dtypes
from ludus.envs.warp_tools import fill_struct, load_kernels, struct_array, struct_views, struct_words
from ludus.worlds.rocket.actions import action_space
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.env import decode_launch
from ludus.worlds.rocket.kernels import controls as control_kernels
from ludus.worlds.rocket.kernels import observe as observe_kernels
from ludus.worlds.rocket.kernels.structs import Ball, Car, ControlRow, Match, PadRow, Rules, make_tables
from ludus.worlds.rocket.layout import PAD_COUNT
from ludus.worlds.rocket.observation import LAYOUT
from ludus.worlds.rocket.rules import CONTROLS, MAX_CARS, MAX_TEAM
from ludus.worlds.rocket.view import Quaternion, Vector


@dataclass(frozen=True, slots=True)
class CarState:
    """Everything of a car that observations read; names, units and axes as in `structs.Car`."""

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
    """Everything of the ball that observations read; see `structs.Ball`."""

    position: Vector
    velocity: Vector
    spin: Vector
    asleep: bool


PartT = TypeVar("PartT", CarState, BallState)


@dataclass(frozen=True, slots=True)
class GameState:
    """One game at one instant."""

    cars: tuple[CarState, ...]  # blue's first, then orange's; at most 3 per team
    ball: BallState
    pad_ticks: tuple[int, ...]  # ticks until each pad of `layout.PADS` is back; 0 if it is active
    clock_s: float  # as `structs.Match.clock_s`
    kickoff: bool  # whether the ball is untouched since the kickoff
    goals: tuple[int, int]  # of blue and of orange

    @classmethod
    def of(cls, cars: Tensor, ball: Tensor, match: Tensor, pads: Tensor) -> Self:
        """Read one game of an environment; arguments as for `view.match_view`."""
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
    """Read the fields of `kind` from structs `(count, ...)` as plain numbers."""
    columns: list[list[Any]] = []
    for field in fields(kind):
        column = views[field.name].tolist()
        plain = tuple if isinstance(column[0], list) else bool if field.type is bool else None
        columns.append([plain(value) for value in column] if plain is not None else column)
    for row in zip(*columns, strict=True):
        yield kind(*row)


class Observer:
    """Computes observations of games given as plain numbers.

    Other cars fill their slots in the order of their seats, as with the setting `shuffle: false`.
    """

    def __init__(self) -> None:
        self._cars = torch.zeros((1, MAX_CARS, struct_words(Car)), dtype=torch.int32)
        self._balls = torch.zeros((1, struct_words(Ball)), dtype=torch.int32)
        self._matches = torch.zeros((1, struct_words(Match)), dtype=torch.int32)
        self._pads = torch.zeros((1, PAD_COUNT), dtype=torch.int32)
        self._seen = torch.zeros((1, MAX_CARS, LAYOUT.size))
        self._car_views = [struct_views(car, Car) for car in self._cars[0]]
        self._ball_views, self._match_views = struct_views(self._balls[0], Ball), struct_views(self._matches[0], Match)
        self._rules = Rules()
        load_kernels(observe_kernels, self._cars.device)

    def observe(self, state: GameState, seat: int) -> NDArray[np.float32]:
        """Return the observation `(values,)` of a seat; raise ConfigError unless there are teams of 1 to 3 in order."""
        teams = [car.team for car in state.cars]
        blue, orange = teams.count(0), teams.count(1)
        if max(blue, orange) > MAX_TEAM or teams != [0] * blue + [1] * orange:
            raise ConfigError(
                f"cars must be ordered by team, 0 then 1, with at most {MAX_TEAM} each; got teams {teams}"
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
        inputs = [*arrays, self._rules, wp.from_torch(self._seen, dtype=row), 0]
        wp.launch(observe_kernels.observe_kernel, 1, inputs=inputs, device="cpu")
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
    """Write a part of the state into the fields of its struct."""
    for field in fields(part):
        views[field.name].copy_(torch.tensor(getattr(part, field.name)))


class Controls(NamedTuple):
    """Controls of a car, in the order of `rules.Control`: five axes from -1 to 1, three buttons."""

    throttle: float = 0.0
    steer: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0
    jump: bool = False
    boost: bool = False
    handbrake: bool = False


REST = Controls()


class Decoder:
    """Decodes actions of the configured action space into controls."""

    def __init__(self, config: RocketConfig) -> None:
        self._space = action_space(config)
        self._action = torch.zeros((1, 1, *(self._space.shape or ())), dtype=action_dtypes(self._space)[0])
        self._controls = torch.zeros((1, 1, CONTROLS))
        rules = Rules()
        fill_struct(rules, {"blue": 1, "orange": 0})
        controls = wp.from_torch(self._controls, dtype=ControlRow)
        tables = make_tables(self._action.device, config.setters)
        self._kernel, inputs = decode_launch(config, self._action, tables, rules, controls)
        self._inputs = [*inputs, 0]
        load_kernels(control_kernels, self._action.device)

    def decode(self, action: Any) -> Controls:  # noqa: ANN401 - a number, or an array of them
        """Return the controls of one action; raise ActionError if it has the wrong shape."""
        given = torch.as_tensor(np.asarray(action))
        if given.shape != self._action.shape[2:]:
            raise ActionError(f"an action must be in {self._space}, got an array of shape {tuple(given.shape)}")
        self._action[0, 0] = given
        wp.launch(self._kernel, 1, inputs=self._inputs, device="cpu")
        throttle, steer, pitch, yaw, roll, *buttons = self._controls[0, 0].tolist()
        jump, boost, handbrake = (button > 0.0 for button in buttons)
        return Controls(throttle, steer, pitch, yaw, roll, jump, boost, handbrake)
