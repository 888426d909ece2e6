"""Tests of the pace of pictures: steps between them, several of them in a step, fewer where drawing is slow."""

import pytest

from ludus.envs import make_env
from ludus.evaluation.frame_rates import FramePacer, frame_schedule, frames_per_step, make_pacer


def test_pictures_in_a_step() -> None:
    assert [frames_per_step(rate, 60.0) for rate in (7.0, 15.0, 30.0, 45.0, 60.0, 100.0)] == [8, 4, 2, 1, 1, 1]
    with make_env("rocket", config={"threads": 1}) as env:
        assert frame_schedule(env, 30.0) == (1, 2)
        assert frame_schedule(env, 5.0) == (3, 1)
        assert make_pacer(env).frame_rate_hz == 60.0
    with make_env("brawl") as env:  # cannot be drawn between its frames
        assert frame_schedule(env, 120.0) == (1, 1)
        assert make_pacer(env).frame_rate_hz == 30.0


def test_a_step_is_due_after_its_pictures() -> None:
    pace = FramePacer(15.0, is_smooth=True)
    shown = []
    for _ in range(9):
        due = pace.is_due()
        shown.append((due, pace.share()))
    assert shown == [(True, 0.25), (False, 0.5), (False, 0.75), (False, 1.0)] * 2 + [(True, 0.25)]
    pace.restart()
    assert pace.is_due()


def test_a_step_may_be_shown_longer() -> None:
    pace = FramePacer(15.0, is_smooth=True)
    assert pace.is_due()
    pace.stretch(2.5)
    assert [pace.share() for _ in range(10)] == pytest.approx([part / 10 for part in range(1, 11)])
    assert pace.frame_rate_hz == 60.0
    assert pace.is_due()
    assert pace.share() == 0.25


def test_where_drawing_is_slow_a_step_has_fewer_pictures_and_more_again_later() -> None:
    pace = FramePacer(15.0, is_smooth=True)

    def of_steps(count: int, busy_s: float) -> list[int]:
        pictures = []
        for _ in range(count):
            assert pace.is_due()
            pictures.append(0)
            share = 0.0
            while share < 1.0:
                share = pace.share()
                pace.note(max(busy_s, 1 / pace.frame_rate_hz), busy_s)
                pictures[-1] += 1
        return pictures

    assert of_steps(3, 0.012) == [4, 4, 4]  # 12 ms a picture: four in 67 ms
    assert of_steps(20, 0.030)[-10:] == [2] * 10
    assert of_steps(20, 0.050)[-10:] == [1] * 10
    assert of_steps(20, 0.120)[-1] == 1
    assert pace.steps == 1
    assert of_steps(40, 0.001)[-1] == 4
    assert pace.frame_rate_hz == pytest.approx(60.0)
