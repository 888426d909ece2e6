"""A car hits the ball: a rigid impulse on both, and the extra impulse on the ball alone (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.body import turned_by, yielding
from ludus.envs.rocket.kernels.maths import axes, column, line, to_local, to_world
from ludus.envs.rocket.kernels.structs import Ball, Car
from ludus.envs.rocket.rules import (
    BALL_MASS,
    BALL_RADIUS,
    CAR_BALL_FRICTION,
    CAR_MASS,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
    HULL_REACH,
)

_RATIO = CAR_MASS / BALL_MASS  # impulses here are over the car's mass
_EXTRA_MAX_SPEED = 4600.0
_FLATTEN = 0.35  # share of the height that the direction of the extra impulse keeps
_FORWARD = 0.35  # share of its part along the car's nose that it loses


@wp.func
def extra_factor(speed: wp.float32) -> wp.float32:
    """Share of the relative speed that the extra impulse gives the ball."""
    if speed < 2300.0:
        return line(speed, 500.0, 0.65, 2300.0, 0.55)
    return line(speed, 2300.0, 0.55, 4600.0, 0.30)


@wp.func
def extra_impulse(away: wp.vec3f, forward: wp.vec3f, relative: wp.vec3f) -> wp.vec3f:
    """Change of the ball's velocity that is not physics: along a flattened line from the car to the ball."""
    way = wp.normalize(wp.vec3f(away[0], away[1], away[2] * _FLATTEN))
    way = wp.normalize(way - forward * (_FORWARD * wp.dot(way, forward)))
    speed = wp.min(wp.length(relative), _EXTRA_MAX_SPEED)
    return way * (speed * extra_factor(speed))


@wp.func
def hit_ball(car: wp.ref[Car], ball: wp.ref[Ball]) -> wp.vec3f:
    """Lets a car and the ball collide: both velocities change at once.

    Sets `car.touching_ball` to whether they touch in this tick, and counts `car.hit_ticks`.

    Returns:
        The extra impulse as a change of the ball's velocity, to be added at the end of the tick; 0 if there is none.
    """
    none = wp.vec3f(0.0, 0.0, 0.0)
    car.hit_ticks = wp.min(car.hit_ticks + 1, 8)
    car.touching_ball = 0
    away = ball.position - car.position
    reach = BALL_RADIUS + HULL_REACH
    if wp.dot(away, away) > reach * reach:
        return none
    m = axes(car.rotation)
    middle = wp.vec3f(HULL_OFFSET_X, 0.0, HULL_OFFSET_Z)
    local = to_local(m, away) - middle
    nearest = wp.vec3f(
        wp.clamp(local[0], -HULL_HALF_X, HULL_HALF_X),
        wp.clamp(local[1], -HULL_HALF_Y, HULL_HALF_Y),
        wp.clamp(local[2], -HULL_HALF_Z, HULL_HALF_Z),
    )
    gap = local - nearest
    distance = wp.length(gap)
    if distance > BALL_RADIUS or distance < 1.0e-3:
        return none
    n = to_world(m, gap / distance)
    arm = to_world(m, nearest + middle)
    relative = ball.velocity - car.velocity
    collide_sphere(car, ball, m, arm, n)
    car.touching_ball = 1
    ball.asleep = 0
    if car.hit_ticks < 2:
        return none
    car.hit_ticks = 0
    return extra_impulse(away, column(m, 0), relative)


@wp.func
def collide_sphere(car: wp.ref[Car], ball: wp.ref[Ball], m: wp.mat33f, arm: wp.vec3f, n: wp.vec3f):
    """Inelastic impulse with Coulomb friction between the hull at `arm` and the ball, n from the hull to the ball."""
    slip = ball.velocity - wp.cross(ball.spin, n) * BALL_RADIUS - car.velocity - wp.cross(car.spin, arm)
    into = wp.dot(slip, n)
    if into >= 0.0:
        return
    push = -into / (_RATIO + yielding(m, arm, n))
    impulse = n * push
    slip = slip - n * into
    speed = wp.length(slip)
    if speed > 1.0e-6:
        way = slip / speed
        rub = wp.min(CAR_BALL_FRICTION * push, speed / (3.5 * _RATIO + yielding(m, arm, way)))
        impulse = impulse - way * rub
    ball.velocity = ball.velocity + impulse * _RATIO
    ball.spin = ball.spin - wp.cross(n, impulse) * (2.5 * _RATIO / BALL_RADIUS)
    car.velocity = car.velocity - impulse
    car.spin = car.spin - turned_by(m, wp.cross(arm, impulse))
