"""One tick of a car by itself: everything but its contacts with the arena's walls, the ball and other cars.

`advance_car` changes velocity and spin, `move_car` position and rotation, `finish_car` holds the limits.
"""

import warp as wp

from ludus.envs.rocket.car_rules import (
    AIR_THROTTLE,
    AUTOROLL_PULL,
    BOOST_AIR,
    BOOST_GROUND,
    WHEEL_REACH,
)
from ludus.envs.rocket.kernels.air import air_turn, autoflip, roll_turn
from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.driving import burn_boost, pedal, pull_handbrake, set_wheels, stick_acceleration
from ludus.envs.rocket.kernels.jumping import continue_dodge, jump, second_jump
from ludus.envs.rocket.kernels.maths import axes, clamp_length, column, sin_cos, to_local, to_world, turn, unit
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.kernels.wheels import Frame, Push, Tyres, over_flat_floor, wheel_push
from ludus.envs.rocket.rules import (
    CAR_MAX_SPEED,
    CAR_MAX_SPIN,
    DT,
    GRAVITY,
    SUPERSONIC_GRACE_S,
    SUPERSONIC_OFF,
    SUPERSONIC_ON,
)

SOON = 40.0  # no car comes nearer than this in a tick, so farther from every surface the wheels need not be set


@wp.func
def clearance(position: wp.vec3f) -> wp.float32:
    """Distance of a car's centre of mass from the arena."""
    distance = position[2]
    if not over_flat_floor(position):
        surface = arena_distance(position)
        distance = surface[3]
    return distance


@wp.func
def wheels_of(car: Car, frame: Frame, throttle: wp.float32) -> Push:
    """What the wheels do with the drive, brake and steering angle that they have."""
    tyres = Tyres()
    tyres.drive = car.wheel_drive
    tyres.brake = car.wheel_brake
    tyres.slide = car.handbrake_value
    tyres.sticky = wp.where(throttle != 0.0, 1, 0)
    steer = sin_cos(car.wheel_angle)
    return wheel_push(frame, tyres, steer[0], steer[1])


@wp.func
def advance_car(car: wp.ref[Car]):
    """Advances velocity, spin, boost and jump by a tick; position and rotation stay."""
    m = axes(car.rotation)
    frame = Frame()
    frame.position = car.position
    frame.forward = column(m, 0)
    frame.left = column(m, 1)
    frame.up = column(m, 2)
    frame.velocity = to_local(m, car.velocity)
    frame.spin = to_local(m, car.spin)
    throttle = pedal(car)
    pressed = car.jump != 0 and car.jump_before == 0
    forward_speed = frame.velocity[0]

    push = Push()
    distance = clearance(car.position)
    if distance < WHEEL_REACH:
        push = wheels_of(car, frame, throttle)
    car.wheels = push.wheels
    car.on_ground = wp.where(push.wheels >= 3, 1, 0)
    pull_handbrake(car)
    if distance < WHEEL_REACH + SOON:
        set_wheels(car, forward_speed, throttle)
    acceleration = wp.vec3f(0.0, 0.0, GRAVITY)
    if push.wheels > 0:
        car.normal = to_world(m, unit(push.normal))
        acceleration = acceleration + stick_acceleration(car.normal, forward_speed, throttle)
        car.dodging = 0

    jump(car, frame.up, pressed)
    autoflip(car, frame.forward, frame.left, frame.up, pressed)
    second_jump(car, frame.forward, frame.up, pressed)
    turning = wp.vec3f(0.0, 0.0, 0.0)
    boosting = burn_boost(car)
    if push.wheels < 3:
        turning = air_turn(car, frame.spin)
        air_throttle = wp.where(boosting, 1.0, car.throttle)
        acceleration = acceleration + (air_throttle * AIR_THROTTLE) * frame.forward
    continue_dodge(car)
    if car.throttle != 0.0 and push.wheels < 4 and (push.wheels > 0 or car.body_contact != 0):
        turning = turning + roll_turn(to_local(m, car.normal))
        acceleration = acceleration - AUTOROLL_PULL * car.normal
    if boosting:
        acceleration = acceleration + wp.where(car.on_ground != 0, BOOST_GROUND, BOOST_AIR) * frame.forward

    car.velocity = car.velocity + (to_world(m, push.velocity) + acceleration * DT)
    car.spin = car.spin + to_world(m, push.spin + turning * DT)
    car.jump_before = car.jump


@wp.func
def move_car(car: wp.ref[Car]):
    """Moves and turns a car by a tick."""
    car.position = car.position + car.velocity * DT
    car.rotation = turn(car.rotation, car.spin, DT)


@wp.func
def finish_car(car: wp.ref[Car]):
    """Ends a car's tick: holds the limits of speed and spin, and notes whether it is supersonic."""
    car.velocity = clamp_length(car.velocity, CAR_MAX_SPEED)
    car.spin = clamp_length(car.spin, CAR_MAX_SPIN)
    speed_sq = wp.dot(car.velocity, car.velocity)
    if speed_sq >= SUPERSONIC_ON * SUPERSONIC_ON:
        car.supersonic = 1
        car.supersonic_s = 0.0
    elif car.supersonic != 0:
        car.supersonic_s += DT
        if speed_sq < SUPERSONIC_OFF * SUPERSONIC_OFF or car.supersonic_s >= SUPERSONIC_GRACE_S:
            car.supersonic = 0
            car.supersonic_s = 0.0
