"""The stadium: sky, stands with their crowd, pitch, walls and goals."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.rocket import rules
from ludus.worlds.rocket.rendering.camera import NEAR, Camera, Floats
from ludus.worlds.rocket.rendering.effects import add_glow
from ludus.worlds.rocket.rendering.mesh import Face, Stroke, built, stroked
from ludus.worlds.rocket.rendering.palette import GLASS, GRASS, GROUND, LAMP, LINE, RAIL, SKY, STAND, STAND_LIGHT, TEAMS
from ludus.worlds.rocket.rules import BACK_Y, CORNER_SUM, GOAL_HALF_WIDTH, GOAL_HEIGHT, SIDE_X

FLAT_X = SIDE_X - rules.FLOOR_FILLET  # where the floor begins to rise
FLAT_Y = BACK_Y - rules.BACK_FILLET
_FLAT_SUM = CORNER_SUM - rules.FLOOR_FILLET * math.sqrt(2.0)
_BEND_Y = _FLAT_SUM - FLAT_X  # from here on the field becomes narrower
_LINE_WIDTH = 34.0
_PIECE = 640.0  # uu; lines are painted in pieces of about this length
_CIRCLE_RADIUS = 1020.0
_BOX_X, _BOX_Y = 1650.0, 3980.0  # half width of the goal areas, and where they begin
_STRIPES, _COLUMNS = 14, 8

Place = tuple[float, float, float]

_ARC_PARTS = 2  # of a rounded upright edge
_TANGENT = 256.0 * math.sqrt(2.0)  # from an upright edge, were it sharp, to where its rounding begins
_PANEL_Z = 860.0  # walls are of two rows of panels
_JOINT_WIDTH, _RAIL_WIDTH = 18.0, 30.0
_GOAL_BACK_Z = GOAL_HEIGHT - 80.0  # its roof slopes
_NET_EVERY = 148.0  # uu between the strings of a net
_ROOF = ((3450.0, 3650.0), (2350.0, 4350.0))
_TIERS = ((750.0, 900.0), (1750.0, 1700.0), (2000.0, 2150.0), (3300.0, 3500.0))  # of the stands: outward and up

_MIST: Color = SKY[2]
_MIST_FROM, _MIST_TO = 3000.0, 26000.0  # uu; from far above there is none
_FAR = 1e5  # uu; the horizon and the lamps are that far away
_CROWD = 2600
_CROWD_FROM = 2500.0  # uu; nearer stands are behind the camera or beside it
_LAMP_EVERY = 4  # posts


def team_tint(color: Color, y: float, strength: float) -> Color:
    """Return a colour with as much of a team's as belongs there."""
    return mixed(color, TEAMS[0 if y < 0.0 else 1].base, strength * min(abs(y) / BACK_Y, 1.0) ** 1.5)


def grass() -> Iterator[Face]:
    """Yield the floor, stripe by stripe, in pieces of two shades, and the floors of the goals."""
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
        low, high = sorted((side * (BACK_Y + rules.GOAL_DEPTH), side * FLAT_Y))
        yield flat(-GOAL_HALF_WIDTH, low, GOAL_HALF_WIDTH, high, team_tint(GRASS[0], side * BACK_Y, 0.5))


def grass_color(stripe: int, y: float) -> Color:
    """Return the colour of a stripe of grass."""
    return team_tint(GRASS[stripe % 2], y, 0.24)


def lines() -> Iterator[Stroke]:
    """Yield the lines on the grass."""
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
    """Return a rectangle on the floor."""
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


@dataclass(frozen=True, slots=True)
class _Post:
    """A place on the foot of the walls: where, the way into the field, and the radius of the floor's rounding there."""

    x: float
    y: float
    inward: tuple[float, float]
    radius: float

    def level(self, inset: float, z: float, along: float = 0.0) -> Place:
        """Return the place so far inward, so high, and so far along the wall, counter-clockwise around the field."""
        x, y = self.inward
        return self.x + inset * x + along * y, self.y + inset * y - along * x, z


