"""Jump with hold, double jump and dodge (Warp functions); they change the velocity at once."""

import warp as wp

from ludus.envs.rocket.car_rules import (
    DODGE_AXIS_DEADZONE,
    DODGE_BACK,
    DODGE_BACK_GAIN,
    DODGE_DEADZONE,
    DODGE_LIFT,
    DODGE_LIFT_END_S,
    DODGE_LIFT_START_S,
    DODGE_S,
    DODGE_SIDE_GAIN,
    DODGE_SLOW,
    DODGE_SPEED,
    JUMP_ACCELERATION,
    JUMP_EARLY,
    JUMP_MAX_S,
    JUMP_MIN_S,
    JUMP_RESET_S,
    JUMP_SPEED,
    SECOND_JUMP_S,
)
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import CAR_MAX_SPEED, DT

HALF_TICK = 0.5 * DT  # times are sums of ticks: comparing between two ticks keeps rounding out of it


@wp.func
def jump(car: wp.ref[Car], up: wp.vec3f, pressed: wp.bool):
    """Begins a jump on the ground and accelerates while the key is held."""
    settled = car.jumped == 0 or car.jump_s > JUMP_MIN_S + JUMP_RESET_S - HALF_TICK
    if car.on_ground != 0 and car.jumping == 0 and settled:
        car.jumped = 0
        car.jump_s = 0.0
    if car.jumping != 0:
        early = car.jump_s < JUMP_MIN_S - HALF_TICK
        if not early and (car.jump == 0 or car.jump_s > JUMP_MAX_S - HALF_TICK):
            car.jumping = 0
    elif car.on_ground != 0 and pressed:
        car.jumping = 1
        car.jumped = 1
        car.jump_s = 0.0
        car.velocity = car.velocity + JUMP_SPEED * up
    if car.jumping != 0:
        share = wp.where(car.jump_s < JUMP_MIN_S - HALF_TICK, JUMP_EARLY, 1.0)
        car.velocity = car.velocity + (share * JUMP_ACCELERATION * DT) * up
    if car.jumped != 0:
        car.jump_s += DT


@wp.func
def second_jump(car: wp.ref[Car], forward: wp.vec3f, up: wp.vec3f, pressed: wp.bool):
    """Double jump or dodge in the air, once, within a time after the jump; without a jump at any time."""
    if car.on_ground != 0:
        car.double_jumped = 0
        car.dodged = 0
        car.air_s = 0.0
        car.air_since_jump_s = 0.0
        return
    car.air_s += DT
    car.air_since_jump_s = wp.where(car.jumped != 0 and car.jumping == 0, car.air_since_jump_s + DT, 0.0)
    late = car.air_since_jump_s > SECOND_JUMP_S - HALF_TICK
    if not pressed or late or car.double_jumped != 0 or car.dodged != 0 or car.autoflip_s > 0.0:
        return
    if wp.abs(car.pitch) + wp.abs(car.yaw) + wp.abs(car.roll) < DODGE_DEADZONE:
        car.double_jumped = 1
        car.velocity = car.velocity + JUMP_SPEED * up
    else:
        dodge(car, forward)


@wp.func
def dodge(car: wp.ref[Car], forward: wp.vec3f):
    """Begins a dodge: pushes the car in the stick's direction, in the level frame of its nose, and sets its torque."""
    car.dodged = 1
    car.dodging = 1
    car.dodge_s = 0.0
    car.dodge_x = 0.0
    car.dodge_y = 0.0
    ahead = -car.pitch
    right = car.yaw + car.roll
    length = wp.sqrt(ahead * ahead + right * right)
    if wp.abs(ahead) < DODGE_AXIS_DEADZONE and wp.abs(right) < DODGE_AXIS_DEADZONE:
        return  # a stall: no push and no torque
    ahead = ahead / length
    right = right / length
    car.dodge_x = ahead
    car.dodge_y = right
    if wp.abs(ahead) < DODGE_AXIS_DEADZONE:
        ahead = 0.0
    if wp.abs(right) < DODGE_AXIS_DEADZONE:
        right = 0.0
    speed = wp.dot(car.velocity, forward)
    share = wp.abs(speed) / CAR_MAX_SPEED
    backward = ahead < 0.0
    if wp.abs(speed) >= DODGE_SLOW:
        backward = (ahead >= 0.0) != (speed >= 0.0)
    ahead *= DODGE_SPEED
    right *= DODGE_SPEED * (1.0 + DODGE_SIDE_GAIN * share)
    if backward:
        ahead *= DODGE_BACK * (1.0 + DODGE_BACK_GAIN * share)
    level = wp.sqrt(forward[0] * forward[0] + forward[1] * forward[1])
    if level > 0.0:
        nose_x = forward[0] / level
        nose_y = forward[1] / level
        car.velocity = car.velocity + wp.vec3f(ahead * nose_x + right * nose_y, ahead * nose_y - right * nose_x, 0.0)


@wp.func
def continue_dodge(car: wp.ref[Car]):
    """Holds the height of a dodging car, and counts its time."""
    if car.dodged == 0:
        car.dodging = 0
        return
    sinking = car.velocity[2] < 0.0 or car.dodge_s < DODGE_LIFT_END_S - HALF_TICK
    if car.dodging != 0 and car.dodge_s > DODGE_LIFT_START_S - HALF_TICK and sinking:
        car.velocity = wp.vec3f(car.velocity[0], car.velocity[1], car.velocity[2] * DODGE_LIFT)
    car.dodge_s += DT
    if car.dodge_s > DODGE_S - HALF_TICK:
        car.dodging = 0
