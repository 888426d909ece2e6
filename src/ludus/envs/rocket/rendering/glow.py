"""Glowing spots: they are added to what is behind them, brighter in the middle."""

import math
from functools import lru_cache

import numpy as np

from ludus.envs.colors import Color
from ludus.envs.pygame_tools import new_surface, pygame

_PER_STEP = 6.0  # sizes that are kept while one grows e times as large
_SIZES = [round(2.0 * math.exp(step / _PER_STEP)) for step in range(30)]  # pixels; the last is the largest


def add_glow(target: pygame.Surface, place: tuple[float, float], radius: float, color: Color) -> None:
    """Adds a spot of light of a radius in pixels."""
    if radius < 1.0:
        return
    size = _SIZES[min(int(math.log(radius) * _PER_STEP) + 1, len(_SIZES) - 1)]
    left, top = place[0] - size / 2.0, place[1] - size / 2.0
    width, height = target.get_size()
    if -size < left < width and -size < top < height:
        target.blit(_spot(size, color), (left, top), special_flags=pygame.BLEND_RGB_ADD)


def faded(color: Color, share: float) -> Color:
    """Returns a colour of light that has faded to a share of its strength, in few steps so that spots can be kept."""
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
