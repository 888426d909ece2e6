"""The car's hull: its mass properties, and its contact with the arena (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.maths import axes, to_local, to_world
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import (
    CAR_WORLD_BOUNCE_MIN,
    CAR_WORLD_FRICTION,
    CAR_WORLD_RESTITUTION,
    DT,
    GRAVITY,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
    HULL_REACH,
    INERTIA_PITCH,
    INERTIA_ROLL,
    INERTIA_YAW,
)

_PER_DT = 1.0 / DT
_RECOVERY = 0.2  # share of a penetration that is made good in a tick
_FALL = GRAVITY * DT


@wp.func
def hull_corner(index: int) -> wp.vec3f:
    """A corner of the hull in the car's axes; the bits of its index, 0 to 7, are side, end and top."""
    y = wp.where((index & 1) != 0, float(HULL_HALF_Y), -float(HULL_HALF_Y))
    x = wp.where((index & 2) != 0, float(HULL_OFFSET_X + HULL_HALF_X), float(HULL_OFFSET_X - HULL_HALF_X))
    z = wp.where((index & 4) != 0, float(HULL_OFFSET_Z + HULL_HALF_Z), float(HULL_OFFSET_Z - HULL_HALF_Z))
    return wp.vec3f(x, y, z)


@wp.func
def turned_by(m: wp.mat33f, torque: wp.vec3f) -> wp.vec3f:
    """Change of spin by an angular impulse over the car's mass, both in world axes; m has the car's axes as columns."""
    local = to_local(m, torque)
    return to_world(m, wp.vec3f(local[0] / INERTIA_ROLL, local[1] / INERTIA_PITCH, local[2] / INERTIA_YAW))


@wp.func
def effective_mass(m: wp.mat33f, arm: wp.vec3f, direction: wp.vec3f) -> wp.float32:
    """What a speed at the end of `arm` costs in impulse over the car's mass: 1 / (1 + (r x d) I^-1 (r x d))."""
    lever = wp.cross(arm, direction)
    return 1.0 / (1.0 + wp.dot(lever, turned_by(m, lever)))


@wp.func
def collide_body(car: wp.ref[Car]):
    """Keeps the hull out of the arena's surfaces; sets `body_contact`, and `normal` where no wheel has set it."""
    car.body_contact = 0
    near = arena_distance(car.position)
    if near[3] > HULL_REACH:
        return
    m = axes(car.rotation)
    for index in range(8):
        arm = to_world(m, hull_corner(index))
        surface = arena_distance(car.position + arm)
        if surface[3] < 0.0:
            n = wp.vec3f(surface[0], surface[1], surface[2])
            car.body_contact = 1
            if car.wheels == 0:
                car.normal = n
            velocity = car.velocity + wp.cross(car.spin, arm)
            into = wp.dot(velocity, n)
            approach = into - _FALL * n[2]
            bounce = wp.where(approach < -CAR_WORLD_BOUNCE_MIN, -CAR_WORLD_RESTITUTION * approach, 0.0)
            push = wp.max((bounce - into - surface[3] * _RECOVERY * _PER_DT) * effective_mass(m, arm, n), 0.0)
            slip = velocity - n * into
            speed = wp.length(slip)
            impulse = n * push
            if speed > 1.0e-6:
                way = slip / speed
                rub = wp.min(CAR_WORLD_FRICTION * push, speed * effective_mass(m, arm, way))
                impulse = impulse - way * rub
            car.velocity = car.velocity + impulse
            car.spin = car.spin + turned_by(m, wp.cross(arm, impulse))
