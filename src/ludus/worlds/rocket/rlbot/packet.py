"""A game packet of RLBot v5, reduced to what an observation needs, and the mirror between its world and ours.

Lengths are in uu, times in s, angles in rad. `read_packet` converts RLBot's flat types by the names of their fields, so
the package `rlbot` (2.x) is not imported; recordings store packets as JSON.

The game's coordinates are left-handed, ours are right-handed: x is mirrored. In both, y points toward orange's goal and
z up; their x points to blue's left, ours to blue's right. Quantities relative to the car (steer, yaw, roll, boost) are
the same in both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ludus.core.errors import UnsupportedError
from ludus.worlds.rocket.layout import PADS
from ludus.worlds.rocket.rlbot.observer import Controls
from ludus.worlds.rocket.view import Quaternion, Vector

_NEAR = 100.0  # pads of different maps lie a few uu apart; no two pads are nearer to each other than 900


class AirState(IntEnum):
    """What carries a car; numbered as in RLBot. JUMPING lasts while holding the key of a first jump accelerates."""

    ON_GROUND, JUMPING, DOUBLE_JUMPING, DODGING, IN_AIR = range(5)


class MatchPhase(IntEnum):
    """Phase of the match; numbered as in RLBot. KICKOFF lasts until the ball is hit, at most 2 s."""

    INACTIVE, COUNTDOWN, KICKOFF, ACTIVE, GOAL_SCORED, REPLAY, PAUSED, ENDED = range(8)


@dataclass(frozen=True, slots=True)
class Physics:
    """Pose and motion of an object; `rotation` is pitch, yaw and roll."""

    location: Vector
    rotation: Vector
    velocity: Vector
    angular_velocity: Vector


@dataclass(frozen=True, slots=True)
class PlayerInfo:
    """One car."""

    physics: Physics  # pose and motion
    team: int  # 0 blue, 1 orange
    boost: float  # 0 to 100
    air_state: AirState  # what carries it
    has_jumped: bool  # whether it jumped since it was last on the ground
    has_double_jumped: bool  # whether it jumped a second time since then
    has_dodged: bool  # whether it dodged since then
    dodge_timeout: float  # time left for a second jump; -1 on the ground, when too late, or without a first jump
    demolished_timeout: float  # time until it respawns; -1 if it drives
    is_supersonic: bool  # whether it is fast enough to demolish
    # Time of its last touch of the ball, on the clock of `Packet.seconds_elapsed`; None if never.
    touched_s: float | None
    last_input: Controls  # controls held in the last tick


@dataclass(frozen=True, slots=True)
class Packet:
    """The game at one tick."""

    frame_num: int  # number of the tick; packets may skip some
    seconds_elapsed: float  # time since the match began, including pauses and replays
    match_phase: MatchPhase
    game_time_remaining: float  # the clock; counts up in overtime and in a match without a limit
    is_overtime: bool  # whether the match is in overtime
    is_unlimited_time: bool  # whether the match has no time limit
    goals: tuple[int, int]  # of blue and of orange
    ball: Physics | None
    players: tuple[PlayerInfo, ...]  # by index
    # Per boost pad, in the order of the field: time since it was taken, None if it is active.
    pads: tuple[float | None, ...]


def mirrored(vector: Vector) -> Vector:
    """Return a position or a velocity in the other world."""
    x, y, z = vector
    return 0.0 - x, y, z


def mirrored_spin(spin: Vector) -> Vector:
    """Return an angular velocity in the other world: a mirror in x keeps the spin about x and reverses the others."""
    x, y, z = spin
    return x, 0.0 - y, 0.0 - z


def rotation_of(angles: Vector) -> Quaternion:
    """Return our rotation of a car with the game's pitch, yaw and roll (rad).

    Their yaw 0 looks along their +x, which is our -x, and grows clockwise seen from above: our heading is pi - yaw.
    """
    pitch, yaw, roll = angles
    half_heading, half_pitch, half_roll = 0.5 * (math.pi - yaw), -0.5 * pitch, 0.5 * roll
    turn = (0.0, 0.0, math.sin(half_heading), math.cos(half_heading))
    raise_nose = (0.0, math.sin(half_pitch), 0.0, math.cos(half_pitch))
    lean = (math.sin(half_roll), 0.0, 0.0, math.cos(half_roll))
    return _product(_product(turn, raise_nose), lean)


def angles_of(rotation: Quaternion) -> Vector:
    """Return the game's pitch, yaw and roll (rad) of a car with our rotation."""
    length = math.sqrt(sum(part * part for part in rotation))
    x, y, z, w = (part / length for part in rotation)
    forward = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y))
    left_z, up_z = 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    pitch = math.atan2(forward[2], math.hypot(forward[0], forward[1]))
    return pitch, math.atan2(forward[1], -forward[0]), math.atan2(left_z, up_z)


