"""A fighter as shapes: trunk, head with crested helmet, jointed limbs, scarf and weapon, in the colours of its team."""

import math
from dataclasses import dataclass

from ludus.envs.colors import Team, mixed
from ludus.envs.pygame_tools import pygame
from ludus.worlds.brawl.moves import WeaponModel
from ludus.worlds.brawl.rendering.poses import ARM, GRIP, LEG, Pose, is_heavy
from ludus.worlds.brawl.rendering.sketch import INK, MUTED, SKIN, STEEL, WOOD, Camera, Point, Sketch
from ludus.worlds.brawl.rules import ITEM_LOCK
from ludus.worlds.brawl.view import ItemView

_BLINK_BELOW = 75  # frames of life left at which a lying weapon starts to blink
_OUTLINE = 0.035

_TRUNK = 0.29  # units from hip to neck
_STRETCH = 1.75  # a limb can be drawn this much longer than it is, so that blows reach

_Shades = tuple[tuple[int, int, int], tuple[int, int, int]]


def draw_weapon(sketch: Sketch, weapon: WeaponModel, grip: Point, direction: Point) -> None:
    """Draw a weapon held at `grip` with its tip in `direction` (a unit vector on the stage)."""
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
    """Paint a lying weapon: grey with a closing ring while locked, glowing when free, blinking before it vanishes."""
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


@dataclass(frozen=True, slots=True)
class Frame:
    """Turns places of a pose into places on the stage."""

    x: float
    y: float
    facing: int
    spin: float

    def __call__(self, place: Point) -> Point:
        """Return where `(forward, down)` is on the stage."""
        sine, cosine = math.sin(self.spin), math.cos(self.spin)
        forward, down = place[0] * cosine - place[1] * sine, place[0] * sine + place[1] * cosine
        return self.x + self.facing * forward, self.y + down


@dataclass(frozen=True, slots=True)
class Joints:
    """The places of a body that drawing needs, on the stage."""

    head: Point
    neck: Point
    hip: Point
    front_hand: Point
    frame: Frame


def draw_figure(sketch: Sketch, pose: Pose, frame: Frame, team: Team, wind: Point) -> Joints:
    """Draw a fighter without its weapon arm and head, which go over a weapon; see `draw_front`.

    `wind` is the direction in which its scarf trails, on the stage (units).
    """
    hip = pose.hip
    neck = (hip[0] + _TRUNK * math.sin(pose.lean), hip[1] - _TRUNK * math.cos(pose.lean))
    head = (neck[0] + 0.20 * math.sin(pose.lean * 0.6) + 0.02, neck[1] - 0.17 * math.cos(pose.lean))
    shoulder = (neck[0], neck[1] + 0.06)
    back_shade = mixed(team.dark, INK, 0.25)
    _draw_scarf(sketch, frame(neck), wind, team)
    _draw_arm(sketch, frame, shoulder, pose.back_hand, (back_shade, mixed(SKIN, INK, 0.30)))
    _draw_leg(sketch, frame, hip, pose.back_foot, (back_shade, mixed(STEEL, INK, 0.45)))
    _draw_leg(sketch, frame, (hip[0] + 0.03, hip[1]), pose.front_foot, (team.dark, mixed(STEEL, INK, 0.15)))
    sketch.capsule(frame(hip), frame(neck), 0.125, team.base, end_radius=0.165)
    belt = (hip[0] + 0.05 * math.sin(pose.lean), hip[1] - 0.05)
    sketch.capsule(
        frame((belt[0] - 0.09, belt[1])), frame((belt[0] + 0.09, belt[1])), 0.035, mixed(team.light, SKIN, 0.4)
    )
    return Joints(frame(head), frame(neck), frame(hip), frame(pose.front_hand), frame)


