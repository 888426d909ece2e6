"""Rigid contact of two hulls: separating axes, contact points and impulses (Warp functions).

Everything is computed in world axes, and what both cars contribute is added in sums of two, so that it does not matter
which of them comes first.
"""

import warp as wp

from ludus.envs.rocket.kernels.body import Motion, hull_corner, turned_by, yielding
from ludus.envs.rocket.kernels.maths import column, to_local, to_world, turn
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import (
    CAR_BOUNCE_MIN,
    CAR_CAR_FRICTION,
    CAR_CAR_RESTITUTION,
    CONTACT_MARGIN,
    CONTACT_RECOVERY,
    HULL_HALF_X,
    HULL_HALF_Y,
    HULL_HALF_Z,
    HULL_OFFSET_X,
    HULL_OFFSET_Z,
)

_TOUCH_DEPTH = 0.13  # hulls touch from this overlap on (measured)
_EDGES = 16  # index of the contact of two edges
_CONTACTS = 20  # in groups of four: two corners of each car, or the edges alone
_GROUPS = 5
_ITERATIONS = 16
_RELAX = 0.5  # of the four impulses of a group, found side by side, this share is applied: then they converge
_SHARPNESS = 20.0  # a face tilted by less than one over this is met between its middle and its edge
_EDGE_PREFERENCE = 0.95  # an axis across two edges counts only where it is clearly shallower than those of faces

Vectors = wp.types.matrix(shape=(_CONTACTS, 3), dtype=wp.float32)
Numbers = wp.types.vector(length=_CONTACTS, dtype=wp.float32)


@wp.struct
class Clash:
    """The contact of two hulls, in axes whose origin is the middle between the cars."""

    half: wp.vec3f  # where b is; a is at the opposite place
    n: wp.vec3f  # normal from a to b
    depth: wp.float32  # overlap along it
    edge_a: wp.int32  # axes of the edges that meet, if two edges do, else -1
    edge_b: wp.int32
    way: wp.vec3f  # of the slip of b over a; friction acts along it
    held: wp.int32  # bit i: contact i exists
    places: Vectors
    inside: Numbers  # depth of each contact
    target: Numbers  # speed of separation that it is to have afterwards
    push: Numbers  # its impulse over a car's mass so far
    rub: Numbers
    firm: Numbers  # impulse that changes its speed of separation by 1
    rough: Numbers  # and that changes its slip by 1
    bumper_a: wp.float32  # how far forward on each car the contact reaches, in its own axes
    bumper_b: wp.float32


@wp.func
def extent(m: wp.mat33f, axis: wp.vec3f) -> wp.float32:
    """Half of the extent of a hull along a unit vector."""
    local = to_local(m, axis)
    return wp.abs(local[0]) * HULL_HALF_X + wp.abs(local[1]) * HULL_HALF_Y + wp.abs(local[2]) * HULL_HALF_Z


@wp.func
def hull_middle(m: wp.mat33f) -> wp.vec3f:
    """Middle of the hull from the centre of mass, world axes."""
    return column(m, 0) * HULL_OFFSET_X + column(m, 2) * HULL_OFFSET_Z


@wp.func
def face_overlap(clash: wp.ref[Clash], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f, axis: wp.vec3f) -> bool:
    """Tests a face's axis; false if it separates the hulls. Of the shallowest axes the mean is kept."""
    along = wp.dot(offset, axis)
    inside = extent(ma, axis) + extent(mb, axis) - wp.abs(along)
    toward = axis * wp.where(along < 0.0, -1.0, 1.0)
    if inside < clash.depth:
        clash.depth = inside
        clash.n = toward
    elif inside == clash.depth:
        clash.n = clash.n + toward
    return inside > _TOUCH_DEPTH


@wp.func
def edge_overlap(clash: wp.ref[Clash], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f, one: int, other: int) -> bool:
    """Tests the axis across two edges; false if it separates the hulls."""
    across = wp.cross(column(ma, one), column(mb, other))
    length = wp.length(across)
    if length < 0.05:  # nearly parallel edges: the faces tell
        return True
    axis = across / length
    along = wp.dot(offset, axis)
    inside = extent(ma, axis) + extent(mb, axis) - wp.abs(along)
    if inside < clash.depth * _EDGE_PREFERENCE:
        clash.edge_a = one
        clash.edge_b = other
        clash.depth = inside
        clash.n = axis * wp.where(along < 0.0, -1.0, 1.0)
    return inside > _TOUCH_DEPTH


