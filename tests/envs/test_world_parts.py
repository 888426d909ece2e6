"""Parts that a world declares: episode metrics and scenarios."""

import numpy as np
import pytest
import torch

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.check import CheckOptions, check_env
from ludus.envs.world_parts import EpisodeMetrics, choose_scenarios, merge_settings, metrics_of, scenarios_of
from ludus.rewards.step_info import StepInfo
from ludus.worlds.brawl.rules import EVENTS, MEASURES

NUMBERS = {
    "damage_dealt",
    "damage_taken",
    "damage_ratio",
    "knockouts",
    "knocked_out",
    "self_destructs",
    "danger_share",
    "pickups",
    "attack_rate",
    "stun_hits",
    "survival_s",
}


def step_info(shape: tuple[int, ...], **given: torch.Tensor) -> StepInfo:
    def of(names: tuple[str, ...]) -> dict[str, torch.Tensor]:
        return {name: given.get(name, torch.zeros(shape)) for name in names}

    return StepInfo(of(EVENTS), of(MEASURES), 1 / 30)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (5, 3, 2)])
def test_steps_of_any_shape_are_taken_element_by_element(shape: tuple[int, ...]) -> None:
    height = torch.linspace(-8.0, 8.0, torch.Size(shape).numel()).view(shape)
    damage = torch.rand(shape)
    steps = metrics_of("brawl").per_step(step_info(shape, y=height, damage_dealt=damage))
    assert all(quantity.shape == shape for quantity in steps.values())
    assert torch.equal(steps["damage_dealt"], damage)
    assert torch.equal(steps["danger"], (height > 4.2).float())  # y grows downward


def test_the_numbers_of_a_match_by_hand() -> None:
    metrics = metrics_of("brawl-v1")
    sums = {
        "damage_dealt": np.array([120.0, 30.0]),
        "damage_taken": np.array([40.0, 0.0]),
        "knockouts": np.array([2.0, 0.0]),
        "knocked_out": np.array([1.0, 3.0]),
        "falls": np.array([1.0, 0.0]),
        "pickups": np.array([3.0, 1.0]),
        "attacks": np.array([90.0, 30.0]),
        "stun_hits": np.array([4.0, 0.0]),
        "danger": np.array([27.0, 90.0]),
    }
    numbers = metrics.per_episode(sums, np.array([2700, 900]), 30.0)
    assert set(numbers) == NUMBERS
    assert numbers["damage_ratio"].tolist() == [3.0, 30.0]  # what was taken counts at least 1
    assert numbers["danger_share"].tolist() == [0.01, 0.1]
    assert numbers["attack_rate"].tolist() == [1.0, 1.0]  # 90 in 90 s, 30 in 30 s
    assert numbers["survival_s"].tolist() == [90.0, 30.0]
    assert numbers["self_destructs"].tolist() == [1.0, 0.0]
    summary = metrics.summarise(numbers)
    assert set(summary) == NUMBERS
    assert summary["damage_ratio"] == 150.0 / 40.0  # of the totals; the mean of the two ratios would be 16.5
    assert summary["survival_s"] == 60.0
    assert summary["knocked_out"] == 2.0


def test_a_real_match_has_these_quantities() -> None:
    quantities = metrics_of("brawl").per_step(step_info((2,)))
    numbers = metrics_of("brawl").per_episode(
        {name: values.double().numpy() for name, values in quantities.items()}, np.array([30, 60]), 30.0
    )
    assert set(numbers) == NUMBERS
    assert all(np.isfinite(values).all() for values in numbers.values())


@pytest.mark.parametrize("world", ["duel", "rps-v1", "gym:CartPole-v1", "unheard-of"])
def test_a_world_without_metrics_has_no_numbers(world: str) -> None:
    metrics = metrics_of(world)
    assert metrics.per_step(step_info((2,))) == {}
    assert metrics.per_episode({}, np.array([3]), 30.0) == {}
    assert metrics.summarise({}) == {}


def test_without_episodes_there_is_nothing_to_sum_up() -> None:
    assert metrics_of("brawl").summarise({name: np.zeros(0) for name in NUMBERS}) == {}


pytestmark = pytest.mark.usefixtures("stroll_world")


def test_trials_are_found_by_the_world() -> None:
    assert list(scenarios_of("stroll")) == list(scenarios_of("stroll-v1")) == ["calm", "wind", "storm"]
    for world in ("point", "brawl", "gym:CartPole-v1", "unheard-of"):
        assert scenarios_of(world) == {}


def test_trials_are_chosen_by_name() -> None:
    assert list(choose_scenarios("stroll", None)) == ["calm", "wind", "storm"]
    assert choose_scenarios("stroll", ["wind", "calm"]) == {"wind": {"weather": {"wind": 0.5}}, "calm": {}}
    assert list(choose_scenarios("stroll", ["wind", "calm"])) == ["wind", "calm"]
    assert choose_scenarios("stroll", []) == choose_scenarios("point", None) == choose_scenarios("point", []) == {}
    with pytest.raises(UnknownNameError, match=r"scenario 'strom' \(did you mean 'storm'\?\)"):
        choose_scenarios("stroll", ["calm", "strom"])
    with pytest.raises(ConfigError, match="calm"):
        choose_scenarios("stroll", ["calm", "wind", "calm"])
    with pytest.raises(ConfigError, match=r"point.*scenarios.*calm"):
        choose_scenarios("point", ["calm"])


def test_a_trial_is_laid_over_settings_level_by_level() -> None:
    settings = {"limit": 3, "weather": {"wind": 1.0, "rain": {"mm": 2}}, "shoes": "red"}
    trial = {"weather": {"wind": 2.0, "rain": {"cold": True}}, "shoes": {"left": 1}, "new": [1]}
    expected = {
        "limit": 3,
        "weather": {"wind": 2.0, "rain": {"mm": 2, "cold": True}},
        "shoes": {"left": 1},
        "new": [1],
    }
    assert merge_settings(settings, trial) == expected
    assert settings == {"limit": 3, "weather": {"wind": 1.0, "rain": {"mm": 2}}, "shoes": "red"}
    assert merge_settings(None, {"a": 1}) == {"a": 1}
    assert merge_settings(settings, {}) == settings


def test_extremes_of_many_episodes() -> None:
    episode_metrics = metrics_of("stroll")
    sums = {"distance": np.array([3.0, 1.0, 5.0]), "falls": np.array([0.0, 1.0, 0.0])}
    numbers = episode_metrics.per_episode(sums, np.array([10, 10, 20]), 10.0)
    summary = episode_metrics.summarise(numbers)
    assert summary == {
        "distance_m": 3.0,
        "speed_m_s": pytest.approx((3.0 + 1.0 + 2.5) / 3),
        "stable": pytest.approx(2 / 3),
        "distance_min_m": 1.0,
        "distance_max_m": 5.0,
        "stable_walks": 2.0,
    }
    assert episode_metrics.summarise({name: np.zeros(0) for name in numbers}) == {}
    with pytest.raises(ConfigError, match=r"'best'.*'median'.*min, max, sum"):
        EpisodeMetrics(extremes={"best": ("distance_m", "median")})  # type: ignore[dict-item]


def test_the_walker_conforms() -> None:
    report = check_env("stroll-v1", CheckOptions(num_envs=2, steps=8, end_steps=60))
    assert {"mirror", "batch", "snapshot"} <= set(report.passed)
