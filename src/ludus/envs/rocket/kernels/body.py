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
_ROUNDS = 8
_ENOUGH = 0.2  # uu/s; rounds end when they change less
_NO_LIMIT = 1.0e9
_PROJECTIONS = 4
_CORNER_PAIRS = 4  # rear and front, low and high
_MOST_PAIRS = _CORNER_PAIRS + 1  # and the point that is nearest to a goal's frame
# Inside these a hull can only touch the floor.
_CLEAR = FLOOR_FILLET + HULL_REACH
_CLEAR_X = SIDE_X - _CLEAR
_CLEAR_Y = BACK_Y - _CLEAR
_CLEAR_SUM = CORNER_SUM - 1.5 * _CLEAR  # more than sqrt(2) because of the vertical fillets
_CLEAR_Z = CEILING_Z - CEILING_FILLET - HULL_REACH


@wp.struct
class Motion:
    """Velocity and spin of a body; or, to move it out of a surface, a way and a turn."""

    velocity: wp.vec3f
    spin: wp.vec3f


@wp.struct
class Row:
    """An impulse at a contact; impulses are over the car's mass."""

    way: wp.vec3f  # its direction
    lever: wp.vec3f  # arm x direction
    turned: wp.vec3f  # change of spin by an impulse of 1
    firm: wp.float32  # impulse that changes the speed along the way by 1
    target: wp.float32  # that speed as it is to be
    sum: wp.float32  # impulse so far


@wp.struct
class Hold:
    """A point of the hull that touches the arena; all 0 if it does not."""

    depth: wp.float32  # negative if it is still outside, but near enough
    push: Row  # out of the surface
    rub: Row  # friction along the first slip


@wp.struct
class Pair:
    """A left and a right corner."""

    left: Hold
    right: Hold


@wp.struct
class Touch:
    """What the contacts of a hull with the arena add up to."""

    pairs: wp.int32  # pairs with a contact
    deepest: wp.float32
    normal: wp.vec3f  # sum over the contacts


@wp.func
def hull_corner(end: wp.float32, side: wp.float32, top: wp.float32) -> wp.vec3f:
    """A corner of the hull in the car's axes: front (1) or rear (-1), left or right, high or low."""
    return wp.vec3f(HULL_OFFSET_X + end * HULL_HALF_X, side * HULL_HALF_Y, HULL_OFFSET_Z + top * HULL_HALF_Z)


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
def row_of(m: wp.mat33f, arm: wp.vec3f, way: wp.vec3f, target: wp.float32) -> Row:
    """An impulse along `way` at the end of `arm`."""
    row = Row()
    row.way = way
    row.lever = wp.cross(arm, way)
    row.turned = turned_by(m, row.lever)
    row.firm = 1.0 / (1.0 + wp.dot(row.lever, row.turned))
    row.target = target
    return row


@wp.func
def meet(hold: wp.ref[Hold], touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, arm: wp.vec3f, surface: wp.vec4f):
    """Enters a point of the hull into the contacts if it touches."""
    if surface[3] > CONTACT_MARGIN:
        return
    n = wp.vec3f(surface[0], surface[1], surface[2])
    velocity = motion.velocity + wp.cross(motion.spin, arm)
    into = wp.dot(velocity, n)
    approach = into - _FALL * n[2]  # restitution is of the velocity before this tick's gravity, as for the ball
    bounce = wp.where(approach < -CAR_BOUNCE_MIN, -CAR_WORLD_RESTITUTION * approach, 0.0)
    hold.depth = -surface[3]
    hold.push = row_of(m, arm, n, bounce)
    hold.rub = row_of(m, arm, wp.normalize(velocity - n * into), 0.0)
    touch.deepest = wp.max(touch.deepest, -surface[3])


@wp.func
def wanted(row: wp.ref[Row], motion: Motion, low: wp.float32, high: wp.float32) -> wp.float32:
    """What an impulse changes by to reach its speed, while its sum stays within the limits; enters it."""
    speed = wp.dot(row.way, motion.velocity) + wp.dot(row.lever, motion.spin)
    before = row.sum
    row.sum = wp.clamp(before + (row.target - speed) * row.firm, low, high)
    return row.sum - before