def draw_front(sketch: Sketch, pose: Pose, joints: Joints, team: Team) -> None:
    """Draw the head and the arm that holds the weapon."""
    frame = joints.frame
    _draw_head(sketch, joints, pose.lean, team)
    neck = (pose.hip[0] + _TRUNK * math.sin(pose.lean), pose.hip[1] - _TRUNK * math.cos(pose.lean))
    _draw_arm(sketch, frame, (neck[0] + 0.02, neck[1] + 0.07), pose.front_hand, (team.base, SKIN))


def two_bones(start: Point, target: Point, length: float, bend: float) -> tuple[Point, Point]:
    """Return joint and end of a limb of two equal bones that reaches from shoulder or hip for `target`.

    It is stretched a little if it must. `bend` is the side to which the joint bends, +1 or -1.
    """
    dx, dy = target[0] - start[0], target[1] - start[1]
    distance = math.hypot(dx, dy) or 1e-6
    ux, uy = dx / distance, dy / distance
    reach = min(distance, 2.0 * length * _STRETCH)
    half = reach / 2.0
    height = math.sqrt(max(length * length - half * half, 0.0)) * bend
    joint = (start[0] + ux * half - uy * height, start[1] + uy * half + ux * height)
    return joint, (start[0] + ux * reach, start[1] + uy * reach)


def _draw_arm(sketch: Sketch, frame: Frame, shoulder: Point, hand: Point, shades: _Shades) -> None:
    elbow, end = two_bones(shoulder, hand, ARM, 1.0)
    sketch.capsule(frame(shoulder), frame(elbow), 0.075, shades[0], end_radius=0.06)
    sketch.capsule(frame(elbow), frame(end), 0.06, shades[1], end_radius=0.055)
    sketch.circle(frame(end), 0.085, shades[1])


def _draw_leg(sketch: Sketch, frame: Frame, hip: Point, foot: Point, shades: _Shades) -> None:
    knee, end = two_bones(hip, (foot[0], foot[1] - 0.06), LEG, -1.0)
    sketch.capsule(frame(hip), frame(knee), 0.095, shades[0], end_radius=0.075)
    sketch.capsule(frame(knee), frame(end), 0.07, shades[1], end_radius=0.06)
    sketch.capsule(frame((end[0] - 0.02, end[1] + 0.005)), frame((end[0] + 0.09, end[1] + 0.01)), 0.055, shades[1])


def _draw_head(sketch: Sketch, joints: Joints, lean: float, team: Team) -> None:
    frame, head = joints.frame, joints.head
    tilt = Frame(head[0], head[1], frame.facing, frame.spin + 0.5 * lean)
    crest = tuple(tilt((0.21 * math.cos(a) - 0.03, 0.21 * math.sin(a) - 0.06)) for a in (-0.9, -1.5, -2.2, -2.9, -3.6))
    inner = tuple(tilt((0.12 * math.cos(a), 0.12 * math.sin(a))) for a in (-3.4, -1.2))
    sketch.polygon((*crest, *inner), team.light)
    sketch.circle(head, 0.185, team.base)
    sketch.capsule(tilt((0.05, 0.09)), tilt((0.12, 0.07)), 0.075, SKIN)
    sketch.capsule(tilt((-0.13, -0.01)), tilt((0.15, -0.01)), 0.045, team.dark)
    sketch.capsule(tilt((0.06, 0.0)), tilt((0.15, 0.0)), 0.028, (255, 250, 230))


def _draw_scarf(sketch: Sketch, neck: Point, wind: Point, team: Team) -> None:
    length = math.hypot(*wind) or 1e-6
    side = (-wind[1] / length, wind[0] / length)
    start = neck
    for index, (share, wave) in enumerate(((0.4, 0.05), (0.75, -0.05), (1.0, 0.03))):
        end = (neck[0] + wind[0] * share + side[0] * wave, neck[1] + wind[1] * share + side[1] * wave)
        sketch.capsule(start, end, 0.075 - 0.015 * index, team.light, end_radius=0.060 - 0.015 * index)
        start = end
