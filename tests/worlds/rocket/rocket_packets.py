"""Packets for tests: a kickoff of one against one, as RLBot would send it."""

from dataclasses import replace

from ludus.worlds.rocket.rlbot.observer import REST
from ludus.worlds.rocket.rlbot.packet import AirState, MatchPhase, Packet, Physics, PlayerInfo, pad_order
from ludus.worlds.rocket.rlbot.recording import FIELD

ORDER = pad_order(FIELD)
STILL = Physics((0.0, 0.0, 93.15), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
CAR = PlayerInfo(
    physics=Physics((0.0, -4608.0, 17.0), (0.0, 1.5707963, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    team=0,
    boost=33.3,
    air_state=AirState.ON_GROUND,
    has_jumped=False,
    has_double_jumped=False,
    has_dodged=False,
    dodge_timeout=-1.0,
    demolished_timeout=-1.0,
    is_supersonic=False,
    touched_s=None,
    last_input=REST,
)
START = Packet(
    frame_num=100,
    seconds_elapsed=10.0,
    match_phase=MatchPhase.KICKOFF,
    game_time_remaining=300.0,
    is_overtime=False,
    is_unlimited_time=False,
    goals=(0, 0),
    ball=STILL,
    players=(CAR, replace(CAR, team=1)),
    pads=(None,) * 34,
)
