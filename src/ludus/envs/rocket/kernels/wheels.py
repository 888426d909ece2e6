"""The wheels of a car: rays to the surface, springs, and the friction of the tyres (Warp functions).

Everything here is in the car's own axes (x forward, y left, z up) and for a mass of 1. All four wheels see the motion
of the tick's start, so their order does not matter.
"""

import warp as wp

from ludus.envs.rocket.car_rules import (
    BRAKE_RATE,
    DAMPING_IN,
    DAMPING_OUT,
    FRONT_RADIUS,
    FRONT_RAY,
    FRONT_REST,
    FRONT_SPRING,
    FRONT_X,
    FRONT_Y,
    GRIP,
    HARD_POINT_Z,
    INVERSE_INERTIA_X,
    INVERSE_INERTIA_Y,
    INVERSE_INERTIA_Z,
    REAR_RADIUS,
    REAR_RAY,
    REAR_REST,
    REAR_SPRING,
    REAR_X,
    REAR_Y,
    REST_RAY,
    SLIDE_GRIP,
    SLIDE_ROLL_HIGH,
    SLIDE_ROLL_LOW,
    SLIP_GRIP,
    SLIP_SPEED,
    STIFFNESS,
    STOP_RATE,
    STOP_SHARE,
    SUSPENSION_TRAVEL,
)
from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.ramps import ramp_surface
from ludus.envs.rocket.rules import DT

STEEPEST = 20.0  # one over the cosine between ray and normal, from which on the ray meets nothing
STEEPEST_SPRING = 10.0  # from which on the spring's force does not grow any more
# The floor is a plane as far as any wheel of a car whose centre lies within these bounds can reach.
FLAT_X, FLAT_Y, FLAT_Z = 3740.0, 4860.0, 1000.0


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
class Push:
    """What all wheels together do to the car in a tick."""

    velocity: wp.vec3f
    spin: wp.vec3f
    normal: wp.vec3f  # sum over the wheels in contact
    wheels: wp.int32


@wp.func
def turned_by(arm: wp.vec3f, push: wp.vec3f) -> wp.vec3f:
    """Change of the spin by a push at `arm` from the centre of mass."""
    torque = wp.cross(arm, push)
    return wp.vec3f(torque[0] * INVERSE_INERTIA_X, torque[1] * INVERSE_INERTIA_Y, torque[2] * INVERSE_INERTIA_Z)


@wp.func
def over_flat_floor(position: wp.vec3f) -> wp.bool:
    """Whether the flat floor is the only surface that a car here can have under its wheels."""
    return wp.abs(position[0]) < FLAT_X and wp.abs(position[1]) < FLAT_Y and position[2] < FLAT_Z


@wp.func
def wheel_place(frame: Frame, x: wp.float32, y: wp.float32) -> wp.vec3f:
    """Where the wheel of a standing car touches the floor: there the surface is looked for."""
    return frame.position + x * frame.forward + y * frame.left + (HARD_POINT_Z - REST_RAY) * frame.up


@wp.func
def surface_under(frame: Frame, x: wp.float32, y: wp.float32) -> wp.vec4f:
    """Normal of the surface under a wheel, in the car's axes, and its distance from the wheel's usual place.

    From that place the ray goes on as if the surface were plane; on a facet of a ramp it is.
    """
    place = wheel_place(frame, x, y)
    surface = ramp_surface(place, arena_distance(place))
    out = wp.vec3f(surface[0], surface[1], surface[2])
    return wp.vec4f(wp.dot(out, frame.forward), wp.dot(out, frame.left), wp.dot(out, frame.up), surface[3])


@wp.func
def side_of(wheel_left: wp.vec3f, normal: wp.vec3f) -> wp.vec3f:
    """A wheel's axle, laid on the surface."""
    return wp.normalize(wheel_left - wp.dot(wheel_left, normal) * normal)


