"""What stands around the pitch: walls with their rounded feet and tops, the goals and the stands behind."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.rocket.rendering.camera import Floats
from ludus.envs.rocket.rendering.mesh import Face
from ludus.envs.rocket.rendering.palette import GLASS, GRASS, RAIL, SKY, STAND, STAND_LIGHT, TEAMS
from ludus.envs.rocket.rendering.pitch import team_tint
from ludus.envs.rocket.rendering.strokes import Stroke
from ludus.envs.rocket.rules import (
    BACK_FILLET,
    BACK_Y,
    CEILING_FILLET,
    CEILING_Z,
    CORNER_SUM,
    FLOOR_FILLET,
    GOAL_DEPTH,
    GOAL_HALF_WIDTH,
    GOAL_HEIGHT,
    SIDE_X,
)

Place = tuple[float, float, float]

_ARC_PARTS = 2  # of a rounded upright edge
_TANGENT = 256.0 * math.sqrt(2.0)  # from an upright edge, were it sharp, to where its rounding begins
_PANEL_Z = 860.0  # walls are of two rows of panels
_JOINT_WIDTH, _RAIL_WIDTH = 18.0, 30.0
_GOAL_BACK_Z = GOAL_HEIGHT - 80.0  # its roof slopes
_NET_EVERY = 148.0  # uu between the strings of a net
_ROOF = ((3450.0, 3650.0), (2350.0, 4350.0))
_TIERS = ((750.0, 900.0), (1750.0, 1700.0), (2000.0, 2150.0), (3300.0, 3500.0))  # of the stands: outward and up


@dataclass(frozen=True, slots=True)
class _Post:
    """A place on the foot of the walls: where, the way into the field, and the radius of the floor's rounding there."""

    x: float
    y: float
    inward: tuple[float, float]
    radius: float

    def level(self, inset: float, z: float, along: float = 0.0) -> Place:
        """Returns the place so far inward, so high, and so far along the wall, counter-clockwise around the field."""
        x, y = self.inward
        return self.x + inset * x + along * y, self.y + inset * y - along * x, z


def walls() -> Iterator[Face]:
    """Gives the walls, counter-clockwise around the field, each column from the floor up; goal mouths stay open."""
    for first, second in pairwise(_posts()):
        rows = list(zip(_profile(first), _profile(second), strict=True))
        y = (first.y + second.y) / 2.0
        colors = _row_colors(y)
        if _over_goal(first, second):
            rows = [(first.level(0.0, GOAL_HEIGHT), second.level(0.0, GOAL_HEIGHT)), *rows[3:]]
            colors = colors[2:]
        for color, ((low_a, low_b), (high_a, high_b)) in zip(colors, pairwise(rows), strict=True):
            yield Face((low_b, low_a, high_a, high_b), color)
    for post in _posts():
        if abs(post.x) == GOAL_HALF_WIDTH:  # the rounding of the floor ends at the goals: close its ends
            foot, rise, wall = _profile(post)[:3]
            corners = ((post.x, post.y, 0.0), foot, rise, wall)
            yield Face(corners if post.x * post.y > 0.0 else corners[::-1], _row_colors(post.y)[1])


def joints() -> Iterator[Stroke]:
    """Gives the frames between the panels of the walls, and the rail above them."""
    top, half = CEILING_Z - CEILING_FILLET, _JOINT_WIDTH / 2.0
    posts = _posts()
    for post in posts[:-1]:
        color, behind = _joint_colors(post.y)
        foot = GOAL_HEIGHT if abs(post.x) < GOAL_HALF_WIDTH + 1.0 and abs(post.y) > SIDE_X else post.radius
        corners = (post.level(0.0, foot, half), post.level(0.0, top, half), post.level(0.0, top, -half),
                   post.level(0.0, foot, -half))[::-1]  # fmt: skip
        yield Stroke(corners, color, behind)
    for first, second in pairwise(posts):
        color, behind = _joint_colors((first.y + second.y) / 2.0)
        for z, width, shade in ((_PANEL_Z, _JOINT_WIDTH, color), (top, _RAIL_WIDTH, mixed(color, RAIL, 0.6))):
            low, high = z - width / 2.0, z + width / 2.0
            corners = (second.level(0.0, low), first.level(0.0, low), first.level(0.0, high), second.level(0.0, high))
            yield Stroke(corners, shade, behind)


