"""The pitch: mown grass that takes the colour of its team towards either goal, and its lines."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.rocket.rendering.mesh import Face
from ludus.envs.rocket.rendering.palette import GRASS, LINE, TEAMS
from ludus.envs.rocket.rendering.strokes import Stroke
from ludus.envs.rocket.rules import (
    BACK_FILLET,
    BACK_Y,
    CORNER_SUM,
    FLOOR_FILLET,
    GOAL_DEPTH,
    GOAL_HALF_WIDTH,
    SIDE_X,
)

FLAT_X = SIDE_X - FLOOR_FILLET  # where the floor begins to rise
FLAT_Y = BACK_Y - BACK_FILLET
_FLAT_SUM = CORNER_SUM - FLOOR_FILLET * math.sqrt(2.0)
_BEND_Y = _FLAT_SUM - FLAT_X  # from here on the field becomes narrower
_LINE_WIDTH = 34.0
_PIECE = 640.0  # uu; lines are painted in pieces of about this length
_CIRCLE_RADIUS = 1020.0
_BOX_X, _BOX_Y = 1650.0, 3980.0  # half width of the goal areas, and where they begin
_STRIPES, _COLUMNS = 14, 8


def team_tint(color: Color, y: float, strength: float) -> Color:
    """Returns a colour with as much of a team's as belongs there."""
    return mixed(color, TEAMS[0 if y < 0.0 else 1].base, strength * min(abs(y) / BACK_Y, 1.0) ** 1.5)


def grass() -> Iterator[Face]:
    """Gives the floor, stripe by stripe, in pieces of two shades, and the floors of the goals."""
    # Below everything, a little wider: no gap shows between the stripes and the walls.
    yield flat(-FLAT_X - 90.0, -_BEND_Y, FLAT_X + 90.0, _BEND_Y, GRASS[0])
    for side in (-1.0, 1.0):
        near, far, wide, narrow = side * _BEND_Y, side * (FLAT_Y + 60.0), FLAT_X + 90.0, _half_width(FLAT_Y) + 150.0
        corners = ((-wide, near, 0.0), (wide, near, 0.0), (narrow, far, 0.0), (-narrow, far, 0.0))
        yield Face(corners if side > 0.0 else corners[::-1], grass_color(0, side * FLAT_Y))
    between = (FLAT_Y + _BEND_Y) / 2.0
    edges = [-FLAT_Y, -between, *np.linspace(-_BEND_Y, _BEND_Y, _STRIPES + 1).tolist(), between, FLAT_Y]
    for number, (low, high) in enumerate(pairwise(edges)):
        under, over = _half_width(low), _half_width(high)
        for column, (left, right) in enumerate(pairwise(np.linspace(-1.0, 1.0, _COLUMNS + 1).tolist())):
            color = mixed(grass_color(number, (low + high) / 2.0), GRASS[column % 2], 0.35)
            corners = (
                (left * under, low, 0.0),
                (right * under, low, 0.0),
                (right * over, high, 0.0),
                (left * over, high, 0.0),
            )
            yield Face(corners, color)
    for side in (-1.0, 1.0):
        low, high = sorted((side * (BACK_Y + GOAL_DEPTH), side * FLAT_Y))
        yield flat(-GOAL_HALF_WIDTH, low, GOAL_HALF_WIDTH, high, team_tint(GRASS[0], side * BACK_Y, 0.5))


def grass_color(stripe: int, y: float) -> Color:
    """Returns the colour of a stripe of grass."""
    return team_tint(GRASS[stripe % 2], y, 0.24)


def lines() -> Iterator[Stroke]:
    """Gives what is painted on the grass."""
    yield from _line((-FLAT_X, 0.0), (FLAT_X, 0.0), LINE)
    for side in (-1.0, 1.0):
        color = mixed(LINE, TEAMS[int(side > 0)].base, 0.5)
        near, far = side * _BOX_Y, side * FLAT_Y
        yield from _line((-_BOX_X, near), (_BOX_X, near), color)
        for x in (-_BOX_X, _BOX_X):
            yield from _line((x, near), (x, far), color)
        yield from _line((-GOAL_HALF_WIDTH, side * BACK_Y), (GOAL_HALF_WIDTH, side * BACK_Y), LINE)
    for a, b in pairwise(np.linspace(0.0, 2.0 * math.pi, 49).tolist()):
        start, end = ((_CIRCLE_RADIUS * math.cos(angle), _CIRCLE_RADIUS * math.sin(angle)) for angle in (a, b))
        yield from _line(start, end, LINE)


def flat(left: float, low: float, right: float, high: float, color: Color) -> Face:
    """Returns a rectangle on the floor."""
    return Face(((left, low, 0.0), (right, low, 0.0), (right, high, 0.0), (left, high, 0.0)), color)


def _line(start: tuple[float, float], end: tuple[float, float], color: Color) -> Iterator[Stroke]:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    aside_x, aside_y = -dy / length * _LINE_WIDTH / 2.0, dx / length * _LINE_WIDTH / 2.0
    for a, b in pairwise(np.linspace(0.0, 1.0, max(round(length / _PIECE), 1) + 1).tolist()):
        (ax, ay), (bx, by) = ((start[0] + share * dx, start[1] + share * dy) for share in (a, b))
        corners = (
            (ax - aside_x, ay - aside_y, 0.0),
            (bx - aside_x, by - aside_y, 0.0),
            (bx + aside_x, by + aside_y, 0.0),
            (ax + aside_x, ay + aside_y, 0.0),
        )
        yield Stroke(corners, color, grass_color(0, ay))


def _half_width(y: float) -> float:
    return min(FLAT_X, _FLAT_SUM - abs(y))
