"""Behaviour numbers: found by the world's name, sums of steps, numbers of matches, ratios of totals."""

import numpy as np
import pytest
import torch

from ludus.core.errors import UnknownNameError
from ludus.envs.behaviour import behaviour_of
from ludus.envs.brawl.rules import EVENTS, MEASURES
from ludus.envs.registry import world_package
from ludus.rewards.moment import Moment

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


def moment(shape: tuple[int, ...], **given: torch.Tensor) -> Moment:
    def of(names: tuple[str, ...]) -> dict[str, torch.Tensor]:
        return {name: given.get(name, torch.zeros(shape)) for name in names}

    return Moment(of(EVENTS), of(MEASURES), 1 / 30)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (5, 3, 2)])
def test_steps_of_any_shape_are_taken_element_by_element(shape: tuple[int, ...]) -> None:
    height = torch.linspace(-8.0, 8.0, torch.Size(shape).numel()).view(shape)
    damage = torch.rand(shape)
    steps = behaviour_of("brawl").per_step(moment(shape, y=height, damage_dealt=damage))
    assert all(quantity.shape == shape for quantity in steps.values())
    assert torch.equal(steps["damage_dealt"], damage)
    assert torch.equal(steps["danger"], (height > 4.2).float())  # y grows downward


def test_the_numbers_of_a_match_by_hand() -> None:
    behaviour = behaviour_of("brawl-v1")
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
    numbers = behaviour.per_episode(sums, np.array([2700, 900]), 30.0)
    assert set(numbers) == NUMBERS
    assert numbers["damage_ratio"].tolist() == [3.0, 30.0]  # what was taken counts at least 1
    assert numbers["danger_share"].tolist() == [0.01, 0.1]
    assert numbers["attack_rate"].tolist() == [1.0, 1.0]  # 90 in 90 s, 30 in 30 s
    assert numbers["survival_s"].tolist() == [90.0, 30.0]
    assert numbers["self_destructs"].tolist() == [1.0, 0.0]
    summary = behaviour.summarise(numbers)
    assert set(summary) == NUMBERS
    assert summary["damage_ratio"] == 150.0 / 40.0  # of the totals; the mean of the two ratios would be 16.5
    assert summary["survival_s"] == 60.0
    assert summary["knocked_out"] == 2.0


def test_a_real_match_has_these_quantities() -> None:
    quantities = behaviour_of("brawl").per_step(moment((2,)))
    numbers = behaviour_of("brawl").per_episode(
        {name: values.double().numpy() for name, values in quantities.items()}, np.array([30, 60]), 30.0
    )
    assert set(numbers) == NUMBERS
    assert all(np.isfinite(values).all() for values in numbers.values())


@pytest.mark.parametrize("world", ["duel", "rps-v1", "gym:CartPole-v1", "unheard-of"])
def test_a_world_without_behaviour_has_no_numbers(world: str) -> None:
    behaviour = behaviour_of(world)
    assert behaviour.per_step(moment((2,))) == {}
    assert behaviour.per_episode({}, np.array([3]), 30.0) == {}
    assert behaviour.summarise({}) == {}


def test_without_episodes_there_is_nothing_to_sum_up() -> None:
    assert behaviour_of("brawl").summarise({name: np.zeros(0) for name in NUMBERS}) == {}


def test_the_package_of_a_world_is_known() -> None:
    assert world_package("brawl") == "ludus.envs.brawl"
    assert world_package("duel-v1") == "ludus.envs.tiny"
    assert world_package("gym:CartPole-v1") == ""
    with pytest.raises(UnknownNameError, match="unheard-of"):
        world_package("unheard-of")
