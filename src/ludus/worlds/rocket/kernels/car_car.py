"""Two cars collide: bumps, demolitions and the rigid contact of their hulls (Warp functions).

Overlap is found by the separating axes of two boxes, then contact points and impulses. Everything is computed in world
axes, and contributions of the two cars are added in sums of two, so that their order does not matter.
"""

from enum import IntFlag

import warp as wp

from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.contacts import Motion, hull_corner, motion_of, turned_by
from ludus.worlds.rocket.kernels.maths import axes, column, line, to_local, to_world, turn
from ludus.worlds.rocket.kernels.structs import Car
from ludus.worlds.rocket.rules import HULL_HALF_X, HULL_HALF_Y, HULL_HALF_Z, HULL_OFFSET_X, HULL_OFFSET_Z, HULL_REACH

_TOUCH_DEPTH = 0.13  # hulls touch from this overlap on (measured)
_PARALLEL = 0.05  # sine of the angle between edges below which their cross product is too short to be an axis
_EDGE_PREFERENCE = 0.95  # an axis across two edges counts only where it is clearly shallower than those of faces
_SHARPNESS = 20.0  # a face tilted by less than one over this is met between its middle and its edge

_ROUNDS = 16
_ENOUGH = 0.2  # uu/s; rounds end when they change less
_RELAX = 0.5  # under-relaxation of the four impulses of a group, which are found side by side: then they converge
_NO_LIMIT = 1.0e9

_FALL = const.GRAVITY * const.DT
_BUMP, _DEMOLITION = 1, 2


@wp.struct
class Overlap:
    """How two hulls overlap."""

    n: wp.vec3f  # normal from a to b: the shallowest axis
    depth: wp.float32  # along it
    edge_a: wp.int32  # axes of the edges that meet, if two edges do, else -1
    edge_b: wp.int32


@wp.func
def extent(m: wp.mat33f, axis: wp.vec3f) -> float:
    """Return the half extent of a hull along a unit vector."""
    local = to_local(m, axis)
    return wp.abs(local[0]) * HULL_HALF_X + wp.abs(local[1]) * HULL_HALF_Y + wp.abs(local[2]) * HULL_HALF_Z


@wp.func
def hull_middle(m: wp.mat33f) -> wp.vec3f:
    """Return the middle of the hull from the centre of mass, world axes."""
    return column(m, 0) * HULL_OFFSET_X + column(m, 2) * HULL_OFFSET_Z


@wp.func
def face_overlap(found: wp.ref[Overlap], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f, axis: wp.vec3f) -> bool:
    """Test a face's axis; false if it separates the hulls. Of equally shallow axes the sum is kept."""
    along = wp.dot(offset, axis)
    inside = extent(ma, axis) + extent(mb, axis) - wp.abs(along)
    toward = axis * wp.where(along < 0.0, -1.0, 1.0)
    if inside < found.depth:
        found.depth = inside
        found.n = toward
    elif inside == found.depth:
        found.n = found.n + toward
    return inside > _TOUCH_DEPTH


@wp.func
def edge_overlap(found: wp.ref[Overlap], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f, one: int, other: int) -> bool:
    """Test the axis across two edges; false if it separates the hulls."""
    across = wp.cross(column(ma, one), column(mb, other))
    length = wp.length(across)
    if length < _PARALLEL:
        return True
    axis = across / length
    along = wp.dot(offset, axis)
    inside = extent(ma, axis) + extent(mb, axis) - wp.abs(along)
    if inside < found.depth * _EDGE_PREFERENCE:
        found.edge_a = one
        found.edge_b = other
        found.depth = inside
        found.n = axis * wp.where(along < 0.0, -1.0, 1.0)
    return inside > _TOUCH_DEPTH


@wp.func
def find_overlap(found: wp.ref[Overlap], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f) -> bool:
    """Return whether two hulls overlap, by the 15 separating axes; `offset` points from a's middle to b's."""
    found.depth = 1.0e9
    found.edge_a = -1
    for axis in range(3):
        if not face_overlap(found, ma, mb, offset, column(ma, axis)):
            return False
        if not face_overlap(found, ma, mb, offset, column(mb, axis)):
            return False
    found.n = wp.normalize(found.n)
    for one in range(3):
        for other in range(3):
            if not edge_overlap(found, ma, mb, offset, one, other):
                return False
    return True