def walls() -> Iterator[Face]:
    """Yield the walls, counter-clockwise around the field, each column from the floor up; goal mouths stay open."""
    for first, second in pairwise(_posts()):
        rows = list(zip(_profile(first), _profile(second), strict=True))
        y = (first.y + second.y) / 2.0
        colors = _row_colors(y)
        if abs(first.x) == abs(second.x) == GOAL_HALF_WIDTH and first.x == -second.x:  # over a goal
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
    """Yield the frames between the panels of the walls, and the rail above them."""
    top, half = rules.CEILING_Z - rules.CEILING_FILLET, _JOINT_WIDTH / 2.0
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
    """Yield the inner sides of both goals without their floors, in one colour below the net."""
    for side in (-1, 1):
        mouth, back, wide = side * BACK_Y, side * (BACK_Y + rules.GOAL_DEPTH), GOAL_HALF_WIDTH
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
    """Return the strings of the net at the back of a goal, `(strings, 2, 3)` from end to end."""
    y, wide, high = side * (BACK_Y + rules.GOAL_DEPTH), GOAL_HALF_WIDTH, _GOAL_BACK_Z
    upright = np.linspace(-wide, wide, round(2.0 * wide / _NET_EVERY) + 1)[1:-1].tolist()
    level = np.linspace(0.0, high, round(high / _NET_EVERY) + 1)[1:-1].tolist()
    strings = [((x, y, 0.0), (x, y, high)) for x in upright] + [((-wide, y, z), (wide, y, z)) for z in level]
    return np.array(strings)


def frame(side: int) -> tuple[Place, Place, Place, Place]:
    """Return the corners of a goal's mouth, from the foot of one post to that of the other."""
    y, wide = side * BACK_Y, GOAL_HALF_WIDTH
    return (-wide, y, 0.0), (-wide, y, GOAL_HEIGHT), (wide, y, GOAL_HEIGHT), (wide, y, 0.0)


def stands() -> Iterator[Face]:
    """Yield the tiers behind the walls."""
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
    """Return positions `(lamps, 3)` under the rim of the roof, at one of every `every` posts."""
    (_, _), (out, z) = _ROOF
    return np.array([post.level(-out, z) for post in _posts()[1:-1:every]])


def crowd(count: int, seed: int = 7) -> tuple[Floats, Floats]:
    """Return places `(count, 3)` of people on the stands, and a colour `(count, 3)` each."""
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
    """Return places around the field, counter-clockwise, the first one again at the end."""
    edge_y, edge_x = CORNER_SUM - SIDE_X, CORNER_SUM - BACK_Y
    quarter = [
        _Post(SIDE_X, y, (-1.0, 0.0), rules.FLOOR_FILLET) for y in np.linspace(0.0, edge_y - _TANGENT, 5)[:-1].tolist()
    ]
    quarter += _arc((SIDE_X, edge_y), 0.0, rules.FLOOR_FILLET, rules.FLOOR_FILLET)
    quarter += _arc((edge_x, BACK_Y), math.pi / 4.0, rules.FLOOR_FILLET, rules.BACK_FILLET)
    quarter += [
        _Post(x, BACK_Y, (0.0, -1.0), rules.BACK_FILLET)
        for x in ((edge_x - _TANGENT + GOAL_HALF_WIDTH) / 2.0, GOAL_HALF_WIDTH)
    ]
    mirrored = [_Post(-post.x, post.y, (-post.inward[0], post.inward[1]), post.radius) for post in reversed(quarter)]
    half = [*quarter, *mirrored[:-1]]
    turned = [_Post(-post.x, -post.y, (-post.inward[0], -post.inward[1]), post.radius) for post in half]
    return [*half, *turned, quarter[0]]


def _arc(edge: tuple[float, float], heading: float, radius_from: float, radius_to: float) -> list[_Post]:
    """Return the rounding of an upright edge; before it the outward normal has `heading`, after it 45 degrees more."""
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


def _profile(post: _Post) -> list[Place]:
    """Return a wall's points from the floor up: two pieces of rounding, two panels, two pieces of rounding."""
    radius, top, head = post.radius, rules.CEILING_Z - rules.CEILING_FILLET, rules.CEILING_FILLET
    middle = 1.0 - math.sqrt(0.5)
    return [
        post.level(radius, 0.0),
        post.level(radius * middle, radius * middle),
        post.level(0.0, radius),
        post.level(0.0, _PANEL_Z),
        post.level(0.0, top),
        post.level(head * middle, top + head * (1.0 - middle)),
        post.level(head * 0.8, rules.CEILING_Z - 8.0),
    ]


def _glass(y: float) -> Color:
    """Return the colour of the walls: each end has that of its team."""
    end = GLASS[1 if y < 0.0 else 2]
    return mixed(GLASS[0], end, min(abs(y) / BACK_Y, 1.0) ** 0.8)


def _joint_colors(y: float) -> tuple[Color, Color]:
    return mixed(_glass(y), RAIL, 0.42), _glass(y)


def _row_colors(y: float) -> list[Color]:
    """Return the colours of the pieces between the points of `_profile`."""
    glass, turf = _glass(y), team_tint(GRASS[0], y, 0.24)
    return [
        mixed(turf, glass, 0.35),
        mixed(turf, glass, 0.8),
        mixed(glass, SKY[1], 0.06),
        mixed(glass, SKY[1], 0.26),
        mixed(glass, SKY[2], 0.45),
        mixed(glass, SKY[2], 0.75),
    ]


