"""One game taken apart for people: what renderers, tests and analyses read."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from ludus.envs.rocket.kernels.structs import Ball, Car, Match
from ludus.envs.rocket.layout import BIG_PADS, PADS
from ludus.envs.rocket.rules import TICK_HZ
from ludus.envs.warp_tools import struct_views

Vector: TypeAlias = tuple[float, float, float]
Quaternion: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class CarView:
    """One car; lengths in uu, times in s.

    Attributes:
        position: Of its centre of mass.
        velocity: In world axes.
        rotation: From the car's axes (x forward, y left, z up) to the world's; x, y, z, w.
        team: 0 blue, 1 orange.
        boost: 0 to 100.
        boosting: Whether boost burns.
        supersonic: Whether it is fast enough to demolish.
        on_ground: Whether three or four wheels touch something.
        steer: -1 to 1, to the right if positive.
        handbrake: Whether it slides.
        demolished_s: Until it is back; 0 if it drives.
    """

    position: Vector
    velocity: Vector
    rotation: Quaternion
    team: int
    boost: float
    boosting: bool
    supersonic: bool
    on_ground: bool
    steer: float
    handbrake: bool
    demolished_s: float


@dataclass(frozen=True, slots=True)
class BallView:
    """The ball; `spin` is its angular velocity in world axes, rad/s."""

    position: Vector
    velocity: Vector
    spin: Vector


@dataclass(frozen=True, slots=True)
class PadView:
    """A boost pad; `away_s` is the time until it is back, 0 if it is there."""

    x: float
    y: float
    is_big: bool
    away_s: float


@dataclass(frozen=True, slots=True)
class MatchView:
    """One game at one moment.

    Attributes:
        episode: Number of the episode.
        time_s: Since it began.
        clock_s: Left; below 0 in overtime; None if the game has no clock.
        kickoff: Whether nobody has touched the ball since the kickoff.
        since_kickoff_s: Since the last kickoff.
        goals: Of blue and of orange.
        ball: The ball.
        cars: By seat, blue first.
        pads: In the order of `layout.PADS`.
    """

    episode: int
    time_s: float
    clock_s: float | None
    kickoff: bool
    since_kickoff_s: float
    goals: tuple[int, int]
    ball: BallView
    cars: tuple[CarView, ...]
    pads: tuple[PadView, ...]


def match_view(cars: Tensor, ball: Tensor, match: Tensor, pads: Tensor, *, has_clock: bool) -> MatchView:
    """Decodes one game from its tensors.

    Args:
        cars: `(seats, words)` int32, structs of `Car`.
        ball: `(words,)` int32, a struct `Ball`.
        match: `(words,)` int32, a struct `Match`.
        pads: `(34,)` int32, the tick from which each pad is there again.
        has_clock: Whether the game is a match against the clock.
    """
    shared = {name: values.item() for name, values in struct_views(match.cpu(), Match).items()}
    fields = {name: values.tolist() for name, values in struct_views(cars.cpu(), Car).items()}
    flying = {name: values.tolist() for name, values in struct_views(ball.cpu(), Ball).items()}
    tick = int(shared["tick"])
    return MatchView(
        episode=int(shared["episode"]),
        time_s=tick / TICK_HZ,
        clock_s=shared["clock_s"] if has_clock else None,
        kickoff=bool(shared["kickoff"]),
        since_kickoff_s=shared["since_kickoff_s"],
        goals=(int(shared["blue_goals"]), int(shared["orange_goals"])),
        ball=BallView(tuple(flying["position"]), tuple(flying["velocity"]), tuple(flying["spin"])),
        cars=tuple(_car_view({name: rows[seat] for name, rows in fields.items()}) for seat in range(len(cars))),
        pads=tuple(
            PadView(x, y, number in BIG_PADS, max(back - tick, 0) / TICK_HZ)
            for number, ((x, y), back) in enumerate(zip(PADS, pads.tolist(), strict=True))
        ),
    )


def _car_view(car: dict[str, Any]) -> CarView:
    return CarView(
        position=tuple(car["position"]),
        velocity=tuple(car["velocity"]),
        rotation=tuple(car["rotation"]),
        team=car["team"],
        boost=car["boost"],
        boosting=car["boosting_s"] > 0.0,
        supersonic=bool(car["supersonic"]),
        on_ground=bool(car["on_ground"]),
        steer=car["steer"],
        handbrake=bool(car["handbrake"]),
        demolished_s=car["demolished_s"],
    )
