"""The pilot: decides as often as in training, holds controls between, waits out the input delay, rests in breaks."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rocket_packets import ORDER, START  # type: ignore[import-not-found,unused-ignore]  # beside this file

from ludus.worlds.rocket.config import RocketConfig
from ludus.worlds.rocket.observation import LAYOUT
from ludus.worlds.rocket.rlbot.observer import REST, Controls
from ludus.worlds.rocket.rlbot.packet import MatchPhase, Packet
from ludus.worlds.rocket.rlbot.pilot import Pilot


class Counter:
    """Answers with throttles 0.1, 0.2 and so on, and notes which questions came first in an episode."""

    def __init__(self) -> None:
        self.firsts: list[bool] = []
        self.seen: list[NDArray[np.float32]] = []

    def __call__(self, observation: NDArray[np.float32], *, first: bool) -> Any:
        self.firsts.append(first)
        self.seen.append(observation)
        return np.array([0.1 * len(self.firsts), *[0.0] * 7], np.float32)


def make(decide: Counter, *, latency_ticks: int = 1, index: int = 0, **settings: Any) -> Pilot:
    return Pilot(RocketConfig(actions="continuous", **settings), decide, index, ORDER, latency_ticks=latency_ticks)


def throttles(pilot: Pilot, frames: Iterable[int], packet: Packet = START) -> list[float]:
    return [round(pilot.controls(replace(packet, frame_num=frame)).throttle, 4) for frame in frames]


def test_a_decision_is_held_for_its_ticks() -> None:
    decide = Counter()
    pilot = make(decide)
    assert throttles(pilot, range(100, 118)) == [0.1] * 8 + [0.2] * 8 + [0.3] * 2
    assert decide.firsts == [True, False, False]
    assert decide.seen[0].shape == (LAYOUT.size,)


def test_packets_that_are_missed_do_not_shift_the_beat() -> None:
    assert throttles(make(Counter()), [100, 103, 107, 110, 115, 116, 140, 141, 147, 148]) == [
        0.1, 0.1, 0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.4, 0.5,
    ]  # fmt: skip


def test_a_packet_that_comes_twice_decides_once() -> None:
    decide = Counter()
    assert throttles(make(decide), [100, 100, 101, 108, 108]) == [0.1, 0.1, 0.1, 0.2, 0.2]
    assert len(decide.firsts) == 2


@pytest.mark.parametrize(
    ("delay", "latency", "expected"),
    [
        (0, 1, [0.1] * 8 + [0.2] * 8),
        (1, 1, [0.1] * 8 + [0.2] * 8),  # RLBot itself is late by that much
        (3, 1, [0.0] * 2 + [0.1] * 8 + [0.2] * 6),
        (3, 0, [0.0] * 3 + [0.1] * 8 + [0.2] * 5),
        (8, 0, [0.0] * 8 + [0.1] * 8),
    ],
)
def test_the_input_delay_of_training_is_waited_out(delay: int, latency: int, expected: list[float]) -> None:
    pilot = make(Counter(), latency_ticks=latency, input_delay_ticks=delay)
    assert throttles(pilot, range(100, 116)) == expected


def test_nothing_is_pressed_while_nobody_can_drive() -> None:
    decide = Counter()
    pilot = make(decide)
    for phase in (MatchPhase.INACTIVE, MatchPhase.COUNTDOWN, MatchPhase.REPLAY, MatchPhase.ENDED):
        assert pilot.controls(replace(START, match_phase=phase)) == REST
    assert pilot.controls(replace(START, ball=None)) == REST
    assert decide.firsts == []
    assert throttles(pilot, [101, 102]) == [0.1, 0.1]
    assert pilot.controls(replace(START, frame_num=103, match_phase=MatchPhase.GOAL_SCORED)) == REST
    assert pilot.decision is None
    assert throttles(pilot, [300]) == [0.2]  # at once, whatever the beat was
    assert decide.firsts == [True, True]


def test_a_match_goes_on_after_a_goal() -> None:
    decide = Counter()
    pilot = make(decide, episode="match", input_delay_ticks=2)
    assert throttles(pilot, [100, 101, 108]) == [0.0, 0.1, 0.1]
    throttles(pilot, [110], replace(START, match_phase=MatchPhase.GOAL_SCORED))
    assert throttles(pilot, [300, 301], replace(START, goals=(1, 0))) == [
        0.0,
        0.3,
    ]  # controls are at rest, as at a start
    assert decide.firsts == [True, False, False]


def test_a_player_that_is_not_there_rests() -> None:
    decide = Counter()
    assert make(decide, index=2).controls(START) == REST
    assert decide.firsts == []


def test_the_action_table_is_that_of_training() -> None:
    pilot = Pilot(RocketConfig(), lambda _observation, *, first: 23, 1, ORDER)  # noqa: ARG005 - of every episode
    assert pilot.controls(START) == Controls(1.0, 1.0, 0.0, 1.0, 0.0, False, True, True)
    decision = pilot.decision
    assert decision is not None
    assert (decision.frame, decision.action) == (100, 23)
