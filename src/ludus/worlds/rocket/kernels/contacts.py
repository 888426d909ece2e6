"""Rigid contacts of a car's hull: with the arena, and with the ball (Warp functions).

The corners of the hull are tested against the arena. Near the goals' frames, the only edges that could enter between
corners, the point of the hull nearest to the frame is tested too. Impulses are found by Gauss-Seidel over pairs of a
left and a right corner, so that a car and its mirror image behave alike.

A hit of the ball is a rigid impulse on both, plus an extra impulse on the ball alone.
"""

import warp as wp

from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.arena import arena_distance
from ludus.worlds.rocket.kernels.maths import axes, column, line, to_local, to_world, turn
from ludus.worlds.rocket.kernels.structs import Ball, Car
from ludus.worlds.rocket.rules import HULL_HALF_X, HULL_HALF_Y, HULL_HALF_Z, HULL_OFFSET_X, HULL_OFFSET_Z, HULL_REACH

_FALL = const.GRAVITY * const.DT
_ROUNDS = 8
_ENOUGH = 0.2  # uu/s; rounds end when they change less
_NO_LIMIT = 1.0e9
_PROJECTIONS = 4
_CORNER_PAIRS = 4  # rear and front, low and high
_MOST_PAIRS = _CORNER_PAIRS + 1  # and the point that is nearest to a goal's frame
# Inside these a hull can only touch the floor.
_CLEAR = const.FLOOR_FILLET + HULL_REACH
_CLEAR_X, _CLEAR_Y = const.SIDE_X - _CLEAR, const.BACK_Y - _CLEAR
_CLEAR_SUM = const.CORNER_SUM - 1.5 * _CLEAR  # more than sqrt(2) because of the vertical fillets
_CLEAR_Z = const.CEILING_Z - const.CEILING_FILLET - HULL_REACH

_RATIO = const.CAR_MASS / const.BALL_MASS  # impulses here are over the car's mass
_ROUNDING = 2.0  # radius of the hull's edges as the ball feels them (measured: at edges and corners it touches later)
_MARGIN = 1.838  # they touch when they are nearer than this to each other (measured)
REACH = const.BALL_RADIUS + HULL_REACH + _MARGIN  # from one middle to the other; farther apart they do not touch
_INSIDE = 1.0e-3
# Where the middle of the ball lies below a car whose wheels stand on it.
_WHEELS_X, _WHEELS_REACH_X, _WHEELS_REACH_Y = 10.0, 22.0, 25.0
_EXTRA_TICKS = 2  # at most every second tick
_EXTRA_MAX_SPEED = 4600.0
_FLATTEN = 0.35  # share of the height that the direction of the extra impulse keeps
_FORWARD = 0.35  # share of its part along the car's nose that it loses


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
    firm: wp.float32  # effective mass 1 / (J M^-1 J^T): impulse that changes the speed along the way by 1
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
def motion_of(velocity: wp.vec3f, spin: wp.vec3f) -> Motion:
    """Return a velocity and a spin as a `Motion`."""
    motion = Motion()
    motion.velocity = velocity
    motion.spin = spin
    return motion


@wp.func
def hull_corner(end: float, side: float, top: float) -> wp.vec3f:
    """Return a corner of the hull in the car's axes: front (1) or rear (-1), left or right, high or low."""
    return wp.vec3f(HULL_OFFSET_X + end * HULL_HALF_X, side * HULL_HALF_Y, HULL_OFFSET_Z + top * HULL_HALF_Z)


@wp.func
def nearest_in_hull(local: wp.vec3f) -> wp.vec3f:
    """Return the point of the hull that is nearest to a place, both in the car's axes."""
    return wp.vec3f(
        wp.clamp(local[0], HULL_OFFSET_X - HULL_HALF_X, HULL_OFFSET_X + HULL_HALF_X),
        wp.clamp(local[1], -HULL_HALF_Y, HULL_HALF_Y),
        wp.clamp(local[2], HULL_OFFSET_Z - HULL_HALF_Z, HULL_OFFSET_Z + HULL_HALF_Z),
    )


