"""A car hits the ball: a rigid impulse on both, and the extra impulse on the ball alone (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.body import turned_by, yielding
from ludus.envs.rocket.kernels.maths import axes, column, line, to_local, to_world, turn
from ludus.envs.rocket.kernels.structs import Ball, Car
from ludus.envs.rocket.rules import (
    BALL_MASS,
    BALL_RADIUS,
    CAR_BALL_FRICTION,
    CAR_MASS,
    CONTACT_RECOVERY,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
    HULL_REACH,
)

_RATIO = CAR_MASS / BALL_MASS  # impulses here are over the car's mass
_ROUNDING = 2.0  # radius of the hull's edges as the ball feels them (measured: at edges and corners it touches later)
_MARGIN = 1.838  # they touch when they are nearer than this to each other (measured)
REACH = BALL_RADIUS + HULL_REACH + _MARGIN  # from one middle to the other; farther apart they do not touch
_INSIDE = 1.0e-3
# Where the middle of the ball lies below a car whose wheels stand on it.
_WHEELS_X = 10.0
_WHEELS_REACH_X = 22.0
_WHEELS_REACH_Y = 25.0
_EXTRA_TICKS = 2  # at most every second tick
_EXTRA_MAX_SPEED = 4600.0
_FLATTEN = 0.35  # share of the height that the direction of the extra impulse keeps
_FORWARD = 0.35  # share of its part along the car's nose that it loses


@wp.func
def nearest_in_core(local: wp.vec3f) -> wp.vec3f:
    """The point of the hull without its rounding that is nearest to a place, both in the car's axes."""
    return wp.vec3f(
        wp.clamp(local[0], HULL_OFFSET_X - HULL_HALF_X + _ROUNDING, HULL_OFFSET_X + HULL_HALF_X - _ROUNDING),
        wp.clamp(local[1], _ROUNDING - HULL_HALF_Y, HULL_HALF_Y - _ROUNDING),
        wp.clamp(local[2], HULL_OFFSET_Z - HULL_HALF_Z + _ROUNDING, HULL_OFFSET_Z + HULL_HALF_Z - _ROUNDING),
    )


@wp.func
def stands_on_ball(local: wp.vec3f) -> bool:
    """Whether three or more wheels touch a ball at the hull, given its middle in the car's axes (measured)."""
    return local[2] < 0.0 and wp.abs(local[0] - _WHEELS_X) < _WHEELS_REACH_X and wp.abs(local[1]) < _WHEELS_REACH_Y


@wp.func
def give_back_jump(car: wp.ref[Car]):
    """Gives a car in the air its second jump or dodge again, as when its wheels were on the ground."""
    car.jumped = 0
    car.double_jumped = 0
    car.dodged = 0
    car.dodging = 0


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
def miss_ball(car: wp.ref[Car]):
    """Notes that a car does not touch the ball in this tick, and counts `hit_ticks`."""
    car.hit_ticks = wp.min(car.hit_ticks + 1, 8)
    car.touching_ball = 0


@wp.func
def hit_ball(car: wp.ref[Car], ball: wp.ref[Ball]) -> wp.vec3f:
    """Lets a car and the ball collide: both velocities change at once.

    Sets `car.touching_ball` to whether they touch in this tick, and counts `car.hit_ticks`.

    Returns:
        The extra impulse as a change of the ball's velocity, to be added at the end of the tick; 0 if there is none.
    """
    none = wp.vec3f(0.0, 0.0, 0.0)
    miss_ball(car)
    away = ball.position - car.position
    if wp.dot(away, away) > REACH * REACH:
        return none
    m = axes(car.rotation)
    local = to_local(m, away)
    nearest = nearest_in_core(local)
    between = local - nearest
    distance = wp.length(between)
    gap = distance - (BALL_RADIUS + _ROUNDING)
    if gap > _MARGIN:
        return none
    n = to_world(m, between / distance)
    if distance < _INSIDE:  # the ball's centre is in the hull: out through the roof, whatever happened
        n = column(m, 2)
    relative = ball.velocity - car.velocity
    arm = to_world(m, nearest) + n * _ROUNDING
    collide_sphere(car, ball, m, arm, n)
    if gap < 0.0:
        leave_ball(car, ball, m, arm, n, gap)
    car.touching_ball = 1
    ball.asleep = 0
    if stands_on_ball(local) and car.wheels == 0:
        give_back_jump(car)
    if car.hit_ticks < _EXTRA_TICKS:
        return none
    car.hit_ticks = 0
    return extra_impulse(away, column(m, 0), relative)


@wp.func
def collide_sphere(car: wp.ref[Car], ball: wp.ref[Ball], m: wp.mat33f, arm: wp.vec3f, n: wp.vec3f):
    """Inelastic impulse with Coulomb friction between the hull at `arm` and the ball, n from the hull to the ball.

    Normal and friction impulse act on each other through the car's spin: with the response k of the relative velocity
    to impulses along n and along the slip, either both velocities vanish (sticking), or the friction is at its limit.
    """
    slip = ball.velocity - wp.cross(ball.spin, n) * BALL_RADIUS - car.velocity - wp.cross(car.spin, arm)
    into = wp.dot(slip, n)
    if into >= 0.0:
        return
    slip = slip - n * into
    speed = wp.length(slip)
    way = wp.normalize(slip)
    turned = turned_by(m, wp.cross(arm, way))
    k_nn = _RATIO + yielding(m, arm, n)
    k_ww = 3.5 * _RATIO + yielding(m, arm, way)  # the ball's own spin: 1 + 5/2
    k_nw = wp.dot(wp.cross(turned, arm), n)
    determinant = k_nn * k_ww - k_nw * k_nw
    push = (speed * k_nw - into * k_ww) / determinant
    rub = (into * k_nw - speed * k_nn) / determinant
    if rub < -CAR_BALL_FRICTION * push:
        push = -into / (k_nn - CAR_BALL_FRICTION * k_nw)
        rub = -CAR_BALL_FRICTION * push
    impulse = n * push + way * rub
    ball.velocity = ball.velocity + impulse * _RATIO
    ball.spin = ball.spin - wp.cross(n, impulse) * (2.5 * _RATIO / BALL_RADIUS)
    car.velocity = car.velocity - impulse
    car.spin = car.spin - turned_by(m, wp.cross(arm, impulse))


@wp.func
def leave_ball(car: wp.ref[Car], ball: wp.ref[Ball], m: wp.mat33f, arm: wp.vec3f, n: wp.vec3f, gap: wp.float32):
    """Moves car and ball apart by most of their penetration; velocities stay."""
    impulse = n * (-CONTACT_RECOVERY * gap / (_RATIO + yielding(m, arm, n)))
    ball.position = ball.position + impulse * _RATIO
    car.position = car.position - impulse
    car.rotation = turn(car.rotation, -turned_by(m, wp.cross(arm, impulse)), 1.0)
