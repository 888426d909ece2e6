"""What turns a car in the air and back onto its wheels: stick, dodge, auto-roll, auto-flip (Warp functions).

Accelerations are in the car's own axes: x forward (positive spin rolls right), y left (positive spin puts the nose
down), z up (positive spin turns left).
"""

import warp as wp

from ludus.envs.rocket.car_rules import (
    AIR_PITCH,
    AIR_ROLL,
    AIR_YAW,
    AUTOFLIP_NORMAL_Z,
    AUTOFLIP_S,
    AUTOFLIP_SPEED,
    AUTOFLIP_TANGENT,
    AUTOFLIP_TURN,
    AUTOROLL_TURN,
    DAMP_PITCH,
    DAMP_ROLL,
    DAMP_YAW,
    DODGE_CANCEL_S,
    DODGE_PITCH,
    DODGE_PITCH_LOCK_S,
    DODGE_ROLL,
)
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import DT

_PER_HALF_TURN = 0.31830989  # 1 / pi


@wp.func
def air_turn(car: Car, spin: wp.vec3f) -> wp.vec3f:
    """Angular acceleration of a car in the air by its dodge and by the stick, given its spin in its own axes."""
    turn = wp.vec3f(0.0, 0.0, 0.0)
    controlled = car.autoflip_s <= 0.0 and car.wheels == 0
    if car.dodging != 0 and (car.dodge_x != 0.0 or car.dodge_y != 0.0):
        pitch_share = float(1.0)
        cancels = car.dodge_x * car.pitch > 0.0 and car.dodge_s >= DODGE_CANCEL_S
        if cancels:
            pitch_share = 1.0 - wp.abs(car.pitch)
        turn = wp.vec3f(car.dodge_y * DODGE_ROLL, car.dodge_x * DODGE_PITCH * pitch_share, 0.0)
        controlled = controlled and cancels
    if controlled:
        pitch = wp.where(car.dodged != 0 and car.dodge_s < DODGE_PITCH_LOCK_S, 0.0, car.pitch)
        turn = turn + wp.vec3f(
            car.roll * AIR_ROLL - DAMP_ROLL * spin[0],
            -pitch * AIR_PITCH - DAMP_PITCH * (1.0 - wp.abs(pitch)) * spin[1],
            -car.yaw * AIR_YAW - DAMP_YAW * (1.0 - wp.abs(car.yaw)) * spin[2],
        )
    return turn


@wp.func
def roll_turn(normal: wp.vec3f) -> wp.vec3f:
    """Angular acceleration that turns a car's wheels to a surface; `normal` is in the car's axes."""
    roll = 1.0 - wp.clamp(normal[2], 0.0, 1.0)
    pitch = normal[0] * normal[0]
    return wp.vec3f(
        wp.where(normal[1] >= 0.0, -roll, roll) * AUTOROLL_TURN,
        wp.where(normal[0] >= 0.0, pitch, -pitch) * AUTOROLL_TURN,
        0.0,
    )


@wp.func
def autoflip(car: wp.ref[Car], forward: wp.vec3f, left: wp.vec3f, up: wp.vec3f, pressed: wp.bool):
    """A jump key pressed upside down on the ground throws the car up and turns it over."""
    flat = pressed and car.body_contact != 0 and car.normal[2] > AUTOFLIP_NORMAL_Z
    if flat and up[2] < 0.0 and wp.abs(left[2]) < -up[2] * AUTOFLIP_TANGENT:
        # |roll| / pi is 1 - atan(x) / pi, where x is small enough for three terms.
        x = wp.abs(left[2] / up[2])
        angle = x * (1.0 - x * x * (1.0 / 3.0 - x * x * 0.2))
        car.autoflip_s = AUTOFLIP_S * (1.0 - angle * _PER_HALF_TURN)
        car.autoflip_sign = wp.where(left[2] > 0.0, -1.0, 1.0)
        car.velocity = car.velocity - AUTOFLIP_SPEED * up
    if car.autoflip_s > 0.0:
        car.spin = car.spin + (AUTOFLIP_TURN * car.autoflip_sign * DT) * forward
        car.autoflip_s = wp.max(car.autoflip_s - DT, 0.0)
