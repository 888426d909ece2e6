"""Brawl's reward terms, each by hand; and that none of them outlives an episode."""

import pytest
import torch

from ludus.rewards.step_info import StepInfo
from ludus.rewards.terms import terms_of
from ludus.worlds.brawl.rewards import SETS
from ludus.worlds.brawl.rules import EVENTS, MEASURES, State

TERMS = terms_of("brawl")


def step_info(**values: float) -> StepInfo:
    events = {name: torch.tensor([values.get(name, 0.0)]) for name in EVENTS}
    state_metrics = {name: torch.tensor([values.get(name, 0.0)]) for name in MEASURES}
    return StepInfo(events, state_metrics, 1.0 / 30.0)


@pytest.mark.parametrize(
    ("term", "values", "expected"),
    [
        ("damage", {"damage_dealt": 21.0, "damage_taken": 7.0}, 0.1),
        ("damage_offensive", {"damage_dealt": 21.0, "damage_taken": 21.0}, 0.1),
        ("damage_defensive", {"damage_dealt": 21.0, "damage_taken": 21.0}, -0.1),
        ("danger", {"y": 4.3}, 1 / 30),
        ("danger", {"y": 4.1}, 0.0),
        ("danger", {"y": 5.0, "state": State.KO}, 0.0),
        ("closing", {"closing": 4.0}, 0.5 / 30),
        ("closing", {"closing": -40.0}, -1 / 30),
        ("heading", {"heading": -1.0}, -1 / 30),
        ("edge_pressure", {"x": 4.0, "opponent_x": 6.0}, 1 / 30),
        ("edge_pressure", {"x": -4.0, "opponent_x": 6.0}, 0.0),
        ("edge_pressure", {"x": 6.5, "opponent_x": 6.0}, 0.0),
        ("edge_pressure", {"x": 1.0, "opponent_x": 3.0}, 0.0),
        ("attack_near", {"attacks": 1.0, "distance": 1.5}, 1.0),
        ("attack_near", {"attacks": 1.0, "distance": 2.5}, 0.0),
        ("attack_spam", {"state": State.ATTACK}, 1 / 30),
        ("many_keys", {"keys_held": 4.0}, 1 / 30),
        ("many_keys", {"keys_held": 3.0}, 0.0),
        ("idle", {"state": State.STANDING}, 1 / 30),
        ("idle", {"state": State.STANDING, "keys_held": 1.0}, 0.0),
        ("idle", {"state": State.IN_AIR}, 0.0),
        ("height", {"y": 2.85}, 2.0 / 30),
        ("height", {"y": -3.0}, 0.0),
        ("combo", {"stun_hits": 2.0}, 2.0),
        ("equip", {"pickup_value": 2.0}, 2.0),
        ("drop", {"drops": 1.0}, 1.0),
        ("armed", {"weapon": 2.0}, 1 / 30),
        ("armed", {}, 0.0),
        ("damage_armed", {"weapon": 2.0, "damage_dealt": 70.0}, 0.5),
        ("damage_armed", {"damage_dealt": 70.0}, 0.0),
        ("win", {"losses": 1.0}, -1.0),
        ("loss", {"losses": 1.0}, 1.0),
        ("draw", {"draws": 1.0}, 1.0),
        ("knockout", {"knockouts": 1.0}, 1.0),
        ("knockout", {"knocked_out": 1.0}, -1.0),
        ("fall", {"falls": 1.0}, 1.0),
    ],
)
def test_a_term_by_hand(term: str, values: dict[str, float], expected: float) -> None:
    assert TERMS[term](step_info(**values)).tolist() == pytest.approx([expected], abs=1e-6)


def test_every_term_is_tested_and_every_set_is_made_of_terms() -> None:
    tested = {case.args[0] if hasattr(case, "args") else case[0] for case in test_a_term_by_hand.pytestmark[0].args[1]}  # type: ignore[attr-defined]
    assert tested == set(TERMS)
    for name, weights in SETS.items():
        assert set(weights) <= set(TERMS), name


def test_sparse_rewards_have_nothing_but_damage_knockouts_and_the_result() -> None:
    assert set(SETS["sparse"]) == {"damage", "knockout", "win"}


def test_terms_work_on_whole_rollouts() -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (5, 7)
    events = {name: torch.rand(shape, generator=generator) for name in EVENTS}
    state_metrics = {name: torch.randn(shape, generator=generator) for name in MEASURES}
    for name, term in TERMS.items():
        whole = term(StepInfo(events, state_metrics, 1 / 30))
        assert whole.shape == shape, name
        for t in range(5):
            alone = StepInfo({k: v[t] for k, v in events.items()}, {k: v[t] for k, v in state_metrics.items()}, 1 / 30)
            assert torch.equal(whole[t], term(alone)), f"{name} depends on other steps"
