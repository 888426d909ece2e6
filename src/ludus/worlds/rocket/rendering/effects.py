"""Everything that glows: boost flames, trails, explosions and goals. Glows are added to what is behind them."""

import math
from functools import lru_cache

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.rocket.rendering.camera import NEAR, Camera, rotation_matrix
from ludus.worlds.rocket.rendering.director import TRAIL_S, History, tail_of
from ludus.worlds.rocket.rendering.palette import FIRE, FLAME, TEAMS, WHITE
from ludus.worlds.rocket.rules import BACK_Y, DEMOLITION_S
from ludus.worlds.rocket.view import CarView, MatchView

_PER_STEP = 6.0  # sizes that are kept while one grows e times as large
_SIZES = [round(2.0 * math.exp(step / _PER_STEP)) for step in range(30)]  # pixels; the last is the largest

EXPLOSION_S = 0.9
_FLAME_LENGTH = 92.0
_DEBRIS = 16


def add_glow(target: pygame.Surface, place: tuple[float, float], radius: float, color: Color) -> None:
    """Add a spot of light of a radius in pixels."""
    if radius < 1.0:
        return
    size = _SIZES[min(int(math.log(radius) * _PER_STEP) + 1, len(_SIZES) - 1)]
    left, top = place[0] - size / 2.0, place[1] - size / 2.0
    width, height = target.get_size()
    if -size < left < width and -size < top < height:
        target.blit(_spot(size, color), (left, top), special_flags=pygame.BLEND_RGB_ADD)


def faded(color: Color, share: float) -> Color:
    """Return a colour of light that has faded to a share of its strength, in few steps so that spots can be kept."""
    strength = round(min(max(share, 0.0), 1.0) * 10.0) / 10.0
    return round(color[0] * strength), round(color[1] * strength), round(color[2] * strength)


@lru_cache(maxsize=256)
def _spot(size: int, color: Color) -> pygame.Surface:
    spot = _white_spot(size).copy()
    spot.fill(color, special_flags=pygame.BLEND_RGB_MULT)
    return spot


@lru_cache(maxsize=48)
def _white_spot(size: int) -> pygame.Surface:
    side = np.linspace(-1.0, 1.0, size)
    x, y = np.meshgrid(side, side)
    strength = np.clip(1.0 - np.sqrt(x * x + y * y), 0.0, 1.0) ** 1.7
    spot = new_surface((size, size))
    pixels = pygame.surfarray.pixels3d(spot)
    pixels[:] = (255.0 * strength[..., None]).astype(np.uint8)
    del pixels
    return spot


def paint_trails(target: pygame.Surface, camera: Camera, view: MatchView, history: History) -> None:
    """Paint the trails of boost and supersonic speed."""
    for car, trail in zip(view.cars, history.trails, strict=True):
        if not trail:
            continue
        places = np.array([puff.place for puff in trail])
        ages = (view.time_s - np.array([puff.time_s for puff in trail])) / TRAIL_S
        places = np.concatenate((places, (places[:-1] + places[1:]) / 2.0))  # denser, so that no gap shows
        ages = np.concatenate((ages, (ages[:-1] + ages[1:]) / 2.0))
        seen = camera.see(places)
        ahead = seen[:, 2] > NEAR
        pixels = camera.picture(seen[ahead])
        radii = (16.0 + 20.0 * ages[ahead]) * camera.focal / seen[ahead, 2]
        light = mixed(TEAMS[car.team].base, WHITE, 0.3 if car.supersonic else 0.0)
        for pixel, age, radius in zip(pixels.tolist(), ages[ahead].tolist(), radii.tolist(), strict=True):
            add_glow(target, pixel, radius, faded(light, 0.7 * (1.0 - age)))


