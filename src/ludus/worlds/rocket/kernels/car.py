"""One tick of a car by itself: jumps, dodges, air control, wheels and boost (Warp functions).

`advance_car` changes velocity and spin, `move_car` position and rotation, `finish_car` enforces the limits. Contacts of
the hull with the arena, the ball and other cars are in `contacts` and `car_car`.

Angular accelerations are in the car's own axes: x forward (positive spin rolls right), y left (positive spin lowers the
nose), z up (positive spin turns left).
"""

import warp as wp

from ludus.worlds.rocket.kernels import wheels
from ludus.worlds.rocket.kernels.arena import arena_distance
from ludus.worlds.rocket.kernels.maths import axes, clamp_length, column, sin_cos, to_local, to_world, turn, unit
from ludus.worlds.rocket.kernels.structs import PHYSICS, Car
from ludus.worlds.rocket.rules import CAR_MAX_SPEED, CAR_MAX_SPIN, DT, GRAVITY, SECOND_JUMP_S

wp.set_module_options(PHYSICS)

# Speed and boost.
SUPERSONIC_ON, SUPERSONIC_OFF, SUPERSONIC_GRACE_S = 2200.0, 2100.0, 1.0
BOOST_GROUND = 991.6667
BOOST_AIR = 991.6667  # plus full air throttle

# Jump, double jump, dodge.
JUMP_SPEED = 291.6667
JUMP_ACCELERATION = 1458.3333
JUMP_EARLY = 0.62  # share of it in the first JUMP_MIN_S
JUMP_MIN_S, JUMP_MAX_S = 0.025, 0.2
JUMP_RESET_S = 0.025  # the ground does not end a jump before this much after JUMP_MIN_S
DODGE_DEADZONE = 0.5  # of |pitch| + |yaw| + |roll|
DODGE_AXIS_DEADZONE = 0.1
DODGE_SPEED = 500.0
DODGE_SIDE_GAIN = 0.9  # at full speed
DODGE_BACK_GAIN = 1.5
DODGE_BACK = 16.0 / 15.0
DODGE_SLOW = 100.0  # a slower car dodges backward if the stick says so, a faster one if it goes against its motion
DODGE_ROLL, DODGE_PITCH = 260.0, 224.0  # rad/s^2
DODGE_S = 0.65
DODGE_CANCEL_S = 0.041  # until then the torque cannot be cancelled
DODGE_LIFT = 0.65  # factor of the vertical speed in a tick ...
DODGE_LIFT_START_S, DODGE_LIFT_END_S = 0.15, 0.21  # ... from the first time on; after the second only when falling
DODGE_PITCH_LOCK_S = 0.95  # no pitch control until then

# Air control, rad/s^2 and 1/s.
_TORQUE = 0.0958738
AIR_PITCH, AIR_YAW, AIR_ROLL = 130.0 * _TORQUE, 95.0 * _TORQUE, 400.0 * _TORQUE
DAMP_PITCH, DAMP_YAW, DAMP_ROLL = 30.0 * _TORQUE, 20.0 * _TORQUE, 50.0 * _TORQUE
AIR_THROTTLE = 66.66667

# Back onto the wheels.
AUTOROLL_PULL = 100.0  # toward the surface
AUTOROLL_TURN = 80.0  # rad/s^2
AUTOFLIP_NORMAL_Z = 0.70710678
AUTOFLIP_TANGENT = 0.35552983  # tan(pi - 2.8): how far from upside down, about the car's length
AUTOFLIP_SPEED, AUTOFLIP_TURN, AUTOFLIP_S = 200.0, 50.0, 0.4

HALF_TICK = 0.5 * DT  # times are sums of ticks: comparing between two ticks keeps rounding out of it

_PER_HALF_TURN = 0.31830989  # 1 / pi

SOON = 40.0  # more than a car's path in a tick: farther from every surface the wheels need not be set


@wp.func
def jump(car: wp.ref[Car], up: wp.vec3f, pressed: bool):
    """Begin a jump on the ground and accelerate while the key is held."""
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
def second_jump(car: wp.ref[Car], forward: wp.vec3f, up: wp.vec3f, pressed: bool):
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
    """Begin a dodge: push the car in the stick's direction, in the level frame of its nose, and set its torque."""
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
    """Hold the height of a dodging car, and count its time.

    The torque acts in the tick of the press and in the 78 ticks of `DODGE_S` after it, 79 in all.
    """
    if car.dodged == 0:
        car.dodging = 0
        return
    sinking = car.velocity[2] < 0.0 or car.dodge_s < DODGE_LIFT_END_S
    if car.dodging != 0 and car.dodge_s > DODGE_LIFT_START_S - HALF_TICK and sinking:
        car.velocity = wp.vec3f(car.velocity[0], car.velocity[1], car.velocity[2] * DODGE_LIFT)
    car.dodge_s += DT
    if car.dodge_s > DODGE_S + HALF_TICK:
        car.dodging = 0