@wp.func
def spring_speed(
    steepness: wp.float32, speed: wp.float32, length: wp.float32, rest: wp.float32, spring: wp.float32
) -> wp.float32:
    """Change of speed along the normal by a wheel's spring and damper in a tick; `speed` is along the normal."""
    rate = wp.where(steepness < STEEPEST_SPRING, speed * steepness, 0.0)
    damping = wp.where(rate < 0.0, DAMPING_IN, DAMPING_OUT)
    force = STIFFNESS * (rest - length) * wp.min(steepness, STEEPEST_SPRING) - damping * rate
    return wp.max(force * spring, 0.0) * DT  # a spring never pulls


@wp.func
def give(arm: wp.vec3f, direction: wp.vec3f) -> wp.float32:
    """Speed that a push of 1 along `direction` gives the place `arm` of the body."""
    lever = wp.cross(arm, direction)
    linear = 1.0 + lever[0] * lever[0] * INVERSE_INERTIA_X
    return linear + (lever[1] * lever[1] * INVERSE_INERTIA_Y + lever[2] * lever[2] * INVERSE_INERTIA_Z)


@wp.func
def stop_speed(arm: wp.vec3f, normal: wp.vec3f, speed: wp.float32, beyond: wp.float32) -> wp.float32:
    """Change of speed along the normal by the stop of a spring that is pressed `beyond` its shortest length."""
    if beyond <= 0.0:
        return 0.0
    return wp.max(STOP_SHARE * (STOP_RATE * beyond - speed) / give(arm, normal), 0.0)


@wp.func
def tyre_push(
    arm: wp.vec3f, normal: wp.vec3f, slip: wp.vec3f, side: wp.vec3f, world_z: wp.float32, tyres: Tyres
) -> wp.vec3f:
    """Change of velocity by a tyre's friction in a tick.

    Sideways a tyre takes a share of the lateral velocity `slip` of its contact, as far as the body there gives way;
    along its rolling direction it drives or brakes.
    """
    ahead = wp.cross(side, normal)
    lateral = wp.dot(slip, side)
    rolling = wp.dot(slip, ahead)
    slipping = wp.abs(lateral)
    ratio = wp.where(slipping > SLIP_SPEED, slipping / (slipping + wp.abs(rolling) + 1.0e-6), 0.0)
    grip = (1.0 - (1.0 - SLIP_GRIP) * ratio) * (1.0 - (1.0 - SLIDE_GRIP) * tyres.slide)
    roll = 1.0 + (SLIDE_ROLL_LOW + (SLIDE_ROLL_HIGH - SLIDE_ROLL_LOW) * ratio - 1.0) * tyres.slide
    if tyres.sticky == 0:
        # Without throttle the tyres lose grip on slopes: 0.1 on a wall, 0.5 at 45 degrees, 1 on the floor.
        rest = wp.where(world_z < 0.7075, 0.1 + world_z * (0.4 / 0.7075), 0.5 + (world_z - 0.7075) * (0.5 / 0.2925))
        rest = wp.clamp(rest, 0.1, 1.0)
        grip *= rest
        roll *= rest
    driven = tyres.drive
    if driven == 0.0:
        driven = wp.clamp(-rolling * BRAKE_RATE, -tyres.brake, tyres.brake)
    return (-GRIP * grip * lateral / give(arm, side)) * side + (driven * DT * roll) * ahead


