"""Reading RLBot's own types: by stand-ins with the same fields, and by the real ones where the package is installed."""

from types import SimpleNamespace
from typing import Any

import pytest

from ludus.core.errors import UnsupportedError
from ludus.worlds.rocket.rlbot.observer import Controls
from ludus.worlds.rocket.rlbot.packet import AirState, MatchPhase, pad_order, read_packet, read_pads
from ludus.worlds.rocket.rlbot.recording import FIELD


def plain(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


STAND_INS: dict[str, Any] = {
    "Vector3": lambda x, y, z: plain(x=x, y=y, z=z),
    "Rotator": lambda pitch, yaw, roll: plain(pitch=pitch, yaw=yaw, roll=roll),
    "AirState": int,
    "MatchPhase": int,
} | dict.fromkeys(
    ("Physics", "PlayerInfo", "BallInfo", "MatchInfo", "TeamInfo", "BoostPadState", "BoostPad", "FieldInfo",
     "ControllerState", "GamePacket", "Touch"), plain
)  # fmt: skip


def packet_of(kinds: Any) -> Any:
    """A packet built with RLBot's constructors, or with stand-ins of the same names."""

    def physics(x: float) -> Any:
        vector = kinds.Vector3
        return kinds.Physics(
            location=vector(x, 2.0, 3.0),
            rotation=kinds.Rotator(0.25, 0.5, -0.75),
            velocity=vector(4.0, 5.0, 6.0),
            angular_velocity=vector(0.5, -0.5, 1.5),
        )

    player = kinds.PlayerInfo(
        physics=physics(1.0),
        team=1,
        boost=34.0,
        air_state=kinds.AirState(3),
        has_jumped=True,
        has_double_jumped=False,
        has_dodged=True,
        dodge_timeout=-1.0,
        demolished_timeout=-1.0,
        is_supersonic=True,
        latest_touch=kinds.Touch(game_seconds=7.5),
        last_input=kinds.ControllerState(
            throttle=1.0, steer=-0.5, pitch=0.25, yaw=-0.5, roll=0.0, jump=True, boost=False, handbrake=True
        ),
    )
    return kinds.GamePacket(
        players=[player],
        boost_pads=[kinds.BoostPadState(is_active=True, timer=0.0), kinds.BoostPadState(is_active=False, timer=2.5)],
        balls=[kinds.BallInfo(physics=physics(9.0))],
        match_info=kinds.MatchInfo(
            seconds_elapsed=8.0,
            game_time_remaining=280.0,
            is_overtime=False,
            is_unlimited_time=False,
            match_phase=kinds.MatchPhase(3),
            frame_num=960,
        ),
        teams=[kinds.TeamInfo(team_index=1, score=2), kinds.TeamInfo(team_index=0, score=1)],
    )


@pytest.fixture(params=["stand-ins", "rlbot"])
def kinds(request: pytest.FixtureRequest) -> Any:
    if request.param == "stand-ins":
        return plain(**STAND_INS)
    return pytest.importorskip("rlbot.flat", reason="the package rlbot is missing: pip install -e '.[rlbot]'")


def test_a_packet_is_read_field_by_field(kinds: Any) -> None:
    packet = read_packet(packet_of(kinds))
    assert (packet.frame_num, packet.seconds_elapsed, packet.match_phase) == (960, 8.0, MatchPhase.ACTIVE)
    assert (packet.game_time_remaining, packet.is_overtime, packet.is_unlimited_time) == (280.0, False, False)
    assert packet.goals == (1, 2)
    assert packet.pads == (None, 2.5)
    assert packet.ball is not None
    assert packet.ball.location == (9.0, 2.0, 3.0)
    (player,) = packet.players
    assert player.physics.rotation == (0.25, 0.5, -0.75)
    assert (player.physics.velocity, player.physics.angular_velocity) == ((4.0, 5.0, 6.0), (0.5, -0.5, 1.5))
    assert (player.team, player.boost, player.air_state, player.touched_s) == (1, 34.0, AirState.DODGING, 7.5)
    assert (player.has_jumped, player.has_double_jumped, player.has_dodged) == (True, False, True)
    assert (player.dodge_timeout, player.demolished_timeout, player.is_supersonic) == (-1.0, -1.0, True)
    assert player.last_input == Controls(1.0, -0.5, 0.25, -0.5, 0.0, True, False, True)


def test_controls_are_given_in_rlbots_order() -> None:
    flat = pytest.importorskip("rlbot.flat", reason="the package rlbot is missing: pip install -e '.[rlbot]'")
    state = flat.ControllerState(*Controls(1.0, -0.5, 0.25, -0.75, 0.5, True, False, True))
    assert (state.throttle, state.steer, state.pitch, state.yaw, state.roll) == (1.0, -0.5, 0.25, -0.75, 0.5)
    assert (state.jump, state.boost, state.handbrake) == (True, False, True)


def test_a_packet_before_a_match(kinds: Any) -> None:
    flat = packet_of(kinds)
    flat.balls, flat.players, flat.teams = [], [], []
    packet = read_packet(flat)
    assert (packet.ball, packet.players, packet.goals) == (None, (), (0, 0))


def test_the_pads_of_a_field(kinds: Any) -> None:
    pads = [
        kinds.BoostPad(location=kinds.Vector3(x, y + 2.0, 73.0), is_full_boost=False) for x, y, _ in reversed(FIELD)
    ]
    places = read_pads(kinds.FieldInfo(boost_pads=pads))
    assert pad_order(places) == tuple(reversed(range(34)))
    with pytest.raises(UnsupportedError, match="33 boost pads"):
        pad_order(places[:33])
