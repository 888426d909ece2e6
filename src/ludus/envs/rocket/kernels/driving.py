"""What the driver's pedals and wheel do on the ground: drive, brakes, steering angle, grip and boost (Warp functions).

The wheels act in a tick with the drive, brake and steering angle of the tick before: measured, a car at rest with full
throttle stands still for one tick more (346 uu/s after 30 ticks, not 357).
"""

import warp as wp

from ludus.envs.rocket.car_rules import (
    BOOST_MIN_S,
    BOOST_PER_S,
    COAST_BRAKE,
    DRIVE_END_SPEED,
    DRIVE_FADE_SPEED,
    HANDBRAKE_FALL,
    HANDBRAKE_RISE,
    SLIDE_ANGLE,
    SLIDE_ANGLE_SLOPE,
    SLIDE_ANGLE_SPEED,
    SPEEDS,
    STEER_ANGLES,
    STICK,
    STOP_SPEED,
    THROTTLE_DEADZONE,
    WHEEL_BRAKE,
    WHEEL_DRIVE,
)
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import DT, GRAVITY

_SLOPES = tuple((STEER_ANGLES[i + 1] - STEER_ANGLES[i]) / (SPEEDS[i + 1] - SPEEDS[i]) for i in range(len(SPEEDS) - 1))
_ANGLE = STEER_ANGLES[0]
_SLOPE_0, _SLOPE_1, _SLOPE_2, _SLOPE_3, _SLOPE_4 = _SLOPES
_SPEED_1, _SPEED_2, _SPEED_3, _SPEED_4, _SPEED_5 = SPEEDS[1:]
_FADE = 0.9 / DRIVE_FADE_SPEED
_END = 0.1 / (DRIVE_END_SPEED - DRIVE_FADE_SPEED)


@wp.func
def steering_angle(speed: wp.float32, slide: wp.float32) -> wp.float32:
    """Angle of the front wheels at full lock, at a forward speed >= 0 and a value of the handbrake."""
    angle = _ANGLE + _SLOPE_0 * wp.min(speed, _SPEED_1)
    angle += _SLOPE_1 * wp.clamp(speed - _SPEED_1, 0.0, _SPEED_2 - _SPEED_1)
    angle += _SLOPE_2 * wp.clamp(speed - _SPEED_2, 0.0, _SPEED_3 - _SPEED_2)
    angle += _SLOPE_3 * wp.clamp(speed - _SPEED_3, 0.0, _SPEED_4 - _SPEED_3)
    angle += _SLOPE_4 * wp.clamp(speed - _SPEED_4, 0.0, _SPEED_5 - _SPEED_4)
    sliding = SLIDE_ANGLE + SLIDE_ANGLE_SLOPE * wp.min(speed, SLIDE_ANGLE_SPEED)
    return angle + (sliding - angle) * slide


@wp.func
def drive_share(speed: wp.float32) -> wp.float32:
    """Share of the engine's force at a forward speed >= 0: 1 at rest, 0.1 at 1400, 0 from 1410 on."""
    if speed < DRIVE_FADE_SPEED:
        return 1.0 - speed * _FADE
    return wp.max(0.1 - (speed - DRIVE_FADE_SPEED) * _END, 0.0)


@wp.func
def pedal(car: Car) -> wp.float32:
    """Throttle as the engine sees it: boost is full throttle."""
    return wp.where(car.boost_key != 0 and car.boost > 0.0, 1.0, car.throttle)


@wp.func
def pull_handbrake(car: wp.ref[Car]):
    """Lets the value of the handbrake follow its key."""
    step = wp.where(car.handbrake != 0, HANDBRAKE_RISE * DT, -HANDBRAKE_FALL * DT)
    car.handbrake_value = wp.clamp(car.handbrake_value + step, 0.0, 1.0)


@wp.func
def set_wheels(car: wp.ref[Car], forward_speed: wp.float32, throttle: wp.float32):
    """Sets drive, brake and steering angle of the wheels for the next tick."""
    speed = wp.abs(forward_speed)
    engine = throttle
    brake = float(0.0)
    if car.handbrake == 0:
        if wp.abs(throttle) < THROTTLE_DEADZONE:
            engine = 0.0
            brake = wp.where(speed < STOP_SPEED, 1.0, COAST_BRAKE)
        elif speed > STOP_SPEED and throttle * forward_speed < 0.0:
            engine = 0.0
            brake = 1.0
    car.wheel_drive = engine * drive_share(speed) * WHEEL_DRIVE
    car.wheel_brake = brake * WHEEL_BRAKE
    car.wheel_angle = car.steer * steering_angle(speed, car.handbrake_value)


@wp.func
def stick_acceleration(normal: wp.vec3f, forward_speed: wp.float32, throttle: wp.float32) -> wp.vec3f:
    """What holds a car to the surface that its wheels touch: half of gravity, and more on walls if it drives."""
    share = float(STICK)
    if throttle != 0.0 or wp.abs(forward_speed) > STOP_SPEED:
        share += 1.0 - wp.abs(normal[2])
    return normal * (share * GRAVITY)


@wp.func
def burn_boost(car: wp.ref[Car]) -> wp.bool:
    """Burns boost for a tick if the key is down or was less than the shortest burn ago; says whether it burns."""
    kept = car.boosting_s > 0.0 and car.boosting_s < BOOST_MIN_S - 0.5 * DT
    if car.boost > 0.0 and (car.boost_key != 0 or kept):
        car.boosting_s += DT
        car.boost = wp.max(car.boost - BOOST_PER_S * DT, 0.0)
        return True
    car.boosting_s = 0.0
    return False
