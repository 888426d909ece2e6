"""Whether two hulls overlap: the separating axes of two boxes (Warp functions)."""

import warp as wp

from ludus.envs.rocket.kernels.maths import column, to_local, to_world
from ludus.envs.rocket.rules import HULL_HALF_X, HULL_HALF_Y, HULL_HALF_Z, HULL_OFFSET_X, HULL_OFFSET_Z

_TOUCH_DEPTH = 0.13  # hulls touch from this overlap on (measured)
_PARALLEL = 0.05  # sine of the angle between edges below which the faces tell
_EDGE_PREFERENCE = 0.95  # an axis across two edges counts only where it is clearly shallower than those of faces
_SHARPNESS = 20.0  # a face tilted by less than one over this is met between its middle and its edge


@wp.struct
class Overlap:
    """How two hulls overlap."""

    n: wp.vec3f  # normal from a to b: the shallowest axis
    depth: wp.float32  # along it
    edge_a: wp.int32  # axes of the edges that meet, if two edges do, else -1
    edge_b: wp.int32


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
def face_overlap(found: wp.ref[Overlap], ma: wp.mat33f, mb: wp.mat33f, offset: wp.vec3f, axis: wp.vec3f) -> bool:
    """Tests a face's axis; false if it separates the hulls. Of equally shallow axes the sum is kept."""
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
    """Tests the axis across two edges; false if it separates the hulls."""
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
    """Whether two hulls overlap, by the 15 separating axes; offset is the way from the middle of a to that of b."""
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
def meeting_place(found: Overlap, ma: wp.mat33f, mb: wp.mat33f, half: wp.vec3f) -> wp.vec3f:
    """Where hulls touch of which no corner is in the other: edges where they cross, faces in their middle.

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
