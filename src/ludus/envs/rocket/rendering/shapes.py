"""The shape of the cars: a body of cross-sections, a cabin, a wing and four wheels, as four-cornered faces.

It fills the hull that the simulator collides with; `PAINT` and the other kinds say what colours a face.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ludus.envs.rocket.rendering.camera import Floats

PAINT, TRIM, WINDOW, TYRE, HUB, HEADLIGHT, TAILLIGHT = range(7)

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


def car_faces() -> tuple[Floats, list[int], list[int]]:
    """Returns faces `(faces, 4, 3)` whose corners run counter-clockwise, the kind of each, and which wheel it is of.

    Wheels are counted front left, front right, rear left, rear right; -1 is none. Front wheels are given straight
    ahead.
    """
    faces: list[tuple[Quad, int, int]] = [(quad, kind, -1) for quad, kind in (*_body(), *_cabin(), *_wing())]
    for number, (x, y, radius) in enumerate(_WHEELS):
        for side, left in enumerate((1.0, -1.0)):
            faces += [(quad, kind, 2 * number + side) for quad, kind in _wheel(x, left * y, radius, left)]
    corners = np.array([quad for quad, _, _ in faces])
    return corners, [kind for _, kind, _ in faces], [wheel for _, _, wheel in faces]


def wheel_axle(wheel: int) -> Corner:
    """Returns where a wheel is fixed, about which it turns when it steers."""
    x, y, radius = _WHEELS[wheel // 2]
    return x, y if wheel % 2 == 0 else -y, _REST_Z + radius


def _body() -> Iterator[tuple[Quad, int]]:
    for (x0, w0, low0, high0), (x1, w1, low1, high1) in pairwise(_SECTIONS):
        yield ((x0, w0, high0), (x0, -w0, high0), (x1, -w1, high1), (x1, w1, high1)), PAINT
        yield ((x0, -w0, low0), (x0, w0, low0), (x1, w1, low1), (x1, -w1, low1)), TRIM
        waist0, waist1 = low0 + 0.4 * (high0 - low0), low1 + 0.4 * (high1 - low1)
        yield ((x1, w1, waist1), (x0, w0, waist0), (x0, w0, high0), (x1, w1, high1)), PAINT
        yield ((x1, w1, low1), (x0, w0, low0), (x0, w0, waist0), (x1, w1, waist1)), TRIM
        yield ((x0, -w0, waist0), (x1, -w1, waist1), (x1, -w1, high1), (x0, -w0, high0)), PAINT
        yield ((x0, -w0, low0), (x1, -w1, low1), (x1, -w1, waist1), (x0, -w0, waist0)), TRIM
    for (x, w, low, high), lamp, way in ((_SECTIONS[-1], HEADLIGHT, 1.0), (_SECTIONS[0], TAILLIGHT, -1.0)):
        edge, waist = way * w, low + 0.5 * (high - low)
        yield ((x, -edge, low), (x, edge, low), (x, edge, waist), (x, -edge, waist)), TRIM
        for a, b, kind in ((-1.0, -0.5, lamp), (-0.5, 0.5, PAINT), (0.5, 1.0, lamp)):
            yield ((x, a * edge, waist), (x, b * edge, waist), (x, b * edge, high), (x, a * edge, high)), kind


def _cabin() -> Iterator[tuple[Quad, int]]:
    (back_x, back_w), (front_x, front_w), (roof_back_x, roof_back_w), (roof_x, roof_w) = _CABIN
    low, high = _CABIN_Z
    back_left, back_right = (back_x, back_w, low), (back_x, -back_w, low)
    front_left, front_right = (front_x, front_w, low - 1.0), (front_x, -front_w, low - 1.0)
    top_back_left, top_back_right = (roof_back_x, roof_back_w, high), (roof_back_x, -roof_back_w, high)
    top_left, top_right = (roof_x, roof_w, high - 1.0), (roof_x, -roof_w, high - 1.0)
    yield (front_right, front_left, top_left, top_right), WINDOW
    yield (back_left, back_right, top_back_right, top_back_left), WINDOW
    yield (front_left, back_left, top_back_left, top_left), WINDOW
    yield (back_right, front_right, top_right, top_back_right), WINDOW
    yield (top_back_left, top_back_right, top_right, top_left), PAINT


def _wing() -> Iterator[tuple[Quad, int]]:
    back, front, w, low, high = _WING
    upper = ((back, w, high), (back, -w, high), (front, -w, low), (front, w, low))
    yield upper, PAINT
    yield (upper[3], upper[2], upper[1], upper[0]), TRIM
    yield ((back, w, low - 3.0), (back, -w, low - 3.0), (back, -w, high), (back, w, high)), PAINT
    for y in (w - 9.0, 9.0 - w):
        strut = ((front - 2.0, y, 26.0), (back + 6.0, y, 26.0), (back + 6.0, y, low), (front - 2.0, y, low))
        yield strut, TRIM
        yield (strut[3], strut[2], strut[1], strut[0]), TRIM


def _wheel(x: float, inner_y: float, radius: float, left: float) -> Iterator[tuple[Quad, int]]:
    outer_y, z = inner_y + left * _WHEEL_WIDTH, _REST_Z + radius
    turns = [2.0 * math.pi * (part + 0.5) / _WHEEL_PARTS for part in range(_WHEEL_PARTS)]

    def rim(part: int, y: float, reach: float) -> Corner:
        angle = turns[part % _WHEEL_PARTS]
        return x + reach * math.cos(angle), y, z + reach * math.sin(angle)

    for part in range(_WHEEL_PARTS):
        quad = (rim(part, inner_y, radius), rim(part, outer_y, radius), rim(part + 1, outer_y, radius),
                rim(part + 1, inner_y, radius))  # fmt: skip
        yield quad if left > 0.0 else (quad[3], quad[2], quad[1], quad[0]), TYRE
    for reach, kind, y in ((radius, TYRE, outer_y), (0.55 * radius, HUB, outer_y + left * 0.5)):
        for part in (0, 2, 4):  # an octagon is three faces that share a corner
            quad = (rim(7, y, reach), rim(part, y, reach), rim(part + 1, y, reach), rim(part + 2, y, reach))
            yield quad if left < 0.0 else (quad[3], quad[2], quad[1], quad[0]), kind
