"""What the next decision of a car or a game will have to compute, as a number: those with the same go the same way.

The threads of a GPU run in groups of 32, and a group takes as long as all the ways together that its threads take. A
hull that lies on the ground costs ten times what a flight does, so what is alike is best computed side by side.
"""

import warp as wp

from ludus.envs.rocket.car_rules import WHEEL_REACH
from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.maths import axes
from ludus.envs.rocket.kernels.structs import Ball, Car, Rules
from ludus.envs.rocket.kernels.wheels import over_flat_floor
from ludus.envs.rocket.rules import BALL_RADIUS, HULL_REACH
from ludus.envs.warp_tools import EXACT

wp.set_module_options(EXACT)

# What a car comes nearer in a decision of eight ticks, about.
_AHEAD = 120.0
_BALL_REACH = BALL_RADIUS + HULL_REACH + _AHEAD
_CAR_REACH = 2.0 * HULL_REACH + _AHEAD
_HULL_WAYS = 16  # numbers from here on: hulls that touch something


@wp.func
def way_of(car: Car) -> wp.int32:
    """Which way a car's ticks will take: off the field, in flight, near a surface, on wheels, or on its hull.

    Of a hull that touches something it counts which of its eight corners is the lowest, too.
    """
    if car.demolished_s > 0.0:
        return 0
    is_floor = over_flat_floor(car.position)
    distance = car.position[2]
    if not is_floor:
        surface = arena_distance(car.position)
        distance = surface[3]
    if distance > WHEEL_REACH + _AHEAD:
        return wp.where(is_floor, 1, 2)
    if car.body_contact == 0:
        return wp.where(is_floor, 3, 7) + wp.where(car.wheels == 0, 0, wp.where(car.wheels == 4, 1, 2))
    m = axes(car.rotation)
    corner = wp.where(m[2, 0] > 0.0, 1, 0) + wp.where(m[2, 1] > 0.0, 2, 0) + wp.where(m[2, 2] > 0.0, 4, 0)
    return _HULL_WAYS + wp.where(is_floor, 0, 8) + corner


@wp.kernel
def likeness_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    rules: Rules,
    of_cars: wp.array2d[wp.uint8],
    of_games: wp.array[wp.uint8],
    first: int,
):
    """Writes the numbers of one game and its cars; a game's says who can meet whom: a car the ball (1), cars (2)."""
    game = wp.tid() + first
    meets = int(0)
    for seat in range(rules.blue + rules.orange):
        position = cars[game, seat].position
        of_cars[game, seat] = wp.uint8(way_of(cars[game, seat]))
        away = balls[game].position - position
        if wp.dot(away, away) < _BALL_REACH * _BALL_REACH:
            meets |= 1
        for other in range(seat):
            away = cars[game, other].position - position
            if wp.dot(away, away) < _CAR_REACH * _CAR_REACH:
                meets |= 2
    of_games[game] = wp.uint8(meets)
