"""Cars as a camera sees them: shaded faces from back to front, with smooth edges, and their shadows on the grass."""

import math

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import pygame
from ludus.envs.rocket.rendering import shapes
from ludus.envs.rocket.rendering.camera import NEAR, Camera, Floats
from ludus.envs.rocket.rendering.mesh import normals_of
from ludus.envs.rocket.rendering.palette import GRASS, HUB, LAMP, TEAMS, TYRE, WHITE, WINDOW
from ludus.envs.rocket.view import CarView, Quaternion

_LIGHT = np.array((0.32, -0.24, 0.92)) / np.linalg.norm((0.32, -0.24, 0.92))
_AMBIENT = 0.52
_SHADOW: Color = (18, 44, 38)
_FOOTPRINT = np.array(
    (
        (-50.0, 38.0, 0.0),
        (-50.0, -38.0, 0.0),
        (62.0, -42.0, 0.0),
        (76.0, -22.0, 0.0),
        (76.0, 22.0, 0.0),
        (62.0, 42.0, 0.0),
    )
)
_STEER_RAD = 0.5  # of the front wheels at full lock, as painted
_SMALL, _TINY = 0.16, 0.08  # pixels a uu below which edges are not smoothed, and wheels are left out


class CarPainter:
    """Paints cars of both teams."""

    def __init__(self) -> None:
        corners, kinds, wheels = shapes.car_faces()
        self._corners = {steer: _steered(corners, wheels, steer / 2.0) for steer in range(-2, 3)}
        self._normals = {steer: normals_of(faces) for steer, faces in self._corners.items()}
        self._is_wheel = np.array(wheels) >= 0
        self._colors = [np.array([_color(kind, team) for kind in kinds], dtype=np.float64) for team in (0, 1)]
        self._lift = np.where(np.array(kinds) == shapes.HUB, 8.0, 0.0)  # hubs lie on their tyres
        self._glows = np.isin(kinds, (shapes.HEADLIGHT, shapes.TAILLIGHT))

    def paint(self, target: pygame.Surface, camera: Camera, car: CarView, size: float = 1.0) -> None:
        """Paints one car, so many times its size, unless it is behind the camera."""
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
        polygons, shades = (
            camera.picture(seen[order]) + 0.5,
            shades[order].astype(np.int64),
        )  # polygons cut off, not round
        for polygon, shade in zip(polygons.tolist(), shades.tolist(), strict=True):
            pygame.draw.polygon(target, shade, polygon)
            if scale > _SMALL:
                pygame.draw.aalines(target, shade, True, polygon)


def paint_shadow(target: pygame.Surface, camera: Camera, car: CarView, size: float = 1.0) -> None:
    """Paints what a car, so many times its size, leaves of the light on the grass, weaker the higher it is."""
    turn = size * rotation_matrix(car.rotation)
    ground = (_FOOTPRINT @ turn.T)[:, :2] + np.array(car.position[:2])
    seen = camera.see(np.column_stack((ground, np.zeros(len(ground)))))
    polygon = camera.polygon(seen)
    if polygon:
        weak = min(max(car.position[2] - 17.0, 0.0) / 700.0, 1.0)
        pygame.draw.polygon(target, mixed(_SHADOW, GRASS[0], 0.75 * weak), polygon)


def rotation_matrix(rotation: Quaternion) -> Floats:
    """Returns the matrix `(3, 3)` whose columns are a car's axes, forward, left and up, in the world."""
    x, y, z, w = rotation
    return np.array(
        (
            (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)),
            (2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)),
            (2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)),
        )
    )


def _in_sight(place: tuple[float, float, float], camera: Camera) -> bool:
    reach = 120.0 * place[2]
    return -reach < place[0] < camera.size[0] + reach and -reach < place[1] < camera.size[1] + reach


def _steered(corners: Floats, wheels: list[int], steer: float) -> Floats:
    """Returns the faces with the front wheels turned, to the right if `steer` is positive."""
    turned = corners.copy()
    cos, sin = math.cos(-steer * _STEER_RAD), math.sin(-steer * _STEER_RAD)
    turn = np.array(((cos, -sin, 0.0), (sin, cos, 0.0), (0.0, 0.0, 1.0)))
    for number, wheel in enumerate(wheels):
        if wheel in (0, 1):
            axle = np.array(shapes.wheel_axle(wheel))
            turned[number] = (corners[number] - axle) @ turn.T + axle
    return turned


def _color(kind: int, team: int) -> Color:
    colors = {
        shapes.PAINT: TEAMS[team].base,
        shapes.TRIM: mixed(TEAMS[team].dark, (20, 22, 32), 0.45),
        shapes.WINDOW: WINDOW,
        shapes.TYRE: TYRE,
        shapes.HUB: HUB,
        shapes.HEADLIGHT: mixed(LAMP, WHITE, 0.3),
        shapes.TAILLIGHT: (232, 46, 50),
    }
    return colors[kind]
