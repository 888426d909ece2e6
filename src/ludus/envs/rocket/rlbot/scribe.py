"""Writes the packet that RLBot would send of a game of ours: for recordings and tests, the way back from `sense`."""

from collections.abc import Sequence

import numpy as np

from ludus.envs.rocket.car_rules import SECOND_JUMP_S
from ludus.envs.rocket.decoder import Controls
from ludus.envs.rocket.layout import PADS, pad_kind
from ludus.envs.rocket.observer import CarState, GameState
from ludus.envs.rocket.rlbot.handedness import angles_of, mirrored, mirrored_spin
from ludus.envs.rocket.rlbot.packet import AirState, MatchPhase, Packet, Physics, PlayerInfo
from ludus.envs.rocket.rules import TICK_HZ
from ludus.envs.rocket.view import Vector

# Our pads in our own order, at the game's places: what a field that was recorded looks like.
FIELD: tuple[Vector, ...] = tuple(mirrored((x, y, 0.0)) for x, y in PADS)

_KICKOFF_PHASE_TICKS = 2 * TICK_HZ  # from the first frame on; then the phase ends, touched or not


def write_packet(
    state: GameState,
    frame: int,
    inputs: Sequence[Controls],
    touches: Sequence[int | None],
) -> Packet:
    """Returns the packet of a state; players have the indices of their seats, pads the order of `FIELD`.

    Args:
        state: Of the game.
        frame: Number of its tick.
        inputs: What each seat's driver held in the last tick.
        touches: Tick of each seat's last touch of the ball, None for none.
    """
    still = Physics(
        _short(mirrored(state.ball.position)),
        (0.0, 0.0, 0.0),
        _short(mirrored(state.ball.velocity)),
        _short(mirrored_spin(state.ball.spin)),
    )
    return Packet(
        frame_num=frame,
        seconds_elapsed=shortest(frame / TICK_HZ),
        match_phase=MatchPhase.KICKOFF if state.kickoff and frame < _KICKOFF_PHASE_TICKS else MatchPhase.ACTIVE,
        game_time_remaining=shortest(abs(state.clock_s)),
        is_overtime=state.clock_s < 0.0,
        is_unlimited_time=False,
        goals=state.goals,
        ball=still,
        players=tuple(
            _player(car, held, None if touch is None else shortest(touch / TICK_HZ))
            for car, held, touch in zip(state.cars, inputs, touches, strict=True)
        ),
        pads=tuple(
            None if ticks == 0 else shortest(pad_kind(pad).back_s - ticks / TICK_HZ)
            for pad, ticks in enumerate(state.pad_ticks)
        ),
    )


def _player(car: CarState, held: Controls, touched_s: float | None) -> PlayerInfo:
    waits = car.jumped and not (car.on_ground or car.jumping or car.double_jumped or car.dodged)
    left_s = SECOND_JUMP_S - car.air_since_jump_s
    return PlayerInfo(
        physics=Physics(
            _short(mirrored(car.position)),
            _short(angles_of(car.rotation)),
            _short(mirrored(car.velocity)),
            _short(mirrored_spin(car.spin)),
        ),
        team=car.team,
        boost=shortest(car.boost),
        air_state=_air_state(car),
        has_jumped=car.jumped,
        has_double_jumped=car.double_jumped,
        has_dodged=car.dodged,
        dodge_timeout=shortest(left_s) if waits and left_s > 0.0 else -1.0,
        demolished_timeout=shortest(car.demolished_s) if car.demolished_s > 0.0 else -1.0,
        is_supersonic=car.supersonic,
        touched_s=touched_s,
        last_input=held,
    )


def _air_state(car: CarState) -> AirState:
    if car.jumping:
        return AirState.JUMPING
    if car.on_ground:
        return AirState.ON_GROUND
    return AirState.DODGING if car.dodging else AirState.IN_AIR


def shortest(value: float) -> float:
    """Returns the shortest decimal number that is this one in 32 bits, as packets have them."""
    return float(str(np.float32(value)))


def _short(vector: Vector) -> Vector:
    x, y, z = map(shortest, vector)
    return x, y, z