@wp.func
def support(m: wp.mat33f, way: wp.vec3f) -> wp.vec3f:
    """Return the support point of a hull from its centre of mass; mid-edge where an edge lies across the direction."""
    local = to_local(m, way)
    return to_world(
        m,
        wp.vec3f(
            HULL_OFFSET_X + HULL_HALF_X * wp.clamp(local[0] * _SHARPNESS, -1.0, 1.0),
            HULL_HALF_Y * wp.clamp(local[1] * _SHARPNESS, -1.0, 1.0),
            HULL_OFFSET_Z + HULL_HALF_Z * wp.clamp(local[2] * _SHARPNESS, -1.0, 1.0),
        ),
    )


@wp.func
def half_of(axis: int) -> float:
    """Return the half size of the hull along one of its axes."""
    return wp.where(axis == 0, float(HULL_HALF_X), wp.where(axis == 1, float(HULL_HALF_Y), float(HULL_HALF_Z)))


@wp.func
def meeting_place(found: Overlap, ma: wp.mat33f, mb: wp.mat33f, half: wp.vec3f) -> wp.vec3f:
    """Return the contact of hulls with no corner in the other: where edges cross, or the middle of faces.

    The place is relative to the middle between the cars, which are at -half and +half.
    """
    on_a = support(ma, found.n) - half
    on_b = support(mb, -found.n) + half
    if found.edge_a >= 0:
        along_a = column(ma, found.edge_a)
        along_b = column(mb, found.edge_b)
        between = on_b - on_a
        cosine = wp.dot(along_a, along_b)
        reach_a = wp.dot(between, along_a)
        reach_b = -wp.dot(between, along_b)
        sine_sq = 1.0 - cosine * cosine  # not 0: such edges are not tested
        half_a = half_of(found.edge_a)
        half_b = half_of(found.edge_b)
        on_a = on_a + along_a * wp.clamp((reach_a + cosine * reach_b) / sine_sq, -half_a, half_a)
        on_b = on_b + along_b * wp.clamp((reach_b + cosine * reach_a) / sine_sq, -half_b, half_b)
    return (on_a + on_b) * 0.5


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
def face_corner(m: wp.mat33f, way: wp.vec3f, one: float, two: float) -> wp.vec3f:
    """Return a corner of the face that looks along `way` the most, from the centre of mass; one and two are -1 or 1."""
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
    """Return whether a place in the car's axes is in its hull, or nearly."""
    return (
        wp.abs(local[0] - HULL_OFFSET_X) < HULL_HALF_X + const.CONTACT_MARGIN
        and wp.abs(local[1]) < HULL_HALF_Y + const.CONTACT_MARGIN
        and wp.abs(local[2] - HULL_OFFSET_Z) < HULL_HALF_Z + const.CONTACT_MARGIN
    )


@wp.func
def row_of(ma: wp.mat33f, mb: wp.mat33f, half: wp.vec3f, place: wp.vec3f, way: wp.vec3f, target: float) -> Row:
    """Return an impulse along `way` at a place."""
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
    depth: float,
):
    """Add a contact."""
    half = clash.half
    n = clash.overlap.n
    velocity = (b.velocity + wp.cross(b.spin, place - half)) - (a.velocity + wp.cross(a.spin, place + half))
    speed = wp.dot(velocity, n)
    bounce = wp.where(speed < -const.CAR_BOUNCE_MIN, -const.CAR_CAR_RESTITUTION * speed, 0.0)
    hold.depth = depth
    hold.push = row_of(ma, mb, half, place, n, bounce)
    hold.rub = row_of(ma, mb, half, place, wp.normalize(velocity - n * speed), 0.0)
    clash.count += 1
    clash.bumper_a = wp.max(clash.bumper_a, wp.dot(place + half, column(ma, 0)))
    clash.bumper_b = wp.max(clash.bumper_b, wp.dot(place - half, column(mb, 0)))


@wp.func
def meet_group(
    group: wp.ref[Group], clash: wp.ref[Clash], a: Motion, b: Motion, ma: wp.mat33f, mb: wp.mat33f, two: float
):
    """Add the corners of either hull that lie in the other, of one half of the faces that meet."""
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
    """Find whether and where two hulls touch."""
    clash.half = (b.position - a.position) * 0.5
    if not find_overlap(clash.overlap, ma, mb, (hull_middle(mb) - hull_middle(ma)) + clash.half * 2.0):
        return False
    clash.bumper_a = -_NO_LIMIT
    clash.bumper_b = -_NO_LIMIT
    motion_a = motion_of(a.velocity, a.spin)
    motion_b = motion_of(b.velocity, b.spin)
    meet_group(clash.low, clash, motion_a, motion_b, ma, mb, -1.0)
    meet_group(clash.high, clash, motion_a, motion_b, ma, mb, 1.0)
    if clash.count == 0:
        place = meeting_place(clash.overlap, ma, mb, clash.half)
        meet(clash.low.a_one, clash, motion_a, motion_b, ma, mb, place, clash.overlap.depth)
    return True


