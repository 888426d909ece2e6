"""A game packet of RLBot v5, as far as an observation needs it: plain numbers in the game's left-handed world.

Lengths are uu, times s, angles rad. `flat` reads the real ones; recordings hold these as JSON.
"""

from dataclasses import dataclass
from enum import IntEnum

from ludus.envs.rocket.decoder import Controls
from ludus.envs.rocket.view import Vector


class AirState(IntEnum):
    """What carries a car; numbered as in RLBot."""

    ON_GROUND = 0
    JUMPING = 1  # while holding the key of a first jump accelerates
    DOUBLE_JUMPING = 2
    DODGING = 3
    IN_AIR = 4


class MatchPhase(IntEnum):
    """Phase of the match; numbered as in RLBot."""

    INACTIVE = 0
    COUNTDOWN = 1
    KICKOFF = 2  # until the ball is hit, at most 2 s
    ACTIVE = 3
    GOAL_SCORED = 4
    REPLAY = 5
    PAUSED = 6
    ENDED = 7


@dataclass(frozen=True, slots=True)
class Physics:
    """How something lies and moves; `rotation` is pitch, yaw and roll."""

    location: Vector
    rotation: Vector
    velocity: Vector
    angular_velocity: Vector


@dataclass(frozen=True, slots=True)
class PlayerInfo:
    """One car.

    Attributes:
        physics: Place and motion.
        team: 0 blue, 1 orange.
        boost: 0 to 100.
        air_state: What carries it.
        has_jumped: Whether it jumped since it was on the ground.
        has_double_jumped: Whether it jumped a second time since then.
        has_dodged: Whether it dodged since then.
        dodge_timeout: Time left for a second jump; -1 on the ground, too late, or without a first jump.
        demolished_timeout: Until it is back; -1 if it drives.
        is_supersonic: Whether it can demolish.
        touched_s: When it last touched the ball, on the clock of `Packet.seconds_elapsed`; None if never.
        last_input: What its driver held in the last tick.
    """

    physics: Physics
    team: int
    boost: float
    air_state: AirState
    has_jumped: bool
    has_double_jumped: bool
    has_dodged: bool
    dodge_timeout: float
    demolished_timeout: float
    is_supersonic: bool
    touched_s: float | None
    last_input: Controls


@dataclass(frozen=True, slots=True)
class Packet:
    """The game at one tick.

    Attributes:
        frame_num: Ticks that the game has computed; packets may skip some.
        seconds_elapsed: Since the match began, pauses and replays included.
        match_phase: Of the match.
        game_time_remaining: On the clock; counts up in overtime and without a limit.
        is_overtime: Whether it does so because of overtime.
        is_unlimited_time: Whether the match has no limit.
        goals: Of blue and of orange.
        ball: The first ball; None if there is none.
        players: By index.
        pads: Of each boost pad in the order of the field, the time since it was taken; None if it is there.
    """

    frame_num: int
    seconds_elapsed: float
    match_phase: MatchPhase
    game_time_remaining: float
    is_overtime: bool
    is_unlimited_time: bool
    goals: tuple[int, int]
    ball: Physics | None
    players: tuple[PlayerInfo, ...]
    pads: tuple[float | None, ...]