@wp.func
def turned_by(m: wp.mat33f, torque: wp.vec3f) -> wp.vec3f:
    """Return the change of spin by an angular impulse over the mass, in world axes; m's columns are the car's axes."""
    local = to_local(m, torque)
    return to_world(
        m,
        wp.vec3f(
            local[0] * (1.0 / const.INERTIA_ROLL),
            local[1] * (1.0 / const.INERTIA_PITCH),
            local[2] * (1.0 / const.INERTIA_YAW),
        ),
    )


@wp.func
def yielding(m: wp.mat33f, arm: wp.vec3f, direction: wp.vec3f) -> float:
    """Return the speed at the end of `arm` by an impulse of 1 there, over the car's mass: 1 + (r x d) I^-1 (r x d)."""
    lever = to_local(m, wp.cross(arm, direction))
    return 1.0 + (
        lever[0] * lever[0] * (1.0 / const.INERTIA_ROLL)
        + lever[1] * lever[1] * (1.0 / const.INERTIA_PITCH)
        + lever[2] * lever[2] * (1.0 / const.INERTIA_YAW)
    )


@wp.func
def row_of(m: wp.mat33f, arm: wp.vec3f, way: wp.vec3f, target: float) -> Row:
    """Return an impulse along `way` at the end of `arm`."""
    row = Row()
    row.way = way
    row.lever = wp.cross(arm, way)
    row.turned = turned_by(m, row.lever)
    row.firm = 1.0 / (1.0 + wp.dot(row.lever, row.turned))
    row.target = target
    return row


@wp.func
def meet(hold: wp.ref[Hold], touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, arm: wp.vec3f, surface: wp.vec4f):
    """Add a point of the hull to the contacts if it touches."""
    if surface[3] > const.CONTACT_MARGIN:
        return
    n = wp.vec3f(surface[0], surface[1], surface[2])
    velocity = motion.velocity + wp.cross(motion.spin, arm)
    into = wp.dot(velocity, n)
    approach = into - _FALL * n[2]  # restitution is of the velocity before this tick's gravity, as for the ball
    bounce = wp.where(approach < -const.CAR_BOUNCE_MIN, -const.CAR_WORLD_RESTITUTION * approach, 0.0)
    hold.depth = -surface[3]
    hold.push = row_of(m, arm, n, bounce)
    hold.rub = row_of(m, arm, wp.normalize(velocity - n * into), 0.0)
    touch.deepest = wp.max(touch.deepest, -surface[3])


@wp.func
def wanted(row: wp.ref[Row], motion: Motion, low: float, high: float) -> float:
    """Update an impulse toward its target speed, clamping its sum to the limits; return the change."""
    # Projected Gauss-Seidel: sum' = clamp(sum + (target - J v) / (J M^-1 J^T), low, high), with J = (way, lever).
    speed = wp.dot(row.way, motion.velocity) + wp.dot(row.lever, motion.spin)
    before = row.sum
    row.sum = wp.clamp(before + (row.target - speed) * row.firm, low, high)
    return row.sum - before


@wp.func
def push_pair(pair: wp.ref[Pair], motion: wp.ref[Motion]) -> float:
    """Apply the impulses of a pair out of the surface, both at once; return how much they changed."""
    one = wanted(pair.left.push, motion, 0.0, _NO_LIMIT)
    other = wanted(pair.right.push, motion, 0.0, _NO_LIMIT)
    motion.velocity = motion.velocity + (pair.left.push.way * one + pair.right.push.way * other)
    motion.spin = motion.spin + (pair.left.push.turned * one + pair.right.push.turned * other)
    return wp.abs(one) + wp.abs(other)


@wp.func
def rub_pair(pair: wp.ref[Pair], motion: wp.ref[Motion]) -> float:
    """Apply the friction of a pair, each within mu times its push; return how much it changed."""
    limit = const.CAR_WORLD_FRICTION * pair.left.push.sum
    one = wanted(pair.left.rub, motion, -limit, limit)
    limit = const.CAR_WORLD_FRICTION * pair.right.push.sum
    other = wanted(pair.right.rub, motion, -limit, limit)
    motion.velocity = motion.velocity + (pair.left.rub.way * one + pair.right.rub.way * other)
    motion.spin = motion.spin + (pair.left.rub.turned * one + pair.right.rub.turned * other)
    return wp.abs(one) + wp.abs(other)