@wp.func
def wanted(row: wp.ref[Row], a: Motion, b: Motion, low: float, high: float) -> float:
    """Update an impulse toward its target speed, clamping its sum to the limits; return the change."""
    # Projected Jacobi within a group, hence the relaxation in `firm`; see `contacts.wanted`.
    speed = wp.dot(row.way, b.velocity - a.velocity) + (wp.dot(row.lever_b, b.spin) - wp.dot(row.lever_a, a.spin))
    before = row.sum
    row.sum = wp.clamp(before + (row.target - speed) * row.firm, low, high)
    return row.sum - before


@wp.func
def apply_group(
    a: wp.ref[Motion],
    b: wp.ref[Motion],
    a_one: wp.ref[Row],
    a_two: wp.ref[Row],
    b_one: wp.ref[Row],
    b_two: wp.ref[Row],
    one: float,
    two: float,
    three: float,
    four: float,
) -> float:
    """Apply four impulses at once, two per car in sums of two, so that the cars' order does not matter."""
    impulse = (a_one.way * one + a_two.way * two) + (b_one.way * three + b_two.way * four)
    turned_a = (a_one.turned_a * one + a_two.turned_a * two) + (b_one.turned_a * three + b_two.turned_a * four)
    turned_b = (a_one.turned_b * one + a_two.turned_b * two) + (b_one.turned_b * three + b_two.turned_b * four)
    a.velocity = a.velocity - impulse
    b.velocity = b.velocity + impulse
    a.spin = a.spin - turned_a
    b.spin = b.spin + turned_b
    return wp.abs(one) + wp.abs(two) + wp.abs(three) + wp.abs(four)


@wp.func
def push_group(group: wp.ref[Group], a: wp.ref[Motion], b: wp.ref[Motion]) -> float:
    """Apply the impulses of a group that push the cars apart, all at once; return how much they changed."""
    a_one = wanted(group.a_one.push, a, b, 0.0, _NO_LIMIT)
    a_two = wanted(group.a_two.push, a, b, 0.0, _NO_LIMIT)
    b_one = wanted(group.b_one.push, a, b, 0.0, _NO_LIMIT)
    b_two = wanted(group.b_two.push, a, b, 0.0, _NO_LIMIT)
    return apply_group(
        a, b, group.a_one.push, group.a_two.push, group.b_one.push, group.b_two.push, a_one, a_two, b_one, b_two
    )


@wp.func
def rub_group(group: wp.ref[Group], a: wp.ref[Motion], b: wp.ref[Motion]) -> float:
    """Apply the friction of a group, each within mu times its push; return how much it changed."""
    a_one = rubbed(group.a_one, a, b)
    a_two = rubbed(group.a_two, a, b)
    b_one = rubbed(group.b_one, a, b)
    b_two = rubbed(group.b_two, a, b)
    return apply_group(
        a, b, group.a_one.rub, group.a_two.rub, group.b_one.rub, group.b_two.rub, a_one, a_two, b_one, b_two
    )


@wp.func
def rubbed(hold: wp.ref[Hold], a: Motion, b: Motion) -> float:
    """Return the change of the friction of one contact."""
    limit = const.CAR_CAR_FRICTION * hold.push.sum
    return wanted(hold.rub, a, b, -limit, limit)


@wp.func
def aim_apart(hold: wp.ref[Hold]):
    """Retarget a push to move the cars apart instead of changing their velocities."""
    hold.push.target = const.CONTACT_RECOVERY * hold.depth
    hold.push.sum = 0.0


@wp.func
def aim_group(group: wp.ref[Group]):
    """Retarget all pushes of a group; see `aim_apart`."""
    aim_apart(group.a_one)
    aim_apart(group.a_two)
    aim_apart(group.b_one)
    aim_apart(group.b_two)


@wp.func
def leave_each_other(clash: wp.ref[Clash], a: wp.ref[Car], b: wp.ref[Car]):
    """Move and turn both cars out of each other; their velocities stay."""
    aim_group(clash.low)
    aim_group(clash.high)
    out_a = Motion()
    out_b = Motion()
    for _ in range(_ROUNDS):
        change = push_group(clash.low, out_a, out_b) + push_group(clash.high, out_a, out_b)
        if change < _ENOUGH * const.DT:
            break
    a.position = a.position + out_a.velocity
    a.rotation = turn(a.rotation, out_a.spin, 1.0)
    b.position = b.position + out_b.velocity
    b.rotation = turn(b.rotation, out_b.spin, 1.0)


