"""The full layout of 180 values: one seat's view of a game, written straight into its row (Warp functions)."""

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket import observation as obs
from ludus.worlds.rocket.kernels import sight
from ludus.worlds.rocket.kernels.ball import REACH_Z, fly
from ludus.worlds.rocket.kernels.maths import axes, column
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match, PadRow, Rules
from ludus.worlds.rocket.layout import BIG_PADS, PAD_COUNT, PADS
from ludus.worlds.rocket.rules import AERIAL_Z, BACK_Y, CLOCK_S

wp.set_module_options(EXACT)

_SIZE = obs.FULL.size
FullRow = wp.types.vector(length=obs.FULL.size, dtype=wp.float32)
_Coordinates = wp.types.vector(length=PAD_COUNT, dtype=wp.float32)
_Distances = wp.types.vector(length=obs.NEAREST_PADS, dtype=wp.float32)
_Indices = wp.types.vector(length=obs.NEAREST_PADS, dtype=wp.int32)
_PAD_X = wp.constant(_Coordinates(*(x for x, _ in PADS)))
_PAD_Y = wp.constant(_Coordinates(*(y for _, y in PADS)))
_PAD_LARGE = wp.constant(_Coordinates(*(float(pad in BIG_PADS) for pad in range(PAD_COUNT))))

_BALL_AT, _MATES_AT, _RIVALS_AT, _PADS_AT, _GAME_AT = (
    obs.FULL.blocks[name][0] for name in ("ball", "teammate", "opponent", "pad", "game")
)
_PER_LENGTH, _PER_SPEED, _PER_SPIN = 1.0 / obs.LENGTH, 1.0 / obs.CAR_SPEED, 1.0 / obs.CAR_SPIN
_PER_CLOCK = 1.0 / CLOCK_S
_LONG = 1.47  # length of the field over its width
_BALL_FASTEST, _RELATIVE_FASTEST, _CARS_FASTEST, _BALL_MOST_SPIN = 2.61, 3.61, 2.0, 1.1
PAD_Z, LARGE_PAD_Z = 70.0, 73.0
THIRD_Y = BACK_Y / 3.0
AHEAD_S = 0.5  # how far the phase of the game looks ahead
AERIAL_ACROSS, AERIAL_BOOST = 1500.0, 20.0

MEETING_STEPS, MEETING_STEP_S = 20, 0.2
_PER_MEETING = 1.0 / (MEETING_STEPS * MEETING_STEP_S)
ARM = 150.0  # distance of the centres of car and ball at a touch
PACE = 1400.0  # uu/s that a car keeps without boost ...
BOOSTED_PACE = 1900.0  # ... and with plenty of it
PLENTY = 40.0
TURN_S = 0.5  # that a car takes to turn by a right angle


@wp.func
def put(row: wp.ref[FullRow], at: int, v: wp.vec3f, scale: float, limit: float):
    """Write a vector within its bounds."""
    row[at] = wp.clamp(v[0] * scale, -limit, limit)
    row[at + 1] = wp.clamp(v[1] * scale, -limit, limit)
    row[at + 2] = wp.clamp(v[2] * scale, -limit, limit)


@wp.func
def put_long(row: wp.ref[FullRow], at: int, p: wp.vec3f, span: float):
    """Write a position (`span` 1) or a difference of two (2)."""
    row[at] = wp.clamp(p[0] * _PER_LENGTH, -span, span)
    row[at + 1] = wp.clamp(p[1] * _PER_LENGTH, -_LONG * span, _LONG * span)
    row[at + 2] = wp.clamp(p[2] * _PER_LENGTH, 0.5 * (1.0 - span), 0.5)


@wp.func
def meeting(car: Car, forward: wp.vec3f, ball: Ball) -> wp.vec4f:
    """Return where and when a car can first meet the ball within 4 s, driving; all 0 if it cannot.

    The ball must be low enough and near enough for the time that has passed, after the car has turned to it.
    """
    ahead = ball
    pace = wp.where(car.boost >= PLENTY, BOOSTED_PACE, PACE)
    found = wp.vec4f(0.0, 0.0, 0.0, 0.0)
    if car.demolished_s > 0.0:
        return found
    step = int(0)
    while step <= MEETING_STEPS:
        way = ahead.position - car.position
        across = wp.sqrt(way[0] * way[0] + way[1] * way[1])
        along = (way[0] * forward[0] + way[1] * forward[1]) / wp.max(across, 1.0)
        seconds = wp.float32(step) * MEETING_STEP_S
        time_to_drive = seconds - TURN_S * wp.clamp(1.0 - along, 0.0, 2.0)
        if ahead.position[2] <= REACH_Z and across - ARM <= pace * wp.max(time_to_drive, 0.0):
            found = wp.vec4f(ahead.position[0], ahead.position[1], ahead.position[2], seconds)
            step = MEETING_STEPS
        fly(ahead, MEETING_STEP_S)
        step += 1
    return found


