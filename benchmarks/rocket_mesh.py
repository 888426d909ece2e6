"""A triangle mesh of Rocket's arena, made of the same numbers as its signed distance, for comparisons with RocketSim.

RocketSim reads collision meshes from files: int32 numbers of triangles and vertices, the triangles, then float32
vertices in units of 50 uu. Floor, ceiling and side walls are planes that it has built in, so the mesh leaves them out:
the ball would touch plane and mesh at once, and tilted by the nearest seam of the mesh.
"""

import math
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ludus.worlds.rocket.rules import (
    BACK_FILLET,
    BACK_Y,
    CEILING_FILLET,
    CEILING_Z,
    CORNER_FILLET,
    CORNER_SUM,
    FLOOR_FILLET,
    GOAL_CHAMFER,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    SIDE_X,
)

Points = NDArray[np.float64]
UU = 50.0  # of one unit in a file
FACETS = 16  # of a quarter of a circle


def _outline(facets: int) -> tuple[Points, Points, Points]:
    """A quarter of the walls seen from above: places and normals `(n, 2)`, radii of the floor fillet `(n,)`."""
    r = CORNER_FILLET
    side = np.array([SIDE_X - r, CORNER_SUM - r * math.sqrt(2.0) - (SIDE_X - r)])
    back = np.array([CORNER_SUM - r * math.sqrt(2.0) - (BACK_Y - r), BACK_Y - r])
    angles = np.linspace(0.0, math.pi / 4.0, facets + 1)
    ways = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    places = [np.array([SIDE_X, 0.0]), *(side + r * way for way in ways)]
    normals = [np.array([-1.0, 0.0]), *(-ways)]
    radii = [FLOOR_FILLET] * len(places)
    later = np.stack((np.sin(angles), np.cos(angles)), axis=1)[::-1]  # from the corner plane to the back wall
    places += [back + r * way for way in later] + [np.array([GOAL_HALF_WIDTH + GOAL_CHAMFER, BACK_Y])]
    normals += [*(-later), np.array([0.0, -1.0])]
    radii += [BACK_FILLET + (FLOOR_FILLET - BACK_FILLET) * way[0] / way[1] for way in later] + [BACK_FILLET]
    return np.array(places), np.array(normals), np.array(radii)


def _profile(radius: float, facets: int) -> Points:
    """Cut through a wall: distances from it and heights, `(n, 2)`, from the floor to the ceiling."""
    angles = np.linspace(0.0, math.pi / 2.0, facets + 1)
    low = np.stack((radius - radius * np.sin(angles), radius - radius * np.cos(angles)), axis=1)
    top = CEILING_FILLET * np.stack((1.0 - np.cos(angles), np.sin(angles)), axis=1)
    return np.concatenate((low, top + np.array([0.0, CEILING_Z - CEILING_FILLET])))


def _strip(rows: Points) -> list[Points]:
    """Triangles `(3, 3)` between the rows of a grid of points `(rows, columns, 3)`."""
    found = []
    for first, second in pairwise(rows):
        for a, b, c, d in zip(first[:-1], first[1:], second[:-1], second[1:], strict=True):
            found += [np.array([a, b, c]), np.array([b, d, c])]
    return found


def _sweep(places: Points, normals: Points, profiles: list[Points]) -> list[Points]:
    rows = [
        np.concatenate((place + normal * profile[:, :1], profile[:, 1:]), axis=1)
        for place, normal, profile in zip(places, normals, profiles, strict=True)
    ]
    return _strip(np.array(rows))


def _goal(facets: int) -> list[Points]:
    """Half of a goal: the wall above it, the chamfered frame and the room behind, whose vertical edges stay sharp."""
    wide, high, cut = GOAL_HALF_WIDTH, GOAL_HEIGHT, GOAL_CHAMFER
    heights = _profile(BACK_FILLET, facets)
    upper = np.concatenate(([[0.0, high + cut]], heights[heights[:, 1] > high + cut]))
    places = np.array([[wide + cut, BACK_Y], [0.0, BACK_Y]])
    found = _sweep(places, np.array([[0.0, -1.0]] * 2), [upper, upper])
    frame = [(wide + cut, BACK_Y, cut), (wide, BACK_Y + cut, 0.0)]
    found += _strip(np.array([[(x, y, 0.0), (x, y, high + add)] for x, y, add in frame]))
    found += _strip(np.array([[(0.0, y, high + add), (x, y, high + add)] for x, y, add in frame]))
    angles = np.linspace(-1.5317, math.radians(90.0 - 17.63), 2 * facets + 1)  # where the straight parts touch the arc
    arc = np.stack((5760.0 + 240.0 * np.cos(angles), 256.0 + 240.0 * np.sin(angles)), axis=1)
    room = np.concatenate(([[BACK_Y + cut, 0.0], [5355.0, 0.0]], arc, [[5344.0, high], [BACK_Y + cut, high]]))
    found += _strip(np.array([[(x, y, z) for y, z in room] for x in (0.0, wide)]))
    middle = np.array([wide, 5500.0, 300.0])
    rim = [np.array([wide, y, z]) for y, z in room]
    found += [np.array([middle, a, b]) for a, b in zip(rim, rim[1:] + rim[:1], strict=True)]
    return found


def arena_triangles(facets: int = FACETS) -> Points:
    """Triangles of the whole arena but its planes, `(n, 3, 3)` in uu, with so many facets in a quarter of a circle."""
    places, normals, radii = _outline(facets)
    quarter = np.array(_sweep(places, normals, [_profile(radius, facets) for radius in radii]) + _goal(facets))
    quarter = quarter[(quarter[:, :, 0] < SIDE_X).any(axis=1)]
    return np.concatenate([quarter * [sx, sy, 1.0] for sx in (1.0, -1.0) for sy in (1.0, -1.0)])


def write_meshes(folder: Path, facets: int = FACETS) -> None:
    """Write the mesh where RocketSim looks for it below its folder; 0 facets: one triangle that nothing can reach."""
    nowhere = np.array([[[0.0, 0.0, -4500.0], [50.0, 0.0, -4500.0], [0.0, 50.0, -4500.0]]])
    triangles = arena_triangles(facets) if facets else nowhere
    vertices, index = np.unique((triangles / UU).astype("<f4").reshape(-1, 3), axis=0, return_inverse=True)
    path = folder / "soccar" / "mesh_0.cmf"
    path.parent.mkdir(parents=True, exist_ok=True)
    header = struct.pack("<ii", len(triangles), len(vertices))
    path.write_bytes(header + index.astype("<i4").tobytes() + vertices.astype("<f4").tobytes())