@wp.func
def overlaps(clash: wp.ref[Clash], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f) -> bool:
    """Whether two hulls overlap, by the 15 separating axes; sets normal and depth."""
    clash.depth = 1.0e9
    clash.edge_a = -1
    for axis in range(3):
        if not face_overlap(clash, ma, mb, offset, column(ma, axis)):
            return False
        if not face_overlap(clash, ma, mb, offset, column(mb, axis)):
            return False
    clash.n = wp.normalize(clash.n)
    for one in range(3):
        for other in range(3):
            if not edge_overlap(clash, ma, mb, offset, one, other):
                return False
    return True


@wp.func
def support(m: wp.mat33f, way: wp.vec3f) -> wp.vec3f:
    """Point of a hull that lies farthest along a direction, from the centre of mass; halfway along what lies across."""
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
def half_of(axis: int) -> wp.float32:
    """Half of the hull's size along one of its axes."""
    return wp.where(axis == 0, float(HULL_HALF_X), wp.where(axis == 1, float(HULL_HALF_Y), float(HULL_HALF_Z)))


@wp.func
def meeting_place(clash: Clash, ma: wp.mat33f, mb: wp.mat33f) -> wp.vec3f:
    """Where hulls touch of which no corner is in the other: edges where they cross, faces in their middle."""
    on_a = support(ma, clash.n) - clash.half
    on_b = support(mb, -clash.n) + clash.half
    if clash.edge_a >= 0:
        along_a = column(ma, clash.edge_a)
        along_b = column(mb, clash.edge_b)
        between = on_b - on_a
        cosine = wp.dot(along_a, along_b)
        reach_a = wp.dot(between, along_a)
        reach_b = -wp.dot(between, along_b)
        sine_sq = 1.0 - cosine * cosine  # at least 0.0025, see edge_overlap
        half_a = half_of(clash.edge_a)
        half_b = half_of(clash.edge_b)
        on_a = on_a + along_a * wp.clamp((reach_a + cosine * reach_b) / sine_sq, -half_a, half_a)
        on_b = on_b + along_b * wp.clamp((reach_b + cosine * reach_a) / sine_sq, -half_b, half_b)
    return (on_a + on_b) * 0.5


@wp.func
def is_in_hull(local: wp.vec3f) -> bool:
    """Whether a place in the car's axes is in its hull, or nearly."""
    return (
        wp.abs(local[0] - HULL_OFFSET_X) < HULL_HALF_X + CONTACT_MARGIN
        and wp.abs(local[1]) < HULL_HALF_Y + CONTACT_MARGIN
        and wp.abs(local[2] - HULL_OFFSET_Z) < HULL_HALF_Z + CONTACT_MARGIN
    )


@wp.func
def place_of(clash: Clash, index: int) -> wp.vec3f:
    """Where a contact is."""
    return wp.vec3f(clash.places[index, 0], clash.places[index, 1], clash.places[index, 2])


@wp.func
def note_place(clash: wp.ref[Clash], ma: wp.mat33f, mb: wp.mat33f, index: int, place: wp.vec3f, inside: wp.float32):
    """Enters a contact."""
    clash.held = clash.held | (1 << index)
    clash.inside[index] = inside
    for axis in range(3):
        clash.places[index, axis] = place[axis]
    clash.bumper_a = wp.max(clash.bumper_a, wp.dot(place + clash.half, column(ma, 0)))
    clash.bumper_b = wp.max(clash.bumper_b, wp.dot(place - clash.half, column(mb, 0)))


