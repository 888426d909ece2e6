"""The ramps between floor and walls as wheels feel them: eight flat facets, not an arc (Warp functions).

A car that drives up a smooth arc at 1410 uu/s reaches z 264 with 1294 uu/s; measured, it has 1192 left. An arc of eight
chords gives 1191: at each edge the springs bounce, which costs speed.
"""

import math

import warp as wp

from ludus.envs.rocket.kernels.maths import sin_cos
from ludus.envs.rocket.rules import BACK_FILLET, BACK_Y, FLOOR_FILLET

FACETS = 8
_STEP = 0.5 * math.pi / FACETS
_CHORD = math.cos(0.5 * _STEP)  # distance of a chord from the arc's centre, over the radius
_EDGE_1, _EDGE_2, _EDGE_3, _EDGE_4, _EDGE_5, _EDGE_6, _EDGE_7 = (math.cos(_STEP * edge) for edge in range(1, FACETS))


@wp.func
def facet_of(normal_z: wp.float32) -> wp.int32:
    """Which facet, from the floor up, lies where the arc has this normal."""
    facet = wp.where(normal_z < _EDGE_1, 1, 0) + wp.where(normal_z < _EDGE_2, 1, 0)
    facet += wp.where(normal_z < _EDGE_3, 1, 0) + wp.where(normal_z < _EDGE_4, 1, 0)
    facet += wp.where(normal_z < _EDGE_5, 1, 0) + wp.where(normal_z < _EDGE_6, 1, 0)
    return facet + wp.where(normal_z < _EDGE_7, 1, 0)


@wp.func
def ramp_surface(point: wp.vec3f, surface: wp.vec4f) -> wp.vec4f:
    """Normal and distance of the facet below a place, given those of the smooth arena there."""
    normal_z = surface[2]
    across = wp.sqrt(surface[0] * surface[0] + surface[1] * surface[1])
    if normal_z <= 0.0 or across < 1.0e-3 or wp.abs(point[1]) > BACK_Y:
        return surface  # floor, wall or ceiling, or inside a goal
    # From the place and its distance: z = radius - (radius - distance) * normal_z.
    radius = wp.clamp((point[2] - surface[3] * normal_z) / (1.0 - normal_z), BACK_FILLET, FLOOR_FILLET)
    turned = sin_cos((wp.float32(facet_of(normal_z)) + 0.5) * _STEP)
    cosine = across * turned[0] + normal_z * turned[1]  # between the facet's normal and the arc's
    distance = radius * _CHORD - (radius - surface[3]) * cosine
    outward = turned[0] / across
    return wp.vec4f(surface[0] * outward, surface[1] * outward, turned[1], distance)
