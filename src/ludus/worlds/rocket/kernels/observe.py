"""One seat's view of a game, written straight into its row (Warp functions)."""

import warp as wp

from ludus.envs.warp_tools import EXACT
from ludus.worlds.rocket import observation as obs
from ludus.worlds.rocket.kernels import sight
from ludus.worlds.rocket.kernels.maths import axes, column, to_local
from ludus.worlds.rocket.kernels.structs import Ball, Car, Match, PadRow, Rules
from ludus.worlds.rocket.layout import PAD_COUNT
from ludus.worlds.rocket.rules import BACK_Y, CLOCK_S, DEMOLITION_S, TICK_HZ

wp.set_module_options(EXACT)

_SIZE = obs.LAYOUT.size
ObservedRow = wp.types.vector(length=obs.LAYOUT.size, dtype=wp.float32)

_BALL_AT, _GOALS_AT, _MATES_AT, _RIVALS_AT, _PADS_AT, _GAME_AT = (
    obs.LAYOUT.blocks[name][0] for name in ("ball", "goals", "teammate", "opponent", "pads", "game")
)
# Products with a reciprocal instead of quotients: a division costs as much as ten products.
_PER_X, _PER_Y, _PER_Z = 1.0 / obs.POSITION_X, 1.0 / obs.POSITION_Y, 1.0 / obs.POSITION_Z
_PER_LENGTH = 1.0 / obs.LENGTH
_PER_SPEED, _PER_BALL_SPEED, _PER_SPIN = 1.0 / obs.CAR_SPEED, 1.0 / obs.BALL_SPEED, 1.0 / obs.CAR_SPIN
_PER_DEMOLITION = 1.0 / DEMOLITION_S
_PER_LANDING = 1.0 / obs.LANDING_S
_PER_CLOCK = 1.0 / CLOCK_S
_PER_PAD_TICK = 1.0 / (obs.PAD_S * TICK_HZ)
_GOAL_Z = 320.0  # middle of a goal
_BALL_FASTEST, _RELATIVE_FASTEST, _CARS_FASTEST = 2.0, 3.7, 2.0


@wp.func
def put(row: wp.ref[ObservedRow], at: int, v: wp.vec3f, scale: float, limit: float):
    """Write a vector within its bounds."""
    row[at] = wp.clamp(v[0] * scale, -limit, limit)
    row[at + 1] = wp.clamp(v[1] * scale, -limit, limit)
    row[at + 2] = wp.clamp(v[2] * scale, -limit, limit)


@wp.func
def put_place(row: wp.ref[ObservedRow], at: int, p: wp.vec3f):
    """Write a position."""
    row[at] = wp.clamp(p[0] * _PER_X, -1.0, 1.0)
    row[at + 1] = wp.clamp(p[1] * _PER_Y, -1.0, 1.0)
    row[at + 2] = wp.clamp(p[2] * _PER_Z, 0.0, 1.0)


@wp.func
def unit(v: wp.vec3f) -> wp.vec3f:
    """Return a vector of length 1, or 0 if it is hardly one."""
    squared = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    return v * wp.where(squared > 1.0, 1.0 / wp.sqrt(squared), 0.0)


@wp.func
def write_own(row: wp.ref[ObservedRow], car: Car, frame: wp.mat33f, side: float):
    """Write the block of the own car."""
    second_jump = sight.dodge_time(car)
    drives = car.demolished_s <= 0.0
    put_place(row, 0, sight.as_blue(car.position, side))
    put(row, 3, sight.as_blue(car.velocity, side), _PER_SPEED, 1.0)
    put(row, 6, sight.as_blue(column(frame, 0), side), 1.0, 1.0)
    put(row, 9, sight.as_blue(column(frame, 2), side), 1.0, 1.0)
    put(row, 12, to_local(frame, car.velocity), _PER_SPEED, 1.0)
    put(row, 15, to_local(frame, car.spin), _PER_SPIN, 1.0)
    row[18] = wp.clamp(car.boost * 0.01, 0.0, 1.0)
    row[19] = wp.float32(car.on_ground)
    row[20] = wp.where(drives and car.on_ground != 0 and car.jumping == 0, 1.0, 0.0)
    row[21] = wp.where(second_jump > 0.0, 1.0, 0.0)
    row[22] = second_jump
    row[23] = wp.float32(car.jump_before)
    row[24] = wp.clamp(car.handbrake_value, 0.0, 1.0)
    row[25] = wp.float32(car.dodging)
    row[26] = wp.float32(car.supersonic)
    row[27] = wp.clamp(car.demolished_s * _PER_DEMOLITION, 0.0, 1.0)


@wp.func
def write_ball(row: wp.ref[ObservedRow], car: Car, frame: wp.mat33f, ball: Ball, lands: wp.vec4f, side: float):
    """Write the blocks of the ball and of the goals."""
    way = ball.position - car.position
    distance = wp.sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2])
    local = to_local(frame, way)
    lands_at = wp.vec3f(lands[0], lands[1], lands[2])
    put_place(row, _BALL_AT, sight.as_blue(ball.position, side))
    put(row, _BALL_AT + 3, sight.as_blue(ball.velocity, side), _PER_BALL_SPEED, _BALL_FASTEST)
    put(row, _BALL_AT + 6, local, _PER_LENGTH, obs.FARTHEST)
    put(row, _BALL_AT + 9, local, 1.0 / wp.max(distance, 1.0), 1.0)
    row[_BALL_AT + 12] = obs.NEAR / (obs.NEAR + distance)
    put(row, _BALL_AT + 13, to_local(frame, ball.velocity - car.velocity), _PER_SPEED, _RELATIVE_FASTEST)
    put(row, _BALL_AT + 16, to_local(frame, lands_at - car.position), _PER_LENGTH, obs.FARTHEST)
    row[_BALL_AT + 19] = wp.clamp(lands[3] * _PER_LANDING, 0.0, obs.LANDING_MOST)
    goal = wp.vec3f(0.0, side * BACK_Y, _GOAL_Z)
    own_goal = wp.vec3f(0.0, -side * BACK_Y, _GOAL_Z)
    put(row, _GOALS_AT, to_local(frame, unit(goal - ball.position)), 1.0, 1.0)
    put(row, _GOALS_AT + 3, to_local(frame, unit(own_goal - car.position)), 1.0, 1.0)


