"""The physics alone, without match, pads or clock, for measurements and tests (Warp kernel)."""

import warp as wp

from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.ball import bounce_ball, clamp_ball, move_ball, push_ball
from ludus.envs.rocket.kernels.body import collide_body
from ludus.envs.rocket.kernels.car import advance_car, finish_car, move_car
from ludus.envs.rocket.kernels.car_ball import hit_ball
from ludus.envs.rocket.kernels.car_car import collide_cars
from ludus.envs.rocket.kernels.options import PHYSICS
from ludus.envs.rocket.kernels.structs import Ball, Car
from ludus.envs.rocket.rules import Control

wp.set_module_options(PHYSICS)


@wp.kernel
def arena_kernel(places: wp.array[wp.vec3f], surfaces: wp.array[wp.vec4f]):
    """Normal and distance of the arena at places."""
    index = wp.tid()
    surfaces[index] = arena_distance(places[index])


@wp.func
def hold_controls(car: wp.ref[Car], controls: wp.array3d[wp.float32], game: int, seat: int):
    """Puts a row of controls into a car."""
    car.throttle = controls[game, seat, Control.THROTTLE]
    car.steer = controls[game, seat, Control.STEER]
    car.pitch = controls[game, seat, Control.PITCH]
    car.yaw = controls[game, seat, Control.YAW]
    car.roll = controls[game, seat, Control.ROLL]
    car.jump = wp.int32(controls[game, seat, Control.JUMP])
    car.boost_key = wp.int32(controls[game, seat, Control.BOOST])
    car.handbrake = wp.int32(controls[game, seat, Control.HANDBRAKE])


@wp.kernel
def lab_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    controls: wp.array3d[wp.float32],
    contacts: wp.array[wp.int32],
    ticks: int,
):
    """Advances every game by some ticks, in the order of a match's tick.

    Args:
        cars: `(games, seats)`.
        balls: `(games,)`.
        controls: `(games, seats, 8)`, held for all of the ticks.
        contacts: `(games,)`; gets every flag of `car_car.Contact` that came up.
        ticks: How many.
    """
    game = wp.tid()
    seats = cars.shape[1]
    for _ in range(ticks):
        ball = balls[game]
        for seat in range(seats):
            hold_controls(cars[game, seat], controls, game, seat)
            advance_car(cars[game, seat])
        push_ball(ball)
        for seat in range(seats):
            collide_body(cars[game, seat])
        bounce_ball(ball)
        extra = wp.vec3f(0.0, 0.0, 0.0)
        for seat in range(seats):
            extra = extra + hit_ball(cars[game, seat], ball)
        for seat in range(seats):
            for other in range(seat + 1, seats):
                met = collide_cars(cars[game, seat], cars[game, other], seat, other)
                contacts[game] = contacts[game] | met
        move_ball(ball)
        ball.velocity = ball.velocity + extra
        clamp_ball(ball)
        balls[game] = ball
        for seat in range(seats):
            move_car(cars[game, seat])
            finish_car(cars[game, seat])
