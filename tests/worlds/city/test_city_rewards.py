"""City's reward terms by hand, and the numbers of how a city was played."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ludus.envs.world_parts import metrics_of, reward_sets
from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import terms_of
from ludus.worlds.city.rewards import SETS
from ludus.worlds.city.tracker import EVENTS, GROUP_EVENTS, MEASURES


def step_info(**numbers: float) -> StepInfo:
    def tensor(name: str) -> Tensor:
        return torch.full((1, 1), numbers.get(name, 0.0))

    return StepInfo({name: tensor(name) for name in EVENTS}, {name: tensor(name) for name in MEASURES}, 1.0)


def term(name: str, **numbers: float) -> float:
    return float(terms_of("city")[name](step_info(**numbers)))


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("growth", {"population_gain": 12.0}, 12.0),
        ("growth", {"population_gain": 123_456.0}, 100.0),  # a reading with digits too many
        ("decline", {"population_loss": 7.0}, 7.0),
        ("decline", {"population_loss": 1e9}, 100.0),
        ("happiness", {"happiness_change": 4.0, "population": 0.0}, 2.0),
        ("happiness", {"happiness_change": -4.0, "population": 5_000.0}, -4.0),
        ("happiness", {"happiness_change": 90.0, "population": 1e9}, 15.0),
        ("budget", {"funds_change": -250.0}, -0.25),
        ("budget", {"funds_change": 1e7}, 1.0),
        ("debt", {"funds": -1_500.0, "funds_readable": 1.0}, 1.5),
        ("debt", {"funds": -9e9, "funds_readable": 1.0}, 2.0),
        ("debt", {"funds": -1_500.0, "funds_readable": 0.0}, 0.0),
        ("debt", {"funds": 1_500.0, "funds_readable": 1.0}, 0.0),
        ("bankruptcy", {"bankrupt": 1.0}, 1.0),
        ("thousands", {"population_gain": 0.0, "population_loss": 250.0}, -0.25),
        ("thousands", {"population_gain": 9_000.0, "population_loss": 0.0}, 4.0),
        ("traffic", {"traffic_change": -3.0}, -3.0),
        ("traffic", {"traffic_change": 77.0}, 10.0),
        ("milestone", {"milestone": 2.0}, 2.0),
        ("placement", {"placed": 1.0}, 1.0),
        ("refusal", {"refused": 1.0}, 1.0),
        ("idle_city", {"idle_city": 1.0}, 1.0),
        ("discovery", {"discovered": 2.0}, 2.0),
        ("discovery", {"discovered": 40.0}, 5.0),
        ("change", {"changed": 1.0}, 1.0),
        ("error", {"trouble": 2.0}, 2.0),
    ],
)
def test_a_term_is_a_bounded_difference(name: str, numbers: dict[str, float], expected: float) -> None:
    assert term(name, **numbers) == pytest.approx(expected)


def test_nothing_happening_is_worth_nothing() -> None:
    for name in terms_of("city"):
        assert term(name) == 0.0


def test_the_sets_name_terms_that_exist_and_the_facts_are_weighed_as_they_say() -> None:
    assert reward_sets("city") is SETS
    for weights in SETS.values():
        assert set(weights) <= set(terms_of("city"))
    facts = SETS["facts"]
    numbers = {"population_gain": 20.0, "milestone": 1.0, "discovered": 1.0, "changed": 1.0}
    worth = sum(weight * term(name, **numbers) for name, weight in facts.items())
    assert worth == pytest.approx(20 * 0.1 + 5.0 + 0.05 + 0.02)
    assert facts["decline"] == pytest.approx(-3 * facts["growth"])


def test_behaviour_numbers_are_made_of_sums() -> None:
    episode_metrics = metrics_of("city")
    sums = {name: np.zeros(2) for name in episode_metrics.per_step(step_info())}
    sums |= {
        "final_population": np.array([120.0, 30.0]),
        "final_funds": np.array([-10.0, 500.0]),
        "placed": np.array([3.0, 0.0]),
        "refused": np.array([1.0, 2.0]),
        "unreadable": np.array([5.0, 0.0]),
        "bankrupt": np.array([1.0, 0.0]),
        "did_build": np.array([4.0, 10.0]),
    }
    numbers = episode_metrics.per_episode(sums, np.array([10, 20]), 2.0)
    assert numbers["population"].tolist() == [120.0, 30.0]
    assert numbers["solvent"].tolist() == [0.0, 1.0]
    assert numbers["placed_share"].tolist() == [0.75, 0.0]
    assert numbers["unreadable_share"].tolist() == [0.5, 0.0]
    assert numbers["did_build_share"].tolist() == [0.4, 0.5]
    assert numbers["game_s"].tolist() == [5.0, 10.0]
    summary = episode_metrics.summarise(numbers)
    assert summary["placed_share"] == pytest.approx(3 / 6)  # of all tries, not the mean of shares
    assert (summary["population_min"], summary["population_max"]) == (30.0, 120.0)
    assert {f"{deed}_share" for deed in GROUP_EVENTS} <= set(numbers)
