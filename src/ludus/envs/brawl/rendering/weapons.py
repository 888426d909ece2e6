"""Weapons as shapes: in hand, and lying on the stage with a hint of when they can be taken and when they vanish."""

import math

from ludus.envs.brawl.moves import WeaponModel
from ludus.envs.brawl.rendering.attack_poses import GRIP, is_heavy
from ludus.envs.brawl.rendering.camera import Camera
from ludus.envs.brawl.rendering.palette import MUTED, STEEL, WOOD
from ludus.envs.brawl.rendering.sketch import Point, Sketch
from ludus.envs.brawl.rules import ITEM_LOCK
from ludus.envs.brawl.view import ItemView
from ludus.envs.colors import mixed
from ludus.envs.pygame_tools import pygame

_BLINK_BELOW = 75  # frames of life left at which a lying weapon starts to blink
_OUTLINE = 0.035


def draw_weapon(sketch: Sketch, weapon: WeaponModel, grip: Point, direction: Point) -> None:
    """Draws a weapon held at `grip` with its tip in `direction` (a unit vector on the stage)."""
    if weapon.length <= 0.0:
        return
    heavy = is_heavy(weapon)
    ahead = weapon.length * GRIP
    behind = weapon.length - ahead
    tip = (grip[0] + direction[0] * ahead, grip[1] + direction[1] * ahead)
    tail = (grip[0] - direction[0] * behind, grip[1] - direction[1] * behind)
    side = (-direction[1], direction[0])
    sketch.capsule(tail, tip, 0.04, WOOD)
    if heavy:
        _draw_block(sketch, weapon, tip, direction, side)
    else:
        _draw_blade(sketch, weapon, tip, direction, side)


def _at(origin: Point, direction: Point, side: Point, along: float, across: float) -> Point:
    return (
        origin[0] + direction[0] * along + side[0] * across,
        origin[1] + direction[1] * along + side[1] * across,
    )


def _draw_blade(sketch: Sketch, weapon: WeaponModel, tip: Point, direction: Point, side: Point) -> None:
    def place(along: float, across: float) -> Point:
        return _at(tip, direction, side, along, across)

    sketch.polygon((place(0.06, 0.0), place(-0.22, 0.10), place(-0.34, 0.0), place(-0.22, -0.10)), weapon.color)
    sketch.polygon(
        (place(0.04, 0.0), place(-0.22, 0.0), place(-0.20, -0.07)), mixed(weapon.color, STEEL, 0.8), outlined=False
    )
    sketch.capsule(place(-0.36, -0.07), place(-0.36, 0.07), 0.035, STEEL)


def _draw_block(sketch: Sketch, weapon: WeaponModel, tip: Point, direction: Point, side: Point) -> None:
    def place(along: float, across: float) -> Point:
        return _at(tip, direction, side, along, across)

    block = (place(0.10, 0.26), place(-0.18, 0.26), place(-0.18, -0.26), place(0.10, -0.26))
    sketch.polygon(block, weapon.color)
    lower = (place(0.10, 0.26), place(-0.18, 0.26), place(-0.18, 0.12), place(0.10, 0.12))
    sketch.polygon(lower, mixed(weapon.color, (60, 30, 30), 0.35), outlined=False)
    sketch.capsule(place(-0.04, -0.26), place(-0.04, 0.26), 0.03, STEEL)


def paint_item(target: pygame.Surface, camera: Camera, item: ItemView, weapon: WeaponModel, frame: int) -> None:
    """Paints a lying weapon: grey with a closing ring while locked, glowing when free, blinking before it vanishes."""
    if item.life < _BLINK_BELOW and (item.life // 5) % 2 == 0:
        return
    locked = item.lock > 0
    bob = 0.0 if locked else 0.05 * math.sin(frame * 0.18)
    center = (item.x, item.y - 0.42 + bob)
    shown = weapon.model_copy(update={"color": mixed(weapon.color, MUTED, 0.7)}) if locked else weapon
    angle = -0.62
    direction = (math.cos(angle), math.sin(angle))
    middle = weapon.length * (GRIP - 0.5)
    sketch = Sketch(outline=_OUTLINE)
    draw_weapon(sketch, shown, (center[0] - direction[0] * middle, center[1] - direction[1] * middle), direction)
    sketch.paint(target, camera, 150 if locked else 255)
    _paint_ring(target, camera, center, item, weapon)


def _paint_ring(target: pygame.Surface, camera: Camera, center: Point, item: ItemView, weapon: WeaponModel) -> None:
    ring = Sketch()
    if item.lock > 0:
        share = 1.0 - item.lock / ITEM_LOCK
        dots, color = max(round(16 * share), 1), MUTED
    else:
        dots, color = 16, weapon.color
    for index in range(dots):
        angle = 2.0 * math.pi * index / 16 - math.pi / 2
        ring.circle((center[0] + 0.62 * math.cos(angle), center[1] + 0.62 * math.sin(angle)), 0.035, color)
    ring.paint(target, camera, 200)
