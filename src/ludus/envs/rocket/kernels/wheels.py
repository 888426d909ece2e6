"""The wheels of a car: rays to the surface, springs, and the friction of the tyres (Warp functions).

Everything here is in the car's own axes (x forward, y left, z up) and for a mass of 1. All four wheels see the motion
of the tick's start, so their order does not matter.
"""

import warp as wp

from ludus.envs.rocket.car_rules import (
    BRAKE_RATE,
    DAMPING_IN,
    DAMPING_OUT,
    FRONT_FREE,
    FRONT_SPRING,
    FRONT_X,
    FRONT_Y,
    GRIP,
    HARD_POINT_Z,
    INVERSE_INERTIA_X,
    INVERSE_INERTIA_Y,
    INVERSE_INERTIA_Z,
    REAR_FREE,
    REAR_SPRING,
    REAR_X,
    REAR_Y,
    REST_RAY,
    SLACK,
    SLIDE_GRIP,
    SLIDE_ROLL_HIGH,
    SLIDE_ROLL_LOW,
    SLIP_GRIP,
    SLIP_SPEED,
    STIFFNESS,
    STOP_RATE,
    STOP_SHARE,
    TRAVEL,
)
from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.maths import unit
from ludus.envs.rocket.kernels.ramps import ramp_surface
from ludus.envs.rocket.rules import DT

STEEPEST = 20.0  # one over the cosine between ray and normal, from which on the ray meets nothing
STEEPEST_SPRING = 10.0  # from which on the spring's force does not grow any more
# The floor is a plane as far as any wheel of a car whose centre lies within these bounds can reach: 320 uu from side
# walls and corners (their ramps and the wheels' reach), 224 from back walls.
FLAT_X, FLAT_Y, FLAT_SUM, FLAT_Z = 3740.0, 4860.0, 7500.0, 1000.0


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
def over_flat_floor(position: wp.vec3f) -> wp.bool:
    """Whether the flat floor is the only surface that a car here can have under its wheels."""
    x = wp.abs(position[0])
    y = wp.abs(position[1])
    return x < FLAT_X and y < FLAT_Y and x + y < FLAT_SUM and position[2] < FLAT_Z


@wp.func
def wheel_place(frame: Frame, x: wp.float32, y: wp.float32) -> wp.vec3f:
    """Where the wheel of a standing car touches the floor: there the surface is looked for."""
    return frame.position + x * frame.forward + y * frame.left + (HARD_POINT_Z - REST_RAY) * frame.up


@wp.func
def surface_under(frame: Frame, x: wp.float32, y: wp.float32) -> wp.vec4f:
    """Normal of the surface under a wheel, in world axes, and its distance from the wheel's usual place.

    From that place the ray goes on as if the surface were plane; on a facet of a ramp it is.
    """
    place = wheel_place(frame, x, y)
    return ramp_surface(place, arena_distance(place))


@wp.func
def slope(frame: Frame, surface: wp.vec4f, wheel_left: wp.vec3f, tyres: Tyres) -> Footing:
    """The footing of a wheel on a surface given in world axes."""
    out = wp.vec3f(surface[0], surface[1], surface[2])
    normal = wp.vec3f(wp.dot(out, frame.forward), wp.dot(out, frame.left), wp.dot(out, frame.up))
    return footing_on(normal, wheel_left, slope_hold(surface[2], tyres))


@wp.func
def slope_hold(world_z: wp.float32, tyres: Tyres) -> wp.float32:
    """Without throttle tyres lose friction on slopes: 0.1 is left on a wall, 0.5 at 45 degrees, 1 on the floor."""
    if tyres.sticky != 0:
        return 1.0
    if world_z < 0.7075:
        return wp.max(0.1 + world_z * (0.4 / 0.7075), 0.1)
    return wp.min(0.5 + (world_z - 0.7075) * (0.5 / 0.2925), 1.0)


