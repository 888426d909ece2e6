"""What a scripted player sees, as blue, and where it can meet the ball (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.flight import REACH_Z, fly
from ludus.envs.rocket.kernels.maths import axes, column, to_local
from ludus.envs.rocket.kernels.sight import PadRow, as_blue
from ludus.envs.rocket.kernels.structs import Ball, Car, Match, Rules
from ludus.envs.rocket.kernels.tables import Tables
from ludus.envs.rocket.layout import PAD_COUNT

LOOK_STEPS = 20
LOOK_STEP_S = 0.13
ARM = 165.0  # a car touches a ball whose middle is so far from its own
PACE = 1350.0  # uu/s that a car reaches without boost
BOOSTED_PACE = 2100.0
PUSH = 900.0  # uu/s^2 on the way to it
BOOSTED_PUSH = 1500.0
TURN_S = 0.35  # lost for each unit of 1 - cosine of the turn
NEVER_S = 9.0


@wp.struct
class Sense:
    """What a scripted player knows; everything as blue."""

    car: Car  # position, velocity and spin as blue
    frame: wp.mat33f  # its axes
    forward: wp.vec3f
    speed: wp.float32  # forward
    ball: Ball
    to_ball: wp.vec3f
    distance: wp.float32  # to the ball
    meet: wp.vec3f  # where it can meet the ball
    meet_s: wp.float32  # and when; `NEVER_S` if not soon, then `meet` is where the ball will be at the end
    kickoff: wp.int32
    rank: wp.int32  # teammates who meet the ball earlier
    mates: wp.int32
    rival_s: wp.float32  # when the first opponent can meet the ball
    pad: wp.vec3f  # the pad that is the most worth a detour ...
    pad_cost: wp.float32  # ... and how far it is, 1e9 if there is none


@wp.func
def flat_length(v: wp.vec3f) -> wp.float32:
    """Length of a vector seen from above."""
    return wp.sqrt(v[0] * v[0] + v[1] * v[1])


@wp.func
def flat_unit(v: wp.vec3f) -> wp.vec3f:
    """Direction of a vector seen from above; 0 if it has none."""
    length = flat_length(v)
    return wp.where(length > 1.0, wp.vec3f(v[0], v[1], 0.0) / wp.max(length, 1.0), wp.vec3f(0.0, 0.0, 0.0))


@wp.func
def reach(start: wp.float32, seconds: wp.float32, boosted: bool) -> wp.float32:
    """How far a car comes, from its speed toward the place at the start."""
    top = wp.where(boosted, BOOSTED_PACE, PACE)
    push = wp.where(boosted, BOOSTED_PUSH, PUSH)
    per_push = wp.where(boosted, 1.0 / BOOSTED_PUSH, 1.0 / PUSH)
    start = wp.min(start, top)
    rising = wp.min(seconds, (top - start) * per_push)
    return start * seconds + push * rising * (seconds - 0.5 * rising)


@wp.func
def turned(ball: Ball, side: wp.float32) -> Ball:
    """The ball as a seat sees it."""
    seen = ball
    seen.position = as_blue(ball.position, side)
    seen.velocity = as_blue(ball.velocity, side)
    return seen


@wp.func
def meets_at(car: Car, ball: Ball) -> wp.vec4f:
    """Where and when a car can first meet the ball on the ground; all in the same view."""
    ahead = ball
    forward = column(axes(car.rotation), 0)
    boosted = car.boost > 25.0
    if car.demolished_s > 0.0:
        return wp.vec4f(ball.position[0], ball.position[1], ball.position[2], NEVER_S)
    step = int(0)
    while step < LOOK_STEPS:
        if ahead.position[2] <= REACH_Z:
            way = ahead.position - car.position
            across = wp.max(flat_length(way), 1.0)
            per_across = 1.0 / across
            start = (car.velocity[0] * way[0] + car.velocity[1] * way[1]) * per_across
            cosine = (forward[0] * way[0] + forward[1] * way[1]) * per_across
            seconds = wp.float32(step) * LOOK_STEP_S
            driven_s = wp.max(seconds - TURN_S * (1.0 - cosine), 0.0)
            if across - ARM <= reach(wp.max(start, 0.0), driven_s, boosted):
                return wp.vec4f(ahead.position[0], ahead.position[1], ahead.position[2], seconds)
        fly(ahead, LOOK_STEP_S)
        step += 1
    return wp.vec4f(ahead.position[0], ahead.position[1], ahead.position[2], NEVER_S)


@wp.func
def rough_meeting_s(car: Car, ball: Ball) -> wp.float32:
    """About when another car can be where the ball is soon; much cheaper than `meets_at`."""
    if car.demolished_s > 0.0:
        return NEVER_S
    way = ball.position + 0.5 * ball.velocity - car.position
    across = wp.max(flat_length(way), 1.0)
    start = wp.max((car.velocity[0] * way[0] + car.velocity[1] * way[1]) / across, 0.0)
    return wp.max(across - ARM, 0.0) / (0.5 * start + 0.5 * BOOSTED_PACE)


@wp.func
def look_at_others(s: wp.ref[Sense], cars: wp.array2d[Car], ball: Ball, game: int, seat: int, rules: Rules):
    """Finds out who else can meet the ball when."""
    own = rough_meeting_s(cars[game, seat], ball)
    s.rival_s = NEVER_S
    for other in range(rules.blue + rules.orange):
        if other != seat:
            seconds = rough_meeting_s(cars[game, other], ball)
            if cars[game, other].team == cars[game, seat].team:
                s.mates += 1
                if seconds < own or (seconds == own and other < seat):
                    s.rank += 1
            else:
                s.rival_s = wp.min(s.rival_s, seconds)


@wp.func
def look_at_pads(s: wp.ref[Sense], pads: PadRow, tick: int, tables: Tables, side: wp.float32):
    """Finds the pad that is there and costs the least way; a large one may be farther, one behind the ball not."""
    s.pad_cost = 1.0e9
    for pad in range(PAD_COUNT):
        if pads[pad] <= tick:
            place = tables.pads[pad]
            x = side * place[0]
            y = side * place[1]
            dx = x - s.car.position[0]
            dy = y - s.car.position[1]
            cost = wp.sqrt(dx * dx + dy * dy) - wp.where(place[3] > 0.0, 1200.0, 0.0)
            cost += wp.max(y - s.ball.position[1], 0.0)
            along = dx * s.forward[0] + dy * s.forward[1]
            cost += wp.where(along < 0.0, 500.0, 0.0)
            if cost < s.pad_cost:
                s.pad_cost = cost
                s.pad = wp.vec3f(x, y, 17.0)


@wp.func
def look(
    cars: wp.array2d[Car],
    ball: Ball,
    match: Match,
    rules: Rules,
    game: int,
    seat: int,
    looks_ahead: bool,
) -> Sense:
    """Sees the game as blue, without pads; looking ahead takes most of the time, and not every style does."""
    s = Sense()
    car = cars[game, seat]
    side = 1.0 - 2.0 * wp.float32(car.team)
    world = axes(car.rotation)
    s.car = car
    s.car.position = as_blue(car.position, side)
    s.car.velocity = as_blue(car.velocity, side)
    s.car.spin = as_blue(car.spin, side)
    s.frame = wp.matrix_from_cols(
        as_blue(column(world, 0), side), as_blue(column(world, 1), side), as_blue(column(world, 2), side)
    )
    s.forward = column(s.frame, 0)
    s.speed = to_local(world, car.velocity)[0]
    meet = wp.vec4f(ball.position[0], ball.position[1], ball.position[2], NEVER_S)
    if looks_ahead:
        meet = meets_at(car, ball)
    s.meet = as_blue(wp.vec3f(meet[0], meet[1], meet[2]), side)
    s.meet_s = meet[3]
    s.ball = turned(ball, side)
    s.to_ball = s.ball.position - s.car.position
    s.distance = wp.length(s.to_ball)
    s.kickoff = match.kickoff
    look_at_others(s, cars, ball, game, seat, rules)
    return s
