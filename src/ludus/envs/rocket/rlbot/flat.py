"""Reads the flat types of the package `rlbot` (2.x, for RLBot v5) by the names of their fields; it is not imported."""

import math
from collections.abc import Sequence
from typing import Any

from ludus.core.errors import UnsupportedError
from ludus.envs.rocket.decoder import Controls
from ludus.envs.rocket.layout import PADS
from ludus.envs.rocket.rlbot.handedness import mirrored
from ludus.envs.rocket.rlbot.packet import AirState, MatchPhase, Packet, Physics, PlayerInfo
from ludus.envs.rocket.view import Vector

_NEAR = 100.0  # pads of different maps lie a few uu apart; no two pads are nearer to each other than 900


def read_packet(packet: Any) -> Packet:  # noqa: ANN401 - a GamePacket
    """Reads a `GamePacket`."""
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
    """Reads the places of the boost pads from a `FieldInfo`."""
    return tuple(_vector(pad.location) for pad in field.boost_pads)


def pad_order(places: Sequence[Vector]) -> tuple[int, ...]:
    """Returns which of the field's pads, at these places of the game, each pad of `layout.PADS` is.

    Raises:
        UnsupportedError: It is no standard field.
    """
    order = []
    for x, y in PADS:
        there = mirrored((x, y, 0.0))
        distances = [math.hypot(place[0] - there[0], place[1] - there[1]) for place in places]
        nearest = min(distances, default=math.inf)
        if nearest > _NEAR:
            raise UnsupportedError(
                f"the field has {len(places)} boost pads and none near x {there[0]:g}, y {there[1]:g}: "
                "it is no standard field; play soccar on a standard map"
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
