"""The ball: gravity and drag, bounces off the arena, and a cheap forecast of its path (Warp functions).

The forecast (`fly`) serves observations and scripted players. It is much coarser than the physics: long time steps, no
spin, no fillets.
"""

import warp as wp

from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.arena import arena_distance
from ludus.worlds.rocket.kernels.maths import clamp_length
from ludus.worlds.rocket.kernels.structs import Ball

_KEPT = (1.0 - const.BALL_DRAG) ** const.DT  # share of the velocity that drag leaves in a tick
_FALL = const.GRAVITY * const.DT
_STILL = 1.0e-6  # uu/s
_SLOPE = 0.9  # a surface whose normal has a smaller part upward is not a ramp's foot

REACH_Z = 180.0  # a car on the ground can meet a ball whose middle is not higher
_WALL_X = const.SIDE_X - const.BALL_RADIUS
_WALL_Y = const.BACK_Y - const.BALL_RADIUS
_NET_Y = const.BACK_Y + const.GOAL_DEPTH - const.BALL_RADIUS
_TOP_Z = const.CEILING_Z - const.BALL_RADIUS
_CORNER = const.CORNER_SUM - const.BALL_RADIUS * 2.0**0.5
_POST_X = const.GOAL_HALF_WIDTH - const.BALL_RADIUS
_BAR_Z = const.GOAL_HEIGHT - const.BALL_RADIUS
_LEAST_BOUNCE = 60.0  # slower than this, uu/s, it stays on the floor
_ROLL = 0.08  # share of its velocity that a rolling ball loses per second, in addition to drag


@wp.func
def push_ball(ball: wp.ref[Ball]):
    """Drag and gravity; a ball that sleeps hangs still."""
    if ball.asleep != 0:
        return
    ball.velocity = ball.velocity * _KEPT
    ball.velocity[2] = ball.velocity[2] + _FALL


@wp.func
def bounce_ball(ball: wp.ref[Ball]):
    """Bounce the ball off the arena."""
    if ball.asleep != 0:
        return
    surface = arena_distance(ball.position)
    if surface[3] > const.BALL_RADIUS + const.CONTACT_MARGIN:
        return
    bounce_off(ball, wp.vec3f(surface[0], surface[1], surface[2]), surface[3] - const.BALL_RADIUS)
    height = ball.position[2] - const.BALL_RADIUS
    if surface[2] < _SLOPE and height <= const.CONTACT_MARGIN:  # at the foot of a post, or in the edge of a goal's room
        bounce_off(ball, wp.vec3f(0.0, 0.0, 1.0), height)


@wp.func
def bounce_off(ball: wp.ref[Ball], n: wp.vec3f, gap: float):
    """Restitution, and Coulomb friction that couples velocity and spin, at a surface with normal n."""
    ball.position = ball.position - n * (const.CONTACT_RECOVERY * wp.min(gap, 0.0))
    v = ball.velocity
    into = wp.dot(v, n)
    # Restitution is of the velocity before this tick's gravity (measured: 316.0 -> 189.6).
    approach = into - _FALL * n[2]
    bounce = wp.where(approach < -const.BALL_BOUNCE_MIN, -const.BALL_RESTITUTION * approach, 0.0)
    push = bounce - into
    if push <= 0.0:
        return
    # At the contact, r = -R n, the surface of the ball moves at v + spin x r.
    slip = v - n * into - wp.cross(ball.spin, n) * const.BALL_RADIUS
    speed = wp.length(slip)
    ball.velocity = v + n * push
    if speed > _STILL:
        # A tangential impulse j changes the slip by j (1/m + R^2/I) = 7/2 j/m: sticking takes 2/7 of it.
        change = slip * (-wp.min(const.BALL_FRICTION * push, speed * (2.0 / 7.0)) / speed)
        ball.velocity = ball.velocity + change
        ball.spin = ball.spin - wp.cross(n, change) * (2.5 / const.BALL_RADIUS)


@wp.func
def move_ball(ball: wp.ref[Ball]):
    """Move the ball for a tick; its rotation does not matter and is not kept."""
    ball.position = ball.position + ball.velocity * const.DT


@wp.func
def clamp_ball(ball: wp.ref[Ball]):
    """Limit speed and spin, and wake a ball that something has set in motion."""
    ball.velocity = clamp_length(ball.velocity, const.BALL_MAX_SPEED)
    ball.spin = clamp_length(ball.spin, const.BALL_MAX_SPIN)
    if wp.dot(ball.velocity, ball.velocity) > 0.0 or wp.dot(ball.spin, ball.spin) > 0.0:
        ball.asleep = 0


@wp.func
def bounced(p: float, wall: float) -> float:
    """Return a coordinate that would lie beyond a wall at `wall` and at `-wall`, after the bounce."""
    beyond = wp.abs(p) - wall
    inside = wall - const.BALL_RESTITUTION * wp.max(beyond, 0.0)
    return wp.where(beyond > 0.0, wp.where(p > 0.0, inside, -inside), p)


@wp.func
def fly(ball: wp.ref[Ball], seconds: float):
    """Move the ball for a short time, a quarter of a second at most."""
    if ball.asleep != 0:
        return
    p = ball.position
    v = ball.velocity
    rolls = p[2] < const.BALL_REST_Z + 1.0 and wp.abs(v[2]) < _LEAST_BOUNCE
    keep = 1.0 - seconds * wp.where(rolls, const.BALL_DRAG + _ROLL, const.BALL_DRAG)
    vx = v[0] * keep
    vy = v[1] * keep
    vz = wp.where(rolls, 0.0, v[2] * keep + const.GRAVITY * seconds)
    x = p[0] + vx * seconds
    y = p[1] + vy * seconds
    z = p[2] + wp.where(rolls, 0.0, 0.5 * (v[2] + vz) * seconds)
    if z < const.BALL_REST_Z and vz < 0.0:
        z = const.BALL_REST_Z + const.BALL_RESTITUTION * (const.BALL_REST_Z - z)
        vz = -const.BALL_RESTITUTION * vz
    if z > _TOP_Z:
        z = _TOP_Z
        vz = -const.BALL_RESTITUTION * wp.max(vz, 0.0)
    if wp.abs(x) > _WALL_X:
        x = bounced(x, _WALL_X)
        vx = -const.BALL_RESTITUTION * vx
    limit = wp.where(wp.abs(x) < _POST_X and z < _BAR_Z, _NET_Y, _WALL_Y)
    if wp.abs(y) > limit:
        y = bounced(y, limit)
        vy = -const.BALL_RESTITUTION * vy
    beyond = (wp.abs(x) + wp.abs(y)) - _CORNER
    if beyond > 0.0 and wp.abs(y) < _WALL_Y:
        sx = wp.where(x > 0.0, 1.0, -1.0)
        sy = wp.where(y > 0.0, 1.0, -1.0)
        out = 0.5 * (1.0 + const.BALL_RESTITUTION) * wp.max(vx * sx + vy * sy, 0.0)
        back = 0.5 * (1.0 + const.BALL_RESTITUTION) * beyond
        x = x - back * sx
        y = y - back * sy
        vx = vx - out * sx
        vy = vy - out * sy
    ball.position = wp.vec3f(x, y, z)
    ball.velocity = wp.vec3f(vx, vy, vz)
