"""What both layouts of the observation see: sides, slots, the score, and where the ball is going (Warp functions)."""

import math

import warp as wp

from ludus.envs.rocket.kernels.flight import REACH_Z, bounced
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.layout import PAD_COUNT
from ludus.envs.rocket.observation import DODGE_S, GOALS
from ludus.envs.rocket.rules import BACK_Y, BALL_DRAG, BALL_RADIUS, BALL_RESTITUTION, CEILING_Z, GRAVITY, SIDE_X, Stream
from ludus.envs.warp_functions import mix

PadRow = wp.types.vector(length=PAD_COUNT, dtype=wp.int32)  # the pads of one game

_FALL = -GRAVITY
_PER_FALL = 1.0 / _FALL
_TOP_Z = CEILING_Z - BALL_RADIUS
_WALL_X = SIDE_X - BALL_RADIUS
_WALL_Y = BACK_Y - BALL_RADIUS

_Leads = wp.types.vector(length=GOALS + 1, dtype=wp.float32)
_LEADS = wp.constant(_Leads(*(math.tanh(goals / 5.0) for goals in range(GOALS + 1))))


@wp.func
def as_blue(v: wp.vec3f, side: wp.float32) -> wp.vec3f:
    """A vector as a seat sees it; `side` is -1 for orange, for whom the world is turned by 180 degrees."""
    return wp.vec3f(side * v[0], side * v[1], v[2])


@wp.func
def lead_of(match: Match, team: wp.int32) -> wp.float32:
    """tanh(goal difference / 5) from a table, as every device computes its own tanh."""
    difference = match.blue_goals - match.orange_goals
    size = _LEADS[wp.min(wp.abs(difference), GOALS)]
    return wp.where((difference > 0) == (team == 0), size, -size)


@wp.func
def dodge_time(car: Car) -> wp.float32:
    """Time left for a second jump or a dodge, as a share of all of it; 0 if there is none."""
    if car.on_ground != 0 or car.dodged != 0 or car.double_jumped != 0 or car.demolished_s > 0.0:
        return 0.0
    return wp.where(car.jumped != 0, wp.clamp(1.0 - car.air_since_jump_s * (1.0 / DODGE_S), 0.0, 1.0), 1.0)


@wp.func
def slot_shuffle(rules: Rules, match: Match, game: wp.int32, place: wp.int32) -> wp.int32:
    """A number from which the slots of other cars follow; 0 keeps the order. `place` is the viewer's in its team."""
    if rules.shuffle == 0:
        return 0
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode))
    h = mix(mix(h, wp.uint32(place)), wp.uint32(Stream.SHUFFLE))
    return wp.int32(h >> wp.uint32(24))


@wp.func
def mate_slot(shuffle: wp.int32, place: wp.int32) -> wp.int32:
    """Slot, 0 or 1, of the teammate that comes at this place, 0 or 1, in the order of seats."""
    return (place + shuffle) & 1


@wp.func
def rival_slot(shuffle: wp.int32, place: wp.int32) -> wp.int32:
    """Slot, 0 to 2, of the opponent that comes at this place in the order of seats; all six orders are drawn."""
    start = (shuffle >> 1) % 3
    stride = 1 + ((shuffle >> 3) & 1)
    return (start + stride * place) % 3


@wp.func
def landing(ball: Ball) -> wp.vec4f:
    """Where and in how many seconds the ball comes down to `REACH_Z`; where it is, at once, if it is not higher.

    It flies freely; the ceiling and the walls throw it back. Spin, friction and corners are left out.
    """
    p = ball.position
    v = ball.velocity
    if p[2] <= REACH_Z or ball.asleep != 0:
        return wp.vec4f(p[0], p[1], p[2], 0.0)
    up = wp.max(v[2], 0.0)
    to_top = up * up - 2.0 * _FALL * wp.max(_TOP_Z - p[2], 0.0)
    seconds = float(0.0)
    if to_top > 0.0:
        speed = wp.sqrt(to_top)
        down = BALL_RESTITUTION * speed
        fall = wp.sqrt(down * down + 2.0 * _FALL * (_TOP_Z - REACH_Z))
        seconds = (up - speed + fall - down) * _PER_FALL
    else:
        seconds = (v[2] + wp.sqrt(v[2] * v[2] + 2.0 * _FALL * (p[2] - REACH_Z))) * _PER_FALL
    way = seconds * (1.0 - 0.5 * BALL_DRAG * seconds)
    return wp.vec4f(bounced(p[0] + v[0] * way, _WALL_X), bounced(p[1] + v[1] * way, _WALL_Y), REACH_Z, seconds)
