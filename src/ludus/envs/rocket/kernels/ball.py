"""The ball: gravity and drag, bounces off the arena, motion and limits (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.maths import clamp_length
from ludus.envs.rocket.kernels.structs import Ball
from ludus.envs.rocket.rules import (
    BALL_BOUNCE_MIN,
    BALL_DRAG,
    BALL_FRICTION,
    BALL_MAX_SPEED,
    BALL_MAX_SPIN,
    BALL_RADIUS,
    BALL_RESTITUTION,
    CONTACT_MARGIN,
    CONTACT_RECOVERY,
    DT,
    GRAVITY,
)

_KEPT = (1.0 - BALL_DRAG) ** DT  # share of the velocity that drag leaves in a tick
_FALL = GRAVITY * DT
_STILL = 1.0e-6  # uu/s
_SLOPE = 0.9  # a surface whose normal has a smaller part upward is not a ramp's foot


@wp.func
def push_ball(ball: wp.ref[Ball]):
    """Drag and gravity; a ball that sleeps hangs still."""
    if ball.asleep != 0:
        return
    ball.velocity = ball.velocity * _KEPT
    ball.velocity[2] = ball.velocity[2] + _FALL


@wp.func
def bounce_ball(ball: wp.ref[Ball]):
    """Bounces the ball off the arena."""
    if ball.asleep != 0:
        return
    surface = arena_distance(ball.position)
    if surface[3] > BALL_RADIUS + CONTACT_MARGIN:
        return
    bounce_off(ball, wp.vec3f(surface[0], surface[1], surface[2]), surface[3] - BALL_RADIUS)
    height = ball.position[2] - BALL_RADIUS
    if surface[2] < _SLOPE and height <= CONTACT_MARGIN:  # at the foot of a post, or in the edge of a goal's room
        bounce_off(ball, wp.vec3f(0.0, 0.0, 1.0), height)


@wp.func
def bounce_off(ball: wp.ref[Ball], n: wp.vec3f, gap: wp.float32):
    """Restitution, and Coulomb friction that couples velocity and spin, at a surface with normal n."""
    ball.position = ball.position - n * (CONTACT_RECOVERY * wp.min(gap, 0.0))
    v = ball.velocity
    into = wp.dot(v, n)
    # Restitution is of the velocity before this tick's gravity (measured: 316.0 -> 189.6).
    approach = into - _FALL * n[2]
    bounce = wp.where(approach < -BALL_BOUNCE_MIN, -BALL_RESTITUTION * approach, 0.0)
    push = bounce - into
    if push <= 0.0:
        return
    # At the contact, r = -R n, the surface of the ball moves at v + spin x r.
    slip = v - n * into - wp.cross(ball.spin, n) * BALL_RADIUS
    speed = wp.length(slip)
    ball.velocity = v + n * push
    if speed > _STILL:
        # A tangential impulse j changes the slip by j (1/m + R^2/I) = 7/2 j/m: sticking takes 2/7 of it.
        change = slip * (-wp.min(BALL_FRICTION * push, speed * (2.0 / 7.0)) / speed)
        ball.velocity = ball.velocity + change
        ball.spin = ball.spin - wp.cross(n, change) * (2.5 / BALL_RADIUS)


@wp.func
def move_ball(ball: wp.ref[Ball]):
    """Moves the ball for a tick; its rotation does not matter and is not kept."""
    ball.position = ball.position + ball.velocity * DT


@wp.func
def clamp_ball(ball: wp.ref[Ball]):
    """Limits speed and spin, and wakes a ball that something has set in motion."""
    ball.velocity = clamp_length(ball.velocity, BALL_MAX_SPEED)
    ball.spin = clamp_length(ball.spin, BALL_MAX_SPIN)
    if wp.dot(ball.velocity, ball.velocity) > 0.0 or wp.dot(ball.spin, ball.spin) > 0.0:
        ball.asleep = 0
