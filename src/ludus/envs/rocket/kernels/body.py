"""The car's hull: its mass properties, and its contact with the arena (Warp functions).

The corners of the hull are tested against the arena, and near the goals' frames, the only edges that could enter
between corners, also the point of the hull that is nearest to the frame. Impulses are found by Gauss-Seidel over pairs:
a left and a right corner at once, so that a car and its mirror image do the same.
"""

import warp as wp

from ludus.envs.rocket.kernels.arena import arena_distance
from ludus.envs.rocket.kernels.maths import axes, to_local, to_world, turn
from ludus.envs.rocket.kernels.structs import Car
from ludus.envs.rocket.rules import (
    BACK_Y,
    CAR_BOUNCE_MIN,
    CAR_WORLD_FRICTION,
    CAR_WORLD_RESTITUTION,
    CEILING_FILLET,
    CEILING_Z,
    CONTACT_MARGIN,
    CONTACT_RECOVERY,
    CORNER_SUM,
    DT,
    FLOOR_FILLET,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
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
    SIDE_X,
)

_FALL = GRAVITY * DT
_ITERATIONS = 8
_PROJECTIONS = 4
_FRAME = 8  # index of the contact with a goal's frame, after the eight corners
_CONTACTS = 10  # in pairs; the last is never one
# Inside these a hull can only touch the floor.
_CLEAR = FLOOR_FILLET + HULL_REACH
_CLEAR_X = SIDE_X - _CLEAR
_CLEAR_Y = BACK_Y - _CLEAR
_CLEAR_SUM = CORNER_SUM - 1.5 * _CLEAR  # more than sqrt(2) because of the vertical fillets
_CLEAR_Z = CEILING_Z - CEILING_FILLET - HULL_REACH

Vectors = wp.types.matrix(shape=(_CONTACTS, 3), dtype=wp.float32)
Numbers = wp.types.vector(length=_CONTACTS, dtype=wp.float32)


@wp.struct
class Motion:
    """Velocity and spin of a body; or, to move it out of a surface, a way and a turn."""

    velocity: wp.vec3f
    spin: wp.vec3f


@wp.struct
class Touch:
    """The contacts of a hull with the arena."""

    arms: Vectors  # from the centre of mass, world axes
    normals: Vectors
    target: Numbers  # speed out of the surface that the contact is to have afterwards
    push: Numbers  # impulse over the car's mass so far; negative: no contact
    ways: Vectors  # of the slip at first; friction acts along it
    rub: Numbers  # friction so far, against the way
    depth: Numbers  # negative where the point is still outside
    count: wp.int32
    deepest: wp.float32


@wp.func
def hull_corner(index: int) -> wp.vec3f:
    """A corner of the hull in the car's axes; the bits of its index, 0 to 7, are side, end and top."""
    y = wp.where((index & 1) != 0, float(HULL_HALF_Y), -float(HULL_HALF_Y))
    x = wp.where((index & 2) != 0, float(HULL_OFFSET_X + HULL_HALF_X), float(HULL_OFFSET_X - HULL_HALF_X))
    z = wp.where((index & 4) != 0, float(HULL_OFFSET_Z + HULL_HALF_Z), float(HULL_OFFSET_Z - HULL_HALF_Z))
    return wp.vec3f(x, y, z)


@wp.func
def nearest_in_hull(local: wp.vec3f) -> wp.vec3f:
    """The point of the hull that is nearest to a place, both in the car's axes."""
    return wp.vec3f(
        wp.clamp(local[0], HULL_OFFSET_X - HULL_HALF_X, HULL_OFFSET_X + HULL_HALF_X),
        wp.clamp(local[1], -HULL_HALF_Y, HULL_HALF_Y),
        wp.clamp(local[2], HULL_OFFSET_Z - HULL_HALF_Z, HULL_OFFSET_Z + HULL_HALF_Z),
    )


@wp.func
def turned_by(m: wp.mat33f, torque: wp.vec3f) -> wp.vec3f:
    """Change of spin by an angular impulse over the car's mass, both in world axes; m has the car's axes as columns."""
    local = to_local(m, torque)
    return to_world(
        m, wp.vec3f(local[0] * (1.0 / INERTIA_ROLL), local[1] * (1.0 / INERTIA_PITCH), local[2] * (1.0 / INERTIA_YAW))
    )


