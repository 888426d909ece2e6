"""Two cars meet: rigid contact of their hulls, bumps and demolitions (Warp functions)."""

from enum import IntFlag

import warp as wp

from ludus.envs.rocket.kernels.body import turned_by, yielding
from ludus.envs.rocket.kernels.maths import axes, column, line, to_local
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import (
    BUMP_COOLDOWN_S,
    BUMPER_X,
    CAR_CAR_FRICTION,
    CAR_CAR_RESTITUTION,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
    HULL_REACH,
)


class Contact(IntFlag):
    """What a meeting of two cars comes to."""

    TOUCH = 1
    A_BUMPS = 2
    B_BUMPS = 4
    A_DEMOLISHES = 8
    B_DEMOLISHES = 16


@wp.func
def overlap(m: wp.mat33f, axis: wp.vec3f) -> wp.float32:
    """Half of the extent of a hull along an axis."""
    local = to_local(m, axis)
    return wp.abs(local[0]) * HULL_HALF_X + wp.abs(local[1]) * HULL_HALF_Y + wp.abs(local[2]) * HULL_HALF_Z


@wp.func
def deepest(m: wp.mat33f, centre: wp.vec3f, way: wp.vec3f) -> wp.vec3f:
    """The point of a hull that lies farthest along a direction; in the middle of an edge or face across it."""
    local = to_local(m, way)
    point = centre
    for axis in range(3):
        half = wp.where(axis == 0, float(HULL_HALF_X), wp.where(axis == 1, float(HULL_HALF_Y), float(HULL_HALF_Z)))
        share = wp.clamp(local[axis] * 10.0, -1.0, 1.0)
        point = point + column(m, axis) * (half * share)
    return point


@wp.func
def bump_speed(speed: wp.float32, on_ground: wp.int32) -> wp.float32:
    """Speed that a bump gives the victim along the attacker's way."""
    if on_ground != 0:
        if speed < 1400.0:
            return line(speed, 0.0, 0.83, 1400.0, 1100.0)
        return line(speed, 1400.0, 1100.0, 2200.0, 1530.0)
    if speed < 1400.0:
        return line(speed, 0.0, 0.83, 1400.0, 1390.0)
    return line(speed, 1400.0, 1390.0, 2200.0, 1945.0)


@wp.func
def bump_lift(speed: wp.float32) -> wp.float32:
    """Speed that a bump gives the victim upward."""
    if speed < 1400.0:
        return line(speed, 0.0, 0.33, 1400.0, 278.0)
    return line(speed, 1400.0, 278.0, 2200.0, 417.0)


@wp.func
def try_bump(attacker: wp.ref[Car], victim: wp.ref[Car], seat: wp.int32, contact: wp.vec3f) -> wp.int32:
    """0 if the attacker's bumper did not meet the victim, 1 for a bump, 2 for a demolition.

    Args:
        attacker: The car that may bump.
        victim: The other one; a bump pushes it.
        seat: The victim's seat.
        contact: Where they touch, in world axes.
    """
    if attacker.bump_s > 0.0 and attacker.bump_seat == seat:
        return 0
    way = victim.position - attacker.position
    closing = wp.dot(attacker.velocity, way)
    if closing <= 0.0 or closing <= wp.dot(victim.velocity, way):
        return 0
    m = axes(attacker.rotation)
    if wp.dot(contact - attacker.position, column(m, 0)) <= BUMPER_X:
        return 0
    attacker.bump_s = BUMP_COOLDOWN_S
    attacker.bump_seat = seat
    if attacker.supersonic != 0 and attacker.team != victim.team:
        return 2
    speed = wp.length(attacker.velocity)
    along = attacker.velocity / speed
    up = wp.vec3f(0.0, 0.0, 1.0)
    if victim.on_ground != 0:
        up = column(axes(victim.rotation), 2)
    victim.velocity = victim.velocity + along * bump_speed(speed, victim.on_ground) + up * bump_lift(speed)
    return 1


@wp.func
def collide_cars(a: wp.ref[Car], b: wp.ref[Car], seat_a: wp.int32, seat_b: wp.int32) -> wp.int32:
    """Lets two cars collide: velocities change at once.

    Returns:
        Flags of `Contact`; who is demolished is for the caller to take off the field.
    """
    between = b.position - a.position
    if wp.dot(between, between) > 4.0 * HULL_REACH * HULL_REACH:
        return 0
    ma = axes(a.rotation)
    mb = axes(b.rotation)
    centre_a = a.position + column(ma, 0) * HULL_OFFSET_X + column(ma, 2) * HULL_OFFSET_Z
    centre_b = b.position + column(mb, 0) * HULL_OFFSET_X + column(mb, 2) * HULL_OFFSET_Z
    offset = centre_b - centre_a
    depth = float(1.0e9)
    n = wp.vec3f(0.0, 0.0, 1.0)
    for index in range(6):
        axis = wp.where(index < 3, column(ma, index % 3), column(mb, index % 3))
        along = wp.dot(offset, axis)
        inside = overlap(ma, axis) + overlap(mb, axis) - wp.abs(along)
        if inside < 0.0:
            return 0
        if inside < depth:
            depth = inside
            n = axis * wp.where(along < 0.0, -1.0, 1.0)
    contact = 0.5 * (deepest(ma, centre_a, n) + deepest(mb, centre_b, -n))
    flags = int(Contact.TOUCH)
    bumped_by_a = try_bump(a, b, seat_b, contact)
    bumped_by_b = try_bump(b, a, seat_a, contact)
    flags += wp.where(bumped_by_a == 1, int(Contact.A_BUMPS), 0) + wp.where(bumped_by_b == 1, int(Contact.B_BUMPS), 0)
    flags += wp.where(bumped_by_a == 2, int(Contact.A_DEMOLISHES), 0)
    flags += wp.where(bumped_by_b == 2, int(Contact.B_DEMOLISHES), 0)
    push_apart(a, b, ma, mb, contact, n)
    return flags


@wp.func
def push_apart(a: wp.ref[Car], b: wp.ref[Car], ma: wp.mat33f, mb: wp.mat33f, contact: wp.vec3f, n: wp.vec3f):
    """Impulse with restitution and friction at a contact, n from a to b."""
    arm_a = contact - a.position
    arm_b = contact - b.position
    relative = b.velocity + wp.cross(b.spin, arm_b) - a.velocity - wp.cross(a.spin, arm_a)
    into = wp.dot(relative, n)
    if into >= 0.0:
        return
    push = -into * (1.0 + CAR_CAR_RESTITUTION)
    push = push / (yielding(ma, arm_a, n) + yielding(mb, arm_b, n))
    impulse = n * push
    slip = relative - n * into
    speed = wp.length(slip)
    if speed > 1.0e-6:
        way = slip / speed
        stick = speed / (yielding(ma, arm_a, way) + yielding(mb, arm_b, way))
        impulse = impulse - way * wp.min(CAR_CAR_FRICTION * push, stick)
    a.velocity = a.velocity - impulse
    a.spin = a.spin - turned_by(ma, wp.cross(arm_a, impulse))
    b.velocity = b.velocity + impulse
    b.spin = b.spin + turned_by(mb, wp.cross(arm_b, impulse))