@wp.func
def write_own(row: wp.ref[FullRow], car: Car, frame: wp.mat33f, side: float):
    """Write the block of the own car."""
    put_long(row, 0, sight.as_blue(car.position, side), 1.0)
    put(row, 3, sight.as_blue(car.velocity, side), _PER_SPEED, 1.0)
    put(row, 6, sight.as_blue(car.spin, side), _PER_SPIN, 1.0)
    for axis in range(3):
        turned = wp.where(axis < 2, side, 1.0)
        row[9 + 3 * axis] = wp.clamp(turned * frame[axis, 0], -1.0, 1.0)
        row[10 + 3 * axis] = wp.clamp(turned * frame[axis, 1], -1.0, 1.0)
        row[11 + 3 * axis] = wp.clamp(turned * frame[axis, 2], -1.0, 1.0)
    row[18] = wp.clamp(car.boost * 0.01, 0.0, 1.0)
    row[19] = wp.float32(car.on_ground)
    has_flip = (car.on_ground != 0 or sight.dodge_time(car) > 0.0) and car.demolished_s <= 0.0
    row[20] = wp.where(has_flip, 1.0, 0.0)
    row[21] = wp.where(car.demolished_s > 0.0, 1.0, 0.0)


@wp.func
def write_ball(row: wp.ref[FullRow], car: Car, frame: wp.mat33f, ball: Ball, side: float):
    """Write the block of the ball."""
    way = ball.position - car.position
    across = wp.sqrt(way[0] * way[0] + way[1] * way[1])
    distance = wp.sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2])
    forward = column(frame, 0)
    put_long(row, _BALL_AT, sight.as_blue(ball.position, side), 1.0)
    put(row, _BALL_AT + 3, sight.as_blue(ball.velocity, side), _PER_SPEED, _BALL_FASTEST)
    put(row, _BALL_AT + 6, sight.as_blue(ball.spin, side), _PER_SPIN, _BALL_MOST_SPIN)
    put_long(row, _BALL_AT + 9, sight.as_blue(way, side), 2.0)
    put(row, _BALL_AT + 12, sight.as_blue(ball.velocity - car.velocity, side), _PER_SPEED, _RELATIVE_FASTEST)
    meets = meeting(car, forward, ball)
    put_long(row, _BALL_AT + 15, sight.as_blue(wp.vec3f(meets[0], meets[1], meets[2]), side), 1.0)
    row[_BALL_AT + 18] = wp.clamp(meets[3] * _PER_MEETING, 0.0, 1.0)
    z = ball.position[2]
    bucket = wp.where(z > 500.0, 2, wp.where(z > 200.0, 1, 0)) + wp.where(z > 1000.0, 1, 0) + wp.where(z > 1500.0, 1, 0)
    for height in range(5):
        row[_BALL_AT + 19 + height] = wp.where(height == bucket, 1.0, 0.0)
    can_jump = (car.on_ground != 0 or sight.dodge_time(car) > 0.0) and car.demolished_s <= 0.0
    aerial = z > AERIAL_Z and across < AERIAL_ACROSS and can_jump and car.boost >= AERIAL_BOOST
    row[_BALL_AT + 24] = wp.where(aerial, 1.0, 0.0)
    facing = (forward[0] * way[0] + forward[1] * way[1] + forward[2] * way[2]) / wp.max(distance, 1.0)
    row[_BALL_AT + 25] = wp.clamp(facing, -1.0, 1.0)


@wp.func
def write_other(row: wp.ref[FullRow], at: int, car: Car, other: Car, side: float):
    """Write the slot of another car."""
    put_long(row, at, sight.as_blue(other.position, side), 1.0)
    put(row, at + 3, sight.as_blue(other.velocity, side), _PER_SPEED, 1.0)
    put_long(row, at + 6, sight.as_blue(other.position - car.position, side), 2.0)
    put(row, at + 9, sight.as_blue(other.velocity - car.velocity, side), _PER_SPEED, _CARS_FASTEST)
    row[at + 12] = wp.clamp(other.boost * 0.01, 0.0, 1.0)


