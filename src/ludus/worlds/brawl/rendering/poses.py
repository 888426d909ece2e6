"""Poses of a fighter: where its parts are, in `(forward, down)` units from its centre, as a function of its view.

Poses of attacks follow from the move's own numbers: they reach where its capsules are, in the frames in which they are
active. A move that a user changes or adds is drawn as it works, without a line of drawing code.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from ludus.worlds.brawl.moves import SLOT_NAMES, HitModel, MoveModel, MoveTable, WeaponModel
from ludus.worlds.brawl.rules import BACKDASH_FRAMES, TAUNT_FRAMES, Ground, State
from ludus.worlds.brawl.view import PlayerView

Point: TypeAlias = tuple[float, float]

FLOOR = 0.5  # units below the centre: half a body
CHEST = (0.0, -0.12)  # what blows start from
ARM = 0.21  # units, upper and lower each
LEG = 0.205

HEAVY_RADIUS = 0.3  # units; a weapon whose capsules are thicker on average is swung, a thinner one is thrust
GRIP = 0.72  # share of a weapon that is in front of the hand
_KICK_BELOW = 0.22  # units; bare hands do not reach lower, feet do

_WALK_STRIDE = 1.25  # units a full cycle of both feet
_SPRINT_STRIDE = 1.9


@dataclass(frozen=True, slots=True)
class Pose:
    """One moment of a body."""

    hip: Point = (0.0, 0.14)  # lower end of the trunk
    lean: float = 0.06  # tilt of the trunk, radians forward
    front_hand: Point = (0.27, -0.03)  # the hand that holds the weapon
    back_hand: Point = (0.13, 0.06)  # the other one
    front_foot: Point = (0.15, FLOOR)  # the foot further forward at rest
    back_foot: Point = (-0.15, FLOOR)  # the other one
    weapon_angle: float = -0.95  # direction of the weapon's tip, radians; 0 is forward, positive is downward
    spin: float = 0.0  # turn of the whole body around its centre, radians forward


STANCE = Pose()
RISING = Pose(
    lean=0.12, front_hand=(0.24, -0.24), back_hand=(-0.26, 0.0), front_foot=(0.17, 0.33), back_foot=(-0.14, 0.5)
)
FALLING = Pose(
    lean=-0.05, front_hand=(0.30, -0.30), back_hand=(-0.28, -0.28), front_foot=(0.19, 0.44), back_foot=(-0.16, 0.40)
)


def blend(a: Pose, b: Pose, share: float) -> Pose:
    """Return the pose at `share` (0 to 1) of the way from `a` to `b`."""
    t = min(max(share, 0.0), 1.0)

    def number(x: float, y: float) -> float:
        return x + (y - x) * t

    def place(x: Point, y: Point) -> Point:
        return number(x[0], y[0]), number(x[1], y[1])

    return Pose(
        hip=place(a.hip, b.hip),
        lean=number(a.lean, b.lean),
        front_hand=place(a.front_hand, b.front_hand),
        back_hand=place(a.back_hand, b.back_hand),
        front_foot=place(a.front_foot, b.front_foot),
        back_foot=place(a.back_foot, b.back_foot),
        weapon_angle=number(a.weapon_angle, b.weapon_angle),
        spin=number(a.spin, b.spin),
    )


def breathing(pose: Pose, wave: float) -> Pose:
    """Move trunk and hands a little up and down with `wave` (-1 to 1)."""
    lift = 0.012 * wave
    return replace(
        pose,
        hip=(pose.hip[0], pose.hip[1] + lift),
        front_hand=(pose.front_hand[0], pose.front_hand[1] + 1.6 * lift),
        back_hand=(pose.back_hand[0], pose.back_hand[1] + 1.6 * lift),
    )


@dataclass(frozen=True, slots=True)
class Phase:
    """Where an attack is: its name (`startup`, `active`, `recovery`), how far through (0 to 1) and for which hit."""

    name: str
    share: float
    hit: HitModel


def attack_phase(move: MoveModel, frame: int) -> Phase:
    """Find the phase of a move at a frame; between two hits it is the startup of the second."""
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
    """Return whether a weapon is swung rather than thrust."""
    radii = [hit.radius for move in weapon.moves.values() for hit in move.hits]
    return sum(radii) / len(radii) > HEAVY_RADIUS


def attack_pose(stance: Pose, weapon: WeaponModel, move: MoveModel, frame: int, *, grounded: bool) -> Pose:
    """Return the pose at a frame of a move: drawn back, striking, or returning to `stance`."""
    phase = attack_phase(move, frame)
    strike = _strike(stance, weapon, phase, grounded=grounded)
    if phase.name == "active":
        return strike
    if phase.name == "recovery":
        eased = phase.share * phase.share * (3.0 - 2.0 * phase.share)
        return blend(strike, stance, eased)
    return blend(stance, _windup(strike, weapon, phase.hit), 1.7 * phase.share)


def far_end(hit: HitModel) -> Point:
    """Return the end of a capsule that is farther from the chest: where the blow goes."""
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
    feet = sorted((hit.start, hit.end))
    split = replace(guard, lean=0.0, hip=(0.0, 0.24), front_foot=feet[1], back_foot=feet[0])
    return split if grounded else replace(split, spin=2.0 * math.pi * phase.share * (phase.name == "active"))


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


def pose_of(player: PlayerView, table: MoveTable, frame: int) -> Pose:
    """Return the pose of a fighter at a frame of its match."""
    move = move_of(player, table)
    if player.state == State.ATTACK and move is not None:
        grounded = player.ground != Ground.NONE
        stance = STANCE if grounded else _airborne(player)
        return attack_pose(stance, table.weapons[player.weapon], move, player.move_frame, grounded=grounded)
    return _free_pose(player, frame)


def move_of(player: PlayerView, table: MoveTable) -> MoveModel | None:
    """Return the move that a fighter is doing, if any."""
    return None if player.slot is None else table.weapons[player.weapon].moves[SLOT_NAMES[player.slot]]


def _free_pose(player: PlayerView, frame: int) -> Pose:
    match player.state:
        case State.WALKING:
            return _running(player, _WALK_STRIDE, reach=0.24, lean=0.16)
        case State.SPRINTING:
            return _running(player, _SPRINT_STRIDE, reach=0.36, lean=0.42)
        case State.TURNAROUND | State.AIR_TURNAROUND:
            return replace(STANCE, lean=-0.22, front_foot=(0.24, FLOOR), back_foot=(-0.02, FLOOR))
        case State.IN_AIR:
            return _airborne(player)
        case State.DASH:
            return replace(
                STANCE,
                hip=(-0.04, 0.19),
                lean=0.72,
                front_hand=(-0.02, 0.14),
                back_hand=(-0.26, 0.02),
                front_foot=(0.30, FLOOR),
                back_foot=(-0.40, 0.44),
                weapon_angle=-2.75,
            )
        case State.BACKDASH:
            hop = 0.12 * math.sin(math.pi * player.timer / BACKDASH_FRAMES)
            return replace(STANCE, lean=-0.42, front_foot=(0.34, 0.36 - hop), back_foot=(-0.10, FLOOR - hop))
        case State.DODGE:
            return Pose(hip=(0.0, 0.24), lean=0.55, front_hand=(0.22, 0.18), back_hand=(0.10, 0.22), weapon_angle=-2.2)
        case State.STUN:
            return replace(_flailing(frame), spin=-0.42 * player.timer)
        case State.TAUNT:
            return _taunting(player)
        case State.CLASH:
            return _clashing(player, frame)
    return breathing(STANCE, math.sin(frame * 0.16))


def _airborne(player: PlayerView) -> Pose:
    return blend(RISING, FALLING, 0.5 + player.vy / 12.0)


def _running(player: PlayerView, stride: float, *, reach: float, lean: float) -> Pose:
    # The cycle follows the place, not the clock, so that feet do not slide.
    angle = 2.0 * math.pi * player.x * player.facing / stride
    swing, lift = math.cos(angle), math.sin(angle)
    return replace(
        STANCE,
        hip=(0.0, 0.14 - 0.025 * abs(lift)),
        lean=lean,
        front_foot=(reach * swing, FLOOR - 0.17 * max(-lift, 0.0)),
        back_foot=(-reach * swing, FLOOR - 0.17 * max(lift, 0.0)),
        front_hand=(0.20 - 0.16 * swing, -0.02),
        back_hand=(0.02 + 0.22 * swing, 0.02),
        weapon_angle=-0.8 - 0.5 * lean,
    )


def _flailing(frame: int) -> Pose:
    wave = 0.07 * math.sin(frame * 1.3)
    return Pose(
        lean=-0.25,
        front_hand=(0.34, -0.28 + wave),
        back_hand=(-0.34, -0.22 - wave),
        front_foot=(0.32, 0.38 - wave),
        back_foot=(-0.26, 0.44 + wave),
        weapon_angle=-0.6 + 3.0 * wave,
    )


def _clashing(player: PlayerView, frame: int) -> Pose:
    """Both hands and the weapon against the other's, trembling; it shows nothing of the choice."""
    push = 0.03 * math.sin(frame * 2.1)
    feet = ((0.30, FLOOR), (-0.34, FLOOR)) if player.ground != Ground.NONE else ((0.20, 0.42), (-0.30, 0.36))
    return Pose(
        hip=(-0.04, 0.19),
        lean=0.34 + push,
        front_hand=(0.36 + push, -0.26),
        back_hand=(0.30 + push, -0.12),
        front_foot=feet[0],
        back_foot=feet[1],
        weapon_angle=-1.2 + push,
    )


def _taunting(player: PlayerView) -> Pose:
    beat = abs(math.sin(2.0 * math.pi * 1.5 * player.timer / TAUNT_FRAMES))
    hop = 0.10 * beat if player.ground != Ground.NONE else 0.0
    return Pose(
        hip=(0.0, 0.14 - hop),
        lean=-0.16,
        front_hand=(0.16, -0.62 - 0.08 * beat),
        back_hand=(-0.30, -0.46 - 0.10 * beat),
        front_foot=(0.16, FLOOR - hop),
        back_foot=(-0.16, FLOOR - hop),
        weapon_angle=-1.57,
    )
