"""Poses of attacks, from the move's own numbers: they reach where its capsules are, in the frames in which they are.

So a move that a user changes or adds is drawn as it works, without a line of drawing code.
"""

import math
from dataclasses import dataclass, replace

from ludus.envs.brawl.moves import HitModel, MoveModel, WeaponModel
from ludus.envs.brawl.rendering.pose import CHEST, FLOOR, Point, Pose, blend

HEAVY_RADIUS = 0.3  # units; a weapon whose capsules are thicker on average is swung, a thinner one is thrust
GRIP = 0.72  # share of a weapon that is in front of the hand
_KICK_BELOW = 0.22  # units; bare hands do not reach lower, feet do


@dataclass(frozen=True, slots=True)
class Phase:
    """Where an attack is: its name (`startup`, `active`, `recovery`), how far through (0 to 1) and for which hit."""

    name: str
    share: float
    hit: HitModel


def attack_phase(move: MoveModel, frame: int) -> Phase:
    """Finds the phase of a move at a frame; between two hits it is the startup of the second."""
    before = 0
    for hit in sorted(move.hits, key=lambda hit: hit.frames):
        first, last = hit.frames
        if frame < first:
            return Phase("startup", (frame - before) / max(first - before, 1), hit)
        if frame <= last:
            return Phase("active", (frame - first + 1) / (last - first + 1), hit)
        before = last
    final = max(move.hits, key=lambda hit: hit.frames[1])
    return Phase("recovery", (frame - before) / max(move.total - before, 1), final)


def is_heavy(weapon: WeaponModel) -> bool:
    """Whether a weapon is swung rather than thrust."""
    radii = [hit.radius for move in weapon.moves.values() for hit in move.hits]
    return sum(radii) / len(radii) > HEAVY_RADIUS


def attack_pose(stance: Pose, weapon: WeaponModel, move: MoveModel, frame: int, *, grounded: bool) -> Pose:
    """Returns the pose at a frame of a move: drawn back, striking, returning to `stance`."""
    phase = attack_phase(move, frame)
    strike = _strike(stance, weapon, phase, grounded=grounded)
    if phase.name == "active":
        return strike
    if phase.name == "recovery":
        eased = phase.share * phase.share * (3.0 - 2.0 * phase.share)
        return blend(strike, stance, eased)
    return blend(stance, _windup(strike, weapon, phase.hit), 1.7 * phase.share)


def far_end(hit: HitModel) -> Point:
    """Returns the end of a capsule that is farther from the chest: where the blow goes."""
    return max((hit.end, hit.start), key=lambda end: math.dist(end, CHEST))


def _is_two_sided(hit: HitModel) -> bool:
    return hit.start[0] * hit.end[0] < -0.2


def _direction(hit: HitModel) -> Point:
    tip = far_end(hit)
    dx, dy = tip[0] - CHEST[0], tip[1] - CHEST[1]
    length = math.hypot(dx, dy) or 1.0
    return dx / length, dy / length


def _strike(stance: Pose, weapon: WeaponModel, phase: Phase, *, grounded: bool) -> Pose:
    hit, tip = phase.hit, far_end(phase.hit)
    dx, dy = _direction(hit)
    wide = replace(stance, lean=0.34 * dx, hip=(0.08 * dx, 0.14 + 0.05 * max(dy, 0.0)))
    if grounded:
        wide = replace(wide, front_foot=(0.27, FLOOR), back_foot=(-0.27, FLOOR))
    if weapon.length > 0.0:
        reach = min(max(math.dist(tip, CHEST) - GRIP * weapon.length, 0.25), 0.60)
        hand = (CHEST[0] + reach * dx, CHEST[1] + reach * dy)
        other = (CHEST[0] + 0.17 * dx, CHEST[1] + 0.17 * dy + 0.05)
        return replace(wide, front_hand=hand, back_hand=other, weapon_angle=math.atan2(dy, dx))
    if tip[1] <= _KICK_BELOW and not _is_two_sided(hit):
        return replace(wide, front_hand=tip, back_hand=(-0.12, 0.0))
    guard = replace(wide, lean=-0.30 * dx, front_hand=(0.20, -0.16), back_hand=(-0.18, -0.10))
    if not _is_two_sided(hit):
        foot = (-0.10, FLOOR) if grounded else (-0.05, 0.36)
        return replace(guard, front_foot=tip, back_foot=foot)
    split = replace(guard, lean=0.0, hip=(0.0, 0.24), front_foot=_forward(hit), back_foot=_backward(hit))
    return split if grounded else replace(split, spin=2.0 * math.pi * phase.share * (phase.name == "active"))


def _forward(hit: HitModel) -> Point:
    return max(hit.start, hit.end)


def _backward(hit: HitModel) -> Point:
    return min(hit.start, hit.end)


def _windup(strike: Pose, weapon: WeaponModel, hit: HitModel) -> Pose:
    dx, dy = _direction(hit)
    back = replace(strike, lean=-0.28 * dx, hip=(-0.07 * dx, 0.17), spin=0.0)
    hand = (CHEST[0] - 0.24 * dx, CHEST[1] - 0.20 * dy)
    if weapon.length > 0.0:
        if not is_heavy(weapon):
            return replace(back, front_hand=hand, back_hand=(hand[0] + 0.16 * dx, hand[1] + 0.16 * dy))
        # A swing comes from behind and above; an upward one from below.
        turn = 2.3 if dy < -0.7 else -2.3
        return replace(back, front_hand=(-0.16, -0.26), back_hand=(0.0, -0.18), weapon_angle=strike.weapon_angle + turn)
    if far_end(hit)[1] <= _KICK_BELOW and not _is_two_sided(hit):
        return replace(back, front_hand=hand, back_hand=(0.24, -0.06))
    return replace(back, lean=-0.12, front_foot=(0.12, 0.28), back_foot=(-0.08, FLOOR))