@wp.func
def write_pads(row: wp.ref[FullRow], pads: PadRow, tick: int, car: Car, side: float):
    """Write the nearest pads in order of distance; ties go to the pad that comes first in the seat's own order."""
    place = sight.as_blue(car.position, side)
    squared = _Distances()
    nearest = _Indices()
    for pad in range(PAD_COUNT):
        dx = _PAD_X[pad] - place[0]
        dy = _PAD_Y[pad] - place[1]
        far = dx * dx + dy * dy
        at = wp.min(pad, obs.NEAREST_PADS)
        if pad < obs.NEAREST_PADS or far < squared[obs.NEAREST_PADS - 1]:
            at = wp.min(at, obs.NEAREST_PADS - 1)
            while at > 0 and squared[wp.max(at - 1, 0)] > far:
                squared[at] = squared[at - 1]
                nearest[at] = nearest[at - 1]
                at -= 1
            squared[at] = far
            nearest[at] = pad
    for rank in range(obs.NEAREST_PADS):
        pad = nearest[rank]
        seen = wp.where(side > 0.0, pad, PAD_COUNT - 1 - pad)
        z = wp.where(_PAD_LARGE[pad] > 0.0, LARGE_PAD_Z, PAD_Z)
        up = z - place[2]
        start = _PADS_AT + rank * obs.PAD_OF_FULL_SIZE
        put_long(row, start, wp.vec3f(_PAD_X[pad], _PAD_Y[pad], z), 1.0)
        row[start + 3] = wp.where(pads[seen] <= tick, 1.0, 0.0)
        row[start + 4] = _PAD_LARGE[pad]
        row[start + 5] = wp.min(wp.sqrt(squared[rank] + up * up) * _PER_LENGTH, obs.FARTHEST)


@wp.func
def write_game(row: wp.ref[FullRow], match: Match, ball: Ball, team: int, side: float):
    """Write kickoff, clock, score and phase."""
    row[_GAME_AT] = wp.float32(match.kickoff)
    row[_GAME_AT + 1] = wp.clamp(match.clock_s * _PER_CLOCK, -1.0, 1.0)
    row[_GAME_AT + 2] = sight.lead_of(match, team)
    soon = side * (ball.position[1] + AHEAD_S * ball.velocity[1])
    phase = wp.where(soon > THIRD_Y, 1, wp.where(soon < -THIRD_Y, 2, 3))
    if match.kickoff != 0:
        phase = 0
    for each in range(4):
        row[_GAME_AT + 3 + each] = wp.where(each == phase, 1.0, 0.0)


@wp.func
def observe_full(
    row: wp.ref[FullRow],
    cars: wp.array2d[Car],
    ball: Ball,
    match: Match,
    pads: wp.array[PadRow],
    rules: Rules,
    game: int,
    seat: int,
):
    """Write the observation of one seat."""
    car = cars[game, seat]
    side = 1.0 - 2.0 * wp.float32(car.team)
    frame = axes(car.rotation)
    write_own(row, car, frame, side)
    write_ball(row, car, frame, ball, side)
    at = int(_MATES_AT)
    while at < _PADS_AT:
        row[at] = 0.0
        at += 1
    first_mate = wp.where(car.team == 0, 0, rules.blue)
    mates = wp.where(car.team == 0, rules.blue, rules.orange)
    first_rival = wp.where(car.team == 0, rules.blue, 0)
    rivals = wp.where(car.team == 0, rules.orange, rules.blue)
    shuffle = sight.slot_shuffle(rules, match, game, seat - first_mate)
    for place in range(mates - 1):
        mate = first_mate + place + wp.where(first_mate + place >= seat, 1, 0)
        slot = sight.mate_slot(shuffle, place)
        write_other(row, _MATES_AT + slot * obs.CAR_OF_FULL_SIZE, car, cars[game, mate], side)
    for place in range(rivals):
        slot = sight.rival_slot(shuffle, place)
        write_other(row, _RIVALS_AT + slot * obs.CAR_OF_FULL_SIZE, car, cars[game, first_rival + place], side)
    write_pads(row, pads[game], match.tick, car, side)
    write_game(row, match, ball, car.team, side)


@wp.kernel
def observe_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[FullRow],
    first: int,
):
    """Write the full observations of all seats of one game."""
    game = wp.tid() + first
    ball = balls[game]
    match = matches[game]
    for seat in range(rules.blue + rules.orange):
        observe_full(out[game, seat], cars, ball, match, pads, rules, game, seat)


@wp.kernel
def observe_final_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    out: wp.array2d[FullRow],
    first: int,
):
    """Write the full observations of one game if it ended."""
    game = wp.tid() + first
    if terminated[game] or truncated[game]:
        ball = balls[game]
        match = matches[game]
        for seat in range(rules.blue + rules.orange):
            observe_full(out[game, seat], cars, ball, match, pads, rules, game, seat)


@wp.kernel
def observe_tiles_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[wp.float32],
):
    """Write the observations of a tile of rows `(games * seats, 180)`; see `observe_compact`."""
    tile, lane = wp.tid()
    index = tile * sight.OBSERVE_TILE + lane
    seats = rules.blue + rules.orange
    game = wp.min(index / seats, matches.shape[0] - 1)
    row = FullRow()
    observe_full(row, cars, balls[game], matches[game], pads, rules, game, index % seats)
    rows = wp.tile_zeros(shape=(sight.OBSERVE_TILE, _SIZE), dtype=wp.float32, storage="shared")
    place = int(0)
    while place < _SIZE:
        rows[lane, place] = row[place]
        place += 1
    wp.tile_store(out, rows, offset=(tile * sight.OBSERVE_TILE, 0))