@wp.func
def push_all(pairs: wp.array[Pair], count: int, motion: wp.ref[Motion]) -> float:
    """Run one round of impulses out of the surfaces; return how much it changed."""
    change = float(0.0)
    for index in range(count):
        change += push_pair(pairs[index], motion)
    return change


@wp.func
def rub_all(pairs: wp.array[Pair], count: int, motion: wp.ref[Motion]) -> float:
    """Run one round of friction; return how much it changed."""
    change = float(0.0)
    for index in range(count):
        change += rub_pair(pairs[index], motion)
    return change


@wp.func
def near_goal_frame(p: wp.vec3f) -> bool:
    """Return whether a hull here can reach a post or a bar."""
    y = wp.abs(wp.abs(p[1]) - const.BACK_Y)
    return (
        y < 2.0 * HULL_REACH
        and wp.abs(p[0]) < const.GOAL_HALF_WIDTH + HULL_REACH
        and p[2] < const.GOAL_HEIGHT + HULL_REACH
    )


@wp.func
def surface_at(p: wp.vec3f, is_floor: bool) -> wp.vec4f:
    """Return the arena at a place; `is_floor` where there is nothing but the floor."""
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
    """Add a left and a right point of the hull, given by their arms and the surfaces there."""
    meet(pair.left, touch, motion, m, left, below_left)
    meet(pair.right, touch, motion, m, right, below_right)
    touch.normal = touch.normal + (pair.left.push.way + pair.right.push.way)
    touch.pairs += 1


@wp.func
def meet_frame(pairs: wp.array[Pair], touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, position: wp.vec3f):
    """Add the point of the hull nearest to a goal's frame, as a pair without its right one.

    Nearest points of two convex bodies are found by projecting onto one and the other in turn.
    """
    arm = to_world(m, wp.vec3f(HULL_OFFSET_X, 0.0, HULL_OFFSET_Z))
    surface = arena_distance(position + arm)
    for _ in range(_PROJECTIONS):
        way = wp.vec3f(surface[0], surface[1], surface[2]) * surface[3]
        arm = to_world(m, nearest_in_hull(to_local(m, arm - way)))
        surface = arena_distance(position + arm)
    if surface[3] <= const.CONTACT_MARGIN:
        nothing = wp.vec4f(0.0, 0.0, 0.0, _NO_LIMIT)
        meet_pair(pairs[touch.pairs], touch, motion, m, arm, surface, arm, nothing)


@wp.func
def find_contacts(
    pairs: wp.array[Pair], touch: wp.ref[Touch], motion: Motion, m: wp.mat33f, position: wp.vec3f, is_floor: bool
):
    """Add all points of the hull that touch: corners from rear to front, low before high, then goal frames."""
    for corners in range(_CORNER_PAIRS):
        end = wp.where(corners < 2, -1.0, 1.0)
        top = wp.where(corners % 2 == 0, -1.0, 1.0)
        left = to_world(m, hull_corner(end, 1.0, top))
        right = to_world(m, hull_corner(end, -1.0, top))
        below_left = surface_at(position + left, is_floor)
        below_right = surface_at(position + right, is_floor)
        if wp.min(below_left[3], below_right[3]) <= const.CONTACT_MARGIN:
            meet_pair(pairs[touch.pairs], touch, motion, m, left, below_left, right, below_right)
    if not is_floor and near_goal_frame(position):
        meet_frame(pairs, touch, motion, m, position)


@wp.func
def touch_arena(car: wp.ref[Car], m: wp.mat33f, is_floor: bool):
    """Resolve all contacts of a hull with the arena."""
    pairs = wp.zeros(shape=(_MOST_PAIRS,), dtype=Pair)
    touch = Touch()
    motion = motion_of(car.velocity, car.spin)
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
    """Retarget the pushes of a pair to move the hull out of the surface instead of changing its velocity."""
    pair.left.push.target = const.CONTACT_RECOVERY * wp.max(pair.left.depth, 0.0)
    pair.left.push.sum = 0.0
    pair.right.push.target = const.CONTACT_RECOVERY * wp.max(pair.right.depth, 0.0)
    pair.right.push.sum = 0.0