@wp.func
def air_turn(car: Car, spin: wp.vec3f) -> wp.vec3f:
    """Return the angular acceleration in the air by dodge and stick, given the spin in the car's own axes."""
    # alpha = torque * stick - damping * (1 - |stick|) * omega about each axis; roll is damped at any stick.
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
    """Return the angular acceleration that turns a car's wheels to a surface; `normal` is in the car's axes."""
    roll = 1.0 - wp.clamp(normal[2], 0.0, 1.0)
    pitch = normal[0] * normal[0]
    return wp.vec3f(
        wp.where(normal[1] >= 0.0, -roll, roll) * AUTOROLL_TURN,
        wp.where(normal[0] >= 0.0, pitch, -pitch) * AUTOROLL_TURN,
        0.0,
    )


@wp.func
def autoflip(car: wp.ref[Car], forward: wp.vec3f, left: wp.vec3f, up: wp.vec3f, pressed: bool):
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


@wp.func
def clearance(position: wp.vec3f) -> float:
    """Return the distance of a car's centre of mass from the arena."""
    distance = position[2]
    if not wheels.over_flat_floor(position):
        surface = arena_distance(position)
        distance = surface[3]
    return distance


@wp.func
def wheels_of(car: Car, frame: wheels.Frame, throttle: float) -> wheels.Push:
    """Return the push of the wheels with their current drive, brake and steering angle."""
    tyres = wheels.Tyres()
    tyres.drive = car.wheel_drive
    tyres.brake = car.wheel_brake
    tyres.slide = car.handbrake_value
    tyres.sticky = wp.where(throttle != 0.0, 1, 0)
    steer = sin_cos(car.wheel_angle)
    return wheels.wheel_push(frame, tyres, steer[0], steer[1])


@wp.func
def advance_car(car: wp.ref[Car]):
    """Advance velocity, spin, boost and jump by a tick; position and rotation stay."""
    m = axes(car.rotation)
    frame = wheels.Frame()
    frame.position = car.position
    frame.forward = column(m, 0)
    frame.left = column(m, 1)
    frame.up = column(m, 2)
    frame.velocity = to_local(m, car.velocity)
    frame.spin = to_local(m, car.spin)
    throttle = wheels.pedal(car)
    pressed = car.jump != 0 and car.jump_before == 0
    forward_speed = frame.velocity[0]

    push = wheels.Push()
    distance = clearance(car.position)
    if distance < wheels.WHEEL_REACH:
        push = wheels_of(car, frame, throttle)
    car.wheels = push.wheels
    car.on_ground = wp.where(push.wheels >= 3, 1, 0)
    wheels.pull_handbrake(car)
    if distance < wheels.WHEEL_REACH + SOON:
        wheels.set_wheels(car, forward_speed, throttle)
    acceleration = wp.vec3f(0.0, 0.0, GRAVITY)
    if push.wheels > 0:
        car.normal = to_world(m, unit(push.normal))
        acceleration = acceleration + wheels.stick_acceleration(car.normal, forward_speed, throttle)
        car.dodging = 0

    jump(car, frame.up, pressed)
    autoflip(car, frame.forward, frame.left, frame.up, pressed)
    second_jump(car, frame.forward, frame.up, pressed)
    turning = wp.vec3f(0.0, 0.0, 0.0)
    boosting = wheels.burn_boost(car)
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
    """Move and turn a car by a tick."""
    car.position = car.position + car.velocity * DT
    car.rotation = turn(car.rotation, car.spin, DT)


@wp.func
def finish_car(car: wp.ref[Car]):
    """End a car's tick: clamp speed and spin, and update its supersonic state."""
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


@wp.kernel
def footing_kernel(positions: wp.array[wp.vec3f], rotations: wp.array[wp.quatf], counts: wp.array[wp.int32]):
    """Count the wheels in contact in a tick that begins with a car at this pose."""
    index = wp.tid()
    m = axes(rotations[index])
    frame = wheels.Frame()
    frame.position = positions[index]
    frame.forward = column(m, 0)
    frame.left = column(m, 1)
    frame.up = column(m, 2)
    push = wheels.Push()
    if clearance(frame.position) < wheels.WHEEL_REACH:
        push = wheels.wheel_push(frame, wheels.Tyres(), 0.0, 1.0)
    counts[index] = push.wheels
