"""Steps are counted as they happen, and the numbers of a walk are what they say."""

import numpy as np
import pytest
import torch

from ludus.worlds.mimic import metrics
from ludus.worlds.mimic.scoring import follow_feet


def points(right_heel_m: float, left_heel_m: float) -> torch.Tensor:
    places = torch.zeros(1, 4, 3)
    places[0, 0, 0], places[0, 2, 0] = right_heel_m, left_heel_m
    return places


def test_a_foot_that_comes_down_after_a_swing_is_a_step() -> None:
    state = torch.tensor([[0.0, 1.0, 0.2, 0.0]])  # right foot in the air for 0.2 s, left foot down
    state, strikes = follow_feet(state, torch.tensor([[0.3, 0.7]]), points(0.3, -0.25), 0.01)
    assert strikes.struck.tolist() == [[1.0, 0.0]]
    assert strikes.length_m[0, 0].item() == pytest.approx(0.55)
    assert strikes.swing_s.tolist() == [[pytest.approx(0.2), 0.0]]
    _, again = follow_feet(state, torch.tensor([[0.5, 0.5]]), points(0.3, -0.25), 0.01)
    assert again.struck.tolist() == [[0.0, 0.0]]


def test_a_foot_that_bounces_is_no_step() -> None:
    state = torch.tensor([[0.0, 1.0, 0.05, 0.0]])
    _, strikes = follow_feet(state, torch.tensor([[0.3, 0.7]]), points(0.3, -0.25), 0.01)
    assert strikes.struck.sum() == 0


def test_a_foot_stays_down_until_it_has_left_the_ground() -> None:
    state = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    state, _ = follow_feet(state, torch.tensor([[0.05, 0.9]]), points(0.0, 0.0), 0.01)
    assert state[0, 0] == 1.0
    state, _ = follow_feet(state, torch.tensor([[0.01, 0.9]]), points(0.0, 0.0), 0.01)
    assert state[0, 0] == 0.0
    assert state[0, 2].item() == pytest.approx(0.01)


def test_numbers_of_a_walk_by_hand() -> None:
    """15 s at 100 Hz: 18 m, 15 right and 14 left steps, swings of 0.40 and 0.36 s, 900 J for 75 kg."""
    lengths = np.array([1500])
    sums = {
        "reward": 1200.0, "distance": 18.0, "energy": 900.0, "strikes_right": 15.0, "strikes_left": 14.0,
        "step_right": 9.0, "step_left": 8.4, "completed": 1.0, "pushes": 2.0, "faults": 0.0, "speed": 1800.0,
        "desired": 1950.0, "mass": 75.0 * 1500, "peak_right_knee": 50.0, "error_right_knee": 16.0 * 1500,
        "error_left_knee": 36.0 * 1500, "swing_right": 6.0, "swing_left": 5.04, "stance_right": 9.0, "stance_left": 9.6,
    }  # fmt: skip
    numbers = metrics.per_episode({name: np.array([value]) for name, value in sums.items()}, lengths, 100.0)
    expected = {
        "distance_m": 18.0, "duration_s": 15.0, "speed_m_s": 1.2, "imitation": 0.8, "stable": 1.0,
        "rmse_right_knee_deg": 4.0, "rmse_left_knee_deg": 6.0, "rmse_deg": 5.0, "cadence_steps_min": 29 * 4.0,
        "stride_length_m": 36.0 / 29, "step_asymmetry": 0.0, "cost_of_transport": 900.0 / (75 * 9.81 * 18),
        "peak_right_knee_nm": 50.0, "survived": 1.0, "speed_error": 1.0 - 18.0 / 19.5, "pushes": 2.0,
        "swing_asymmetry": 0.04 / 0.38, "stance_share": 9.3 / 15.0,
    }  # fmt: skip
    assert {name: float(numbers[name][0]) for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("distance_m", "completed", "stable"), [(15.0, 0.0, 1.0), (14.0, 0.0, 0.0), (7.5, 1.0, 1.0), (7.0, 1.0, 0.0)]
)
def test_a_walk_is_stable_as_published(distance_m: float, completed: float, stable: float) -> None:
    names = ("reward", "energy", "strikes_right", "strikes_left", "step_right", "step_left", "pushes", "speed")
    sums = dict.fromkeys(names, 1.0) | {"distance": distance_m, "completed": completed, "mass": 75.0}
    sums["desired"] = 100 * 20.0  # a way of 20 m in a second of 100 steps: far enough for the published rule
    sums |= dict.fromkeys(("swing_right", "swing_left", "stance_right", "stance_left"), 1.0)
    sums |= {"error_right_knee": 1.0, "faults": 0.0}
    arrays = {name: np.array([value]) for name, value in sums.items()}
    assert metrics.per_episode(arrays, np.array([100]), 100.0)["stable"].tolist() == [stable]
