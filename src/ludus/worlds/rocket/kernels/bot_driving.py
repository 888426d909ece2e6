"""How scripted players see the game (as blue), where they can meet the ball, and how they drive (Warp functions)."""

import warp as wp

from ludus.worlds.rocket.kernels.ball import REACH_Z, fly
from ludus.worlds.rocket.kernels.maths import axes, column, to_local
from ludus.worlds.rocket.kernels.sight import as_blue
from ludus.worlds.rocket.kernels.structs import Ball, Car, ControlRow, Match, PadRow, Rules, Tables
from ludus.worlds.rocket.layout import PAD_COUNT
from ludus.worlds.rocket.rules import Control

LOOK_STEPS, LOOK_STEP_S = 20, 0.13
ARM = 165.0  # distance of the centres of car and ball at a touch
PACE = 1350.0  # uu/s that a car reaches without boost
BOOSTED_PACE = 2100.0
PUSH = 900.0  # uu/s^2 on the way to it
BOOSTED_PUSH = 1500.0
TURN_S = 0.35  # lost for each unit of 1 - cosine of the turn
NEVER_S = 9.0

STEER_GAIN = 5.0
STEER_LAG_S = 0.12  # lead on the car's own turning; without it the car oscillates
SLIDE_COSINE = -0.2  # a target farther behind is turned to with the handbrake ...
SLIDE_SPEED = 600.0  # ... from this speed on
BOOST_COSINE = 0.95
TOP_SPEED = 2250.0
CONTACT = 165.0  # distance of the middles of car and ball in a head-on touch
DODGE_S = 0.3  # time before the touch at which a dodge begins: a jump, a pause, the dodge
DODGE_LATE_S = 0.75  # after which a jump is no longer followed by a dodge
AIR_GAIN, AIR_DAMPING = 2.5, 0.45


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
def flat_length(v: wp.vec3f) -> float:
    """Return the length of a vector seen from above."""
    return wp.sqrt(v[0] * v[0] + v[1] * v[1])


@wp.func
def flat_unit(v: wp.vec3f) -> wp.vec3f:
    """Return the direction of a vector seen from above; 0 if it has none."""
    length = flat_length(v)
    return wp.where(length > 1.0, wp.vec3f(v[0], v[1], 0.0) / wp.max(length, 1.0), wp.vec3f(0.0, 0.0, 0.0))


@wp.func
def reach(start: float, seconds: float, boosted: bool) -> float:
    """Return how far a car gets in a time, given its initial speed toward the place."""
    top = wp.where(boosted, BOOSTED_PACE, PACE)
    push = wp.where(boosted, BOOSTED_PUSH, PUSH)
    per_push = wp.where(boosted, 1.0 / BOOSTED_PUSH, 1.0 / PUSH)
    start = wp.min(start, top)
    rising = wp.min(seconds, (top - start) * per_push)
    return start * seconds + push * rising * (seconds - 0.5 * rising)


@wp.func
def turned(ball: Ball, side: float) -> Ball:
    """Return the ball as a seat sees it."""
    seen = ball
    seen.position = as_blue(ball.position, side)
    seen.velocity = as_blue(ball.velocity, side)
    return seen


@wp.func
def meets_at(car: Car, ball: Ball) -> wp.vec4f:
    """Return where and when a car can first meet the ball on the ground."""
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
def rough_meeting_s(car: Car, ball: Ball) -> float:
    """Estimate when another car can reach the ball; much cheaper than `meets_at`."""
    if car.demolished_s > 0.0:
        return NEVER_S
    way = ball.position + 0.5 * ball.velocity - car.position
    across = wp.max(flat_length(way), 1.0)
    start = wp.max((car.velocity[0] * way[0] + car.velocity[1] * way[1]) / across, 0.0)
    return wp.max(across - ARM, 0.0) / (0.5 * start + 0.5 * BOOSTED_PACE)


