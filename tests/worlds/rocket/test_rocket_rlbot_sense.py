"""Packets to states: what was written of a game is read back, and what packets do not carry is followed."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from rocket_packets import CAR, ORDER, START, STILL  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.core.errors import UnsupportedError
from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.layout import PADS
from ludus.worlds.rocket.rlbot.observer import REST, BallState, CarState, Controls, GameState
from ludus.worlds.rocket.rlbot.packet import AirState, MatchPhase, Packet, mirrored, pad_order
from ludus.worlds.rocket.rlbot.recording import FIELD, write_packet
from ludus.worlds.rocket.rlbot.sense import Sense

if TYPE_CHECKING:
    from tests.worlds.rocket.conftest import MakePitch


def follow(sense: Sense, packet: Packet) -> GameState:
    sense.follow(packet)
    return sense.state(packet)


def as_packets_have_them(part: CarState | BallState) -> list[float]:
    """Place and motion in 32 bits."""
    return [float(np.float32(value)) for value in (*part.position, *part.velocity, *part.spin)]


def numbers(car: CarState) -> list[float]:
    """What else observations read; the time since a jump counts as long as there may be a second one."""
    counts = not (car.on_ground or car.double_jumped or car.dodged)
    since_jump_s = min(car.air_since_jump_s, 1.25) if counts else 0.0
    return [car.boost, since_jump_s, car.handbrake_value, car.demolished_s]


def flags(car: CarState) -> dict[str, bool]:
    names = ("supersonic", "on_ground", "jumping", "double_jumped", "dodged", "dodging", "jump_before")
    return {name: getattr(car, name) for name in names}


@pytest.mark.parametrize("setter", ["kickoff", "random", "recovery", "wall"])
def test_states_come_back_from_their_packets(make_pitch: "MakePitch", setter: str) -> None:
    """Random keys for three seconds, a packet a tick: every state is read as it was."""
    settings: dict[str, Any] = {"mode": "2v2", "episode": "match", "setters": {setter: 1.0}}
    pitch = make_pitch(1, seed=4, ticks=1, shuffle=False, **settings)
    env, sense, generator = pitch.env, Sense(RocketConfig(**settings), ORDER), np.random.default_rng(1)
    held, jumps, touches = [REST] * 4, 0, list[int | None]([None] * 4)
    for frame in range(360):
        state = GameState.of(env.cars[0], env.balls[0], env.matches[0], env.pads[0])
        touching = pitch.cars["touching_ball"][0].tolist()
        touches = [frame if now else last for now, last in zip(touching, touches, strict=True)]
        read = follow(sense, write_packet(state, frame, held, touches))
        assert (read.pad_ticks, read.kickoff, read.goals) == (state.pad_ticks, state.kickoff, state.goals)
        assert read.clock_s == pytest.approx(state.clock_s, abs=1e-4)
        assert as_packets_have_them(read.ball) == as_packets_have_them(state.ball)
        assert read.ball.asleep == state.ball.asleep
        for car, true in zip(read.cars, state.cars, strict=True):
            assert flags(car) == flags(true), f"frame {frame}"
            assert as_packets_have_them(car) == as_packets_have_them(true)
            assert numbers(car) == pytest.approx(numbers(true), abs=1e-5)
            assert abs(np.dot(car.rotation, true.rotation)) == pytest.approx(1.0, abs=1e-6)
            assert car.team == true.team
            jumps += true.jumping
        if frame % 8 == 0:
            axes, keys = generator.uniform(-1, 1, (4, 5)), generator.random((4, 3)) < 0.4
            held = [Controls(*axes[seat], *keys[seat].tolist()) for seat in range(4)]
        result = env.step(torch.tensor([held], dtype=torch.float32))
        if bool(result.terminated) or int(pitch.match["goal"]) >= 0:
            break
    assert jumps > 20  # there was something to follow


def test_the_handbrake_is_followed_by_its_key() -> None:
    sense, drawn = Sense(RocketConfig(), ORDER), replace(CAR, last_input=Controls(handbrake=True))
    assert follow(sense, START).cars[0].handbrake_value == 0.0
    packet = replace(START, frame_num=112, players=(drawn, START.players[1]))
    assert follow(sense, packet).cars[0].handbrake_value == pytest.approx(12 * 5 / 120)
    assert follow(sense, replace(START, frame_num=118)).cars[0].handbrake_value == pytest.approx(0.5 - 6 * 2 / 120)
    gone = replace(CAR, demolished_timeout=2.5)
    packet = replace(START, frame_num=119, players=(gone, START.players[1]))
    assert follow(sense, packet).cars[0].handbrake_value == pytest.approx(0.4)
    assert follow(sense, replace(START, frame_num=120)).cars[0].handbrake_value == 0.0  # a new car


def test_a_kickoff_lasts_until_the_ball_is_touched() -> None:
    sense = Sense(RocketConfig(), ORDER)
    counting = replace(START, match_phase=MatchPhase.COUNTDOWN)
    sense.follow(counting)
    assert not sense.playing
    assert follow(sense, replace(START, frame_num=101)).kickoff
    later = replace(START, frame_num=400, seconds_elapsed=12.5, match_phase=MatchPhase.ACTIVE)  # 2 s have passed
    assert follow(sense, later).kickoff
    touched = replace(later, frame_num=401, players=(replace(CAR, touched_s=12.508), START.players[1]))
    assert not follow(sense, touched).kickoff
    old = replace(START, players=(replace(CAR, touched_s=9.9), START.players[1]))  # in the play before
    assert follow(Sense(RocketConfig(), ORDER), old).kickoff
    rolling = replace(START, ball=replace(STILL, velocity=(0.0, 400.0, 0.0)))
    assert not follow(Sense(RocketConfig(), ORDER), rolling).kickoff


def test_agents_whose_episodes_end_with_a_goal_see_no_lead_and_their_own_clock() -> None:
    sense = Sense(RocketConfig(episode_s=120.0), ORDER)
    packet = replace(START, goals=(3, 1), game_time_remaining=200.0)
    state = follow(sense, packet)
    assert (state.goals, state.clock_s, sense.episode) == ((0, 0), 120.0, 0)
    state = follow(sense, replace(packet, frame_num=340, match_phase=MatchPhase.ACTIVE))
    assert state.clock_s == pytest.approx(118.0)
    sense.follow(replace(packet, frame_num=350, match_phase=MatchPhase.REPLAY, goals=(4, 1)))
    assert not sense.playing
    assert follow(sense, replace(packet, frame_num=900, goals=(4, 1))).clock_s == 120.0
    assert sense.episode == 1
    assert follow(Sense(RocketConfig(episode_s=None), ORDER), packet).clock_s == 0.0


def test_agents_of_matches_see_the_clock_and_the_score_of_the_match() -> None:
    sense = Sense(RocketConfig(episode="match"), ORDER)
    state = follow(sense, replace(START, goals=(3, 1), game_time_remaining=200.0))
    assert (state.goals, state.clock_s) == ((3, 1), 200.0)
    over = replace(START, frame_num=101, goals=(3, 3), game_time_remaining=12.0, is_overtime=True)
    assert follow(sense, over).clock_s == -12.0
    sense.follow(replace(over, frame_num=102, match_phase=MatchPhase.GOAL_SCORED))
    sense.follow(replace(over, frame_num=400))
    assert sense.episode == 0
    sense.follow(replace(START, frame_num=500))  # another match
    assert sense.episode == 1
    assert (
        follow(sense, replace(START, frame_num=501, is_unlimited_time=True, game_time_remaining=7.0)).clock_s == 300.0
    )


def test_a_pause_changes_nothing() -> None:
    sense = Sense(RocketConfig(), ORDER)
    sense.follow(START)
    sense.follow(replace(START, frame_num=101, match_phase=MatchPhase.PAUSED))
    assert sense.playing
    sense.follow(replace(START, frame_num=102, match_phase=MatchPhase.ACTIVE))
    assert (sense.episode, sense.start_frame) == (0, 100)


def test_the_time_for_a_second_jump() -> None:
    def car(**changes: Any) -> CarState:
        players = (replace(CAR, air_state=AirState.IN_AIR, **changes), START.players[1])
        return follow(Sense(RocketConfig(), ORDER), replace(START, players=players)).cars[0]

    assert car(has_jumped=True, dodge_timeout=0.75).air_since_jump_s == pytest.approx(0.5)
    assert car(has_jumped=True, dodge_timeout=-1.0).air_since_jump_s == pytest.approx(1.25)  # too late
    assert car(has_jumped=True, dodge_timeout=1.4).air_since_jump_s == 0.0
    assert car(has_jumped=False, dodge_timeout=-1.0).air_since_jump_s == 0.0  # it fell: no limit


def test_players_and_pads_come_in_any_order() -> None:
    shuffled = [FIELD[there] for there in np.random.default_rng(0).permutation(34)]
    order = pad_order(shuffled)
    assert [shuffled[there] for there in order] == list(FIELD)
    assert mirrored(shuffled[order[3]])[:2] == PADS[3]
    taken: list[float | None] = [None] * 34
    taken[order[3]], taken[order[0]] = 2.5, 1.0  # a big pad for 2.5 s, a small one for 1 s
    players = tuple(replace(CAR, team=team, boost=float(boost)) for boost, team in enumerate((1, 0, 1, 0)))
    packet = replace(START, players=players, pads=tuple(taken))
    sense = Sense(RocketConfig(), order)
    state = follow(sense, packet)
    assert (state.pad_ticks[3], state.pad_ticks[0], sum(state.pad_ticks)) == (900, 360, 1260)
    assert [car.boost for car in state.cars] == [1.0, 3.0, 0.0, 2.0]
    assert [sense.seat(packet, index) for index in range(4)] == [2, 0, 3, 1]


def test_what_agents_cannot_play_is_refused() -> None:
    sense = Sense(RocketConfig(), ORDER)
    with pytest.raises(UnsupportedError, match=r"4 cars.* 1 to 3"):
        follow(sense, replace(START, players=(CAR,) * 4))
    with pytest.raises(UnsupportedError, match="20 boost pads and a ball"):
        follow(sense, replace(START, pads=(None,) * 20))
    with pytest.raises(UnsupportedError, match="34 boost pads and no ball"):
        follow(sense, replace(START, ball=None))
    with pytest.raises(UnsupportedError, match="34 boost pads"):
        pad_order([(x + 300.0, y, z) for x, y, z in FIELD])
    with pytest.raises(UnsupportedError, match="0 boost pads"):
        pad_order([])
