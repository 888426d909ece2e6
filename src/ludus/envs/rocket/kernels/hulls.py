"""Rigid contact of two hulls: separating axes, contact points and impulses (Warp functions).

Everything is computed in world axes, and what both cars contribute is added in sums of two, so that it does not matter
which of them comes first.
"""

import warp as wp

from ludus.envs.rocket.kernels.body import Motion, hull_corner, turned_by
from ludus.envs.rocket.kernels.maths import column, to_local, to_world, turn
from ludus.envs.rocket.kernels.overlap import Overlap, extent, find_overlap, hull_middle, meeting_place
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import (
    CAR_BOUNCE_MIN,
    CAR_CAR_FRICTION,
    CAR_CAR_RESTITUTION,
    CONTACT_MARGIN,
    CONTACT_RECOVERY,
    DT,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
)

_ROUNDS = 16
_ENOUGH = 0.2  # uu/s; rounds end when they change less
_RELAX = 0.5  # of the impulses of four points, found side by side, this share is applied: then they converge
_NO_LIMIT = 1.0e9


@wp.struct
class Row:
    """An impulse on b at a contact, and the opposite one on a; impulses are over a car's mass."""

    way: wp.vec3f
    lever_a: wp.vec3f  # arm x way
    lever_b: wp.vec3f
    turned_a: wp.vec3f  # change of spin by an impulse of 1
    turned_b: wp.vec3f
    firm: wp.float32  # impulse that changes the relative speed along the way by 1, relaxed
    target: wp.float32  # that speed as it is to be
    sum: wp.float32  # impulse so far


@wp.struct
class Hold:
    """A place where the hulls touch."""

    held: wp.int32  # 1 if they do
    depth: wp.float32
    push: Row  # apart
    rub: Row  # friction along the first slip


@wp.struct
class Group:
    """Two corners of each hull, whose impulses are found side by side."""

    a_one: Hold
    a_two: Hold
    b_one: Hold
    b_two: Hold


@wp.struct
class Clash:
    """The contact of two hulls, in axes whose origin is the middle between the cars."""

    half: wp.vec3f  # where b is; a is at the opposite place
    overlap: Overlap
    low: Group  # of the faces that meet: low or rear corners
    high: Group  # and high or front ones
    count: wp.int32  # contacts
    bumper_a: wp.float32  # how far forward on each car the contact reaches, in its own axes
    bumper_b: wp.float32


@wp.func
def face_corner(m: wp.mat33f, way: wp.vec3f, one: wp.float32, two: wp.float32) -> wp.vec3f:
    """A corner of the face that looks along `way` the most, from the centre of mass; one and two are -1 or 1."""
    local = to_local(m, way)
    x = wp.abs(local[0])
    y = wp.abs(local[1])
    z = wp.abs(local[2])
    corner = hull_corner(two, one, wp.where(local[2] < 0.0, -1.0, 1.0))
    if x >= y and x >= z:
        corner = hull_corner(wp.where(local[0] < 0.0, -1.0, 1.0), one, two)
    elif y >= z:
        corner = hull_corner(one, wp.where(local[1] < 0.0, -1.0, 1.0), two)
    return to_world(m, corner)


@wp.func
def is_in_hull(local: wp.vec3f) -> bool:
    """Whether a place in the car's axes is in its hull, or nearly."""
    return (
        wp.abs(local[0] - HULL_OFFSET_X) < HULL_HALF_X + CONTACT_MARGIN
        and wp.abs(local[1]) < HULL_HALF_Y + CONTACT_MARGIN
        and wp.abs(local[2] - HULL_OFFSET_Z) < HULL_HALF_Z + CONTACT_MARGIN
    )


@wp.func
def row_of(ma: wp.mat33f, mb: wp.mat33f, half: wp.vec3f, place: wp.vec3f, way: wp.vec3f, target: wp.float32) -> Row:
    """An impulse along `way` at a place."""
    row = Row()
    row.way = way
    row.lever_a = wp.cross(place + half, way)
    row.lever_b = wp.cross(place - half, way)
    row.turned_a = turned_by(ma, row.lever_a)
    row.turned_b = turned_by(mb, row.lever_b)
    row.firm = _RELAX / (2.0 + (wp.dot(row.lever_a, row.turned_a) + wp.dot(row.lever_b, row.turned_b)))
    row.target = target
    return row


