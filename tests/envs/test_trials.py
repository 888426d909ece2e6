"""Trials: found by the world's name, chosen by theirs, laid over settings level by level; extremes of behaviour."""

import numpy as np
import pytest

from ludus.core.errors import ConfigError, UnknownNameError
from ludus.envs.behaviour import Behaviour, behaviour_of
from ludus.envs.check import CheckOptions, check_env
from ludus.envs.trials import choose_trials, laid_over, trials_of

pytestmark = pytest.mark.usefixtures("stroll_world")


def test_trials_are_found_by_the_world() -> None:
    assert list(trials_of("stroll")) == list(trials_of("stroll-v1")) == ["calm", "wind", "storm"]
    for world in ("point", "brawl", "gym:CartPole-v1", "unheard-of"):
        assert trials_of(world) == {}


def test_trials_are_chosen_by_name() -> None:
    assert list(choose_trials("stroll", None)) == ["calm", "wind", "storm"]
    assert choose_trials("stroll", ["wind", "calm"]) == {"wind": {"weather": {"wind": 0.5}}, "calm": {}}
    assert list(choose_trials("stroll", ["wind", "calm"])) == ["wind", "calm"]
    assert choose_trials("stroll", []) == choose_trials("point", None) == choose_trials("point", []) == {}
    with pytest.raises(UnknownNameError, match=r"unknown trial 'strom' \(did you mean 'storm'\?\); valid: calm, wind"):
        choose_trials("stroll", ["calm", "strom"])
    with pytest.raises(ConfigError, match="more than once: calm"):
        choose_trials("stroll", ["calm", "wind", "calm"])
    with pytest.raises(ConfigError, match="point has no trials, got calm; leave them out"):
        choose_trials("point", ["calm"])


def test_a_trial_is_laid_over_settings_level_by_level() -> None:
    settings = {"limit": 3, "weather": {"wind": 1.0, "rain": {"mm": 2}}, "shoes": "red"}
    trial = {"weather": {"wind": 2.0, "rain": {"cold": True}}, "shoes": {"left": 1}, "new": [1]}
    expected = {
        "limit": 3,
        "weather": {"wind": 2.0, "rain": {"mm": 2, "cold": True}},
        "shoes": {"left": 1},
        "new": [1],
    }
    assert laid_over(settings, trial) == expected
    assert settings == {"limit": 3, "weather": {"wind": 1.0, "rain": {"mm": 2}}, "shoes": "red"}
    assert laid_over(None, {"a": 1}) == {"a": 1}
    assert laid_over(settings, {}) == settings


def test_extremes_of_many_episodes() -> None:
    behaviour = behaviour_of("stroll")
    sums = {"distance": np.array([3.0, 1.0, 5.0]), "falls": np.array([0.0, 1.0, 0.0])}
    numbers = behaviour.per_episode(sums, np.array([10, 10, 20]), 10.0)
    summary = behaviour.summarise(numbers)
    assert summary == {
        "distance_m": 3.0,
        "speed_m_s": pytest.approx((3.0 + 1.0 + 2.5) / 3),
        "stable": pytest.approx(2 / 3),
        "distance_min_m": 1.0,
        "distance_max_m": 5.0,
        "stable_walks": 2.0,
    }
    assert behaviour.summarise({name: np.zeros(0) for name in numbers}) == {}
    with pytest.raises(ConfigError, match="extreme 'best' is made by 'median'; valid: min, max, sum"):
        Behaviour(extremes={"best": ("distance_m", "median")})  # type: ignore[dict-item]


def test_the_walker_conforms() -> None:
    report = check_env("stroll-v1", CheckOptions(num_games=2, steps=8, end_steps=60))
    assert {"mirror", "batch", "snapshot"} <= set(report.passed)
