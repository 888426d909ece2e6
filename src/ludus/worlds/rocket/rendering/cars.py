"""Cars: their shape, shaded faces from back to front with smooth edges, and shadows on the grass.

The shape is a body of cross-sections, a cabin, a wing and four wheels. It fills the hull that the simulator collides.
"""

import math
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import pygame
from ludus.worlds.rocket.rendering.camera import NEAR, Camera, Floats, rotation_matrix
from ludus.worlds.rocket.rendering.mesh import normals_of
from ludus.worlds.rocket.rendering.palette import GRASS, HUB, LAMP, TEAMS, TYRE, WHITE, WINDOW
from ludus.worlds.rocket.view import CarView

# Cross-sections from the tail to the nose, uu from the centre of mass: x, half width, lowest and highest z.
_SECTIONS = ((-46.0, 34.0, 7.0, 26.0), (-34.0, 39.0, 3.0, 30.0), (24.0, 39.0, 3.0, 28.0), (58.0, 37.0, 3.5, 21.0),
             (74.0, 27.0, 7.0, 14.0))  # fmt: skip
_CABIN = ((-40.0, 32.0), (30.0, 33.0), (-24.0, 24.0), (8.0, 24.0))  # x and half width: below and on the roof
_CABIN_Z = (28.0, 45.0)
_WING = (-52.0, -38.0, 36.0, 44.0, 47.0)  # x from, x to, half width, z from, z to
_WHEELS = ((50.0, 33.0, 16.0), (-31.0, 33.0, 17.5))  # x, inner y and radius; painted larger than those that roll
_WHEEL_WIDTH = 13.0
_WHEEL_PARTS = 8
_REST_Z = -17.0  # of the ground, while the car stands on it

Corner = tuple[float, float, float]
Quad = tuple[Corner, Corner, Corner, Corner]

_LIGHT = np.array((0.32, -0.24, 0.92)) / np.linalg.norm((0.32, -0.24, 0.92))
_AMBIENT = 0.52
_SHADOW: Color = (18, 44, 38)
_CORNERS = ((-50.0, 38.0), (-50.0, -38.0), (62.0, -42.0), (76.0, -22.0), (76.0, 22.0), (62.0, 42.0))
_FOOTPRINT = np.array([(x, y, 0.0) for x, y in _CORNERS])
_STEER_RAD = 0.5  # of the front wheels at full lock, as painted
_SMALL, _TINY = 0.16, 0.08  # pixels per uu below which edges are not smoothed, and wheels are left out


class Part(IntEnum):
    """What a face belongs to; it determines the colour."""

    PAINT, TRIM, WINDOW, TYRE, HUB, HEADLIGHT, TAILLIGHT = range(7)


def car_faces() -> tuple[Floats, list[Part], list[int]]:
    """Return faces `(faces, 4, 3)` whose corners run counter-clockwise, the kind of each, and which wheel it is of.

    Wheels are counted front left, front right, rear left, rear right; -1 is none. Front wheels are given straight
    ahead.
    """
    faces: list[tuple[Quad, Part, int]] = [(quad, kind, -1) for quad, kind in (*_body(), *_cabin(), *_wing())]
    for number, (x, y, radius) in enumerate(_WHEELS):
        for side, left in enumerate((1.0, -1.0)):
            faces += [(quad, kind, 2 * number + side) for quad, kind in _wheel(x, left * y, radius, left)]
    corners = np.array([quad for quad, _, _ in faces])
    return corners, [kind for _, kind, _ in faces], [wheel for _, _, wheel in faces]


