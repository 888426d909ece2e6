"""Puts cars and the ball on the field: kickoffs, respawns, and the symmetries of the field (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.sight import PadRow
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import Tables
from ludus.envs.rocket.layout import KICKOFFS, PAD_COUNT, RESPAWN_Z, RESPAWNS
from ludus.envs.rocket.rules import (
    BALL_REST_Z,
    BOOST_MAX,
    BOOST_START,
    CAR_REST_Z,
    DT,
    SHOT_COOLDOWN_S,
    TOUCH_GAP_TICKS,
    Stream,
)
from ludus.envs.warp_functions import below, mix

SLOTS = len(KICKOFFS)
PLACES = len(RESPAWNS)
CLEAR = 220.0  # centres of two cars, or of a car and the ball, that are farther apart do not touch
_ENOUGH_HIT_TICKS = 8  # the first hit gives its extra impulse


@wp.func
def stream(rules: Rules, game: wp.int32, match: Match, name: wp.int32) -> wp.uint32:
    """Hash of the named random stream of this game, episode and tick."""
    h = mix(rules.seed_hash, wp.uint32(rules.first_game + game))
    h = mix(h, wp.uint32(match.episode))
    h = mix(h, wp.uint32(match.tick))
    return mix(h, wp.uint32(name))


@wp.func
def turned_about(v: wp.vec3f) -> wp.vec3f:
    """A vector turned by 180 degrees about the vertical."""
    return wp.vec3f(-v[0], -v[1], v[2])


@wp.func
def rotation_about(q: wp.quatf) -> wp.quatf:
    """A rotation turned by 180 degrees about the vertical."""
    return wp.quatf(-q[1], q[0], q[3], -q[2])


@wp.func
def level_rotation(dx: wp.float32, dy: wp.float32) -> wp.quatf:
    """Rotation of a car that stands level and looks along (dx, dy), which need not have a certain length."""
    length = wp.sqrt(dx * dx + dy * dy)
    cosine = wp.where(length > 1.0e-6, dx / wp.max(length, 1.0e-6), 1.0)
    sine_half = wp.sqrt(wp.max(0.5 - 0.5 * cosine, 0.0))
    return wp.quatf(0.0, 0.0, wp.where(dy < 0.0, -sine_half, sine_half), wp.sqrt(wp.max(0.5 + 0.5 * cosine, 0.0)))


@wp.func
def new_car(team: wp.int32, position: wp.vec3f, rotation: wp.quatf, boost: wp.float32, rules: Rules) -> Car:
    """A car that stands at a place of blue's; orange's is turned about the middle."""
    car = Car()
    car.team = team
    car.position = wp.where(team == 0, position, turned_about(position))
    car.rotation = wp.where(team == 0, rotation, rotation_about(rotation))
    car.boost = wp.where(rules.boost_rate > 0.0, boost, BOOST_MAX)
    car.hit_ticks = _ENOUGH_HIT_TICKS
    car.clear_ticks = TOUCH_GAP_TICKS
    car.bump_seat = -1
    car.inside_pad = -1
    return car


@wp.func
def stand(car: wp.ref[Car]):
    """Notes that all wheels are on the floor."""
    car.wheels = 4
    car.on_ground = 1
    car.normal = wp.vec3f(0.0, 0.0, 1.0)


@wp.func
def clear_score(match: wp.ref[Match]):
    """Forgets who touched the ball."""
    match.goal = -1
    match.kickoff_due = 0
    match.untouched_s = 0.0
    match.since_kickoff_s = 0.0
    match.last_touch = -1
    match.last_blue = -1
    match.last_orange = -1
    match.before_blue = -1
    match.before_orange = -1
    match.shot_seat = -1
    match.shot_s = SHOT_COOLDOWN_S


@wp.func
def kickoff(
    cars: wp.array[Car],
    ball: wp.ref[Ball],
    match: wp.ref[Match],
    pads: wp.ref[PadRow],
    tables: Tables,
    rules: Rules,
    game: wp.int32,
):
    """Puts all cars and the ball in place; both teams take the same slots, drawn anew for every kickoff."""
    h = stream(rules, game, match, Stream.SLOTS)
    first = below(mix(h, wp.uint32(0)), SLOTS)
    stride = 1 + below(mix(h, wp.uint32(1)), SLOTS - 1)  # the number of slots is prime: all are different
    for seat in range(rules.blue + rules.orange):
        team = wp.where(seat < rules.blue, 0, 1)
        slot = tables.kickoffs[(first + (seat - team * rules.blue) * stride) % SLOTS]
        since_touch_s = cars[seat].since_touch_s
        place = wp.vec3f(slot[0], slot[1], CAR_REST_Z)
        cars[seat] = new_car(team, place, wp.quatf(0.0, 0.0, slot[2], slot[3]), BOOST_START, rules)
        cars[seat].since_touch_s = since_touch_s
        stand(cars[seat])
    ball.position = wp.vec3f(0.0, 0.0, BALL_REST_Z)
    ball.velocity = wp.vec3f(0.0, 0.0, 0.0)
    ball.spin = wp.vec3f(0.0, 0.0, 0.0)
    ball.asleep = 1
    for pad in range(PAD_COUNT):
        pads[pad] = 0
    clear_score(match)
    match.kickoff = 1


@wp.func
def respawn(cars: wp.array[Car], seat: wp.int32, match: Match, tables: Tables, rules: Rules, game: wp.int32):
    """Puts a demolished car back at a free place near its own goal; if all are taken it waits for another tick."""
    team = cars[seat].team
    # Keyed by the place in the team: teams that change sides are put back the same way.
    h = mix(stream(rules, game, match, Stream.RESPAWN), wp.uint32(seat - team * rules.blue))
    first = below(h, PLACES)
    for attempt in range(PLACES):
        spot = tables.respawns[(first + attempt) % PLACES]
        place = wp.vec3f(spot[0], spot[1], RESPAWN_Z)
        place = wp.where(team == 0, place, turned_about(place))
        free = bool(True)
        for other in range(rules.blue + rules.orange):
            if other != seat and cars[other].demolished_s <= 0.0:
                free = free and wp.length_sq(cars[other].position - place) > CLEAR * CLEAR
        if free:
            car = new_car(team, wp.vec3f(spot[0], spot[1], RESPAWN_Z), level_rotation(0.0, 1.0), BOOST_START, rules)
            car.since_touch_s = cars[seat].since_touch_s
            cars[seat] = car
            return
    cars[seat].demolished_s = DT