@wp.func
def leave_surface(car: wp.ref[Car], pairs: wp.array[Pair], count: int):
    """Move and turn the hull out of what it has entered; its velocity stays."""
    # Split impulses: the same solver finds a displacement, so that resolving a penetration adds no energy.
    for index in range(count):
        aim_out(pairs[index])
    way_out = Motion()
    for _ in range(_ROUNDS):
        change = push_all(pairs, count, way_out)
        if change < _ENOUGH * const.DT:
            break
    car.position = car.position + way_out.velocity
    car.rotation = turn(car.rotation, way_out.spin, 1.0)


@wp.func
def collide_body(car: wp.ref[Car]):
    """Keep the hull out of the arena's surfaces; set `body_contact`, and `normal` where no wheel has set it."""
    car.body_contact = 0
    m = axes(car.rotation)
    x = wp.abs(car.position[0])
    y = wp.abs(car.position[1])
    z = car.position[2]
    is_floor = x < _CLEAR_X and y < _CLEAR_Y and x + y < _CLEAR_SUM and z < _CLEAR_Z
    if is_floor:
        reach = wp.abs(m[2, 0]) * HULL_HALF_X + wp.abs(m[2, 1]) * HULL_HALF_Y + wp.abs(m[2, 2]) * HULL_HALF_Z
        if z + m[2, 0] * HULL_OFFSET_X + m[2, 2] * HULL_OFFSET_Z - reach > const.CONTACT_MARGIN:
            return
    else:
        surface = arena_distance(car.position)
        if surface[3] > HULL_REACH + const.CONTACT_MARGIN:
            return
    touch_arena(car, m, is_floor)


@wp.func
def nearest_in_core(local: wp.vec3f) -> wp.vec3f:
    """Return the point of the hull without its rounding that is nearest to a place, both in the car's axes."""
    return wp.vec3f(
        wp.clamp(local[0], HULL_OFFSET_X - HULL_HALF_X + _ROUNDING, HULL_OFFSET_X + HULL_HALF_X - _ROUNDING),
        wp.clamp(local[1], _ROUNDING - HULL_HALF_Y, HULL_HALF_Y - _ROUNDING),
        wp.clamp(local[2], HULL_OFFSET_Z - HULL_HALF_Z + _ROUNDING, HULL_OFFSET_Z + HULL_HALF_Z - _ROUNDING),
    )


@wp.func
def stands_on_ball(local: wp.vec3f) -> bool:
    """Return whether three or more wheels touch a ball at the hull, given its middle in the car's axes (measured)."""
    return local[2] < 0.0 and wp.abs(local[0] - _WHEELS_X) < _WHEELS_REACH_X and wp.abs(local[1]) < _WHEELS_REACH_Y


@wp.func
def give_back_jump(car: wp.ref[Car]):
    """Restore the second jump or dodge of a car in the air, as if its wheels had touched the ground."""
    car.jumped = 0
    car.double_jumped = 0
    car.dodged = 0
    car.dodging = 0


@wp.func
def extra_factor(speed: float) -> float:
    """Return the share of the relative speed that the extra impulse gives the ball."""
    if speed < 2300.0:
        return line(speed, 500.0, 0.65, 2300.0, 0.55)
    return line(speed, 2300.0, 0.55, 4600.0, 0.30)


@wp.func
def extra_impulse(away: wp.vec3f, forward: wp.vec3f, relative: wp.vec3f) -> wp.vec3f:
    """Return the change of the ball's velocity that is not physics: along a flattened line from the car to the ball."""
    way = wp.normalize(wp.vec3f(away[0], away[1], away[2] * _FLATTEN))
    way = wp.normalize(way - forward * (_FORWARD * wp.dot(way, forward)))
    speed = wp.min(wp.length(relative), _EXTRA_MAX_SPEED)
    return way * (speed * extra_factor(speed))