@wp.func
def footing_on(normal: wp.vec3f, wheel_left: wp.vec3f, hold: wp.float32) -> Footing:
    """The footing of a wheel on a surface with a normal, both in the car's axes."""
    footing = Footing()
    footing.normal = normal
    footing.side = unit(wheel_left - wp.dot(wheel_left, normal) * normal)
    footing.ahead = wp.cross(footing.side, normal)
    footing.steepness = 1.0 / normal[2]
    footing.hold = hold
    return footing


@wp.func
def spring_speed(steepness: wp.float32, speed: wp.float32, press: wp.float32, spring: wp.float32) -> wp.float32:
    """Change of speed along the normal by a wheel's spring and damper in a tick.

    Args:
        steepness: Of the surface, seen from the car.
        speed: Of the contact, along the normal.
        press: How much shorter the spring is than without load.
        spring: Scale of the axle's springs, for a tick.
    """
    rate = wp.where(steepness < STEEPEST_SPRING, speed * steepness, 0.0)
    damping = wp.where(rate < 0.0, DAMPING_IN, DAMPING_OUT)
    force = STIFFNESS * wp.min(press, TRAVEL) * wp.min(steepness, STEEPEST_SPRING) - damping * rate
    return wp.max(force * spring, 0.0)  # a spring never pulls


@wp.func
def give(arm: wp.vec3f, direction: wp.vec3f) -> wp.float32:
    """Speed that a push of 1 along `direction` gives the place `arm` of the body."""
    lever = wp.cross(arm, direction)
    linear = 1.0 + lever[0] * lever[0] * INVERSE_INERTIA_X
    return linear + (lever[1] * lever[1] * INVERSE_INERTIA_Y + lever[2] * lever[2] * INVERSE_INERTIA_Z)


@wp.func
def stop_speed(arm: wp.vec3f, normal: wp.vec3f, speed: wp.float32, beyond: wp.float32) -> wp.float32:
    """Change of speed along the normal by the stop of a spring that is pressed `beyond` it."""
    if beyond <= 0.0:
        return 0.0
    return wp.max(STOP_SHARE * (STOP_RATE * beyond - speed) / give(arm, normal), 0.0)


@wp.func
def tyre_push(arm: wp.vec3f, footing: Footing, slip: wp.vec3f, tyres: Tyres) -> wp.vec3f:
    """Change of velocity by a tyre's friction in a tick.

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
    return sideways * footing.side + (driven * DT * hold) * footing.ahead


@wp.func
def add_wheel(
    push: wp.ref[Push],
    frame: Frame,
    tyres: Tyres,
    footing: Footing,
    distance: wp.float32,
    x: wp.float32,
    y: wp.float32,
    free: wp.float32,
    spring: wp.float32,
):
    """Adds what one wheel does if its ray meets the surface; `distance` is that of the wheel's usual place."""
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
    push: wp.ref[Push],
    frame: Frame,
    tyres: Tyres,
    wheel_left: wp.vec3f,
    x: wp.float32,
    y: wp.float32,
    free: wp.float32,
    spring: wp.float32,
):
    """Adds what the left and the right wheel of an axle do."""
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
def wheel_push(frame: Frame, tyres: Tyres, steer_sine: wp.float32, steer_cosine: wp.float32) -> Push:
    """What the four wheels do in a tick; the steering angle of the front wheels is positive to the right."""
    turned = wp.vec3f(steer_sine, steer_cosine, 0.0)
    straight = wp.vec3f(0.0, 1.0, 0.0)
    # Left and right are added first: swapping two terms of a sum changes no bit, so that mirrored cars stay mirrored.
    front = Push()
    add_axle(front, frame, tyres, turned, FRONT_X, FRONT_Y, FRONT_FREE, FRONT_SPRING * DT)
    rear = Push()
    add_axle(rear, frame, tyres, straight, REAR_X, REAR_Y, REAR_FREE, REAR_SPRING * DT)
    both = Push()
    both.velocity = front.velocity + rear.velocity
    both.spin = front.spin + rear.spin
    both.normal = front.normal + rear.normal
    both.wheels = front.wheels + rear.wheels
    return both