@wp.func
def find_places(clash: wp.ref[Clash], ma: wp.mat33f, mb: wp.mat33f):
    """Enters the corners of either hull that lie in the other, or else the place where edges or faces cross."""
    half = clash.half
    clash.bumper_a = -1.0e9
    clash.bumper_b = -1.0e9
    face_a = wp.dot(hull_middle(ma) - half, clash.n) + extent(ma, clash.n)  # how far a reaches along the normal
    face_b = wp.dot(hull_middle(mb) + half, clash.n) - extent(mb, clash.n)
    for corner in range(8):
        slot = (corner / 2) * 4 + (corner & 1)
        place = to_world(ma, hull_corner(corner)) - half
        inside = wp.dot(place, clash.n) - face_b
        if inside > 0.0 and is_in_hull(to_local(mb, place - half)):
            note_place(clash, ma, mb, slot, place, inside)
        place = to_world(mb, hull_corner(corner)) + half
        inside = face_a - wp.dot(place, clash.n)
        if inside > 0.0 and is_in_hull(to_local(ma, place + half)):
            note_place(clash, ma, mb, slot + 2, place, inside)
    if clash.held == 0:
        note_place(clash, ma, mb, _EDGES, meeting_place(clash, ma, mb), clash.depth)


@wp.func
def find_clash(clash: wp.ref[Clash], a: Car, b: Car, ma: wp.mat33f, mb: wp.mat33f) -> bool:
    """Finds whether and where two hulls touch."""
    clash.half = (b.position - a.position) * 0.5
    if not overlaps(clash, ma, mb, (hull_middle(mb) - hull_middle(ma)) + clash.half * 2.0):
        return False
    find_places(clash, ma, mb)
    return True


@wp.func
def parting(clash: Clash, a: Motion, b: Motion, place: wp.vec3f) -> wp.vec3f:
    """Velocity of b relative to a at a place."""
    of_a = a.velocity + wp.cross(a.spin, place + clash.half)
    return b.velocity + wp.cross(b.spin, place - clash.half) - of_a


@wp.func
def slip_at(clash: Clash, a: Motion, b: Motion, index: int) -> wp.vec3f:
    """Slip of b over a at a contact, 0 where there is none."""
    if (clash.held & (1 << index)) == 0:
        return wp.vec3f(0.0, 0.0, 0.0)
    velocity = parting(clash, a, b, place_of(clash, index))
    return velocity - clash.n * wp.dot(velocity, clash.n)


@wp.func
def prepare(clash: wp.ref[Clash], a: Motion, b: Motion, ma: wp.mat33f, mb: wp.mat33f):
    """Sets the way of the slip, and for each contact its bounce and how firm it is."""
    slip = wp.vec3f(0.0, 0.0, 0.0)
    for group in range(_GROUPS):
        at = 4 * group
        of_a = slip_at(clash, a, b, at) + slip_at(clash, a, b, at + 1)
        slip = slip + (of_a + (slip_at(clash, a, b, at + 2) + slip_at(clash, a, b, at + 3)))
    clash.way = wp.normalize(slip)
    for index in range(_CONTACTS):
        if (clash.held & (1 << index)) != 0:
            place = place_of(clash, index)
            speed = wp.dot(parting(clash, a, b, place), clash.n)
            clash.target[index] = wp.where(speed < -CAR_BOUNCE_MIN, -CAR_CAR_RESTITUTION * speed, 0.0)
            on_a = place + clash.half
            on_b = place - clash.half
            clash.firm[index] = _RELAX / (yielding(ma, on_a, clash.n) + yielding(mb, on_b, clash.n))
            clash.rough[index] = _RELAX / (yielding(ma, on_a, clash.way) + yielding(mb, on_b, clash.way))


@wp.func
def press(clash: wp.ref[Clash], a: Motion, b: Motion, index: int) -> wp.float32:
    """Impulse along the normal that a contact wants on top of what it has."""
    if (clash.held & (1 << index)) == 0:
        return 0.0
    before = clash.push[index]
    wanted = clash.target[index] - wp.dot(parting(clash, a, b, place_of(clash, index)), clash.n)
    clash.push[index] = wp.max(before + wanted * clash.firm[index], 0.0)
    return clash.push[index] - before


