"""Rocket's behaviour numbers, by hand."""

import numpy as np
import pytest
import torch

from ludus.envs.world_parts import EpisodeMetrics
from ludus.rewards.step_info import StepInfo
from ludus.worlds.rocket.metrics import RATIOS, per_episode, per_step
from ludus.worlds.rocket.rules import EVENTS, MEASURES


def step_info(events: dict[str, float], state_metrics: dict[str, float]) -> StepInfo:
    return StepInfo(
        {name: torch.tensor([events.get(name, 0.0)]) for name in EVENTS},
        {name: torch.tensor([state_metrics.get(name, 0.0)]) for name in MEASURES},
        1.0 / 15.0,
    )


def episode(*moments: StepInfo) -> dict[str, float]:
    """Sums moments up as an evaluation does and returns the numbers of the one episode that they are."""
    steps = [per_step(each) for each in moments]
    sums = {name: np.array([sum(float(step[name]) for step in steps)]) for name in steps[0]}
    return {name: float(values[0]) for name, values in per_episode(sums, np.array([len(steps)]), 15.0).items()}


def test_the_numbers_of_an_episode_by_hand() -> None:
    numbers = episode(
        step_info(
            {"touches": 2.0, "boost_used": 2.5, "kickoffs": 1.0, "kickoff_touches": 1.0, "shots": 1.0},
            {"speed": 1000.0, "ball_speed": 500.0, "on_ground": 1.0, "possession": 1.0, "ball_y": 100.0, "boost": 30.0},
        ),
        step_info(
            {"goals": 1.0, "team_goals": 1.0, "shots": 1.0},
            {"speed": 2200.0, "ball_speed": 2500.0, "supersonic": 1.0, "possession": 1.0, "y": 50.0, "ball_y": -100.0},
        ),
        step_info({"demolished": 1.0}, {"demolished": 1.0, "speed": 0.0, "ball_y": -100.0, "y": -500.0}),
    )
    assert numbers["length_s"] == pytest.approx(0.2)
    assert numbers["touches_a_minute"] == pytest.approx(2.0 / 0.2 * 60.0)
    assert numbers["boost_used_a_minute"] == pytest.approx(2.5 / 0.2 * 60.0)
    assert (numbers["goals"], numbers["team_goals"], numbers["conceded"], numbers["demolished"]) == (1, 1, 0, 1)
    assert numbers["shots"] == 2
    assert numbers["shot_success"] == pytest.approx(0.5)
    assert numbers["goal_ratio"] == pytest.approx(1.0)
    assert numbers["kickoff_touch_share"] == pytest.approx(1.0)
    assert numbers["supersonic_share"] == pytest.approx(1 / 3)
    assert numbers["air_share"] == pytest.approx(1 / 3)  # the second step alone: in the third the car is not there
    assert numbers["possession_share"] == pytest.approx(2 / 3)
    assert numbers["offense_share"] == pytest.approx(1 / 3)
    assert numbers["goal_side_share"] == pytest.approx(1 / 3)
    assert numbers["mean_speed"] == pytest.approx(3200 / 3)
    assert numbers["mean_ball_speed"] == pytest.approx(1000.0)
    assert numbers["mean_boost"] == pytest.approx(10.0)


def test_ratios_of_many_episodes_are_those_of_the_totals() -> None:
    many = {
        name: np.array([episode(step_info({above: 3.0, below: 4.0}, {}))[name], episode(step_info({}, {}))[name]])
        for _, (above, below) in RATIOS.items()
        for name in (above, below)
    }
    assert RATIOS.keys() <= episode(step_info({}, {})).keys()
    summary = EpisodeMetrics(ratios=RATIOS).summarise(many)
    assert {name: summary[name] for name in RATIOS} == {name: pytest.approx(0.75) for name in RATIOS}