@wp.func
def meet(
    hold: wp.ref[Hold],
    clash: wp.ref[Clash],
    a: Motion,
    b: Motion,
    ma: wp.mat33f,
    mb: wp.mat33f,
    place: wp.vec3f,
    depth: wp.float32,
):
    """Enters a contact."""
    half = clash.half
    n = clash.overlap.n
    velocity = (b.velocity + wp.cross(b.spin, place - half)) - (a.velocity + wp.cross(a.spin, place + half))
    speed = wp.dot(velocity, n)
    bounce = wp.where(speed < -CAR_BOUNCE_MIN, -CAR_CAR_RESTITUTION * speed, 0.0)
    hold.held = 1
    hold.depth = depth
    hold.push = row_of(ma, mb, half, place, n, bounce)
    hold.rub = row_of(ma, mb, half, place, wp.normalize(velocity - n * speed), 0.0)
    clash.count += 1
    clash.bumper_a = wp.max(clash.bumper_a, wp.dot(place + half, column(ma, 0)))
    clash.bumper_b = wp.max(clash.bumper_b, wp.dot(place - half, column(mb, 0)))


@wp.func
def meet_group(
    group: wp.ref[Group], clash: wp.ref[Clash], a: Motion, b: Motion, ma: wp.mat33f, mb: wp.mat33f, two: wp.float32
):
    """Enters the corners of either hull that lie in the other, of one half of the faces that meet."""
    half = clash.half
    n = clash.overlap.n
    face_a = wp.dot(hull_middle(ma) - half, n) + extent(ma, n)  # how far a reaches along the normal
    face_b = wp.dot(hull_middle(mb) + half, n) - extent(mb, n)
    place = face_corner(ma, n, -1.0, two) - half
    depth = wp.dot(place, n) - face_b
    if depth > 0.0 and is_in_hull(to_local(mb, place - half)):
        meet(group.a_one, clash, a, b, ma, mb, place, depth)
    place = face_corner(ma, n, 1.0, two) - half
    depth = wp.dot(place, n) - face_b
    if depth > 0.0 and is_in_hull(to_local(mb, place - half)):
        meet(group.a_two, clash, a, b, ma, mb, place, depth)
    place = face_corner(mb, -n, -1.0, two) + half
    depth = face_a - wp.dot(place, n)
    if depth > 0.0 and is_in_hull(to_local(ma, place + half)):
        meet(group.b_one, clash, a, b, ma, mb, place, depth)
    place = face_corner(mb, -n, 1.0, two) + half
    depth = face_a - wp.dot(place, n)
    if depth > 0.0 and is_in_hull(to_local(ma, place + half)):
        meet(group.b_two, clash, a, b, ma, mb, place, depth)


@wp.func
def find_clash(clash: wp.ref[Clash], a: Car, b: Car, ma: wp.mat33f, mb: wp.mat33f) -> bool:
    """Finds whether and where two hulls touch."""
    clash.half = (b.position - a.position) * 0.5
    if not find_overlap(clash.overlap, ma, mb, (hull_middle(mb) - hull_middle(ma)) + clash.half * 2.0):
        return False
    clash.bumper_a = -_NO_LIMIT
    clash.bumper_b = -_NO_LIMIT
    motion_a = Motion()
    motion_a.velocity = a.velocity
    motion_a.spin = a.spin
    motion_b = Motion()
    motion_b.velocity = b.velocity
    motion_b.spin = b.spin
    meet_group(clash.low, clash, motion_a, motion_b, ma, mb, -1.0)
    meet_group(clash.high, clash, motion_a, motion_b, ma, mb, 1.0)
    if clash.count == 0:
        place = meeting_place(clash.overlap, ma, mb, clash.half)
        meet(clash.low.a_one, clash, motion_a, motion_b, ma, mb, place, clash.overlap.depth)
    return True


@wp.func
def wanted(row: wp.ref[Row], a: Motion, b: Motion, low: wp.float32, high: wp.float32) -> wp.float32:
    """What an impulse changes by to reach its speed, while its sum stays within the limits; enters it."""
    speed = wp.dot(row.way, b.velocity - a.velocity) + (wp.dot(row.lever_b, b.spin) - wp.dot(row.lever_a, a.spin))
    before = row.sum
    row.sum = wp.clamp(before + (row.target - speed) * row.firm, low, high)
    return row.sum - before


