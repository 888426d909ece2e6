"""One game decoded into plain numbers, for renderers, tests and analyses, and interpolated between two decisions.

Between two views nothing is known but how things moved at both. A body that flew on from the first view and one that
flew back from the second come closest somewhere: there it was hit, or bounced. The path between is therefore two
straight lines that meet at that point. For an even acceleration the error is less than one unit of length, and a hit is
shown at its exact time.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from torch import Tensor

from ludus.envs.warp_tools import struct_views
from ludus.worlds.rocket import rules
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match
from ludus.worlds.rocket.layout import BIG_PADS, PADS
from ludus.worlds.rocket.rules import BACK_Y, CEILING_Z, GOAL_HALF_WIDTH, GOAL_HEIGHT, SIDE_X

Vector: TypeAlias = tuple[float, float, float]
Quaternion: TypeAlias = tuple[float, float, float, float]

_STILL = 1e-6  # (uu/s)^2; below, the velocity did not change
_CAR_SLOWS_HZ, _BALL_SLOWS_HZ = 2.2, 1.6  # how quickly things come to rest after a goal
_EARLIEST = 0.05  # share of the time between; a meeting is not sought nearer to either view


@dataclass(frozen=True, slots=True)
class CarView:
    """One car; lengths in uu, times in s."""

    position: Vector  # of its centre of mass
    velocity: Vector  # in world axes
    rotation: Quaternion  # from the car's axes (x forward, y left, z up) to the world's; x, y, z, w
    team: int  # 0 blue, 1 orange
    boost: float  # 0 to 100
    boosting: bool  # whether boost burns
    supersonic: bool  # whether it is fast enough to demolish
    on_ground: bool  # whether three or four wheels touch something
    steer: float  # -1 to 1, to the right if positive
    handbrake: bool  # whether it slides
    demolished_s: float  # until it is back; 0 if it drives


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
    """One game at one moment."""

    episode: int
    time_s: float  # since it began
    clock_s: float | None  # left; below 0 in overtime; None if the game has no clock
    kickoff: bool  # whether the ball is untouched since the kickoff
    since_kickoff_s: float
    goals: tuple[int, int]  # of blue and of orange
    ball: BallView
    cars: tuple[CarView, ...]  # by seat, blue first
    pads: tuple[PadView, ...]  # in the order of `layout.PADS`


def match_view(cars: Tensor, ball: Tensor, match: Tensor, pads: Tensor, *, has_clock: bool) -> MatchView:
    """Decode one game from its int32 structs: cars `(seats, words)`, ball and match `(words,)`, pads `(34,)`.

    A pad's number is the tick from which it is there again; `has_clock` says whether the game is a match with a clock.
    """
    shared = {name: values.item() for name, values in struct_views(match.cpu(), Match).items()}
    fields = {name: values.tolist() for name, values in struct_views(cars.cpu(), Car).items()}
    flying = {name: values.tolist() for name, values in struct_views(ball.cpu(), Ball).items()}
    tick = int(shared["tick"])
    return MatchView(
        episode=int(shared["episode"]),
        time_s=tick / rules.TICK_HZ,
        clock_s=shared["clock_s"] if has_clock else None,
        kickoff=bool(shared["kickoff"]),
        since_kickoff_s=shared["since_kickoff_s"],
        goals=(int(shared["blue_goals"]), int(shared["orange_goals"])),
        ball=BallView(tuple(flying["position"]), tuple(flying["velocity"]), tuple(flying["spin"])),
        cars=tuple(_car_view({name: rows[seat] for name, rows in fields.items()}) for seat in range(len(cars))),
        pads=tuple(
            PadView(x, y, number in BIG_PADS, max(back - tick, 0) / rules.TICK_HZ)
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


def between(first: MatchView, second: MatchView, share: float) -> MatchView:
    """Return the game at `share` (0 to 1) of the way from `first` to `second`.

    Where something was repositioned in between (a kickoff, a respawn), it is extrapolated from `first` until `share`
    is 1.
    """
    duration_s = second.time_s - first.time_s
    if share >= 1.0 or first.episode != second.episode or duration_s <= 0.0:
        return second
    passed_s = share * duration_s
    if second.since_kickoff_s < first.since_kickoff_s:
        cars = tuple(_car_ahead(car, passed_s) for car in first.cars)
        return replace(first, time_s=first.time_s + passed_s, ball=_ball_ahead(first.ball, passed_s), cars=cars)
    pairs = zip(first.cars, second.cars, strict=True)
    return replace(
        first,
        time_s=first.time_s + passed_s,
        clock_s=None if first.clock_s is None or second.clock_s is None else _mix(first.clock_s, second.clock_s, share),
        since_kickoff_s=_mix(first.since_kickoff_s, second.since_kickoff_s, share),
        ball=_ball_between(first.ball, second.ball, duration_s, share),
        cars=tuple(_car_between(one, other, duration_s, share) for one, other in pairs),
    )


def after_goal(before: MatchView, kickoff: MatchView, passed_s: float) -> MatchView:
    """Return how the game might have continued after a goal, where the simulator continues with the kickoff.

    `before` is the last view before the goal, `kickoff` the first one after it, which has the score.
    """
    cars = tuple(_car_after_goal(car, passed_s) for car in before.cars)
    x, y, z = _ahead(before.ball.position, before.ball.velocity, _slowed(passed_s, _BALL_SLOWS_HZ))
    z = before.ball.position[2] + before.ball.velocity[2] * passed_s + 0.5 * rules.GRAVITY * passed_s**2
    side, back = GOAL_HALF_WIDTH - rules.BALL_RADIUS, BACK_Y + rules.GOAL_DEPTH - rules.BALL_RADIUS
    place = (_within(x, side), _within(y, back), min(max(z, rules.BALL_RADIUS), GOAL_HEIGHT - rules.BALL_RADIUS))
    ball = replace(before.ball, position=place, spin=_ahead((0.0, 0.0, 0.0), before.ball.spin, math.exp(-passed_s)))
    return replace(before, time_s=before.time_s + passed_s, goals=kickoff.goals, ball=ball, cars=cars)


def _car_after_goal(car: CarView, passed_s: float) -> CarView:
    if car.demolished_s > 0.0:
        return _car_ahead(car, passed_s)
    x, y, z = _ahead(car.position, car.velocity, _slowed(passed_s, _CAR_SLOWS_HZ))
    if not car.on_ground:
        z = car.position[2] + car.velocity[2] * passed_s + 0.5 * rules.GRAVITY * passed_s**2
    back = BACK_Y + (rules.GOAL_DEPTH if abs(x) < GOAL_HALF_WIDTH - rules.HULL_REACH else 0.0) - rules.HULL_REACH
    place = (
        _within(x, SIDE_X - rules.HULL_REACH),
        _within(y, back),
        min(max(z, rules.CAR_REST_Z), CEILING_Z - rules.HULL_REACH),
    )
    velocity = _ahead((0.0, 0.0, 0.0), car.velocity, math.exp(-_CAR_SLOWS_HZ * passed_s))
    return replace(car, position=place, velocity=velocity, boosting=False, supersonic=False)


def _slowed(passed_s: float, slows_hz: float) -> float:
    """Return the time in which a body at constant speed travels as far as one that slows down."""
    return (1.0 - math.exp(-slows_hz * passed_s)) / slows_hz


def _within(value: float, most: float) -> float:
    return min(max(value, -most), most)


def _ball_between(first: BallView, second: BallView, duration_s: float, share: float) -> BallView:
    position = _place(first.position, first.velocity, second.position, second.velocity, duration_s, share)
    return BallView(position, _mixed(first.velocity, second.velocity, share), _mixed(first.spin, second.spin, share))


def _car_between(first: CarView, second: CarView, duration_s: float, share: float) -> CarView:
    if first.demolished_s > 0.0 or second.demolished_s > 0.0:
        return _car_ahead(first, share * duration_s)
    return replace(
        second,
        position=_place(first.position, first.velocity, second.position, second.velocity, duration_s, share),
        velocity=_mixed(first.velocity, second.velocity, share),
        rotation=_turned(first.rotation, second.rotation, share),
        boost=_mix(first.boost, second.boost, share),
    )


def _ball_ahead(ball: BallView, passed_s: float) -> BallView:
    x, y, z = _ahead(ball.position, ball.velocity, passed_s)
    return replace(ball, position=(x, y, max(z, rules.BALL_RADIUS)))


def _car_ahead(car: CarView, passed_s: float) -> CarView:
    if car.demolished_s > 0.0:
        return replace(car, demolished_s=max(car.demolished_s - passed_s, 1e-3))
    return replace(car, position=_ahead(car.position, car.velocity, passed_s))


def _place(start: Vector, leaving: Vector, end: Vector, arriving: Vector, duration_s: float, share: float) -> Vector:
    """Return the place at a share of the way: two lines that meet where they come closest."""
    change = _less(arriving, leaving)
    gap = _less(_ahead(end, arriving, -duration_s), start)  # between both lines at the beginning
    weight = _dot(change, change)
    meeting = 0.5
    if weight > _STILL:
        meeting = min(max(-_dot(gap, change) / (weight * duration_s), _EARLIEST), 1.0 - _EARLIEST)
    missed = _ahead(gap, change, meeting * duration_s)  # what is still between them where they are closest
    if share <= meeting:
        return _ahead(_ahead(start, leaving, share * duration_s), missed, 0.5 * share / meeting)
    return _ahead(_ahead(end, arriving, (share - 1.0) * duration_s), missed, -0.5 * (1.0 - share) / (1.0 - meeting))


def _turned(first: Quaternion, second: Quaternion, share: float) -> Quaternion:
    """Return the rotation at a share of the way; decisions are so near to each other that a straight way is a turn."""
    nearer = 1.0 if sum(a * b for a, b in zip(first, second, strict=True)) >= 0.0 else -1.0
    x, y, z, w = (_mix(a, nearer * b, share) for a, b in zip(first, second, strict=True))
    length = (x * x + y * y + z * z + w * w) ** 0.5
    return x / length, y / length, z / length, w / length


def _mix(a: float, b: float, share: float) -> float:
    return a + (b - a) * share


def _mixed(a: Vector, b: Vector, share: float) -> Vector:
    return _ahead(a, _less(b, a), share)


def _ahead(place: Vector, velocity: Vector, time: float) -> Vector:
    return place[0] + velocity[0] * time, place[1] + velocity[1] * time, place[2] + velocity[2] * time


def _less(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