@wp.func
def rub(clash: wp.ref[Clash], a: Motion, b: Motion, index: int) -> wp.float32:
    """Friction along the slip that a contact wants on top of what it has, within the Coulomb share of its push."""
    if (clash.held & (1 << index)) == 0:
        return 0.0
    before = clash.rub[index]
    limit = CAR_CAR_FRICTION * clash.push[index]
    slip = wp.dot(parting(clash, a, b, place_of(clash, index)), clash.way)
    clash.rub[index] = wp.clamp(before - slip * clash.rough[index], -limit, limit)
    return clash.rub[index] - before


@wp.func
def shove_both(
    clash: Clash,
    a: wp.ref[Motion],
    b: wp.ref[Motion],
    ma: wp.mat33f,
    mb: wp.mat33f,
    group: int,
    sizes: wp.vec4f,
    way: wp.vec3f,
):
    """The four impulses of a group at once, on b along `way` and on a against it."""
    at = 4 * group
    first = place_of(clash, at) * sizes[0] + place_of(clash, at + 1) * sizes[1]
    # Sum of the places, each times its impulse.
    lever = first + (place_of(clash, at + 2) * sizes[2] + place_of(clash, at + 3) * sizes[3])
    size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3])
    a.velocity = a.velocity - way * size
    b.velocity = b.velocity + way * size
    a.spin = a.spin - turned_by(ma, wp.cross(lever + clash.half * size, way))
    b.spin = b.spin + turned_by(mb, wp.cross(lever - clash.half * size, way))


@wp.func
def press_all(clash: wp.ref[Clash], a: wp.ref[Motion], b: wp.ref[Motion], ma: wp.mat33f, mb: wp.mat33f):
    """One round of impulses along the normal."""
    for group in range(_GROUPS):
        at = 4 * group
        if ((clash.held >> at) & 15) != 0:
            first = wp.vec2f(press(clash, a, b, at), press(clash, a, b, at + 1))
            second = wp.vec2f(press(clash, a, b, at + 2), press(clash, a, b, at + 3))
            sizes = wp.vec4f(first[0], first[1], second[0], second[1])
            shove_both(clash, a, b, ma, mb, group, sizes, clash.n)


@wp.func
def rub_all(clash: wp.ref[Clash], a: wp.ref[Motion], b: wp.ref[Motion], ma: wp.mat33f, mb: wp.mat33f):
    """One round of friction."""
    for group in range(_GROUPS):
        at = 4 * group
        if ((clash.held >> at) & 15) != 0:
            first = wp.vec2f(rub(clash, a, b, at), rub(clash, a, b, at + 1))
            second = wp.vec2f(rub(clash, a, b, at + 2), rub(clash, a, b, at + 3))
            sizes = wp.vec4f(first[0], first[1], second[0], second[1])
            shove_both(clash, a, b, ma, mb, group, sizes, clash.way)


@wp.func
def collide_hulls(clash: wp.ref[Clash], a: wp.ref[Car], b: wp.ref[Car], ma: wp.mat33f, mb: wp.mat33f):
    """Impulses with restitution and friction at all contacts; then both cars move out of each other."""
    motion_a = Motion()
    motion_a.velocity = a.velocity
    motion_a.spin = a.spin
    motion_b = Motion()
    motion_b.velocity = b.velocity
    motion_b.spin = b.spin
    prepare(clash, motion_a, motion_b, ma, mb)
    for _ in range(_ITERATIONS):
        press_all(clash, motion_a, motion_b, ma, mb)
        rub_all(clash, motion_a, motion_b, ma, mb)
    a.velocity = motion_a.velocity
    a.spin = motion_a.spin
    b.velocity = motion_b.velocity
    b.spin = motion_b.spin
    for index in range(_CONTACTS):
        clash.target[index] = CONTACT_RECOVERY * clash.inside[index]
        clash.push[index] = 0.0
    out_a = Motion()
    out_b = Motion()
    for _ in range(_ITERATIONS):
        press_all(clash, out_a, out_b, ma, mb)
    a.position = a.position + out_a.velocity
    a.rotation = turn(a.rotation, out_a.spin, 1.0)
    b.position = b.position + out_b.velocity
    b.rotation = turn(b.rotation, out_b.spin, 1.0)
