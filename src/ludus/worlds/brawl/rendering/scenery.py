"""The scenery: an arcaded yard at dusk, two stone grounds over the gap, and the moving platform. Painted once."""

import math

import numpy as np

from ludus.envs.colors import Color, mixed
from ludus.envs.pygame_tools import new_surface, pygame
from ludus.worlds.brawl import rules
from ludus.worlds.brawl.rendering import sketch as palette
from ludus.worlds.brawl.rendering.sketch import Camera, Sketch


def paint_scenery(camera: Camera, *, mirrored: bool) -> pygame.Surface:
    """Return everything that never moves; the high ground is on the right, or on the left if mirrored."""
    large = Camera((camera.size[0] * 2, camera.size[1] * 2))
    surface = new_surface(large.size)
    _paint_sky(surface)
    _paint_moon(surface, large)
    _paint_arcade(surface, large, top=-3.4, arch=2.1, color=palette.FAR_WALL, shift=0.35)
    _paint_arcade(surface, large, top=-0.6, arch=3.1, color=palette.NEAR_WALL, shift=0.0)
    _paint_mist(surface)
    high_side = -1.0 if mirrored else 1.0
    _paint_ground(surface, large, high_side, rules.HIGH_TOP)
    _paint_ground(surface, large, -high_side, rules.LOW_TOP)
    return pygame.transform.smoothscale(surface, camera.size)


def paint_platform(target: pygame.Surface, camera: Camera, x: float, y: float) -> None:
    """Paint the platform with the centre of its top at a place on the stage."""
    half, thick = rules.PLATFORM_HALF_WIDTH, rules.PLATFORM_THICKNESS
    glow = Sketch()
    glow.polygon(((x - 0.5, y + thick), (x + 0.5, y + thick), (x + 0.2, y + 0.75), (x - 0.2, y + 0.75)), palette.BRASS)
    glow.paint(target, camera, 40)
    sketch = Sketch(outline=0.04)
    sketch.polygon(((x - 0.30, y + thick), (x + 0.30, y + thick), (x, y + 0.46)), palette.STONE_DARK)
    sketch.polygon(((x - half, y), (x + half, y), (x + half, y + thick), (x - half, y + thick)), palette.WOOD)
    sketch.polygon(((x - half, y), (x + half, y), (x + half, y + 0.07), (x - half, y + 0.07)), palette.BRASS)
    for offset in (-0.80, -0.40, 0.0, 0.40, 0.80):
        sketch.circle((x + offset, y + 0.135), 0.03, palette.INK, outlined=False)
    sketch.circle((x, y + 0.30), 0.07, (255, 226, 140), outlined=False)
    sketch.paint(target, camera)


def _paint_sky(surface: pygame.Surface) -> None:
    """A gradient through the colours of `SKY`, and stars in its upper half."""
    width, height = surface.get_size()
    for row in range(height):
        place = row / height * (len(palette.SKY) - 1)
        index = min(int(place), len(palette.SKY) - 2)
        pygame.draw.line(
            surface, mixed(palette.SKY[index], palette.SKY[index + 1], place - index), (0, row), (width, row)
        )
    drawn = np.random.default_rng(7)  # a fixed sky
    for x, y, size in drawn.random((110, 3)):
        spot = (int(x * width), int(y * y * height * 0.55))
        pygame.draw.circle(
            surface, mixed(palette.SKY[1], (235, 232, 245), 0.25 + 0.6 * size), spot, 1 + round(1.6 * size)
        )


def _paint_moon(surface: pygame.Surface, camera: Camera) -> None:
    center = camera.point(0.0, -2.6)
    reach = round(camera.scale * 4.2)
    glow = new_surface((2 * reach, 2 * reach), alpha=True)
    for step in range(24):
        share = step / 23
        pygame.draw.circle(
            glow, (*palette.MOON, round(60 * share * share)), (reach, reach), reach * (1.0 - 0.5 * share)
        )
    surface.blit(glow, (center[0] - reach, center[1] - reach))
    pygame.draw.circle(surface, mixed(palette.SKY[2], palette.MOON, 0.55), center, camera.scale * 1.9)
    for dx, dy, radius in ((-0.6, -0.4, 0.42), (0.5, 0.5, 0.3), (0.35, -0.9, 0.22)):
        spot = camera.point(dx, -2.6 + dy)
        pygame.draw.circle(surface, mixed(palette.SKY[2], palette.MOON, 0.45), spot, camera.scale * radius)


