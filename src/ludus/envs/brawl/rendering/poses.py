"""Which pose a fighter is in: a pure function of what is seen of it."""

import math
from dataclasses import replace

from ludus.envs.brawl.moves import SLOT_NAMES, MoveModel, MoveTable
from ludus.envs.brawl.rendering.attack_poses import attack_pose
from ludus.envs.brawl.rendering.pose import FALLING, FLOOR, RISING, STANCE, Pose, blend, breathing
from ludus.envs.brawl.rules import BACKDASH_FRAMES, TAUNT_FRAMES, Ground, State
from ludus.envs.brawl.view import PlayerView

_WALK_STRIDE = 1.25  # units a full cycle of both feet
_SPRINT_STRIDE = 1.9


def pose_of(player: PlayerView, table: MoveTable, frame: int) -> Pose:
    """Returns the pose of a fighter at a frame of its match."""
    move = move_of(player, table)
    if player.state == State.ATTACK and move is not None:
        grounded = player.ground != Ground.NONE
        stance = STANCE if grounded else _airborne(player)
        return attack_pose(stance, table.weapons[player.weapon], move, player.move_frame, grounded=grounded)
    return _free_pose(player, frame)


def move_of(player: PlayerView, table: MoveTable) -> MoveModel | None:
    """Returns the move that a fighter is doing, if any."""
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
