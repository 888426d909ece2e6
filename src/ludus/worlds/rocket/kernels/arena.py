"""The arena as a signed distance function: planes, fillets and goals, no mesh (Warp functions).

All surfaces are level sets of two exact planar distances, which makes the result an exact distance: `h`, the distance
to the outline of the field seen from above (walls, 45-degree corners, vertical fillets), and the distance to the
rounded profile in the plane of `h` and z. The goals are cut out of that.

Wheels see the ramps between floor and walls as eight flat facets, not as an arc. A car that drives up a smooth arc at
1410 uu/s reaches z 264 with 1294 uu/s; measured, it has 1192 left. An arc of eight chords gives 1191: at each edge the
springs bounce, which costs speed.
"""

import math

import warp as wp

from ludus.worlds.rocket import rules as const
from ludus.worlds.rocket.kernels.maths import sin_cos

_HALF_ROOT = math.sqrt(0.5)
# Axes of the vertical fillets: one radius from a wall and from the corner plane.
_SIDE_AXIS_X = const.SIDE_X - const.CORNER_FILLET
_SIDE_AXIS_Y = const.CORNER_SUM - const.CORNER_FILLET * math.sqrt(2.0) - _SIDE_AXIS_X
_BACK_AXIS_Y = const.BACK_Y - const.CORNER_FILLET
_BACK_AXIS_X = const.CORNER_SUM - const.CORNER_FILLET * math.sqrt(2.0) - _BACK_AXIS_Y
_FILLET_STEP = const.FLOOR_FILLET - const.BACK_FILLET

# Inside a goal, in the plane of |y| and z: an arc at the back, and the straight lines that touch it from the ends of
# the flat ceiling and of the flat floor.
_ARC_Y, _ARC_Z, _ARC_RADIUS = 5760.0, 256.0, 240.0
_FLAT_CEILING_Y, _FLAT_FLOOR_Y = 5344.0, 5355.0
_DEEP = 200.0  # nothing gets deeper into a goal's sides
_EDGE_RADIUS = 96.0  # of the vertical edges at the back
_EDGE_X = const.GOAL_HALF_WIDTH - _EDGE_RADIUS
_EDGE_Y = _ARC_Y + _ARC_RADIUS - _EDGE_RADIUS

FACETS = 8
_STEP = 0.5 * math.pi / FACETS
_CHORD = math.cos(0.5 * _STEP)  # distance of a chord from the arc's centre, over the radius
_EDGE_1, _EDGE_2, _EDGE_3, _EDGE_4, _EDGE_5, _EDGE_6, _EDGE_7 = (math.cos(_STEP * edge) for edge in range(1, FACETS))


def _touching(y: float, z: float, side: float) -> float:
    """Return the angle of the line from (y, z) that touches the arc, above it (side 1) or below it (side -1)."""
    to_y, to_z = _ARC_Y - y, _ARC_Z - z
    return math.atan2(to_z, to_y) + side * math.asin(_ARC_RADIUS / math.hypot(to_y, to_z))


_CEILING_ANGLE = _touching(_FLAT_CEILING_Y, const.GOAL_HEIGHT, 1.0)
_FLOOR_ANGLE = _touching(_FLAT_FLOOR_Y, 0.0, -1.0)
_CEILING_NY, _CEILING_NZ = math.sin(_CEILING_ANGLE), -math.cos(_CEILING_ANGLE)  # normals into free space
_FLOOR_NY, _FLOOR_NZ = -math.sin(_FLOOR_ANGLE), math.cos(_FLOOR_ANGLE)


@wp.func
def outline(x: float, y: float) -> wp.vec4f:
    """Return normal (x, y) and distance of the walls of the field seen from above, for x, y >= 0.

    Last comes how far around the back vertical fillet the place is: 0 at and along the back wall, 1 at the corner plane
    and everywhere else.
    """
    side = const.SIDE_X - x
    back = const.BACK_Y - y
    corner = (const.CORNER_SUM - x - y) * _HALF_ROOT
    dx = x - _SIDE_AXIS_X
    dy = y - _SIDE_AXIS_Y
    if dy > 0.0 and dx > dy:
        length = wp.sqrt(dx * dx + dy * dy)
        return wp.vec4f(-dx / length, -dy / length, const.CORNER_FILLET - length, 1.0)
    dx = x - _BACK_AXIS_X
    dy = y - _BACK_AXIS_Y
    if dx > 0.0 and dy > dx:
        length = wp.sqrt(dx * dx + dy * dy)
        return wp.vec4f(-dx / length, -dy / length, const.CORNER_FILLET - length, dx / dy)
    if side < back and side < corner:
        return wp.vec4f(-1.0, 0.0, side, 1.0)
    if back < corner:
        return wp.vec4f(0.0, -1.0, back, 0.0)
    return wp.vec4f(-_HALF_ROOT, -_HALF_ROOT, corner, 1.0)