class Stadium:
    """Paints everything that never moves, for pictures of one size."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._sky = _painted_sky(size)
        self._stands, self._goals, self._walls = built(stands()), built(goals()), built(walls())
        self._pitch, self._lines, self._joints = built(grass()), stroked(lines()), stroked(joints())
        self._people, colors = crowd(_CROWD)
        self._dots = _packed(colors)
        self._strings = {side: net_strings(side) for side in (-1, 1)}
        self._lamps = lamps(_LAMP_EVERY)
        self._lamp_radius = 0.06 * size[1]

    def paint(self, target: pygame.Surface, camera: Camera) -> None:
        """Paint the stadium over the whole surface."""
        mist = (_MIST, _MIST_FROM, _MIST_TO) if not camera.looks_down else (_MIST, 1e6, 2e6)
        self._paint_sky(target, camera)
        self._stands.paint(target, camera, *mist)
        self._paint_crowd(target, camera)
        self._paint_lamps(target, camera)
        self._goals.paint(target, camera, *mist)
        for side in (-1, 1):
            if (camera.eye[1] - side * BACK_Y) * side < 0.0:
                self._paint_net(target, camera, side)
        self._pitch.paint(target, camera, *mist)
        self._lines.paint(target, camera)
        self._walls.paint(target, camera, *mist)
        self._joints.paint(target, camera)
        for side in (-1, 1):
            self._paint_frame(target, camera, side)

    def _paint_sky(self, target: pygame.Surface, camera: Camera) -> None:
        if camera.looks_down:
            target.fill(GROUND)
            return
        level = camera.see(camera.eye + camera.level_ahead() * _FAR)
        horizon = round(float(camera.picture(level)[1]))
        height = self._sky.get_height()
        top = horizon - height // 2
        target.blit(self._sky, (0, top))
        if top > 0:
            target.fill(SKY[0], (0, 0, self._size[0], top))
        if top + height < self._size[1]:
            target.fill(GROUND, (0, top + height, self._size[0], self._size[1]))

    def _paint_crowd(self, target: pygame.Surface, camera: Camera) -> None:
        seen = camera.see(self._people)
        shown = seen[:, 2] > _CROWD_FROM
        places = camera.picture(seen[shown]).astype(np.int64)
        (width, height), dots = self._size, self._dots[shown]
        inside = ((places >= 0) & (places < (width - 2, height - 3))).all(1)
        (x, y), dots = places[inside].T, dots[inside]
        pixels = pygame.surfarray.pixels2d(target)
        for right in (0, 1):
            for down in (0, 1, 2):
                pixels[x + right, y + down] = dots
        del pixels  # as long as it lives, nothing else can be painted

    def _paint_lamps(self, target: pygame.Surface, camera: Camera) -> None:
        seen = camera.see(self._lamps)
        seen = seen[seen[:, 2] > NEAR]
        for x, y in camera.picture(seen).tolist():
            add_glow(target, (x, y), self._lamp_radius, LAMP)

    def _paint_net(self, target: pygame.Surface, camera: Camera, side: int) -> None:
        color = mixed(TEAMS[int(side > 0)].base, SKY[1], 0.45)
        seen = camera.see(self._strings[side])
        if not bool((seen[..., 2] > NEAR).all()):
            return
        for start, end in camera.picture(seen).tolist():
            pygame.draw.aaline(target, color, start, end)

    def _paint_frame(self, target: pygame.Surface, camera: Camera, side: int) -> None:
        seen = camera.see(frame(side))
        if not bool((seen[:, 2] > NEAR).all()):
            return
        width = max(round(22.0 * camera.focal / float(seen[:, 2].mean())), 2)
        points = camera.picture(seen).tolist()
        for start, end in pairwise(points):
            pygame.draw.aaline(target, TEAMS[int(side > 0)].light, start, end, width)


def _packed(colors: Floats) -> NDArray[np.uint32]:
    """Return colours `(n, 3)` as surfaces hold them: red in the lowest byte."""
    packed: NDArray[np.uint32] = (colors.astype(np.uint32) << np.array((0, 8, 16), np.uint32)).sum(1, dtype=np.uint32)
    return packed


def _painted_sky(size: tuple[int, int]) -> pygame.Surface:
    """Return the sky above and the ground below the horizon, which is in the middle."""
    half = size[1]
    sky = new_surface((size[0], 2 * half))
    sky.fill(GROUND, (0, half, size[0], half))
    for row in range(half):
        place = (row / half) * (len(SKY) - 1)
        index = min(int(place), len(SKY) - 2)
        sky.fill(mixed(SKY[index], SKY[index + 1], place - index), (0, row, size[0], 1))
    return sky
