"""A cheap forecast of the ball, for observations and scripted players (Warp functions).

Much coarser than the physics: long time steps, no spin, no fillets. Good enough to say where to go.
"""

import warp as wp

from ludus.envs.rocket.kernels.structs import Ball
from ludus.envs.rocket.rules import (
    BACK_Y,
    BALL_DRAG,
    BALL_RADIUS,
    BALL_REST_Z,
    BALL_RESTITUTION,
    CEILING_Z,
    CORNER_SUM,
    GOAL_DEPTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    GRAVITY,
    SIDE_X,
)

REACH_Z = 180.0  # a car on the ground can meet a ball whose middle is not higher
_WALL_X = SIDE_X - BALL_RADIUS
_WALL_Y = BACK_Y - BALL_RADIUS
_NET_Y = BACK_Y + GOAL_DEPTH - BALL_RADIUS
_TOP_Z = CEILING_Z - BALL_RADIUS
_CORNER = CORNER_SUM - BALL_RADIUS * 2.0**0.5
_POST_X = GOAL_HALF_WIDTH - BALL_RADIUS
_BAR_Z = GOAL_HEIGHT - BALL_RADIUS
_LEAST_BOUNCE = 60.0  # slower than this, uu/s, it stays on the floor
_ROLL = 0.08  # share of its velocity that a rolling ball loses in a second, beside drag


@wp.func
def bounced(p: wp.float32, wall: wp.float32) -> wp.float32:
    """A coordinate that would lie beyond a wall at `wall` and at `-wall`, after the bounce."""
    beyond = wp.abs(p) - wall
    inside = wall - BALL_RESTITUTION * wp.max(beyond, 0.0)
    return wp.where(beyond > 0.0, wp.where(p > 0.0, inside, -inside), p)


@wp.func
def fly(ball: wp.ref[Ball], seconds: wp.float32):
    """Moves the ball for a short time, a quarter of a second at most."""
    if ball.asleep != 0:
        return
    p = ball.position
    v = ball.velocity
    rolls = p[2] < BALL_REST_Z + 1.0 and wp.abs(v[2]) < _LEAST_BOUNCE
    keep = 1.0 - seconds * wp.where(rolls, BALL_DRAG + _ROLL, BALL_DRAG)
    vx = v[0] * keep
    vy = v[1] * keep
    vz = wp.where(rolls, 0.0, v[2] * keep + GRAVITY * seconds)
    x = p[0] + vx * seconds
    y = p[1] + vy * seconds
    z = p[2] + wp.where(rolls, 0.0, 0.5 * (v[2] + vz) * seconds)
    if z < BALL_REST_Z and vz < 0.0:
        z = BALL_REST_Z + BALL_RESTITUTION * (BALL_REST_Z - z)
        vz = -BALL_RESTITUTION * vz
    if z > _TOP_Z:
        z = _TOP_Z
        vz = -BALL_RESTITUTION * wp.max(vz, 0.0)
    if wp.abs(x) > _WALL_X:
        x = bounced(x, _WALL_X)
        vx = -BALL_RESTITUTION * vx
    limit = wp.where(wp.abs(x) < _POST_X and z < _BAR_Z, _NET_Y, _WALL_Y)
    if wp.abs(y) > limit:
        y = bounced(y, limit)
        vy = -BALL_RESTITUTION * vy
    beyond = (wp.abs(x) + wp.abs(y)) - _CORNER
    if beyond > 0.0 and wp.abs(y) < _WALL_Y:
        sx = wp.where(x > 0.0, 1.0, -1.0)
        sy = wp.where(y > 0.0, 1.0, -1.0)
        out = 0.5 * (1.0 + BALL_RESTITUTION) * wp.max(vx * sx + vy * sy, 0.0)
        back = 0.5 * (1.0 + BALL_RESTITUTION) * beyond
        x = x - back * sx
        y = y - back * sy
        vx = vx - out * sx
        vy = vy - out * sy
    ball.position = wp.vec3f(x, y, z)
    ball.velocity = wp.vec3f(vx, vy, vz)