@wp.func
def field_distance(x: float, y: float, z: float) -> wp.vec4f:
    """Return the normal and distance of the field without its goals, for x, y >= 0."""
    wall = outline(x, y)
    h = wall[2]
    top = const.CEILING_Z - z
    radius = const.BACK_FILLET + _FILLET_STEP * wall[3]
    if h < radius and z < radius:
        across = radius - h
        down = radius - z
        length = wp.sqrt(across * across + down * down)
        n_h = across / length
        n_z = down / length
        if wall[3] > 0.0 and wall[3] < 1.0:
            return blended_fillet(x, y, wall, radius - length, n_h, n_z)
        return wp.vec4f(wall[0] * n_h, wall[1] * n_h, n_z, radius - length)
    if h < const.CEILING_FILLET and top < const.CEILING_FILLET:
        across = const.CEILING_FILLET - h
        up = const.CEILING_FILLET - top
        length = wp.sqrt(across * across + up * up)
        n_h = across / length
        return wp.vec4f(wall[0] * n_h, wall[1] * n_h, -up / length, const.CEILING_FILLET - length)
    if z < h and z < top:
        return wp.vec4f(0.0, 0.0, 1.0, z)
    if top < h:
        return wp.vec4f(0.0, 0.0, -1.0, top)
    return wp.vec4f(wall[0], wall[1], 0.0, h)


@wp.func
def blended_fillet(x: float, y: float, wall: wp.vec4f, distance: float, n_h: float, n_z: float) -> wp.vec4f:
    """Return the floor's fillet where its radius goes from that of the back wall to that of the corner.

    The radius r changes along the wall, so the gradient of r - |(r - h, r - z)| has a part along it:
    (1 - n_h - n_z) grad r. The distance over the length of the gradient is exact to first order at the surface.
    """
    dx = x - _BACK_AXIS_X
    dy = y - _BACK_AXIS_Y
    along = (1.0 - n_h - n_z) * _FILLET_STEP / dy
    gx = wall[0] * n_h + along
    gy = wall[1] * n_h - along * dx / dy
    inverse = 1.0 / wp.sqrt(gx * gx + gy * gy + n_z * n_z)
    return wp.vec4f(gx * inverse, gy * inverse, n_z * inverse, distance * inverse)


@wp.func
def nearer(a: wp.vec4f, b: wp.vec4f) -> wp.vec4f:
    """Return the nearer of two surfaces."""
    if b[3] < a[3]:
        return b
    return a


@wp.func
def goal_room(x: float, y: float, z: float) -> wp.vec4f:
    """Return the normal and distance of the surfaces inside a goal (without the flat floor), for x, y >= 0."""
    best = nearer(wp.vec4f(-1.0, 0.0, 0.0, const.GOAL_HALF_WIDTH - x), wp.vec4f(0.0, 0.0, -1.0, const.GOAL_HEIGHT - z))
    beside = x - const.GOAL_HALF_WIDTH
    above = z - const.GOAL_HEIGHT
    if beside > 0.0 and above > 0.0:
        length = wp.sqrt(beside * beside + above * above)
        best = wp.vec4f(-beside / length, 0.0, -above / length, -length)
    if y > const.BACK_Y + const.GOAL_CHAMFER:
        flat_y = y - _FLAT_CEILING_Y
        sloped = flat_y * _CEILING_NY + (z - const.GOAL_HEIGHT) * _CEILING_NZ
        best = nearer(best, wp.vec4f(0.0, _CEILING_NY, _CEILING_NZ, sloped))
        sloped = (y - _FLAT_FLOOR_Y) * _FLOOR_NY + z * _FLOOR_NZ
        best = nearer(best, wp.vec4f(0.0, _FLOOR_NY, _FLOOR_NZ, sloped))
        dy = y - _ARC_Y
        dz = z - _ARC_Z
        in_arc = dy * _CEILING_NZ - dz * _CEILING_NY < 0.0 and dy * _FLOOR_NZ - dz * _FLOOR_NY > 0.0
        if in_arc:
            length = wp.sqrt(dy * dy + dz * dz)
            best = nearer(best, wp.vec4f(0.0, -dy / length, -dz / length, _ARC_RADIUS - length))
        dx = x - _EDGE_X
        dy = y - _EDGE_Y
        if dx > 0.0 and dy > 0.0:
            length = wp.sqrt(dx * dx + dy * dy)
            best = nearer(best, wp.vec4f(-dx / length, -dy / length, 0.0, _EDGE_RADIUS - length))
    return best