@wp.func
def look_at_others(s: wp.ref[Sense], cars: wp.array2d[Car], ball: Ball, game: int, seat: int, rules: Rules):
    """Estimate when each other car can meet the ball."""
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
def look_at_pads(s: wp.ref[Sense], pads: PadRow, tick: int, tables: Tables, side: float):
    """Find the cheapest active pad; a large one may be farther away, one beyond the ball costs extra."""
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
    cars: wp.array2d[Car], ball: Ball, match: Match, rules: Rules, game: int, seat: int, looks_ahead: bool
) -> Sense:
    """Observe the game as blue, without pads; looking ahead takes most of the time, and not every style does it."""
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


@wp.func
def drive_to(s: Sense, target: wp.vec3f, wanted_speed: float, boosts: bool) -> ControlRow:
    """Drive toward a place at about a speed; beyond 1,400 uu/s use boost if allowed."""
    row = ControlRow()
    local = to_local(s.frame, target - s.car.position)
    across = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), 1.0)
    cosine = local[0] / across
    sine = local[1] / across  # to the left
    soon = sine - STEER_LAG_S * wp.dot(s.car.spin, column(s.frame, 2))
    turn = wp.where(cosine > 0.0, STEER_GAIN * soon, wp.where(sine > 0.0, 1.0, -1.0))
    row[Control.STEER] = wp.clamp(-turn, -1.0, 1.0)
    row[Control.YAW] = row[Control.STEER]
    if s.speed > wanted_speed + 250.0:
        row[Control.THROTTLE] = -1.0
    elif s.speed < wanted_speed:
        row[Control.THROTTLE] = 1.0
    if cosine < SLIDE_COSINE and s.speed > SLIDE_SPEED:
        row[Control.HANDBRAKE] = 1.0
    fast = s.speed < wp.min(wanted_speed - 50.0, TOP_SPEED)
    if boosts and cosine > BOOST_COSINE and fast and wanted_speed > 1400.0:
        row[Control.BOOST] = 1.0
        row[Control.THROTTLE] = 1.0
    return row


@wp.func
def recover(s: Sense, target: wp.vec3f) -> ControlRow:
    """Turn a car in the air onto its wheels and its nose toward a place; a car on its roof jumps."""
    row = ControlRow()
    left = column(s.frame, 1)
    up = column(s.frame, 2)
    spin = to_local(s.frame, s.car.spin)
    local = to_local(s.frame, target - s.car.position)
    across = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), 1.0)
    rolled = wp.where(up[2] < 0.0, wp.where(left[2] > 0.0, 1.0, -1.0), left[2])
    away = wp.where(local[0] > 0.0, local[1] / across, wp.where(local[1] > 0.0, 1.0, -1.0))
    row[Control.ROLL] = wp.clamp(-AIR_GAIN * rolled - AIR_DAMPING * spin[0], -1.0, 1.0)
    row[Control.PITCH] = wp.clamp(-AIR_GAIN * s.forward[2] + AIR_DAMPING * spin[1], -1.0, 1.0)
    row[Control.YAW] = wp.clamp(-AIR_GAIN * away + AIR_DAMPING * spin[2], -1.0, 1.0)
    row[Control.THROTTLE] = 1.0
    lies = s.car.body_contact != 0 and up[2] < 0.3
    if lies and s.car.jump_before == 0:
        row[Control.JUMP] = 1.0
    return row


@wp.func
def dodge_at(s: Sense, target: wp.vec3f) -> ControlRow:
    """Return the second press of the jump key: a dodge toward a place, by pitch and roll."""
    row = ControlRow()
    local = to_local(s.frame, target - s.car.position)
    across = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), 1.0)
    sine = local[1] / across
    row[Control.JUMP] = 1.0
    row[Control.PITCH] = wp.where(local[0] > 0.0, -1.0, 1.0)
    row[Control.ROLL] = wp.where(wp.abs(sine) > 0.4, wp.where(sine > 0.0, -1.0, 1.0), 0.0)
    return row