@wp.func
def collide_hulls(clash: wp.ref[Clash], a: wp.ref[Car], b: wp.ref[Car]):
    """Impulses with restitution and friction at all contacts; then both cars move out of each other."""
    motion_a = motion_of(a.velocity, a.spin)
    motion_b = motion_of(b.velocity, b.spin)
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


class Contact(IntFlag):
    """What a meeting of two cars comes to."""

    TOUCH, A_BUMPS, B_BUMPS, A_DEMOLISHES, B_DEMOLISHES = (1 << bit for bit in range(5))


@wp.func
def bump_speed(speed: float, on_ground: int) -> float:
    """Return the speed that a bump gives the victim along the attacker's way."""
    if on_ground != 0:
        if speed < 1400.0:
            return line(speed, 0.0, 0.83, 1400.0, 1100.0)
        return line(speed, 1400.0, 1100.0, 2200.0, 1530.0)
    if speed < 1400.0:
        return line(speed, 0.0, 0.83, 1400.0, 1390.0)
    return line(speed, 1400.0, 1390.0, 2200.0, 1945.0)


@wp.func
def bump_lift(speed: float) -> float:
    """Return the speed that a bump gives the victim upward."""
    if speed < 1400.0:
        return line(speed, 0.0, 0.33, 1400.0, 278.0)
    return line(speed, 1400.0, 278.0, 2200.0, 417.0)


@wp.func
def judge_bump(attacker: wp.ref[Car], victim: Car, seat: int, bumper: float) -> int:
    """Return the effect of this contact on the victim: 0 nothing, a bump or a demolition; a cooldown begins.

    `seat` is the victim's; `bumper` is how far forward on the attacker the contact reaches.
    """
    if bumper <= const.BUMPER_X or (attacker.bump_s > 0.0 and attacker.bump_seat == seat):
        return 0
    way = victim.position - attacker.position
    closing = wp.dot(attacker.velocity, way)
    if closing <= 0.0 or closing <= wp.dot(victim.velocity, way):
        return 0
    attacker.bump_s = const.BUMP_COOLDOWN_S
    attacker.bump_seat = seat
    return wp.where(attacker.supersonic != 0 and attacker.team != victim.team, _DEMOLITION, _BUMP)


@wp.func
def bump_change(attacker: Car, victim: Car) -> wp.vec3f:
    """Return the change of the victim's velocity: along the attacker's velocity before this tick's gravity, and up."""
    velocity = attacker.velocity - wp.vec3f(0.0, 0.0, _FALL)
    speed = wp.length(velocity)
    up = wp.vec3f(0.0, 0.0, 1.0)
    if victim.on_ground != 0:
        up = column(axes(victim.rotation), 2)
    return velocity * (bump_speed(speed, victim.on_ground) / speed) + up * bump_lift(speed)


@wp.func
def take_bump(victim: wp.ref[Car], change: wp.vec3f):
    """Add a bump that acts from the end of the tick: this tick's displacement is subtracted in advance."""
    victim.velocity = victim.velocity + change
    victim.position = victim.position - change * const.DT


@wp.func
def collide_cars(a: wp.ref[Car], b: wp.ref[Car], seat_a: int, seat_b: int) -> int:
    """Collide two cars, whose velocities change at once; return flags of `Contact`.

    Swapping the cars, mirroring the world or turning it by half a turn gives the swapped, mirrored or turned result. A
    car that is demolished is for the caller to take off the field.
    """
    between = b.position - a.position
    if wp.dot(between, between) > 4.0 * HULL_REACH * HULL_REACH:
        return 0
    clash = Clash()
    ma = axes(a.rotation)
    mb = axes(b.rotation)
    if not find_clash(clash, a, b, ma, mb):
        return 0
    by_a = judge_bump(a, b, seat_b, clash.bumper_a)
    by_b = judge_bump(b, a, seat_a, clash.bumper_b)
    change_a = bump_change(b, a)
    change_b = bump_change(a, b)
    collide_hulls(clash, a, b)
    flags = int(Contact.TOUCH)
    if by_a == _BUMP:
        take_bump(b, change_b)
        flags += int(Contact.A_BUMPS)
    if by_b == _BUMP:
        take_bump(a, change_a)
        flags += int(Contact.B_BUMPS)
    flags += wp.where(by_a == _DEMOLITION, int(Contact.A_DEMOLISHES), 0)
    flags += wp.where(by_b == _DEMOLITION, int(Contact.B_DEMOLISHES), 0)
    return flags