@wp.func
def yielding(m: wp.mat33f, arm: wp.vec3f, direction: wp.vec3f) -> wp.float32:
    """Speed at the end of `arm` by an impulse of 1 there, over the car's mass: 1 + (r x d) I^-1 (r x d)."""
    lever = to_local(m, wp.cross(arm, direction))
    return 1.0 + (
        lever[0] * lever[0] * (1.0 / INERTIA_ROLL)
        + lever[1] * lever[1] * (1.0 / INERTIA_PITCH)
        + lever[2] * lever[2] * (1.0 / INERTIA_YAW)
    )


@wp.func
def row(m: Vectors, index: int) -> wp.vec3f:
    """A row of a matrix of vectors."""
    return wp.vec3f(m[index, 0], m[index, 1], m[index, 2])


@wp.func
def note_contact(touch: wp.ref[Touch], car: Car, index: int, arm: wp.vec3f, surface: wp.vec4f):
    """Enters a point of the hull into the contacts if the surface is near enough."""
    touch.push[index] = -1.0
    if surface[3] > CONTACT_MARGIN:
        return
    n = wp.vec3f(surface[0], surface[1], surface[2])
    touch.push[index] = 0.0
    touch.count += 1
    velocity = car.velocity + wp.cross(car.spin, arm)
    into = wp.dot(velocity, n)
    way = wp.normalize(velocity - n * into)
    for axis in range(3):
        touch.arms[index, axis] = arm[axis]
        touch.normals[index, axis] = n[axis]
        touch.ways[index, axis] = way[axis]
    approach = into - _FALL * n[2]  # restitution is of the velocity before this tick's gravity, as for the ball
    touch.target[index] = wp.where(approach < -CAR_BOUNCE_MIN, -CAR_WORLD_RESTITUTION * approach, 0.0)
    touch.depth[index] = -surface[3]
    touch.deepest = wp.max(touch.deepest, -surface[3])


@wp.func
def push_corner(touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, index: int) -> wp.vec3f:
    """Impulse out of the surface that one contact wants on top of what it has; over the car's mass."""
    impulse = wp.vec3f(0.0, 0.0, 0.0)
    if touch.push[index] >= 0.0:
        arm = row(touch.arms, index)
        n = row(touch.normals, index)
        wanted = touch.target[index] - wp.dot(motion.velocity + wp.cross(motion.spin, arm), n)
        before = touch.push[index]
        touch.push[index] = wp.max(before + wanted / yielding(m, arm, n), 0.0)
        impulse = n * (touch.push[index] - before)
    return impulse


@wp.func
def rub_corner(touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, index: int) -> wp.vec3f:
    """Friction that one contact wants on top of what it has: no slip, but within the Coulomb share of the push."""
    impulse = wp.vec3f(0.0, 0.0, 0.0)
    limit = CAR_WORLD_FRICTION * touch.push[index]
    if limit >= 0.0:
        arm = row(touch.arms, index)
        way = row(touch.ways, index)
        slip = wp.dot(motion.velocity + wp.cross(motion.spin, arm), way)
        before = touch.rub[index]
        touch.rub[index] = wp.clamp(before + slip / yielding(m, arm, way), -limit, limit)
        impulse = way * (before - touch.rub[index])
    return impulse


@wp.func
def near_goal_frame(p: wp.vec3f) -> bool:
    """Whether a hull here can reach a post or a bar."""
    y = wp.abs(wp.abs(p[1]) - BACK_Y)
    return y < 2.0 * HULL_REACH and wp.abs(p[0]) < GOAL_HALF_WIDTH + HULL_REACH and p[2] < GOAL_HEIGHT + HULL_REACH


@wp.func
def find_contacts(touch: wp.ref[Touch], car: Car, m: wp.mat33f):
    """Enters corners, and near a goal the point of the hull that is nearest to its frame."""
    for index in range(8):
        arm = to_world(m, hull_corner(index))
        note_contact(touch, car, index, arm, arena_distance(car.position + arm))
    touch.push[_FRAME] = -1.0
    touch.push[_FRAME + 1] = -1.0
    if near_goal_frame(car.position):
        # Nearest points of two convex bodies: project onto one and the other in turn.
        point = wp.vec3f(HULL_OFFSET_X, 0.0, HULL_OFFSET_Z)
        arm = to_world(m, point)
        surface = arena_distance(car.position + arm)
        for _ in range(_PROJECTIONS):
            way = wp.vec3f(surface[0], surface[1], surface[2]) * surface[3]
            point = nearest_in_hull(to_local(m, arm - way))
            arm = to_world(m, point)
            surface = arena_distance(car.position + arm)
        note_contact(touch, car, _FRAME, arm, surface)