@wp.func
def in_dodge_window(s: Sense) -> bool:
    """Return whether the car has just jumped and could dodge now."""
    car = s.car
    waits = car.jumped != 0 and car.dodged == 0 and car.double_jumped == 0 and car.on_ground == 0
    return waits and car.jump_s < DODGE_LATE_S


@wp.func
def airborne(s: Sense, target: wp.vec3f) -> ControlRow:
    """Return controls in the air: finish a dodge into the ball, else land on the wheels."""
    if in_dodge_window(s):
        if s.car.jump_before != 0:
            return ControlRow()  # let go of the key, so that it can go down again
        if s.distance < 450.0:
            return dodge_at(s, s.ball.position)
    return recover(s, target)


@wp.func
def seconds_to_touch(s: Sense) -> float:
    """Return the time until the car touches the ball if both keep their velocities; large if they do not meet."""
    closing = wp.dot(s.car.velocity - s.ball.velocity, s.to_ball) / wp.max(s.distance, 1.0)
    return wp.where(closing > 100.0, wp.max(s.distance - CONTACT, 0.0) / wp.max(closing, 100.0), 9.0)


@wp.func
def may_dodge(s: Sense) -> bool:
    """Return whether a jump now, followed by a dodge, would hit the ball."""
    local = to_local(s.frame, s.to_ball)
    aims = local[0] > 0.0 and wp.abs(local[1]) < 0.35 * local[0]
    low = s.ball.position[2] + 0.3 * s.ball.velocity[2] < 260.0 and s.car.position[2] < 60.0
    return s.car.on_ground != 0 and aims and low and seconds_to_touch(s) < DODGE_S and s.car.jump_before == 0


@wp.func
def go(s: Sense, target: wp.vec3f, wanted_speed: float, boosts: bool, dodges: bool) -> ControlRow:
    """Drive, dodge into the ball where that fits, and cope with being in the air."""
    if s.car.on_ground == 0:
        return airborne(s, target)
    row = drive_to(s, target, wanted_speed, boosts)
    if dodges and may_dodge(s):
        row[Control.JUMP] = 1.0
        row[Control.PITCH] = 0.0
        row[Control.YAW] = 0.0
        row[Control.STEER] = 0.0
    return row


@wp.func
def back_to(s: Sense, target: wp.vec3f, wanted_speed: float) -> ControlRow:
    """Drive backward toward a place behind the car."""
    row = ControlRow()
    local = to_local(s.frame, target - s.car.position)
    across = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), 1.0)
    row[Control.STEER] = wp.clamp(-STEER_GAIN * local[1] / across, -1.0, 1.0)
    row[Control.YAW] = row[Control.STEER]
    row[Control.THROTTLE] = wp.where(-s.speed < wanted_speed, -1.0, wp.where(-s.speed > wanted_speed + 250.0, 1.0, 0.0))
    return row


@wp.func
def hold_place(s: Sense, place: wp.vec3f, faces: wp.vec3f) -> ControlRow:
    """Stay near a place, with the nose toward something; go there backward if the nose is right already."""
    far = flat_length(place - s.car.position)
    speed = wp.clamp(far * 2.0, 300.0, 2300.0)
    to_place = to_local(s.frame, place - s.car.position)
    to_face = to_local(s.frame, faces - s.car.position)
    looks = to_face[0] > wp.abs(to_face[1])
    if s.car.on_ground == 0:
        return airborne(s, faces)
    if far > 150.0:
        if looks and to_place[0] < 0.0 and (far < 2000.0 or s.kickoff != 0):
            return back_to(s, place, speed)
        if far > 450.0 or (looks and to_place[0] > wp.abs(to_place[1])):
            return drive_to(s, place, speed, far > 2500.0)
    if looks:
        row = ControlRow()
        row[Control.THROTTLE] = wp.where(s.speed > 100.0, -1.0, wp.where(s.speed < -100.0, 1.0, 0.0))
        return row
    return drive_to(s, faces, 350.0, False)