@wp.func
def push_pair(pair: wp.ref[Pair], motion: wp.ref[Motion]) -> wp.float32:
    """Impulses of a pair out of the surface, both at once; returns how much they changed."""
    one = wanted(pair.left.push, motion, 0.0, _NO_LIMIT)
    other = wanted(pair.right.push, motion, 0.0, _NO_LIMIT)
    motion.velocity = motion.velocity + (pair.left.push.way * one + pair.right.push.way * other)
    motion.spin = motion.spin + (pair.left.push.turned * one + pair.right.push.turned * other)
    return wp.abs(one) + wp.abs(other)


@wp.func
def rub_pair(pair: wp.ref[Pair], motion: wp.ref[Motion]) -> wp.float32:
    """Friction of a pair, each within the Coulomb share of its push; returns how much it changed."""
    limit = CAR_WORLD_FRICTION * pair.left.push.sum
    one = wanted(pair.left.rub, motion, -limit, limit)
    limit = CAR_WORLD_FRICTION * pair.right.push.sum
    other = wanted(pair.right.rub, motion, -limit, limit)
    motion.velocity = motion.velocity + (pair.left.rub.way * one + pair.right.rub.way * other)
    motion.spin = motion.spin + (pair.left.rub.turned * one + pair.right.rub.turned * other)
    return wp.abs(one) + wp.abs(other)


@wp.func
def push_all(pairs: wp.array[Pair], count: wp.int32, motion: wp.ref[Motion]) -> wp.float32:
    """One round of impulses out of the surfaces; returns how much it changed."""
    change = float(0.0)
    for index in range(count):
        change += push_pair(pairs[index], motion)
    return change


@wp.func
def rub_all(pairs: wp.array[Pair], count: wp.int32, motion: wp.ref[Motion]) -> wp.float32:
    """One round of friction; returns how much it changed."""
    change = float(0.0)
    for index in range(count):
        change += rub_pair(pairs[index], motion)
    return change


@wp.func
def near_goal_frame(p: wp.vec3f) -> bool:
    """Whether a hull here can reach a post or a bar."""
    y = wp.abs(wp.abs(p[1]) - BACK_Y)
    return y < 2.0 * HULL_REACH and wp.abs(p[0]) < GOAL_HALF_WIDTH + HULL_REACH and p[2] < GOAL_HEIGHT + HULL_REACH


@wp.func
def surface_at(p: wp.vec3f, is_floor: bool) -> wp.vec4f:
    """The arena at a place; `is_floor` where there is nothing but the floor."""
    if is_floor:
        return wp.vec4f(0.0, 0.0, 1.0, p[2])
    return arena_distance(p)


@wp.func
def meet_pair(
    pair: wp.ref[Pair],
    touch: wp.ref[Touch],
    motion: Motion,
    m: wp.mat33f,
    left: wp.vec3f,
    below_left: wp.vec4f,
    right: wp.vec3f,
    below_right: wp.vec4f,
):
    """Enters a left and a right point of the hull, given by their arms and the surfaces there."""
    meet(pair.left, touch, motion, m, left, below_left)
    meet(pair.right, touch, motion, m, right, below_right)
    touch.normal = touch.normal + (pair.left.push.way + pair.right.push.way)
    touch.pairs += 1


@wp.func
def meet_frame(pairs: wp.array[Pair], touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, position: wp.vec3f):
    """Enters the point of the hull that is nearest to a goal's frame, as a pair without its right one.

    Nearest points of two convex bodies are found by projecting onto one and the other in turn.
    """
    arm = to_world(m, wp.vec3f(HULL_OFFSET_X, 0.0, HULL_OFFSET_Z))
    surface = arena_distance(position + arm)
    for _ in range(_PROJECTIONS):
        way = wp.vec3f(surface[0], surface[1], surface[2]) * surface[3]
        arm = to_world(m, nearest_in_hull(to_local(m, arm - way)))
        surface = arena_distance(position + arm)
    if surface[3] <= CONTACT_MARGIN:
        nothing = wp.vec4f(0.0, 0.0, 0.0, _NO_LIMIT)
        meet_pair(pairs[touch.pairs], touch, motion, m, arm, surface, arm, nothing)


