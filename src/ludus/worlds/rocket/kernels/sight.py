"""What observations and bots see: sides, slots, the score, and where the ball is going (Warp functions)."""

import math

import warp as wp

from ludus.envs.warp_functions import mix
from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.ball import REACH_Z, bounced
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.worlds.rocket.observation import DODGE_S, GOALS

OBSERVE_TILE = 64  # threads of a GPU that write their rows through shared memory together

_FALL = -const.GRAVITY
_PER_FALL = 1.0 / _FALL
_TOP_Z = const.CEILING_Z - const.BALL_RADIUS
_WALL_X = const.SIDE_X - const.BALL_RADIUS
_WALL_Y = const.BACK_Y - const.BALL_RADIUS

_Leads = wp.types.vector(length=GOALS + 1, dtype=wp.float32)
_LEADS = wp.constant(_Leads(*(math.tanh(goals / 5.0) for goals in range(GOALS + 1))))


@wp.func
def as_blue(v: wp.vec3f, side: float) -> wp.vec3f:
    """Return a vector as a seat sees it; `side` is -1 for orange, for whom the world is turned by 180 degrees."""
    return wp.vec3f(side * v[0], side * v[1], v[2])


@wp.func
def lead_of(match: Match, team: int) -> float:
    """Return tanh(goal difference / 5) from a table, as every device computes its own tanh."""
    difference = match.blue_goals - match.orange_goals
    size = _LEADS[wp.min(wp.abs(difference), GOALS)]
    return wp.where((difference > 0) == (team == 0), size, -size)


@wp.func
def dodge_time(car: Car) -> float:
    """Return the time left for a second jump or a dodge, as a share of all of it; 0 if there is none."""
    if car.on_ground != 0 or car.dodged != 0 or car.double_jumped != 0 or car.demolished_s > 0.0:
        return 0.0
    return wp.where(car.jumped != 0, wp.clamp(1.0 - car.air_since_jump_s * (1.0 / DODGE_S), 0.0, 1.0), 1.0)


@wp.func
def slot_shuffle(rules: Rules, match: Match, game: int, place: int) -> int:
    """Return the hash that permutes the slots of other cars; 0 keeps the order. `place` is the viewer's in its team."""
    if rules.shuffle == 0:
        return 0
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode))
    h = mix(mix(h, wp.uint32(place)), wp.uint32(const.Stream.SHUFFLE))
    return wp.int32(h >> wp.uint32(24))


@wp.func
def mate_slot(shuffle: int, place: int) -> int:
    """Return the slot, 0 or 1, of the teammate that comes at this place, 0 or 1, in the order of seats."""
    return (place + shuffle) & 1


@wp.func
def rival_slot(shuffle: int, place: int) -> int:
    """Return the slot, 0 to 2, of the opponent at this place in the order of seats; all six orders occur."""
    start = (shuffle >> 1) % 3
    stride = 1 + ((shuffle >> 3) & 1)
    return (start + stride * place) % 3


@wp.func
def landing(ball: Ball) -> wp.vec4f:
    """Return where and in how many seconds the ball falls to `REACH_Z`; its position and 0 if it is not higher.

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
        down = const.BALL_RESTITUTION * speed
        fall = wp.sqrt(down * down + 2.0 * _FALL * (_TOP_Z - REACH_Z))
        seconds = (up - speed + fall - down) * _PER_FALL
    else:
        seconds = (v[2] + wp.sqrt(v[2] * v[2] + 2.0 * _FALL * (p[2] - REACH_Z))) * _PER_FALL
    way = seconds * (1.0 - 0.5 * const.BALL_DRAG * seconds)
    return wp.vec4f(bounced(p[0] + v[0] * way, _WALL_X), bounced(p[1] + v[1] * way, _WALL_Y), REACH_Z, seconds)