def goals() -> Iterator[Face]:
    """Gives the inner sides of both goals without their floors: they are of one colour, strings go over them."""
    for side in (-1, 1):
        mouth, back, wide = side * BACK_Y, side * (BACK_Y + GOAL_DEPTH), GOAL_HALF_WIDTH
        dim = mixed(TEAMS[int(side > 0)].dark, SKY[1], 0.5)
        darker = mixed(dim, SKY[0], 0.3)
        low_left, low_right = (-wide, back, 0.0), (wide, back, 0.0)
        high_left, high_right = (-wide, back, _GOAL_BACK_Z), (wide, back, _GOAL_BACK_Z)
        _, bar_left, bar_right, foot_right = frame(side)
        for corners, color in (
            ((low_left, low_right, high_right, high_left), dim),
            ((high_left, high_right, bar_right, bar_left), darker),
            (((-wide, mouth, 0.0), low_left, high_left, bar_left), darker),
            ((low_right, foot_right, bar_right, high_right), darker),
        ):
            yield Face(corners if side > 0 else corners[::-1], color)


def net_strings(side: int) -> Floats:
    """Returns the strings of the net at the back of a goal, `(strings, 2, 3)` from end to end."""
    y, wide, high = side * (BACK_Y + GOAL_DEPTH), GOAL_HALF_WIDTH, _GOAL_BACK_Z
    upright = np.linspace(-wide, wide, round(2.0 * wide / _NET_EVERY) + 1)[1:-1].tolist()
    level = np.linspace(0.0, high, round(high / _NET_EVERY) + 1)[1:-1].tolist()
    strings = [((x, y, 0.0), (x, y, high)) for x in upright] + [((-wide, y, z), (wide, y, z)) for z in level]
    return np.array(strings)


def frame(side: int) -> tuple[Place, Place, Place, Place]:
    """Returns the corners of a goal's mouth, from the foot of one post to that of the other."""
    y, wide = side * BACK_Y, GOAL_HALF_WIDTH
    return (-wide, y, 0.0), (-wide, y, GOAL_HEIGHT), (wide, y, GOAL_HEIGHT), (wide, y, 0.0)


def stands() -> Iterator[Face]:
    """Gives the tiers behind the walls."""
    for number, (first, second) in enumerate(pairwise(_posts())):
        y = (first.y + second.y) / 2.0
        for row, ((low_out, low_z), (high_out, high_z)) in enumerate(pairwise(_TIERS)):
            color = mixed(STAND, STAND_LIGHT, (0.25, 0.9, 0.55)[row] - 0.2 * (number % 2))
            low_a, low_b = first.level(-low_out, low_z), second.level(-low_out, low_z)
            high_a, high_b = first.level(-high_out, high_z), second.level(-high_out, high_z)
            yield Face((low_b, low_a, high_a, high_b), team_tint(color, y, 0.14))
        (out, z), (rim_out, rim_z) = _ROOF
        low_a, low_b = first.level(-out, z), second.level(-out, z)
        yield Face(
            (low_b, low_a, first.level(-rim_out, rim_z), second.level(-rim_out, rim_z)), mixed(SKY[0], STAND, 0.5)
        )


def lamps(every: int) -> Floats:
    """Returns places `(lamps, 3)` under the rim of the roof, at one of so many posts each."""
    (_, _), (out, z) = _ROOF
    return np.array([post.level(-out, z) for post in _posts()[1:-1:every]])


def crowd(count: int, seed: int = 7) -> tuple[Floats, Floats]:
    """Returns places `(count, 3)` of people on the stands, and a colour `(count, 3)` each."""
    random = np.random.default_rng(seed)
    posts = np.array([(post.x, post.y, *post.inward) for post in _posts()])
    steps = np.hypot(*(posts[1:, :2] - posts[:-1, :2]).T)
    picked = random.choice(len(steps), count, p=steps / steps.sum())
    along, up, upper = random.random((count, 1)), random.random(count), random.random(count) < 0.62
    foot = posts[picked] * (1.0 - along) + posts[picked + 1] * along
    out, z = (
        np.where(upper, _TIERS[2][axis] + up * (_TIERS[3][axis] - _TIERS[2][axis]),
                 _TIERS[0][axis] + up * (_TIERS[1][axis] - _TIERS[0][axis])) for axis in (0, 1)
    )  # fmt: skip
    places = np.column_stack((foot[:, :2] - out[:, None] * foot[:, 2:], z + 30.0))
    is_blue = (places[:, 1] < 0.0) ^ (random.random(count) < 0.2)
    colors = np.where(is_blue[:, None], TEAMS[0].light, TEAMS[1].light) * (0.3 + 0.6 * random.random((count, 1)))
    return places, colors