@wp.func
def around_edge(a: wp.vec4f, b: wp.vec4f) -> wp.vec4f:
    """Join two free spaces whose surfaces meet at a right angle in an edge with a chamfer.

    In the plane of the distances a and b the solid is a <= 0, b <= 0, a + b <= -chamfer: a convex corner with two
    vertices, whose distance is that to a face or to a vertex, whichever the place is in front of.
    """
    m = a[3]
    w = b[3]
    beyond = m - w
    if beyond > const.GOAL_CHAMFER:
        low = w + const.GOAL_CHAMFER
        if low <= 0.0 or m <= 0.0:
            return a
        length = wp.sqrt(m * m + low * low)
        n = (a * m + b * low) / length
        return wp.vec4f(n[0], n[1], n[2], length)
    if beyond < -const.GOAL_CHAMFER:
        low = m + const.GOAL_CHAMFER
        if low <= 0.0 or w <= 0.0:
            return b
        length = wp.sqrt(low * low + w * w)
        n = (a * low + b * w) / length
        return wp.vec4f(n[0], n[1], n[2], length)
    cut = (m + w + const.GOAL_CHAMFER) * _HALF_ROOT
    if m > cut and m >= w:  # deep inside the solid a face is nearer than the chamfer
        return a
    if w > cut:
        return b
    n = (a + b) * _HALF_ROOT
    return wp.vec4f(n[0], n[1], n[2], cut)


@wp.func
def arena_distance(p: wp.vec3f) -> wp.vec4f:
    """Return the unit normal into free space (x, y, z) and the signed distance to the arena, positive in free space.

    Exact near the surfaces; farther away never more than the true distance.
    """
    x = wp.abs(p[0])
    y = wp.abs(p[1])
    z = p[2]
    found = field_distance(x, y, z)
    # Before the wall the mouth matters only below the bar, between the posts and not farther away than it is high;
    # behind it a deep dent in the sides and the ceiling of the room must lead back into the room.
    beside = wp.where(y > const.BACK_Y, float(_DEEP), float(const.GOAL_CHAMFER))
    if (
        y > const.BACK_Y - const.GOAL_HEIGHT - const.GOAL_CHAMFER
        and x < const.GOAL_HALF_WIDTH + beside
        and z < const.GOAL_HEIGHT + beside
    ):
        found = nearer(around_edge(goal_room(x, y, z), found), wp.vec4f(0.0, 0.0, 1.0, z))
    if p[0] < 0.0:
        found[0] = -found[0]
    if p[1] < 0.0:
        found[1] = -found[1]
    return found


@wp.func
def facet_of(normal_z: float) -> int:
    """Return which facet, from the floor up, lies where the arc has this normal."""
    facet = wp.where(normal_z < _EDGE_1, 1, 0) + wp.where(normal_z < _EDGE_2, 1, 0)
    facet += wp.where(normal_z < _EDGE_3, 1, 0) + wp.where(normal_z < _EDGE_4, 1, 0)
    facet += wp.where(normal_z < _EDGE_5, 1, 0) + wp.where(normal_z < _EDGE_6, 1, 0)
    return facet + wp.where(normal_z < _EDGE_7, 1, 0)


@wp.func
def ramp_surface(point: wp.vec3f, surface: wp.vec4f) -> wp.vec4f:
    """Return the normal and distance of the facet below a place, given those of the smooth arena there."""
    normal_z = surface[2]
    across = wp.sqrt(surface[0] * surface[0] + surface[1] * surface[1])
    if normal_z <= 0.0 or across < 1.0e-3 or wp.abs(point[1]) > const.BACK_Y:
        return surface  # floor, wall or ceiling, or inside a goal
    # From the place and its distance: z = radius - (radius - distance) * normal_z.
    radius = wp.clamp((point[2] - surface[3] * normal_z) / (1.0 - normal_z), const.BACK_FILLET, const.FLOOR_FILLET)
    turned = sin_cos((wp.float32(facet_of(normal_z)) + 0.5) * _STEP)
    cosine = across * turned[0] + normal_z * turned[1]  # between the facet's normal and the arc's
    distance = radius * _CHORD - (radius - surface[3]) * cosine
    outward = turned[0] / across
    return wp.vec4f(surface[0] * outward, surface[1] * outward, turned[1], distance)