def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def read_packet(packet: Any) -> Packet:  # noqa: ANN401 - a GamePacket
    """Convert a `GamePacket` of the package `rlbot`."""
    match = packet.match_info
    scores = {int(team.team_index): int(team.score) for team in packet.teams}
    return Packet(
        frame_num=int(match.frame_num),
        seconds_elapsed=float(match.seconds_elapsed),
        match_phase=MatchPhase(int(match.match_phase)),
        game_time_remaining=float(match.game_time_remaining),
        is_overtime=bool(match.is_overtime),
        is_unlimited_time=bool(match.is_unlimited_time),
        goals=(scores.get(0, 0), scores.get(1, 0)),
        ball=_physics(packet.balls[0].physics) if len(packet.balls) else None,
        players=tuple(_player(player) for player in packet.players),
        pads=tuple(None if pad.is_active else float(pad.timer) for pad in packet.boost_pads),
    )


def read_pads(field: Any) -> tuple[Vector, ...]:  # noqa: ANN401 - a FieldInfo
    """Return the positions of the boost pads of a `FieldInfo`."""
    return tuple(_vector(pad.location) for pad in field.boost_pads)


def pad_order(places: Sequence[Vector]) -> tuple[int, ...]:
    """Return the index of the field's pad at each of `layout.PADS`; raise UnsupportedError if they lie elsewhere."""
    order = []
    for x, y in PADS:
        there = mirrored((x, y, 0.0))
        distances = [math.hypot(place[0] - there[0], place[1] - there[1]) for place in places]
        nearest = min(distances, default=math.inf)
        if nearest > _NEAR:
            raise UnsupportedError(
                f"the field has {len(places)} boost pads and none near x {there[0]:g}, y {there[1]:g}: "
                "it is not a standard field; play soccar on a standard map"
            )
        order.append(distances.index(nearest))
    return tuple(order)


def _player(player: Any) -> PlayerInfo:  # noqa: ANN401 - a PlayerInfo
    held, touch = player.last_input, player.latest_touch
    return PlayerInfo(
        physics=_physics(player.physics),
        team=int(player.team),
        boost=float(player.boost),
        air_state=AirState(int(player.air_state)),
        has_jumped=bool(player.has_jumped),
        has_double_jumped=bool(player.has_double_jumped),
        has_dodged=bool(player.has_dodged),
        dodge_timeout=float(player.dodge_timeout),
        demolished_timeout=float(player.demolished_timeout),
        is_supersonic=bool(player.is_supersonic),
        touched_s=float(touch.game_seconds) if touch is not None else None,
        last_input=Controls(
            float(held.throttle), float(held.steer), float(held.pitch), float(held.yaw), float(held.roll),
            bool(held.jump), bool(held.boost), bool(held.handbrake),
        ),
    )  # fmt: skip


def _physics(physics: Any) -> Physics:  # noqa: ANN401 - a Physics
    turned = physics.rotation
    return Physics(
        location=_vector(physics.location),
        rotation=(float(turned.pitch), float(turned.yaw), float(turned.roll)),
        velocity=_vector(physics.velocity),
        angular_velocity=_vector(physics.angular_velocity),
    )


def _vector(vector: Any) -> Vector:  # noqa: ANN401 - a Vector3
    return float(vector.x), float(vector.y), float(vector.z)
