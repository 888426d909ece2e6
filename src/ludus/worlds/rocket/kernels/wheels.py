"""The wheels of a car: rays, springs and tyre friction, and what drives them: engine, brakes, steering, boost.

Wheel forces are computed in the car's own axes (x forward, y left, z up) and for a mass of 1. All four wheels see the
motion at the start of the tick, so their order does not matter.

The wheels act in a tick with the drive, brake and steering angle of the tick before: measured, a car at rest with full
throttle stands still for one tick more (346 uu/s after 30 ticks, not 357).
"""

import warp as wp

from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.arena import arena_distance, ramp_surface
from ludus.worlds.rocket.kernels.maths import unit
from ludus.worlds.rocket.kernels.structs import Car

# Turning of the body by a push: the inverse of its inertia for a mass of 1, 1/uu^2.
INVERSE_INERTIA_X = 1.0 / const.INERTIA_ROLL
INVERSE_INERTIA_Y = 1.0 / const.INERTIA_PITCH
INVERSE_INERTIA_Z = 1.0 / const.INERTIA_YAW

# Wheels. A ray goes down from each hard point; front and rear differ.
FRONT_X, FRONT_Y = 51.25, 25.90
REAR_X, REAR_Y = -33.75, 29.50
HARD_POINT_Z = 20.755
TRAVEL = 12.0  # of a spring, both ways
FRONT_FREE = 38.755 - TRAVEL + 12.5  # from hard point to surface when the spring has no load: its length and the radius
REAR_FREE = 37.055 - TRAVEL + 15.0
SLACK = 2.5  # a ray ends this much before the longest spring, and a pressed spring meets its stop at this much
REST_RAY = 37.77  # from hard point to floor when the car stands: the surface is looked for around it
WHEEL_REACH = 64.0  # no wheel touches anything that is farther than this from the centre of mass
STIFFNESS = 500.0
DAMPING_IN = 25.0  # compressing
DAMPING_OUT = 40.0  # relaxing
FRONT_SPRING = 35.75 / const.CAR_MASS  # scale of the front springs
REAR_SPRING = 54.265 / const.CAR_MASS
STOP_SHARE = 0.25  # of the speed into the surface that the stop takes at a wheel ...
STOP_RATE = 12.0  # ... and the speed out of it, 1/s times the way that the spring is pressed beyond it

# Driving, accelerations of one wheel.
WHEEL_DRIVE = 400.0
DRIVE_FADE_SPEED = 1400.0  # the drive falls to a tenth at this speed ...
DRIVE_END_SPEED = 1410.0  # ... and to nothing at this one
WHEEL_BRAKE = 875.0
BRAKE_RATE = 113.73963 / 3.0  # 1/s: a brake takes at most this share of the rolling speed, so that it does not reverse
COAST_BRAKE = 0.15
STOP_SPEED = 25.0  # below it a car without throttle brakes fully
THROTTLE_DEADZONE = 0.001
# Share of the lateral velocity at a wheel that its friction takes in a tick: a damping of 0.2, mass / 3 and DT.
GRIP = 0.2 * const.CAR_MASS / 3.0 * const.DT
SLIP_SPEED = 5.0  # below it a wheel does not slip
SLIP_GRIP = 0.2  # lateral grip of a wheel that only slips, of 1 that only rolls
SLIDE_GRIP = 0.1  # factor of lateral grip with the handbrake
SLIDE_ROLL_LOW, SLIDE_ROLL_HIGH = 0.5, 0.9  # factors of drive and brake with the handbrake, without and with slip
STICK = 0.5  # of gravity toward the surface
SPEEDS = (0.0, 500.0, 1000.0, 1500.0, 1750.0, 3000.0)
STEER_ANGLES = (0.53356, 0.31930, 0.18203, 0.10570, 0.08507, 0.03454)  # of the front wheels at these speeds
SLIDE_ANGLE, SLIDE_ANGLE_SLOPE = 0.39235, (0.12610 - 0.39235) / 2500.0  # with the handbrake
SLIDE_ANGLE_SPEED = 2500.0

# Boost.
BOOST_PER_S = 33.333333

STEEPEST = 20.0  # one over the cosine between ray and normal, from which on the ray meets nothing
STEEPEST_SPRING = 10.0  # from which on the spring's force does not grow any more
# The floor is a plane as far as any wheel of a car whose centre lies within these bounds can reach: 320 uu from side
# walls and corners (their ramps and the wheels' reach), 224 from back walls.
FLAT_X, FLAT_Y, FLAT_SUM, FLAT_Z = 3740.0, 4860.0, 7500.0, 1000.0

