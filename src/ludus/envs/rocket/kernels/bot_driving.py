"""How scripted players drive: to a place, into a dodge, and back onto their wheels (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.bot_sense import Sense, flat_length
from ludus.envs.rocket.kernels.maths import column, to_local
from ludus.envs.rocket.kernels.tables import ControlRow
from ludus.envs.rocket.rules import Control

STEER_GAIN = 5.0
STEER_LAG_S = 0.12  # how far ahead of its own turning a car looks: without it, it would sway
SLIDE_COSINE = -0.2  # a target farther behind is turned to with the handbrake ...
SLIDE_SPEED = 600.0  # ... from this speed on
BOOST_COSINE = 0.95
TOP_SPEED = 2250.0
CONTACT = 165.0  # distance of the middles of car and ball in a head-on touch
DODGE_S = 0.3  # time before the touch at which a dodge begins: a jump, a pause, the dodge
DODGE_LATE_S = 0.75  # after which a jump is no longer followed by a dodge
AIR_GAIN = 2.5
AIR_DAMPING = 0.45


@wp.func
def drive_to(s: Sense, target: wp.vec3f, wanted_speed: wp.float32, boosts: bool) -> ControlRow:
    """Drives toward a place at about a speed; beyond 1,400 uu/s it takes boost if it may."""
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
    """Turns a car in the air onto its wheels and its nose toward a place; a car on its roof jumps."""
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
    """The second press of the jump key: a dodge toward a place, by pitch and roll."""
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
    """Whether the car has just jumped and could dodge now."""
    car = s.car
    waits = car.jumped != 0 and car.dodged == 0 and car.double_jumped == 0 and car.on_ground == 0
    return waits and car.jump_s < DODGE_LATE_S


@wp.func
def airborne(s: Sense, target: wp.vec3f) -> ControlRow:
    """What to do in the air: finish the dodge into the ball that was begun, else land well."""
    if in_dodge_window(s):
        if s.car.jump_before != 0:
            return ControlRow()  # let go of the key, so that it can go down again
        if s.distance < 450.0:
            return dodge_at(s, s.ball.position)
    return recover(s, target)


@wp.func
def seconds_to_touch(s: Sense) -> wp.float32:
    """Time until the car touches the ball if both go on as they do; large if they do not meet."""
    closing = wp.dot(s.car.velocity - s.ball.velocity, s.to_ball) / wp.max(s.distance, 1.0)
    return wp.where(closing > 100.0, wp.max(s.distance - CONTACT, 0.0) / wp.max(closing, 100.0), 9.0)


@wp.func
def may_dodge(s: Sense) -> bool:
    """Whether a jump now, followed by a dodge, would hit the ball."""
    local = to_local(s.frame, s.to_ball)
    aims = local[0] > 0.0 and wp.abs(local[1]) < 0.35 * local[0]
    low = s.ball.position[2] + 0.3 * s.ball.velocity[2] < 260.0 and s.car.position[2] < 60.0
    return s.car.on_ground != 0 and aims and low and seconds_to_touch(s) < DODGE_S and s.car.jump_before == 0


@wp.func
def go(s: Sense, target: wp.vec3f, wanted_speed: wp.float32, boosts: bool, dodges: bool) -> ControlRow:
    """Drives, dodges into the ball where that fits, and copes with being in the air."""
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
def back_to(s: Sense, target: wp.vec3f, wanted_speed: wp.float32) -> ControlRow:
    """Drives backward toward a place behind the car."""
    row = ControlRow()
    local = to_local(s.frame, target - s.car.position)
    across = wp.max(wp.sqrt(local[0] * local[0] + local[1] * local[1]), 1.0)
    row[Control.STEER] = wp.clamp(-STEER_GAIN * local[1] / across, -1.0, 1.0)
    row[Control.YAW] = row[Control.STEER]
    row[Control.THROTTLE] = wp.where(-s.speed < wanted_speed, -1.0, wp.where(-s.speed > wanted_speed + 250.0, 1.0, 0.0))
    return row


@wp.func
def hold_place(s: Sense, place: wp.vec3f, faces: wp.vec3f) -> ControlRow:
    """Stays near a place, with the nose toward something; goes there backward if the nose is right already."""
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
