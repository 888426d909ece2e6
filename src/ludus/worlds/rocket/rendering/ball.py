"""The ball as a camera sees it: a lit sphere with dark patches that turn with it, its shadow and its height."""

import math
from functools import lru_cache

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.rocket.rendering.camera import Camera, Floats, Pixel
from ludus.worlds.rocket.rendering.palette import BALL, BALL_DARK, GRASS, WHITE
from ludus.worlds.rocket.rules import BALL_RADIUS
from ludus.worlds.rocket.view import Vector

_LARGE = 320  # pixels; the sphere is painted once with this diameter
_MOST = 900  # pixels; a nearer ball is not painted larger
_PATCH_RAD = 0.34  # from the middle of a patch to its corners
_SHADOW: Color = (18, 44, 38)
_LIFTED = 160.0  # uu; above this height a line shows where the ball is


def patches() -> tuple[Floats, Floats]:
    """Return the middles `(12, 3)` and the corners `(12, 5, 3)` of patches on a sphere of radius 1."""
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    middles = np.array(
        [(0.0, a, b * golden) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
        + [(a, b * golden, 0.0) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
        + [(b * golden, 0.0, a) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    ) / math.hypot(1.0, golden)
    corners = []
    for middle in middles:
        # The five nearest neighbours say which way the corners of a patch point.
        neighbours = middles[np.argsort(-(middles @ middle))[1:6]]
        flat = neighbours - np.outer(neighbours @ middle, middle)
        flat /= np.linalg.norm(flat, axis=1, keepdims=True)
        aside = np.cross(middle, flat[0])
        turned = flat[np.argsort(np.arctan2(flat @ aside, flat @ flat[0]))]
        corners.append(math.cos(_PATCH_RAD) * middle + math.sin(_PATCH_RAD) * turned)
    return middles, np.array(corners)


class BallPainter:
    """Paints the ball."""

    def __init__(self) -> None:
        self._middles, self._corners = patches()
        self._sphere = lru_cache(maxsize=96)(_scaled_sphere)

    def paint(self, target: pygame.Surface, camera: Camera, position: Vector, turn: Floats, size: float = 1.0) -> None:
        """Paint the ball at a position, rotated by the matrix `(3, 3)` and scaled by `size`."""
        place = camera.pixel(position)
        if place is None:
            return
        x, y, scale = place
        radius = size * BALL_RADIUS * scale
        if not (-radius < x < camera.size[0] + radius and -radius < y < camera.size[1] + radius) or radius > _MOST:
            return
        sphere = self._sphere(max(round(2.0 * radius), 3))
        half = sphere.get_width() / 2.0
        target.blit(sphere, (round(x - half), round(y - half)))
        if radius > 4.0:
            axes = camera.facing(position)
            self._paint_patches(target, (x, y), radius, turn.T @ axes)

    def _paint_patches(self, target: pygame.Surface, center: tuple[float, float], radius: float, turn: Floats) -> None:
        """Paint the dark patches; `turn` takes them to the axes right, up and toward the eye."""
        middles, corners = self._middles @ turn, self._corners @ turn
        for middle, patch in zip(middles, corners, strict=True):
            if middle[2] < 0.12:
                continue
            flat = patch[:, :2].copy()
            behind = patch[:, 2] < 0.0
            flat[behind] /= np.linalg.norm(flat[behind], axis=1, keepdims=True)
            shade = mixed(BALL_DARK, (22, 26, 38), 0.5 - 0.5 * float(middle[1]))
            points = [(center[0] + radius * px + 0.5, center[1] - radius * py + 0.5) for px, py in flat.tolist()]
            pygame.draw.polygon(target, shade, points)
            pygame.draw.aalines(target, shade, True, points)


def paint_ball_shadow(target: pygame.Surface, camera: Camera, position: Vector, size: float = 1.0) -> None:
    """Paint the shadow of a ball scaled by `size`; in the air with a ring and a line up to it."""
    x, y, z = position
    lift = max(z - BALL_RADIUS, 0.0)
    if disc := _circle(camera, (x, y), size * BALL_RADIUS * 0.95):
        pygame.draw.polygon(target, mixed(_SHADOW, GRASS[0], min(lift / 2200.0, 0.8)), disc)
    if lift < _LIFTED:
        return
    if ring := _circle(camera, (x, y), size * BALL_RADIUS * 1.35):
        pygame.draw.aalines(target, WHITE, True, ring)
    foot, top = camera.pixel((x, y, 0.0)), camera.pixel((x, y, z - BALL_RADIUS))
    if foot is not None and top is not None:
        pygame.draw.aaline(target, mixed(WHITE, GRASS[0], 0.35), foot[:2], top[:2])


def _circle(camera: Camera, center: tuple[float, float], radius: float) -> list[Pixel]:
    """Return the pixels of a circle on the ground."""
    angles = np.linspace(0.0, 2.0 * math.pi, 28, endpoint=False)
    x, y = center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)
    return camera.polygon(camera.see(np.column_stack((x, y, np.zeros(len(angles))))))


def _scaled_sphere(diameter: int) -> pygame.Surface:
    return pygame.transform.smoothscale(_painted_sphere(), (diameter, diameter))


@lru_cache(maxsize=1)
def _painted_sphere() -> pygame.Surface:
    """Return a sphere that is lit from the upper left."""
    side = np.linspace(-1.0, 1.0, _LARGE)
    x, y = np.meshgrid(side, -side, indexing="ij")
    inside = x * x + y * y
    z = np.sqrt(np.clip(1.0 - inside, 0.0, 1.0))
    light = np.clip(0.55 + 0.5 * (-0.35 * x + 0.62 * y + 0.70 * z), 0.25, 1.06)
    rim = 0.72 + 0.28 * np.sqrt(z)
    sphere = new_surface((_LARGE, _LARGE), alpha=True)
    colors = pygame.surfarray.pixels3d(sphere)
    colors[:] = np.clip(np.array(BALL) * (light * rim)[..., None], 0.0, 255.0).astype(np.uint8)
    del colors
    alpha = pygame.surfarray.pixels_alpha(sphere)
    alpha[:] = np.where(inside <= 0.995, 255, 0)
    del alpha
    return sphere