def _paint_arcade(
    surface: pygame.Surface, camera: Camera, *, top: float, arch: float, color: Color, shift: float
) -> None:
    """A wall of arches from side to side; the sky is seen through them."""
    wall = new_surface(surface.get_size(), alpha=True)
    left, upper = camera.point(-15.0, top)
    pygame.draw.rect(wall, color, (left, upper, surface.get_width() - 2 * left, surface.get_height() - upper))
    cornice = mixed(color, palette.STONE_LIGHT, 0.22)
    pygame.draw.rect(wall, cornice, (left, upper, surface.get_width() - 2 * left, camera.scale * 0.14))
    count = math.ceil(30.0 / arch)
    for index in range(count + 1):
        x = -15.0 + (index + shift) * arch
        radius = arch * 0.33
        center = camera.point(x, top + 0.55 + radius)
        pygame.draw.circle(wall, (0, 0, 0, 0), center, radius * camera.scale)
        box = (center[0] - radius * camera.scale, center[1], 2 * radius * camera.scale, camera.scale * 12.0)
        pygame.draw.rect(wall, (0, 0, 0, 0), box)
        pillar = camera.point(x + arch / 2, top + 0.28)
        pygame.draw.circle(wall, cornice, pillar, camera.scale * 0.10)
    surface.blit(wall, (0, 0))


def _paint_mist(surface: pygame.Surface) -> None:
    """Darkness that rises from the gap, so that the grounds and fighters stand out."""
    width, height = surface.get_size()
    mist = new_surface((1, height), alpha=True)
    for row in range(height):
        share = max(row / height - 0.35, 0.0) / 0.65
        mist.set_at((0, row), (20, 18, 38, round(215 * share**1.1)))
    surface.blit(pygame.transform.scale(mist, (width, height)), (0, 0))


def _paint_ground(surface: pygame.Surface, camera: Camera, side: float, top: float) -> None:
    inner, outer = sorted((side * rules.GROUND_INNER, side * rules.GROUND_OUTER))
    left, upper = camera.point(inner, top)
    right, lower = camera.point(outer, rules.KILL_Y)
    scale = camera.scale
    block = pygame.Rect(left, upper, right - left, lower - upper)
    pygame.draw.rect(surface, palette.INK, block.inflate(scale * 0.08, scale * 0.08))
    pygame.draw.rect(surface, palette.STONE, block)
    _paint_courses(surface, camera, block)
    for index in range(3):
        _paint_niche(surface, scale, left + (index + 0.5) / 3 * block.width, upper + scale * 1.35)
    shade = new_surface((1, block.height), alpha=True)
    for row in range(block.height):
        shade.set_at((0, row), (*palette.INK, round(190 * (row / block.height) ** 0.8)))
    surface.blit(pygame.transform.scale(shade, block.size), block)
    pygame.draw.rect(surface, palette.STONE_LIGHT, (left, upper, block.width, scale * 0.30))
    pygame.draw.rect(surface, palette.SAND, (left, upper, block.width, scale * 0.13))
    pygame.draw.rect(surface, palette.STONE_DARK, (left, upper + scale * 0.30, block.width, scale * 0.05))


def _paint_niche(surface: pygame.Surface, scale: float, x: float, y: float) -> None:
    for width, color in ((0.86, palette.STONE_DARK), (0.66, mixed(palette.STONE_DARK, palette.INK, 0.55))):
        niche = pygame.Rect(0, 0, scale * width, scale * 0.85)
        niche.midtop = (round(x), round(y))
        pygame.draw.circle(surface, color, (x, y), scale * width / 2)
        pygame.draw.rect(surface, color, niche)


def _paint_courses(surface: pygame.Surface, camera: Camera, block: pygame.Rect) -> None:
    """Joints between the stones."""
    scale, joint = camera.scale, mixed(palette.STONE, palette.STONE_DARK, 0.55)
    for row in range(1, 20):
        y = block.top + row * scale * 0.44
        if y > block.bottom:
            return
        pygame.draw.line(surface, joint, (block.left, y), (block.right, y), 3)
        for column in range(8):
            x = block.left + (column + 0.5 * (row % 2)) * scale * 0.72
            if block.left < x < block.right:
                pygame.draw.line(surface, joint, (x, y), (x, y + scale * 0.44), 3)