_SLOPES = tuple((STEER_ANGLES[i + 1] - STEER_ANGLES[i]) / (SPEEDS[i + 1] - SPEEDS[i]) for i in range(len(SPEEDS) - 1))
_ANGLE = STEER_ANGLES[0]
_SLOPE_0, _SLOPE_1, _SLOPE_2, _SLOPE_3, _SLOPE_4 = _SLOPES
_SPEED_1, _SPEED_2, _SPEED_3, _SPEED_4, _SPEED_5 = SPEEDS[1:]
_FADE = 0.9 / DRIVE_FADE_SPEED
_END = 0.1 / (DRIVE_END_SPEED - DRIVE_FADE_SPEED)


@wp.struct
class Frame:
    """The car's axes in the world, and its motion along them at the tick's start."""

    position: wp.vec3f
    forward: wp.vec3f
    left: wp.vec3f
    up: wp.vec3f
    velocity: wp.vec3f  # in the car's axes, as the spin
    spin: wp.vec3f


@wp.struct
class Tyres:
    """What the driver asks of the wheels."""

    drive: wp.float32  # acceleration by the engine, of one wheel
    brake: wp.float32  # greatest deceleration, of one wheel
    slide: wp.float32  # value of the handbrake, 0 to 1
    sticky: wp.int32  # 1 if there is throttle: tyres grip on walls as on the floor


@wp.struct
class Footing:
    """What a wheel stands on, in the car's axes."""

    normal: wp.vec3f
    side: wp.vec3f  # the wheel's axle laid on the surface, to the left
    ahead: wp.vec3f  # where it rolls
    steepness: wp.float32  # 1 over the cosine between the ray and the normal
    hold: wp.float32  # share of the friction that the slope leaves


@wp.struct
class Push:
    """What all wheels together do to the car in a tick."""

    velocity: wp.vec3f
    spin: wp.vec3f
    normal: wp.vec3f  # sum over the wheels in contact
    wheels: wp.int32


@wp.func
def over_flat_floor(position: wp.vec3f) -> bool:
    """Return whether the flat floor is the only surface that a car here can have under its wheels."""
    x = wp.abs(position[0])
    y = wp.abs(position[1])
    return x < FLAT_X and y < FLAT_Y and x + y < FLAT_SUM and position[2] < FLAT_Z


@wp.func
def wheel_place(frame: Frame, x: float, y: float) -> wp.vec3f:
    """Return where the wheel of a standing car touches the floor; the surface is sampled there."""
    return frame.position + x * frame.forward + y * frame.left + (HARD_POINT_Z - REST_RAY) * frame.up


@wp.func
def surface_under(frame: Frame, x: float, y: float) -> wp.vec4f:
    """Return the normal of the surface under a wheel, in world axes, and its distance from the wheel's usual place.

    From there the surface is extrapolated as a plane; on a facet of a ramp it is one.
    """
    place = wheel_place(frame, x, y)
    return ramp_surface(place, arena_distance(place))


@wp.func
def slope(frame: Frame, surface: wp.vec4f, wheel_left: wp.vec3f, tyres: Tyres) -> Footing:
    """Return the footing of a wheel on a surface given in world axes."""
    out = wp.vec3f(surface[0], surface[1], surface[2])
    normal = wp.vec3f(wp.dot(out, frame.forward), wp.dot(out, frame.left), wp.dot(out, frame.up))
    return footing_on(normal, wheel_left, slope_hold(surface[2], tyres))


@wp.func
def slope_hold(world_z: float, tyres: Tyres) -> float:
    """Return the share of friction left without throttle: 0.1 on a wall, 0.5 at 45 degrees, 1 on the floor."""
    if tyres.sticky != 0:
        return 1.0
    if world_z < 0.7075:
        return wp.max(0.1 + world_z * (0.4 / 0.7075), 0.1)
    return wp.min(0.5 + (world_z - 0.7075) * (0.5 / 0.2925), 1.0)


@wp.func
def footing_on(normal: wp.vec3f, wheel_left: wp.vec3f, hold: float) -> Footing:
    """Return the footing of a wheel on a surface with a normal, both in the car's axes."""
    footing = Footing()
    footing.normal = normal
    footing.side = unit(wheel_left - wp.dot(wheel_left, normal) * normal)
    footing.ahead = wp.cross(footing.side, normal)
    footing.steepness = 1.0 / normal[2]
    footing.hold = hold
    return footing


@wp.func
def spring_speed(steepness: float, speed: float, press: float, spring: float) -> float:
    """Return the change of speed along the normal by a wheel's spring and damper in a tick.

    `speed` is that of the contact along the normal, `press` how much shorter the spring is than without load, `spring`
    the scale of the axle's springs for a tick.
    """
    rate = wp.where(steepness < STEEPEST_SPRING, speed * steepness, 0.0)
    damping = wp.where(rate < 0.0, DAMPING_IN, DAMPING_OUT)
    force = STIFFNESS * wp.min(press, TRAVEL) * wp.min(steepness, STEEPEST_SPRING) - damping * rate
    return wp.max(force * spring, 0.0)  # a spring never pulls