@wp.func
def push_group(group: wp.ref[Group], a: wp.ref[Motion], b: wp.ref[Motion]) -> wp.float32:
    """Impulses of a group that push the cars apart, all at once; returns how much they changed."""
    a_one = wanted(group.a_one.push, a, b, 0.0, _NO_LIMIT)
    a_two = wanted(group.a_two.push, a, b, 0.0, _NO_LIMIT)
    b_one = wanted(group.b_one.push, a, b, 0.0, _NO_LIMIT)
    b_two = wanted(group.b_two.push, a, b, 0.0, _NO_LIMIT)
    impulse = (group.a_one.push.way * a_one + group.a_two.push.way * a_two) + (
        group.b_one.push.way * b_one + group.b_two.push.way * b_two
    )
    a.velocity = a.velocity - impulse
    b.velocity = b.velocity + impulse
    a.spin = a.spin - (
        (group.a_one.push.turned_a * a_one + group.a_two.push.turned_a * a_two)
        + (group.b_one.push.turned_a * b_one + group.b_two.push.turned_a * b_two)
    )
    b.spin = b.spin + (
        (group.a_one.push.turned_b * a_one + group.a_two.push.turned_b * a_two)
        + (group.b_one.push.turned_b * b_one + group.b_two.push.turned_b * b_two)
    )
    return wp.abs(a_one) + wp.abs(a_two) + wp.abs(b_one) + wp.abs(b_two)


@wp.func
def rub_group(group: wp.ref[Group], a: wp.ref[Motion], b: wp.ref[Motion]) -> wp.float32:
    """Friction of a group, each within the Coulomb share of its push; returns how much it changed."""
    a_one = rubbed(group.a_one, a, b)
    a_two = rubbed(group.a_two, a, b)
    b_one = rubbed(group.b_one, a, b)
    b_two = rubbed(group.b_two, a, b)
    impulse = (group.a_one.rub.way * a_one + group.a_two.rub.way * a_two) + (
        group.b_one.rub.way * b_one + group.b_two.rub.way * b_two
    )
    a.velocity = a.velocity - impulse
    b.velocity = b.velocity + impulse
    a.spin = a.spin - (
        (group.a_one.rub.turned_a * a_one + group.a_two.rub.turned_a * a_two)
        + (group.b_one.rub.turned_a * b_one + group.b_two.rub.turned_a * b_two)
    )
    b.spin = b.spin + (
        (group.a_one.rub.turned_b * a_one + group.a_two.rub.turned_b * a_two)
        + (group.b_one.rub.turned_b * b_one + group.b_two.rub.turned_b * b_two)
    )
    return wp.abs(a_one) + wp.abs(a_two) + wp.abs(b_one) + wp.abs(b_two)


@wp.func
def rubbed(hold: wp.ref[Hold], a: Motion, b: Motion) -> wp.float32:
    """Change of the friction of one contact."""
    limit = CAR_CAR_FRICTION * hold.push.sum
    return wanted(hold.rub, a, b, -limit, limit)


@wp.func
def aim_apart(hold: wp.ref[Hold]):
    """Lets a push move the cars apart instead of changing their velocities."""
    hold.push.target = CONTACT_RECOVERY * hold.depth
    hold.push.sum = 0.0


@wp.func
def leave_each_other(clash: wp.ref[Clash], a: wp.ref[Car], b: wp.ref[Car]):
    """Moves and turns both cars out of each other; their velocities stay."""
    aim_apart(clash.low.a_one)
    aim_apart(clash.low.a_two)
    aim_apart(clash.low.b_one)
    aim_apart(clash.low.b_two)
    aim_apart(clash.high.a_one)
    aim_apart(clash.high.a_two)
    aim_apart(clash.high.b_one)
    aim_apart(clash.high.b_two)
    out_a = Motion()
    out_b = Motion()
    for _ in range(_ROUNDS):
        change = push_group(clash.low, out_a, out_b) + push_group(clash.high, out_a, out_b)
        if change < _ENOUGH * DT:
            break
    a.position = a.position + out_a.velocity
    a.rotation = turn(a.rotation, out_a.spin, 1.0)
    b.position = b.position + out_b.velocity
    b.rotation = turn(b.rotation, out_b.spin, 1.0)


@wp.func
def collide_hulls(clash: wp.ref[Clash], a: wp.ref[Car], b: wp.ref[Car]):
    """Impulses with restitution and friction at all contacts; then both cars move out of each other."""
    motion_a = Motion()
    motion_a.velocity = a.velocity
    motion_a.spin = a.spin
    motion_b = Motion()
    motion_b.velocity = b.velocity
    motion_b.spin = b.spin
    for _ in range(_ROUNDS):
        change = push_group(clash.low, motion_a, motion_b) + push_group(clash.high, motion_a, motion_b)
        change += rub_group(clash.low, motion_a, motion_b) + rub_group(clash.high, motion_a, motion_b)
        if change < _ENOUGH:
            break
    a.velocity = motion_a.velocity
    a.spin = motion_a.spin
    b.velocity = motion_b.velocity
    b.spin = motion_b.spin
    leave_each_other(clash, a, b)
