"""Rocket's reward terms, each by hand; and that none of them outlives an episode."""

import pytest
import torch

from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import terms_of
from ludus.worlds.rocket.rewards import SETS
from ludus.worlds.rocket.rules import EVENTS, MEASURES

TERMS = terms_of("rocket")
STEP_S = 1.0 / 15.0


def step_info(**values: float) -> StepInfo:
    """Return a step of zeros but for the values; `event_boost` and the like choose between equal names."""
    events = {name: torch.tensor([values.get(f"event_{name}", values.get(name, 0.0))]) for name in EVENTS}
    state_metrics = {name: torch.tensor([values.get(f"measure_{name}", values.get(name, 0.0))]) for name in MEASURES}
    return StepInfo(events, state_metrics, STEP_S)


@pytest.mark.parametrize(
    ("term", "values", "expected"),
    [
        ("goal", {"team_goals": 1.0}, 1.0),
        ("goal", {"conceded": 1.0}, 0.0),
        ("concede", {"conceded": 1.0}, 1.0),
        ("touch", {"touches": 2.0, "touch_power": 500.0}, 2.0),
        ("touch_power", {"touches": 1.0, "touch_power": 1150.0}, 0.5),
        ("aerial_touch", {"touches": 2.0, "aerial_touches": 1.0}, 1.0),
        ("shot", {"shots": 1.0}, 1.0),
        ("save", {"saves": 1.0}, 1.0),
        ("assist", {"assists": 1.0}, 1.0),
        ("demo", {"demolitions": 1.0}, 1.0),
        ("demoed", {"event_demolished": 1.0}, 1.0),
        ("kickoff", {"kickoffs": 1.0}, 0.0),
        ("kickoff", {"kickoffs": 1.0, "kickoff_touches": 1.0}, 1.0),
        ("speed_to_ball", {"speed_to_ball": 1150.0}, 0.5 / 15),
        ("speed_to_ball", {"speed_to_ball": -2300.0}, -1 / 15),
        ("speed_to_ball", {"speed_to_ball": 1150.0, "measure_demolished": 1.0}, 0.0),
        ("ball_to_goal", {"ball_speed_to_goal": 3000.0}, 0.5 / 15),
        ("ball_to_goal", {"ball_speed_to_goal": -600.0}, -0.1 / 15),
        ("facing", {"facing_ball": -0.5}, -0.5 / 15),
        ("facing", {"facing_ball": 1.0, "measure_demolished": 1.0}, 0.0),
        ("boost_gain", {"boost_gained": 75.0, "boost": 100.0}, 0.5),  # sqrt(1) - sqrt(0.25)
        ("boost_gain", {"boost_gained": 16.0, "boost": 16.0}, 0.4),
        ("boost_gain", {"boost_gained": 12.0, "boost": 9.0}, 0.3),  # the rest was burnt in the same step
        ("boost_waste", {"boost_used": 2.0, "supersonic": 1.0}, 0.02),
        ("boost_waste", {"boost_used": 2.0}, 0.0),
        ("boost_low", {"boost": 9.0}, 1 / 15),
        ("boost_low", {"boost": 10.0}, 0.0),
        ("spacing", {"teammate_distance": 750.0}, 0.5 / 15),
        ("spacing", {"teammate_distance": 6000.0}, 1 / 15),
        ("spacing", {}, 0.0),
        ("rotation", {"y": -1000.0, "ball_y": 0.0, "between": 0.75}, 0.75 / 15),  # alone
        ("rotation", {"y": 1000.0, "ball_y": 0.0, "between": 0.75}, 0.0),
        ("rotation", {"y": -1000.0, "between": -0.5}, 0.0),
        ("rotation", {"y": -1000.0, "between": 1.0, "teammate_distance": 900.0}, 0.0),  # the nearest of two
        ("rotation", {"y": -1000.0, "between": 1.0, "teammate_distance": 900.0, "team_rank": 1.0}, 1 / 15),
        ("idle", {"speed": 99.0}, 1 / 15),
        ("idle", {"speed": 101.0}, 0.0),
        ("idle", {"speed": 0.0, "measure_demolished": 1.0}, 0.0),
        ("away", {"since_touch_s": 10.5}, 1 / 15),
        ("away", {"since_touch_s": 9.5}, 0.0),
        ("win", {"losses": 1.0}, -1.0),
        ("win", {"wins": 1.0}, 1.0),
    ],
)
def test_a_term_by_hand(term: str, values: dict[str, float], expected: float) -> None:
    assert TERMS[term](step_info(**values)).tolist() == pytest.approx([expected], abs=1e-6)


def test_every_term_is_tested_and_every_set_is_made_of_terms() -> None:
    tested = {case[0] for case in test_a_term_by_hand.pytestmark[0].args[1]}  # type: ignore[attr-defined]
    assert tested == set(TERMS)
    for name, weights in SETS.items():
        assert set(weights) <= set(TERMS), name
    assert set(SETS) == {"dense", "sparse"}


def test_sparse_rewards_have_nothing_that_lasts() -> None:
    """Where nothing happens, however things stand, there is no sparse reward."""
    generator = torch.Generator().manual_seed(0)
    state_metrics = {name: torch.randn(64, generator=generator) * 100.0 for name in MEASURES}
    still = StepInfo({name: torch.zeros(64) for name in EVENTS}, state_metrics, STEP_S)
    assert all(bool((TERMS[name](still) == 0).all()) for name in SETS["sparse"])


def test_terms_work_on_whole_rollouts_and_give_finite_numbers() -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (5, 7)
    events = {name: torch.rand(shape, generator=generator) * 50.0 for name in EVENTS}
    state_metrics = {name: torch.randn(shape, generator=generator).abs() * 50.0 for name in MEASURES}
    for name, term in TERMS.items():
        whole = term(StepInfo(events, state_metrics, STEP_S))
        assert whole.shape == shape, name
        assert bool(whole.isfinite().all()), name
        for t in range(5):
            alone = StepInfo({k: v[t] for k, v in events.items()}, {k: v[t] for k, v in state_metrics.items()}, STEP_S)
            assert torch.equal(whole[t], term(alone)), f"{name} depends on other steps"