@wp.func
def give(arm: wp.vec3f, direction: wp.vec3f) -> float:
    """Return the speed that a push of 1 along `direction` gives the place `arm` of the body."""
    lever = wp.cross(arm, direction)
    linear = 1.0 + lever[0] * lever[0] * INVERSE_INERTIA_X
    return linear + (lever[1] * lever[1] * INVERSE_INERTIA_Y + lever[2] * lever[2] * INVERSE_INERTIA_Z)


@wp.func
def stop_speed(arm: wp.vec3f, normal: wp.vec3f, speed: float, beyond: float) -> float:
    """Return the change of speed along the normal by the stop of a spring that is pressed `beyond` it."""
    if beyond <= 0.0:
        return 0.0
    return wp.max(STOP_SHARE * (STOP_RATE * beyond - speed) / give(arm, normal), 0.0)


@wp.func
def tyre_push(arm: wp.vec3f, footing: Footing, slip: wp.vec3f, tyres: Tyres) -> wp.vec3f:
    """Return the change of velocity by a tyre's friction in a tick.

    Sideways a tyre takes a share of the lateral velocity of its contact, as far as the body there gives way, and less
    of it the more it slips; along its rolling direction it drives or brakes.
    """
    lateral = wp.dot(slip, footing.side)
    rolling = wp.dot(slip, footing.ahead)
    # With the slip ratio s = |lateral| / (|lateral| + |rolling|) the grip is 1 - 0.8 s = kept / speed.
    slips = wp.abs(lateral) > SLIP_SPEED
    speed = wp.where(slips, wp.abs(lateral) + wp.abs(rolling), 1.0)
    kept = wp.where(slips, SLIP_GRIP * wp.abs(lateral) + wp.abs(rolling), 1.0)
    hold = footing.hold
    driven = tyres.drive
    if driven == 0.0:
        driven = wp.clamp(-rolling * BRAKE_RATE, -tyres.brake, tyres.brake)
    if tyres.slide > 0.0:
        ratio = (1.0 - kept / speed) * (1.0 / (1.0 - SLIP_GRIP))
        driven *= 1.0 + (SLIDE_ROLL_LOW + (SLIDE_ROLL_HIGH - SLIDE_ROLL_LOW) * ratio - 1.0) * tyres.slide
        kept *= 1.0 - (1.0 - SLIDE_GRIP) * tyres.slide
    sideways = -GRIP * hold * lateral * kept / (speed * give(arm, footing.side))
    return sideways * footing.side + (driven * const.DT * hold) * footing.ahead


@wp.func
def add_wheel(
    push: wp.ref[Push],
    frame: Frame,
    tyres: Tyres,
    footing: Footing,
    distance: float,
    x: float,
    y: float,
    free: float,
    spring: float,
):
    """Add what one wheel does if its ray meets the surface; `distance` is that of the wheel's usual place."""
    way = REST_RAY + distance * footing.steepness
    press = free - way
    if footing.steepness > 0.0 and footing.steepness < STEEPEST and press > SLACK - TRAVEL:
        arm = wp.vec3f(x, y, HARD_POINT_Z - way)
        moving = frame.velocity + wp.cross(frame.spin, arm)
        speed = wp.dot(footing.normal, moving)
        stop = stop_speed(arm, footing.normal, speed, press - SLACK)
        lift = (spring_speed(footing.steepness, speed, press, spring) + stop) * footing.normal
        friction = tyre_push(arm, footing, moving, tyres)
        both = lift + friction
        push.velocity = push.velocity + both
        # Friction acts at the height of the centre of mass, so that a turn does not roll the car over; springs push at
        # the contact.
        push.spin = push.spin + wp.vec3f(
            (y * both[2] - arm[2] * lift[1]) * INVERSE_INERTIA_X,
            (arm[2] * lift[0] - x * both[2]) * INVERSE_INERTIA_Y,
            (x * both[1] - y * both[0]) * INVERSE_INERTIA_Z,
        )
        push.normal = push.normal + footing.normal
        push.wheels += 1


