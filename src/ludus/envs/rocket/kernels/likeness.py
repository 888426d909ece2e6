"""What the next decision of a car or a game will have to compute, as a number: those with the same go the same way.

The threads of a GPU run in groups of 32, and a group takes as long as all the ways together that its threads take. A
hull that lies on the ground costs ten times what a flight does, so what is alike is best computed side by side.
"""

import math

import warp as wp

from ludus.envs.rocket.car_rules import WHEEL_REACH
from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.car_ball import REACH
from ludus.envs.rocket.kernels.maths import axes, to_local
from ludus.envs.rocket.kernels.structs import Ball, Car, Rules
from ludus.envs.rocket.kernels.wheels import over_flat_floor
from ludus.envs.rocket.layout import BIG
from ludus.envs.rocket.rules import (
    CONTACT_MARGIN,
    DT,
    GRAVITY,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
    HULL_REACH,
)
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

_LOOK = 8  # ticks that are looked ahead
_OFF_FIELD = 0
_IN_FLIGHT = 1
_ROLLING = _IN_FLIGHT + _LOOK + 1  # on all wheels, then on some
_LANDING = _ROLLING + 2  # the hull will touch: the tick in which it does, and how the wheels do
_WAYS = _LANDING + _LOOK * (_LOOK + 2)
_MEETING = 2 * _WAYS  # is added to the numbers of cars that can meet others
# Two cars that are farther apart neither touch nor stand in the same pad's box.
_CARS_REACH = 2.0 * math.sqrt(2.0) * (BIG.box_half + HULL_REACH)
# How far a tick moves a car beyond its speed at the decision's start: by jumps, dodges and contacts (1,080 uu/s), and
# the more the longer a decision is, by engine and boost (4,320 uu/s^2); and a ball, by gravity and bounces.
_CAR_KICK = 9.0
_CAR_GAIN = 0.15
_BALL_KICK = 5.0


@wp.func
def car_travel(car: Car, ticks: wp.float32) -> wp.float32:
    """How far a car comes in so many ticks at most, if it meets nobody."""
    return (wp.length(car.velocity) * DT + _CAR_KICK + _CAR_GAIN * ticks) * ticks


@wp.func
def ball_travel(ball: Ball, ticks: wp.float32) -> wp.float32:
    """How far a ball comes in so many ticks at most, if it meets nobody; a wall moves it out by a tick's way."""
    return wp.length(ball.velocity) * DT * (ticks + 1.0) + _BALL_KICK * ticks


@wp.func
def way_to(car: Car, surface: wp.vec4f) -> wp.int32:
    """Which way a car's ticks will take beside a surface, if it is a plane: when wheels and hull will come to it."""
    n = wp.vec3f(surface[0], surface[1], surface[2])
    m = axes(car.rotation)
    up = to_local(m, n)
    turning = wp.cross(up, to_local(m, car.spin))
    speed = wp.dot(car.velocity, n)
    fall = wp.where(car.wheels == 0, 0.5 * GRAVITY * n[2], 0.0)
    lands = int(_LOOK)
    touches = int(_LOOK)
    for back in range(_LOOK):
        tick = _LOOK - 1 - back
        time_s = wp.float32(tick + 1) * DT
        height = surface[3] + (speed + fall * time_s) * time_s
        then = up + turning * time_s
        below = wp.abs(then[0]) * HULL_HALF_X + wp.abs(then[1]) * HULL_HALF_Y + wp.abs(then[2]) * HULL_HALF_Z
        if height < WHEEL_REACH:
            lands = tick
        if height + then[0] * HULL_OFFSET_X + then[2] * HULL_OFFSET_Z - below < CONTACT_MARGIN:
            touches = tick
    wheels = wp.where(car.wheels == 4, 0, 1)
    if touches == _LOOK:
        return wp.where(car.wheels == 0, _IN_FLIGHT + lands, _ROLLING + wheels)
    return _LANDING + touches * (_LOOK + 2) + wp.where(car.wheels == 0, wp.min(lands, _LOOK - 1), _LOOK + wheels)


@wp.func
def way_of(car: Car) -> wp.int32:
    """Which way a car's ticks will take; those over the flat floor come first."""
    if car.demolished_s > 0.0:
        return _OFF_FIELD
    if over_flat_floor(car.position):
        return way_to(car, wp.vec4f(0.0, 0.0, 1.0, car.position[2]))
    return _WAYS + way_to(car, arena_distance(car.position))


@wp.func
def is_near(one: wp.vec3f, other: wp.vec3f, distance: wp.float32) -> bool:
    """Whether two places are nearer to each other than a distance."""
    between = other - one
    return wp.dot(between, between) < distance * distance


@wp.func
def meetings(cars: wp.array[Car], ball: Ball, rules: Rules) -> wp.int32:
    """Who can meet whom in the next decision: a car the ball (1), cars each other (2)."""
    ticks = wp.float32(rules.ticks)
    found = int(0)
    for seat in range(rules.blue + rules.orange):
        if cars[seat].demolished_s > 0.0:
            found |= 2  # it comes back where nobody is
        travel = car_travel(cars[seat], ticks)
        if is_near(cars[seat].position, ball.position, REACH + travel + ball_travel(ball, ticks)):
            found |= 1
        for other in range(seat):
            far = _CARS_REACH + travel + car_travel(cars[other], ticks)
            if is_near(cars[seat].position, cars[other].position, far):
                found |= 2
    return found


@wp.kernel
def likeness_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    rules: Rules,
    of_cars: wp.array2d[wp.int16],
    of_games: wp.array[wp.uint8],
    first: int,
):
    """Writes the numbers of one game and its cars; a game's is 0 where nobody can meet anybody."""
    game = wp.tid() + first
    found = meetings(cars[game], balls[game], rules)
    of_games[game] = wp.uint8(found)
    for seat in range(rules.blue + rules.orange):
        of_cars[game, seat] = wp.int16(way_of(cars[game, seat]) + wp.where(found != 0, _MEETING, 0))