@wp.func
def add_wheel(
    push: wp.ref[Push],
    frame: Frame,
    tyres: Tyres,
    surface: wp.vec4f,
    steepness: wp.float32,
    side: wp.vec3f,
    x: wp.float32,
    y: wp.float32,
    radius: wp.float32,
    rest: wp.float32,
    ray: wp.float32,
    spring: wp.float32,
):
    """Adds what one wheel does, if its ray meets the surface; `steepness` is 1 / cosine of their angle."""
    way = REST_RAY + surface[3] * steepness
    if steepness > 0.0 and steepness < STEEPEST and way < ray:
        normal = wp.vec3f(surface[0], surface[1], surface[2])
        arm = wp.vec3f(x, y, HARD_POINT_Z - way)
        moving = frame.velocity + wp.cross(frame.spin, arm)
        length = wp.clamp(way - radius, rest - SUSPENSION_TRAVEL, rest + SUSPENSION_TRAVEL)
        speed = wp.dot(normal, moving)
        stop = stop_speed(arm, normal, speed, (ray - SUSPENSION_TRAVEL) - way)
        lift = (spring_speed(steepness, speed, length, rest, spring) + stop) * normal
        world_z = normal[0] * frame.forward[2] + normal[1] * frame.left[2] + normal[2] * frame.up[2]
        friction = tyre_push(arm, normal, moving, side, world_z, tyres)
        push.velocity = push.velocity + (lift + friction)
        # Friction acts at the height of the centre of mass, so that a turn does not roll the car over.
        push.spin = push.spin + (turned_by(arm, lift) + turned_by(wp.vec3f(x, y, 0.0), friction))
        push.normal = push.normal + normal
        push.wheels += 1


@wp.func
def add_axle(
    push: wp.ref[Push],
    frame: Frame,
    tyres: Tyres,
    wheel_left: wp.vec3f,
    x: wp.float32,
    y: wp.float32,
    radius: wp.float32,
    rest: wp.float32,
    ray: wp.float32,
    spring: wp.float32,
):
    """Adds what the left and the right wheel of an axle do."""
    if over_flat_floor(frame.position):
        # One normal for both wheels.
        normal = wp.vec3f(frame.forward[2], frame.left[2], frame.up[2])
        middle = frame.position[2] + x * normal[0] + (HARD_POINT_Z - REST_RAY) * normal[2]
        offset = y * normal[1]
        steepness = 1.0 / normal[2]
        side = side_of(wheel_left, normal)
        left = wp.vec4f(normal[0], normal[1], normal[2], middle + offset)
        right = wp.vec4f(normal[0], normal[1], normal[2], middle - offset)
        add_wheel(push, frame, tyres, left, steepness, side, x, y, radius, rest, ray, spring)
        add_wheel(push, frame, tyres, right, steepness, side, x, -y, radius, rest, ray, spring)
    else:
        left = surface_under(frame, x, y)
        right = surface_under(frame, x, -y)
        left_side = side_of(wheel_left, wp.vec3f(left[0], left[1], left[2]))
        right_side = side_of(wheel_left, wp.vec3f(right[0], right[1], right[2]))
        add_wheel(push, frame, tyres, left, 1.0 / left[2], left_side, x, y, radius, rest, ray, spring)
        add_wheel(push, frame, tyres, right, 1.0 / right[2], right_side, x, -y, radius, rest, ray, spring)


@wp.func
def wheel_push(frame: Frame, tyres: Tyres, steer_sine: wp.float32, steer_cosine: wp.float32) -> Push:
    """What the four wheels do in a tick; the steering angle of the front wheels is positive to the right."""
    turned = wp.vec3f(steer_sine, steer_cosine, 0.0)
    straight = wp.vec3f(0.0, 1.0, 0.0)
    # Left and right are added first: swapping two terms of a sum changes no bit, so that mirrored cars stay mirrored.
    front = Push()
    add_axle(front, frame, tyres, turned, FRONT_X, FRONT_Y, FRONT_RADIUS, FRONT_REST, FRONT_RAY, FRONT_SPRING)
    rear = Push()
    add_axle(rear, frame, tyres, straight, REAR_X, REAR_Y, REAR_RADIUS, REAR_REST, REAR_RAY, REAR_SPRING)
    both = Push()
    both.velocity = front.velocity + rear.velocity
    both.spin = front.spin + rear.spin
    both.normal = front.normal + rear.normal
    both.wheels = front.wheels + rear.wheels
    return both