@wp.func
def add_axle(
    push: wp.ref[Push], frame: Frame, tyres: Tyres, wheel_left: wp.vec3f, x: float, y: float, free: float, spring: float
):
    """Add what the left and the right wheel of an axle do."""
    if over_flat_floor(frame.position):
        normal = wp.vec3f(frame.forward[2], frame.left[2], frame.up[2])
        middle = frame.position[2] + x * normal[0] + (HARD_POINT_Z - REST_RAY) * normal[2]
        offset = y * normal[1]
        floor = footing_on(normal, wheel_left, 1.0)
        add_wheel(push, frame, tyres, floor, middle + offset, x, y, free, spring)
        add_wheel(push, frame, tyres, floor, middle - offset, x, -y, free, spring)
    else:
        left = surface_under(frame, x, y)
        right = surface_under(frame, x, -y)
        add_wheel(push, frame, tyres, slope(frame, left, wheel_left, tyres), left[3], x, y, free, spring)
        add_wheel(push, frame, tyres, slope(frame, right, wheel_left, tyres), right[3], x, -y, free, spring)


@wp.func
def wheel_push(frame: Frame, tyres: Tyres, steer_sine: float, steer_cosine: float) -> Push:
    """Return the push of the four wheels in a tick; the steering angle is positive to the right."""
    turned = wp.vec3f(steer_sine, steer_cosine, 0.0)
    straight = wp.vec3f(0.0, 1.0, 0.0)
    # Left and right are added first: swapping two terms of a sum changes no bit, so that mirrored cars stay mirrored.
    front = Push()
    add_axle(front, frame, tyres, turned, FRONT_X, FRONT_Y, FRONT_FREE, FRONT_SPRING * const.DT)
    rear = Push()
    add_axle(rear, frame, tyres, straight, REAR_X, REAR_Y, REAR_FREE, REAR_SPRING * const.DT)
    both = Push()
    both.velocity = front.velocity + rear.velocity
    both.spin = front.spin + rear.spin
    both.normal = front.normal + rear.normal
    both.wheels = front.wheels + rear.wheels
    return both


@wp.func
def steering_angle(speed: float, slide: float) -> float:
    """Return the angle of the front wheels at full lock, at a forward speed >= 0 and a value of the handbrake."""
    angle = _ANGLE + _SLOPE_0 * wp.min(speed, _SPEED_1)
    angle += _SLOPE_1 * wp.clamp(speed - _SPEED_1, 0.0, _SPEED_2 - _SPEED_1)
    angle += _SLOPE_2 * wp.clamp(speed - _SPEED_2, 0.0, _SPEED_3 - _SPEED_2)
    angle += _SLOPE_3 * wp.clamp(speed - _SPEED_3, 0.0, _SPEED_4 - _SPEED_3)
    angle += _SLOPE_4 * wp.clamp(speed - _SPEED_4, 0.0, _SPEED_5 - _SPEED_4)
    sliding = SLIDE_ANGLE + SLIDE_ANGLE_SLOPE * wp.min(speed, SLIDE_ANGLE_SPEED)
    return angle + (sliding - angle) * slide


@wp.func
def drive_share(speed: float) -> float:
    """Return the share of the engine's force at a forward speed >= 0: 1 at rest, 0.1 at 1400, 0 from 1410 on."""
    if speed < DRIVE_FADE_SPEED:
        return 1.0 - speed * _FADE
    return wp.max(0.1 - (speed - DRIVE_FADE_SPEED) * _END, 0.0)


@wp.func
def pedal(car: Car) -> float:
    """Return the throttle as the engine sees it: boost is full throttle."""
    return wp.where(car.boost_key != 0 and car.boost > 0.0, 1.0, car.throttle)


@wp.func
def pull_handbrake(car: wp.ref[Car]):
    """Move the handbrake's value toward its key."""
    step = wp.where(car.handbrake != 0, const.HANDBRAKE_RISE * const.DT, -const.HANDBRAKE_FALL * const.DT)
    car.handbrake_value = wp.clamp(car.handbrake_value + step, 0.0, 1.0)


@wp.func
def set_wheels(car: wp.ref[Car], forward_speed: float, throttle: float):
    """Set drive, brake and steering angle of the wheels for the next tick."""
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
def stick_acceleration(normal: wp.vec3f, forward_speed: float, throttle: float) -> wp.vec3f:
    """Return the acceleration toward the surface under the wheels: half of gravity, more on walls while driving."""
    share = float(STICK)
    if throttle != 0.0 or wp.abs(forward_speed) > STOP_SPEED:
        share += 1.0 - wp.abs(normal[2])
    return normal * (share * const.GRAVITY)


@wp.func
def burn_boost(car: wp.ref[Car]) -> bool:
    """Burn boost for a tick if the key is down or the shortest burn is not over; return whether it burns."""
    kept = car.boosting_s > 0.0 and car.boosting_s < const.BOOST_MIN_S - 0.5 * const.DT
    if car.boost > 0.0 and (car.boost_key != 0 or kept):
        car.boosting_s += const.DT
        car.boost = wp.max(car.boost - BOOST_PER_S * const.DT, 0.0)
        return True
    car.boosting_s = 0.0
    return False