@wp.func
def miss_ball(car: wp.ref[Car]):
    """Record that a car does not touch the ball in this tick, and count `hit_ticks`."""
    car.hit_ticks = wp.min(car.hit_ticks + 1, 8)
    car.touching_ball = 0


@wp.func
def hit_ball(car: wp.ref[Car], ball: wp.ref[Ball]) -> wp.vec3f:
    """Collide a car with the ball: both velocities change at once; return the extra impulse, 0 if there is none.

    The extra impulse is a change of the ball's velocity, to be added at the end of the tick. Sets `car.touching_ball`
    to whether they touch in this tick, and counts `car.hit_ticks`.
    """
    none = wp.vec3f(0.0, 0.0, 0.0)
    miss_ball(car)
    away = ball.position - car.position
    if wp.dot(away, away) > REACH * REACH:
        return none
    m = axes(car.rotation)
    local = to_local(m, away)
    nearest = nearest_in_core(local)
    between = local - nearest
    distance = wp.length(between)
    gap = distance - (const.BALL_RADIUS + _ROUNDING)
    if gap > _MARGIN:
        return none
    n = to_world(m, between / distance)
    if distance < _INSIDE:  # the ball's centre is in the hull: out through the roof, whatever happened
        n = column(m, 2)
    relative = ball.velocity - car.velocity
    arm = to_world(m, nearest) + n * _ROUNDING
    collide_sphere(car, ball, m, arm, n)
    if gap < 0.0:
        leave_ball(car, ball, m, arm, n, gap)
    car.touching_ball = 1
    ball.asleep = 0
    if stands_on_ball(local) and car.wheels == 0:
        give_back_jump(car)
    if car.hit_ticks < _EXTRA_TICKS:
        return none
    car.hit_ticks = 0
    return extra_impulse(away, column(m, 0), relative)


@wp.func
def collide_sphere(car: wp.ref[Car], ball: wp.ref[Ball], m: wp.mat33f, arm: wp.vec3f, n: wp.vec3f):
    """Inelastic impulse with Coulomb friction between the hull at `arm` and the ball, n from the hull to the ball.

    Normal and friction impulse act on each other through the car's spin: with the response k of the relative velocity
    to impulses along n and along the slip, either both velocities vanish (sticking), or the friction is at its limit.
    """
    slip = ball.velocity - wp.cross(ball.spin, n) * const.BALL_RADIUS - car.velocity - wp.cross(car.spin, arm)
    into = wp.dot(slip, n)
    if into >= 0.0:
        return
    slip = slip - n * into
    speed = wp.length(slip)
    way = wp.normalize(slip)
    turned = turned_by(m, wp.cross(arm, way))
    k_nn = _RATIO + yielding(m, arm, n)
    k_ww = 3.5 * _RATIO + yielding(m, arm, way)  # the ball's own spin: 1 + 5/2
    k_nw = wp.dot(wp.cross(turned, arm), n)
    determinant = k_nn * k_ww - k_nw * k_nw
    push = (speed * k_nw - into * k_ww) / determinant
    rub = (into * k_nw - speed * k_nn) / determinant
    if rub < -const.CAR_BALL_FRICTION * push:
        push = -into / (k_nn - const.CAR_BALL_FRICTION * k_nw)
        rub = -const.CAR_BALL_FRICTION * push
    impulse = n * push + way * rub
    ball.velocity = ball.velocity + impulse * _RATIO
    ball.spin = ball.spin - wp.cross(n, impulse) * (2.5 * _RATIO / const.BALL_RADIUS)
    car.velocity = car.velocity - impulse
    car.spin = car.spin - turned_by(m, wp.cross(arm, impulse))


@wp.func
def leave_ball(car: wp.ref[Car], ball: wp.ref[Ball], m: wp.mat33f, arm: wp.vec3f, n: wp.vec3f, gap: float):
    """Move car and ball apart by most of their penetration; velocities stay."""
    impulse = n * (-const.CONTACT_RECOVERY * gap / (_RATIO + yielding(m, arm, n)))
    ball.position = ball.position + impulse * _RATIO
    car.position = car.position - impulse
    car.rotation = turn(car.rotation, -turned_by(m, wp.cross(arm, impulse)), 1.0)