@wp.func
def write_other(row: wp.ref[ObservedRow], at: int, car: Car, frame: wp.mat33f, other: Car):
    """Write the slot of another car."""
    row[at] = 1.0
    if other.demolished_s <= 0.0:
        put(row, at + 1, to_local(frame, other.position - car.position), _PER_LENGTH, obs.FARTHEST)
        put(row, at + 4, to_local(frame, other.velocity - car.velocity), _PER_SPEED, _CARS_FASTEST)
    row[at + 7] = wp.clamp(other.boost * 0.01, 0.0, 1.0)
    row[at + 8] = wp.clamp(other.demolished_s * _PER_DEMOLITION, 0.0, 1.0)


@wp.func
def write_pads(row: wp.ref[ObservedRow], pads: PadRow, tick: int, team: int):
    """Write when each pad is active; orange sees them rotated. Two plain loops, which a compiler can vectorise."""
    if team == 0:
        for pad in range(PAD_COUNT):
            row[_PADS_AT + pad] = wp.max(1.0 - wp.float32(wp.max(pads[pad] - tick, 0)) * _PER_PAD_TICK, 0.0)
    else:
        for pad in range(PAD_COUNT):
            wait = wp.float32(wp.max(pads[PAD_COUNT - 1 - pad] - tick, 0))
            row[_PADS_AT + pad] = wp.max(1.0 - wait * _PER_PAD_TICK, 0.0)


@wp.func
def observe_seat(
    row: wp.ref[ObservedRow],
    cars: wp.array2d[Car],
    ball: Ball,
    match: Match,
    pads: wp.array[PadRow],
    rules: Rules,
    lands: wp.vec4f,
    game: int,
    seat: int,
):
    """Write the observation of one seat; `lands` is `sight.landing` of the ball."""
    car = cars[game, seat]
    side = 1.0 - 2.0 * wp.float32(car.team)
    frame = axes(car.rotation)
    write_own(row, car, frame, side)
    write_ball(row, car, frame, ball, lands, side)
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
        write_other(row, _MATES_AT + slot * obs.OTHER_SIZE, car, frame, cars[game, mate])
    for place in range(rivals):
        slot = sight.rival_slot(shuffle, place)
        write_other(row, _RIVALS_AT + slot * obs.OTHER_SIZE, car, frame, cars[game, first_rival + place])
    write_pads(row, pads[game], match.tick, car.team)
    row[_GAME_AT] = wp.clamp(match.clock_s * _PER_CLOCK, -1.0, 1.0)
    row[_GAME_AT + 1] = sight.lead_of(match, car.team)
    row[_GAME_AT + 2] = wp.float32(match.kickoff)


@wp.kernel
def observe_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[ObservedRow],
    first: int,
):
    """Write the observations of all seats of one game."""
    game = wp.tid() + first
    ball = balls[game]
    match = matches[game]
    lands = sight.landing(ball)
    for seat in range(rules.blue + rules.orange):
        observe_seat(out[game, seat], cars, ball, match, pads, rules, lands, game, seat)


@wp.kernel
def observe_final_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    terminated: wp.array[wp.bool],
    truncated: wp.array[wp.bool],
    out: wp.array2d[ObservedRow],
    first: int,
):
    """Write the observations of one game if it ended."""
    game = wp.tid() + first
    if terminated[game] or truncated[game]:
        ball = balls[game]
        match = matches[game]
        lands = sight.landing(ball)
        for seat in range(rules.blue + rules.orange):
            observe_seat(out[game, seat], cars, ball, match, pads, rules, lands, game, seat)


@wp.kernel
def observe_tiles_kernel(
    cars: wp.array2d[Car],
    balls: wp.array[Ball],
    matches: wp.array[Match],
    pads: wp.array[PadRow],
    rules: Rules,
    out: wp.array2d[wp.float32],
):
    """Write the observations of a tile of rows `(games * seats, 136)`; for a GPU, one thread per seat.

    Rows go through shared memory, so that neighbouring threads write neighbouring numbers.
    """
    tile, lane = wp.tid()
    index = tile * sight.OBSERVE_TILE + lane
    seats = rules.blue + rules.orange
    game = wp.min(index / seats, matches.shape[0] - 1)  # the last tile may reach beyond the last game
    ball = balls[game]
    row = ObservedRow()
    observe_seat(row, cars, ball, matches[game], pads, rules, sight.landing(ball), game, index % seats)
    rows = wp.tile_zeros(shape=(sight.OBSERVE_TILE, _SIZE), dtype=wp.float32, storage="shared")
    place = int(0)
    while place < _SIZE:
        rows[lane, place] = row[place]
        place += 1
    wp.tile_store(out, rows, offset=(tile * sight.OBSERVE_TILE, 0))