def wheel_axle(wheel: int) -> Corner:
    """Return the axle of a wheel, about which it turns when it steers."""
    x, y, radius = _WHEELS[wheel // 2]
    return x, y if wheel % 2 == 0 else -y, _REST_Z + radius


def _body() -> Iterator[tuple[Quad, Part]]:
    for (x0, w0, low0, high0), (x1, w1, low1, high1) in pairwise(_SECTIONS):
        yield ((x0, w0, high0), (x0, -w0, high0), (x1, -w1, high1), (x1, w1, high1)), Part.PAINT
        yield ((x0, -w0, low0), (x0, w0, low0), (x1, w1, low1), (x1, -w1, low1)), Part.TRIM
        waist0, waist1 = low0 + 0.4 * (high0 - low0), low1 + 0.4 * (high1 - low1)
        yield ((x1, w1, waist1), (x0, w0, waist0), (x0, w0, high0), (x1, w1, high1)), Part.PAINT
        yield ((x1, w1, low1), (x0, w0, low0), (x0, w0, waist0), (x1, w1, waist1)), Part.TRIM
        yield ((x0, -w0, waist0), (x1, -w1, waist1), (x1, -w1, high1), (x0, -w0, high0)), Part.PAINT
        yield ((x0, -w0, low0), (x1, -w1, low1), (x1, -w1, waist1), (x0, -w0, waist0)), Part.TRIM
    for (x, w, low, high), lamp, way in ((_SECTIONS[-1], Part.HEADLIGHT, 1.0), (_SECTIONS[0], Part.TAILLIGHT, -1.0)):
        edge, waist = way * w, low + 0.5 * (high - low)
        yield ((x, -edge, low), (x, edge, low), (x, edge, waist), (x, -edge, waist)), Part.TRIM
        for a, b, kind in ((-1.0, -0.5, lamp), (-0.5, 0.5, Part.PAINT), (0.5, 1.0, lamp)):
            yield ((x, a * edge, waist), (x, b * edge, waist), (x, b * edge, high), (x, a * edge, high)), kind


def _cabin() -> Iterator[tuple[Quad, Part]]:
    (back_x, back_w), (front_x, front_w), (roof_back_x, roof_back_w), (roof_x, roof_w) = _CABIN
    low, high = _CABIN_Z
    back_left, back_right = (back_x, back_w, low), (back_x, -back_w, low)
    front_left, front_right = (front_x, front_w, low - 1.0), (front_x, -front_w, low - 1.0)
    top_back_left, top_back_right = (roof_back_x, roof_back_w, high), (roof_back_x, -roof_back_w, high)
    top_left, top_right = (roof_x, roof_w, high - 1.0), (roof_x, -roof_w, high - 1.0)
    yield (front_right, front_left, top_left, top_right), Part.WINDOW
    yield (back_left, back_right, top_back_right, top_back_left), Part.WINDOW
    yield (front_left, back_left, top_back_left, top_left), Part.WINDOW
    yield (back_right, front_right, top_right, top_back_right), Part.WINDOW
    yield (top_back_left, top_back_right, top_right, top_left), Part.PAINT


def _wing() -> Iterator[tuple[Quad, Part]]:
    back, front, w, low, high = _WING
    upper = ((back, w, high), (back, -w, high), (front, -w, low), (front, w, low))
    yield upper, Part.PAINT
    yield (upper[3], upper[2], upper[1], upper[0]), Part.TRIM
    yield ((back, w, low - 3.0), (back, -w, low - 3.0), (back, -w, high), (back, w, high)), Part.PAINT
    for y in (w - 9.0, 9.0 - w):
        strut = ((front - 2.0, y, 26.0), (back + 6.0, y, 26.0), (back + 6.0, y, low), (front - 2.0, y, low))
        yield strut, Part.TRIM
        yield (strut[3], strut[2], strut[1], strut[0]), Part.TRIM


def _wheel(x: float, inner_y: float, radius: float, left: float) -> Iterator[tuple[Quad, Part]]:
    outer_y, z = inner_y + left * _WHEEL_WIDTH, _REST_Z + radius
    turns = [2.0 * math.pi * (part + 0.5) / _WHEEL_PARTS for part in range(_WHEEL_PARTS)]

    def rim(part: int, y: float, reach: float) -> Corner:
        angle = turns[part % _WHEEL_PARTS]
        return x + reach * math.cos(angle), y, z + reach * math.sin(angle)

    for part in range(_WHEEL_PARTS):
        quad = (rim(part, inner_y, radius), rim(part, outer_y, radius), rim(part + 1, outer_y, radius),
                rim(part + 1, inner_y, radius))  # fmt: skip
        yield quad if left > 0.0 else (quad[3], quad[2], quad[1], quad[0]), Part.TYRE
    for reach, kind, y in ((radius, Part.TYRE, outer_y), (0.55 * radius, Part.HUB, outer_y + left * 0.5)):
        for part in (0, 2, 4):  # an octagon is three faces that share a corner
            quad = (rim(7, y, reach), rim(part, y, reach), rim(part + 1, y, reach), rim(part + 2, y, reach))
            yield quad if left < 0.0 else (quad[3], quad[2], quad[1], quad[0]), kind


class CarPainter:
    """Paints cars of both teams."""

    def __init__(self) -> None:
        corners, kinds, wheels = car_faces()
        self._corners = {steer: _steered(corners, wheels, steer / 2.0) for steer in range(-2, 3)}
        self._normals = {steer: normals_of(faces) for steer, faces in self._corners.items()}
        self._is_wheel = np.array(wheels) >= 0
        self._colors = [np.array([_color(kind, team) for kind in kinds], dtype=np.float64) for team in (0, 1)]
        self._lift = np.where(np.array(kinds) == Part.HUB, 8.0, 0.0)  # hubs lie on their tyres
        self._glows = np.isin(kinds, (Part.HEADLIGHT, Part.TAILLIGHT))

    def paint(self, target: pygame.Surface, camera: Camera, car: CarView, size: float = 1.0) -> None:
        """Paint one car, scaled by `size`, unless it is behind the camera."""
        place = camera.pixel(car.position)
        if place is None or not _in_sight(place, camera):
            return
        scale = size * place[2]
        steer = round(2.0 * max(-1.0, min(1.0, car.steer)))
        turn = size * rotation_matrix(car.rotation)
        corners = self._corners[steer] @ turn.T + np.array(car.position)
        normals = self._normals[steer] @ turn.T
        facing = ((camera.eye - corners[:, 0]) * normals).sum(1) > 0.0
        if scale < _TINY:
            facing &= ~self._is_wheel
        seen = camera.see(corners[facing])
        if float(seen[..., 2].min()) < NEAR:
            return
        light = _AMBIENT + (1.0 - _AMBIENT) * np.clip(normals[facing] @ _LIGHT / size, 0.0, 1.0)
        light[self._glows[facing]] = 1.0
        shades = np.clip(self._colors[car.team][facing] * light[:, None], 0.0, 255.0)
        order = np.argsort(self._lift[facing] - np.sqrt((seen**2).sum(2)).mean(1), kind="stable")
        polygons = camera.picture(seen[order]) + 0.5  # polygons cut off, not round
        for polygon, shade in zip(polygons.tolist(), shades[order].astype(np.int64).tolist(), strict=True):
            pygame.draw.polygon(target, shade, polygon)
            if scale > _SMALL:
                pygame.draw.aalines(target, shade, True, polygon)


def paint_shadow(target: pygame.Surface, camera: Camera, car: CarView, size: float = 1.0) -> None:
    """Paint the shadow of a car scaled by `size`, weaker the higher the car is."""
    turn = size * rotation_matrix(car.rotation)
    ground = (_FOOTPRINT @ turn.T)[:, :2] + np.array(car.position[:2])
    seen = camera.see(np.column_stack((ground, np.zeros(len(ground)))))
    polygon = camera.polygon(seen)
    if polygon:
        weak = min(max(car.position[2] - 17.0, 0.0) / 700.0, 1.0)
        pygame.draw.polygon(target, mixed(_SHADOW, GRASS[0], 0.75 * weak), polygon)


def _in_sight(place: tuple[float, float, float], camera: Camera) -> bool:
    reach = 120.0 * place[2]
    return -reach < place[0] < camera.size[0] + reach and -reach < place[1] < camera.size[1] + reach


def _steered(corners: Floats, wheels: list[int], steer: float) -> Floats:
    """Return the faces with the front wheels turned, to the right if `steer` is positive."""
    turned = corners.copy()
    cos, sin = math.cos(-steer * _STEER_RAD), math.sin(-steer * _STEER_RAD)
    turn = np.array(((cos, -sin, 0.0), (sin, cos, 0.0), (0.0, 0.0, 1.0)))
    for number, wheel in enumerate(wheels):
        if wheel in (0, 1):
            axle = np.array(wheel_axle(wheel))
            turned[number] = (corners[number] - axle) @ turn.T + axle
    return turned


def _color(kind: Part, team: int) -> Color:
    colors = {
        Part.PAINT: TEAMS[team].base,
        Part.TRIM: mixed(TEAMS[team].dark, (20, 22, 32), 0.45),
        Part.WINDOW: WINDOW,
        Part.TYRE: TYRE,
        Part.HUB: HUB,
        Part.HEADLIGHT: mixed(LAMP, WHITE, 0.3),
        Part.TAILLIGHT: (232, 46, 50),
    }
    return colors[kind]