def _posts() -> list[_Post]:
    """Returns places around the field, counter-clockwise, the first one again at the end."""
    edge_y, edge_x = CORNER_SUM - SIDE_X, CORNER_SUM - BACK_Y
    quarter = [
        _Post(SIDE_X, y, (-1.0, 0.0), FLOOR_FILLET) for y in np.linspace(0.0, edge_y - _TANGENT, 5)[:-1].tolist()
    ]
    quarter += _arc((SIDE_X, edge_y), 0.0, FLOOR_FILLET, FLOOR_FILLET)
    quarter += _arc((edge_x, BACK_Y), math.pi / 4.0, FLOOR_FILLET, BACK_FILLET)
    quarter += [
        _Post(x, BACK_Y, (0.0, -1.0), BACK_FILLET)
        for x in ((edge_x - _TANGENT + GOAL_HALF_WIDTH) / 2.0, GOAL_HALF_WIDTH)
    ]
    mirrored = [_Post(-post.x, post.y, (-post.inward[0], post.inward[1]), post.radius) for post in reversed(quarter)]
    half = [*quarter, *mirrored[:-1]]
    turned = [_Post(-post.x, -post.y, (-post.inward[0], -post.inward[1]), post.radius) for post in half]
    return [*half, *turned, quarter[0]]


def _arc(edge: tuple[float, float], heading: float, radius_from: float, radius_to: float) -> list[_Post]:
    """Returns the rounding of an upright edge; before it the outward normal has `heading`, after it 45 degrees more."""
    bend = math.pi / 4.0
    radius = _TANGENT / math.tan(bend / 2.0)
    away = radius / math.cos(bend / 2.0)
    x, y = edge[0] - away * math.cos(heading + bend / 2.0), edge[1] - away * math.sin(heading + bend / 2.0)
    posts = []
    for part in range(_ARC_PARTS + 1):
        share = part / _ARC_PARTS
        out = math.cos(heading + share * bend), math.sin(heading + share * bend)
        fillet = radius_from + share * (radius_to - radius_from)
        posts.append(_Post(x + radius * out[0], y + radius * out[1], (-out[0], -out[1]), fillet))
    return posts


def _over_goal(first: _Post, second: _Post) -> bool:
    return abs(first.x) == abs(second.x) == GOAL_HALF_WIDTH and first.x == -second.x


def _profile(post: _Post) -> list[Place]:
    """Returns a wall's points from the floor up: two pieces of rounding, two panels, two pieces of rounding."""
    radius, top, head = post.radius, CEILING_Z - CEILING_FILLET, CEILING_FILLET
    middle = 1.0 - math.sqrt(0.5)
    return [
        post.level(radius, 0.0),
        post.level(radius * middle, radius * middle),
        post.level(0.0, radius),
        post.level(0.0, _PANEL_Z),
        post.level(0.0, top),
        post.level(head * middle, top + head * (1.0 - middle)),
        post.level(head * 0.8, CEILING_Z - 8.0),
    ]


def _glass(y: float) -> Color:
    """Returns the colour of the walls: each end has that of its team."""
    end = GLASS[1 if y < 0.0 else 2]
    return mixed(GLASS[0], end, min(abs(y) / BACK_Y, 1.0) ** 0.8)


def _joint_colors(y: float) -> tuple[Color, Color]:
    return mixed(_glass(y), RAIL, 0.42), _glass(y)


def _row_colors(y: float) -> list[Color]:
    """Returns the colours of the pieces between the points of `_profile`."""
    glass, turf = _glass(y), team_tint(GRASS[0], y, 0.24)
    return [
        mixed(turf, glass, 0.35),
        mixed(turf, glass, 0.8),
        mixed(glass, SKY[1], 0.06),
        mixed(glass, SKY[1], 0.26),
        mixed(glass, SKY[2], 0.45),
        mixed(glass, SKY[2], 0.75),
    ]
