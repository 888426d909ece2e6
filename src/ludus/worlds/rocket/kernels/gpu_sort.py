"""Sort keys of cars and games by the code path of their next decision, so that similar work runs side by side.

The threads of a GPU run in warps of 32, and a warp takes as long as all code paths of its threads together. A hull that
lies on the ground costs ten times as much as a flight, so sorting by code path avoids divergence.
"""

import math

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.arena import arena_distance
from ludus.worlds.rocket.kernels.contacts import REACH
from ludus.worlds.rocket.kernels.maths import axes, to_local
from ludus.worlds.rocket.kernels.structs import Ball, Car, Rules
from ludus.worlds.rocket.kernels.wheels import WHEEL_REACH, over_flat_floor
from ludus.worlds.rocket.layout import BIG

wp.set_module_options(EXACT)

_LOOK = 8  # ticks that are looked ahead
_OFF_FIELD, _IN_FLIGHT = 0, 1
_ROLLING = _IN_FLIGHT + _LOOK + 1  # on all wheels, then on some
_LANDING = _ROLLING + 2  # the hull will touch: the tick in which it does, and how the wheels do
_PATHS = _LANDING + _LOOK * (_LOOK + 2)
_MEETING = 2 * _PATHS  # is added to the keys of cars with possible contacts
# Two cars that are farther apart neither touch nor stand in the same pad's box.
_CARS_REACH = 2.0 * math.sqrt(2.0) * (BIG.box_half + const.HULL_REACH)
# Upper bounds per tick beyond the speed at the decision's start: for a car by jumps, dodges and contacts (1,080 uu/s)
# and, growing with the length of the decision, by engine and boost (4,320 uu/s^2); for a ball by gravity and bounces.
_CAR_KICK, _CAR_GAIN, _BALL_KICK = 9.0, 0.15, 5.0


@wp.func
def car_travel(car: Car, ticks: float) -> float:
    """Return an upper bound of a car's path in some ticks without contacts."""
    return (wp.length(car.velocity) * const.DT + _CAR_KICK + _CAR_GAIN * ticks) * ticks


@wp.func
def ball_travel(ball: Ball, ticks: float) -> float:
    """Return an upper bound of the ball's path in some ticks without contacts; a wall may add a tick's path."""
    return wp.length(ball.velocity) * const.DT * (ticks + 1.0) + _BALL_KICK * ticks


@wp.func
def path_near(car: Car, surface: wp.vec4f) -> int:
    """Return the code path of a car's ticks near a plane: when its wheels and its hull will reach it."""
    n = wp.vec3f(surface[0], surface[1], surface[2])
    m = axes(car.rotation)
    up = to_local(m, n)
    turning = wp.cross(up, to_local(m, car.spin))
    speed = wp.dot(car.velocity, n)
    fall = wp.where(car.wheels == 0, 0.5 * const.GRAVITY * n[2], 0.0)
    lands = int(_LOOK)
    touches = int(_LOOK)
    for back in range(_LOOK):
        tick = _LOOK - 1 - back
        time_s = wp.float32(tick + 1) * const.DT
        height = surface[3] + (speed + fall * time_s) * time_s
        then = up + turning * time_s
        below = (
            wp.abs(then[0]) * const.HULL_HALF_X
            + wp.abs(then[1]) * const.HULL_HALF_Y
            + wp.abs(then[2]) * const.HULL_HALF_Z
        )
        if height < WHEEL_REACH:
            lands = tick
        if height + then[0] * const.HULL_OFFSET_X + then[2] * const.HULL_OFFSET_Z - below < const.CONTACT_MARGIN:
            touches = tick
    wheels = wp.where(car.wheels == 4, 0, 1)
    if touches == _LOOK:
        return wp.where(car.wheels == 0, _IN_FLIGHT + lands, _ROLLING + wheels)
    return _LANDING + touches * (_LOOK + 2) + wp.where(car.wheels == 0, wp.min(lands, _LOOK - 1), _LOOK + wheels)


@wp.func
def path_of(car: Car) -> int:
    """Return the code path that a car's ticks will take; those over the flat floor come first."""
    if car.demolished_s > 0.0:
        return _OFF_FIELD
    if over_flat_floor(car.position):
        return path_near(car, wp.vec4f(0.0, 0.0, 1.0, car.position[2]))
    return _PATHS + path_near(car, arena_distance(car.position))


@wp.func
def is_near(one: wp.vec3f, other: wp.vec3f, distance: float) -> bool:
    """Return whether two places are nearer to each other than a distance."""
    between = other - one
    return wp.dot(between, between) < distance * distance


@wp.func
def meetings(cars: wp.array[Car], ball: Ball, rules: Rules) -> int:
    """Return which contacts are possible in the next decision: a car with the ball (1), cars with each other (2)."""
    ticks = wp.float32(rules.ticks)
    found = int(0)
    for seat in range(rules.blue + rules.orange):
        if cars[seat].demolished_s > 0.0:
            found |= 2  # it respawns at a free place
        travel = car_travel(cars[seat], ticks)
        if is_near(cars[seat].position, ball.position, REACH + travel + ball_travel(ball, ticks)):
            found |= 1
        for other in range(seat):
            far = _CARS_REACH + travel + car_travel(cars[other], ticks)
            if is_near(cars[seat].position, cars[other].position, far):
                found |= 2
    return found


@wp.kernel
def sort_key_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    rules: Rules,
    of_cars: wp.array2d[wp.int16],
    of_games: wp.array[wp.uint8],
    first: int,
):
    """Write the keys of one game and its cars; a game's key is 0 where no contact is possible."""
    game = wp.tid() + first
    found = meetings(cars[game], balls[game], rules)
    of_games[game] = wp.uint8(found)
    for seat in range(rules.blue + rules.orange):
        of_cars[game, seat] = wp.int16(path_of(cars[game, seat]) + wp.where(found != 0, _MEETING, 0))