@wp.func
def touch_arena(car: wp.ref[Car], m: wp.mat33f):
    """Resolves all contacts of a hull with the arena."""
    touch = Touch()
    find_contacts(touch, car, m)
    if touch.count == 0:
        return
    car.body_contact = 1
    if car.wheels == 0:
        normal = wp.vec3f(0.0, 0.0, 0.0)
        for pair in range(_CONTACTS / 2):
            normal = normal + (row(touch.normals, 2 * pair) + row(touch.normals, 2 * pair + 1))
        car.normal = wp.normalize(normal)
    motion = Motion()
    motion.velocity = car.velocity
    motion.spin = car.spin
    for _ in range(_ITERATIONS):
        push_all(touch, motion, m)
        rub_all(touch, motion, m)
    car.velocity = motion.velocity
    car.spin = motion.spin
    if touch.deepest > 0.0:
        leave_surface(car, touch, m)


@wp.func
def leave_surface(car: wp.ref[Car], touch: wp.ref[Touch], m: wp.mat33f):
    """Moves and turns the hull out of what it has entered; its velocity stays."""
    for index in range(_CONTACTS):
        touch.target[index] = CONTACT_RECOVERY * wp.max(touch.depth[index], 0.0)
        touch.push[index] = wp.min(touch.push[index], 0.0)
    way_out = Motion()
    for _ in range(_ITERATIONS):
        push_all(touch, way_out, m)
    car.position = car.position + way_out.velocity
    car.rotation = turn(car.rotation, way_out.spin, 1.0)


@wp.func
def push_all(touch: wp.ref[Touch], motion: wp.ref[Motion], m: wp.mat33f):
    """One round of impulses out of the surfaces."""
    for pair in range(_CONTACTS / 2):
        one = push_corner(touch, motion, m, 2 * pair)
        other = push_corner(touch, motion, m, 2 * pair + 1)
        shove(motion, m, one, row(touch.arms, 2 * pair), other, row(touch.arms, 2 * pair + 1))


@wp.func
def rub_all(touch: wp.ref[Touch], motion: wp.ref[Motion], m: wp.mat33f):
    """One round of friction."""
    for pair in range(_CONTACTS / 2):
        one = rub_corner(touch, motion, m, 2 * pair)
        other = rub_corner(touch, motion, m, 2 * pair + 1)
        shove(motion, m, one, row(touch.arms, 2 * pair), other, row(touch.arms, 2 * pair + 1))


@wp.func
def shove(motion: wp.ref[Motion], m: wp.mat33f, one: wp.vec3f, arm_one: wp.vec3f, other: wp.vec3f, arm_other: wp.vec3f):
    """Two impulses at once, over the car's mass."""
    motion.velocity = motion.velocity + (one + other)
    motion.spin = motion.spin + turned_by(m, wp.cross(arm_one, one) + wp.cross(arm_other, other))


@wp.func
def collide_body(car: wp.ref[Car]):
    """Keeps the hull out of the arena's surfaces; sets `body_contact`, and `normal` where no wheel has set it."""
    car.body_contact = 0
    m = axes(car.rotation)
    x = wp.abs(car.position[0])
    y = wp.abs(car.position[1])
    z = car.position[2]
    if x < _CLEAR_X and y < _CLEAR_Y and x + y < _CLEAR_SUM and z < _CLEAR_Z:
        reach = wp.abs(m[2, 0]) * HULL_HALF_X + wp.abs(m[2, 1]) * HULL_HALF_Y + wp.abs(m[2, 2]) * HULL_HALF_Z
        if z + m[2, 0] * HULL_OFFSET_X + m[2, 2] * HULL_OFFSET_Z - reach > CONTACT_MARGIN:
            return
    else:
        surface = arena_distance(car.position)
        if surface[3] > HULL_REACH + CONTACT_MARGIN:
            return
    touch_arena(car, m)