def paint_flame(target: pygame.Surface, camera: Camera, car: CarView, time_s: float, size: float = 1.0) -> None:
    """Paint the flame of a boosting car, scaled by `size`; it flickers with time."""
    tail = tail_of(car, size)
    backward = -rotation_matrix(car.rotation)[:, 0]
    length = size * _FLAME_LENGTH * (0.82 + 0.18 * math.sin(time_s * 61.0) * math.sin(time_s * 37.0 + 1.3))
    start = camera.pixel(tail)
    if start is None:
        return
    add_glow(target, start[:2], size * 46.0 * start[2], faded(FLAME, 0.6))
    for share, width, color in ((1.0, 15.0, (255, 122, 36)), (0.72, 10.0, FLAME), (0.42, 6.0, (255, 244, 214))):
        end = camera.pixel((np.array(tail) + share * length * backward).tolist())
        if end is not None:
            _paint_cone(target, start[:2], end[:2], size * width * start[2], color)


def paint_explosion(target: pygame.Surface, camera: Camera, car: CarView, seat: int) -> None:
    """Paint the debris of a car that was demolished less than `EXPLOSION_S` ago."""
    age_s = DEMOLITION_S - car.demolished_s
    spot = camera.pixel(car.position)
    if spot is None or age_s > EXPLOSION_S:
        return
    share = max(age_s, 0.0) / EXPLOSION_S
    place, scale = spot[:2], spot[2]
    fire = FIRE[min(int(share * len(FIRE)), len(FIRE) - 1)]
    add_glow(target, place, (170.0 + 330.0 * math.sqrt(share)) * scale, faded(fire, 1.0 - share))
    add_glow(target, place, 150.0 * scale, faded(WHITE, 1.0 - 2.5 * share))
    ring = (60.0 + 420.0 * math.sqrt(share)) * scale
    if 2.0 < ring < 2000.0:
        color = mixed(TEAMS[car.team].light, FIRE[2], share)
        pygame.draw.circle(target, color, place, ring, max(round(14.0 * scale * (1.0 - share)), 1))
    random = np.random.default_rng(seat)
    ways = random.normal(size=(_DEBRIS, 3)) * (420.0, 420.0, 260.0) + (0.0, 0.0, 420.0)
    pieces = np.array(car.position) + ways * age_s + np.array((0.0, 0.0, -450.0)) * age_s**2
    for number, (x, y, z) in enumerate(pieces.tolist()):
        where = camera.pixel((x, y, max(z, 8.0)))
        if where is not None:
            _paint_shard(target, where, number + 9.0 * age_s, (fire, TEAMS[car.team].base, (40, 42, 52))[number % 3])


def paint_goal(target: pygame.Surface, camera: Camera, history: History) -> None:
    """Paint the light in the goal in which the last goal fell."""
    if history.scorer < 0:
        return
    share = min(history.goal_age_s / 1.4, 1.0)
    side = 1.0 if history.scorer == 0 else -1.0
    color = TEAMS[history.scorer].base
    for number in range(14):
        angle = number * 2.4 + 0.6
        reach = (200.0 + 1500.0 * math.sqrt(share)) * (0.35 + 0.65 * ((number * 7) % 10) / 10.0)
        place = (reach * math.cos(angle), side * (BACK_Y - 0.6 * reach * share), 330.0 + 0.7 * reach * math.sin(angle))
        spot = camera.pixel((place[0], place[1], max(place[2], 20.0)))
        if spot is not None:
            add_glow(target, spot[:2], (190.0 + 160.0 * share) * spot[2], faded(color, 1.0 - share))


def _paint_cone(
    target: pygame.Surface, start: tuple[float, float], end: tuple[float, float], radius: float, color: Color
) -> None:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    pygame.draw.circle(target, color, start, max(radius, 1.0))
    if length > 1.0:
        nx, ny = -dy / length * radius, dx / length * radius
        points = ((start[0] + nx, start[1] + ny), end, (start[0] - nx, start[1] - ny))
        pygame.draw.polygon(target, color, points)
        pygame.draw.aalines(target, color, False, points)


def _paint_shard(target: pygame.Surface, where: tuple[float, float, float], angle: float, color: Color) -> None:
    x, y, scale = where
    size = 15.0 * scale
    points = [(x + size * math.cos(angle + turn), y + size * math.sin(angle + turn)) for turn in (0.0, 2.0, 3.6)]
    pygame.draw.polygon(target, color, points)