@wp.func
def find_contacts(
    pairs: wp.array[Pair], touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, position: wp.vec3f, is_floor: bool
):
    """Enters all points of the hull that touch: the corners from rear to front, low before high, and goals' frames."""
    for corners in range(_CORNER_PAIRS):
        end = wp.where(corners < 2, -1.0, 1.0)
        top = wp.where(corners % 2 == 0, -1.0, 1.0)
        left = to_world(m, hull_corner(end, 1.0, top))
        right = to_world(m, hull_corner(end, -1.0, top))
        below_left = surface_at(position + left, is_floor)
        below_right = surface_at(position + right, is_floor)
        if wp.min(below_left[3], below_right[3]) <= CONTACT_MARGIN:
            meet_pair(pairs[touch.pairs], touch, motion, m, left, below_left, right, below_right)
    if not is_floor and near_goal_frame(position):
        meet_frame(pairs, touch, motion, m, position)


@wp.func
def touch_arena(car: wp.ref[Car], m: wp.mat33f, is_floor: bool):
    """Resolves all contacts of a hull with the arena."""
    pairs = wp.zeros(shape=(_MOST_PAIRS,), dtype=Pair)
    touch = Touch()
    motion = Motion()
    motion.velocity = car.velocity
    motion.spin = car.spin
    find_contacts(pairs, touch, motion, m, car.position, is_floor)
    if touch.pairs == 0:
        return
    car.body_contact = 1
    if car.wheels == 0:
        car.normal = wp.normalize(touch.normal)
    for _ in range(_ROUNDS):
        change = push_all(pairs, touch.pairs, motion) + rub_all(pairs, touch.pairs, motion)
        if change < _ENOUGH:
            break
    car.velocity = motion.velocity
    car.spin = motion.spin
    if touch.deepest > 0.0:
        leave_surface(car, pairs, touch.pairs)


@wp.func
def aim_out(pair: wp.ref[Pair]):
    """Lets the pushes of a pair move the hull out of the surface instead of changing its velocity."""
    pair.left.push.target = CONTACT_RECOVERY * wp.max(pair.left.depth, 0.0)
    pair.left.push.sum = 0.0
    pair.right.push.target = CONTACT_RECOVERY * wp.max(pair.right.depth, 0.0)
    pair.right.push.sum = 0.0


@wp.func
def leave_surface(car: wp.ref[Car], pairs: wp.array[Pair], count: wp.int32):
    """Moves and turns the hull out of what it has entered; its velocity stays."""
    for index in range(count):
        aim_out(pairs[index])
    way_out = Motion()
    for _ in range(_ROUNDS):
        change = push_all(pairs, count, way_out)
        if change < _ENOUGH * DT:
            break
    car.position = car.position + way_out.velocity
    car.rotation = turn(car.rotation, way_out.spin, 1.0)


@wp.func
def collide_body(car: wp.ref[Car]):
    """Keeps the hull out of the arena's surfaces; sets `body_contact`, and `normal` where no wheel has set it."""
    car.body_contact = 0
    m = axes(car.rotation)
    x = wp.abs(car.position[0])
    y = wp.abs(car.position[1])
    z = car.position[2]
    is_floor = x < _CLEAR_X and y < _CLEAR_Y and x + y < _CLEAR_SUM and z < _CLEAR_Z
    if is_floor:
        reach = wp.abs(m[2, 0]) * HULL_HALF_X + wp.abs(m[2, 1]) * HULL_HALF_Y + wp.abs(m[2, 2]) * HULL_HALF_Z
        if z + m[2, 0] * HULL_OFFSET_X + m[2, 2] * HULL_OFFSET_Z - reach > CONTACT_MARGIN:
            return
    else:
        surface = arena_distance(car.position)
        if surface[3] > HULL_REACH + CONTACT_MARGIN:
            return
    touch_arena(car, m, is_floor)
