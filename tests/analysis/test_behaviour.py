"""What an agent does differently, and because of what it knows: policies made by hand whose decisions are known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from tests.strategies import MINIMAL, STYLES, Replies, make_duel_policy
from torch import Tensor

from ludus.analysis.actions import AS_IS, OTHER_STYLE, SAME_STYLE, ZEROED, ActionColumns, find_donors
from ludus.analysis.analysed_policy import AnalysedPolicy, CounterfactualPolicy, Features
from ludus.analysis.behaviour import Behaviour, changed_decisions, describe_behaviour
from ludus.analysis.recording import Plan, record
from ludus.core.intervals import Interval
from ludus.envs.registry import make_env
from ludus.nn.heads import make_head
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

MATCHES = 4


def behave(policy: Policy) -> Behaviour:
    """Returns what a policy does in ten rounds against rock and cycle, every round a sample."""
    with make_env("duel", len(STYLES) * MATCHES) as env:
        recording = record(policy, env, Plan(STYLES, MATCHES, 1.0, 0.1))
    assert recording.actions is not None
    assert recording.actions.expected[AS_IS].shape == (10, len(STYLES) * MATCHES, 3)
    return describe_behaviour(recording.actions, recording.labels, len(STYLES))


def estimates(rows: tuple[tuple[Interval, ...], ...]) -> np.ndarray:
    return np.array([[each.estimate for each in row] for row in rows])


def test_a_policy_that_plays_by_its_latent() -> None:
    """Against rock it plays paper; against cycle paper, paper, rock, paper, scissors, rock, paper, scissors ..."""
    found = behave(make_duel_policy(Replies))
    assert found.names == ("rock", "paper", "scissors")
    assert found.rates == pytest.approx(np.array([[0.0, 1.0, 0.0], [0.3, 0.5, 0.2]]))
    assert found.mean == pytest.approx(np.array([0.15, 0.75, 0.1]))
    assert estimates(found.differences) == pytest.approx(np.array([[-0.15, 0.25, -0.1], [0.15, -0.25, 0.1]]))
    # Both latents say paper in the rounds 0, 1, 3, 6 and 9; a latent of zeros leaves all three moves alike.
    assert found.effects[OTHER_STYLE].mean.estimate == pytest.approx(0.5)
    assert found.effects[SAME_STYLE].mean.estimate == 0.0
    assert [each.estimate for each in found.effects[ZEROED].by_style] == pytest.approx([2 / 3, 2 / 3])
    shifts = estimates(found.effects[OTHER_STYLE].shifts)
    assert shifts == pytest.approx(np.array([[-0.3, 0.5, -0.2], [0.3, -0.5, 0.2]]), abs=1e-6)
    assert found.mean_style_effect.low == pytest.approx(0.5)
    assert found.as_json()["style_effect"]["mean"]["estimate"] == 0.5


def test_a_policy_that_ignores_its_latent() -> None:
    found = behave(make_duel_policy(Replies, uses_latent=False))
    for effect in found.effects.values():
        assert effect.mean == (0.0, 0.0, 0.0)
        assert not estimates(effect.shifts).any()
    assert found.mean_style_effect == (0.0, 0.0, 0.0)


def make_random_policy(**settings: object) -> Policy:
    torch.manual_seed(0)
    with make_env("duel") as env:
        policy = Policy(env.spec, PolicyConfig.model_validate(settings))
    with torch.no_grad():  # heads start near zero, where every policy plays alike
        policy.get_parameter("head.linear.weight").normal_()
    return policy


@pytest.mark.parametrize(
    ("settings", "features"),
    [
        ({"strategy": MINIMAL}, "latent"),
        ({"strategy": MINIMAL, "recurrent": {"size": 4, "skip": True}}, "latent"),
        ({"strategy": MINIMAL, "recurrent": {"size": 4}}, "latent"),
        ({"strategy": MINIMAL, "recurrent": {"size": 4}}, "memory"),
        ({"recurrent": {"size": 4}}, "memory"),
    ],
)
def test_a_counterfactual_follows_the_policy_on_the_same_frames(
    settings: dict[str, object], features: Features
) -> None:
    policy = make_random_policy(**settings)
    analysed = AnalysedPolicy(policy, features)
    same = CounterfactualPolicy(analysed, lambda values: values)
    without = CounterfactualPolicy(analysed, torch.zeros_like)
    ablated = AnalysedPolicy(policy, features, torch.zeros_like)
    policies = [analysed, same, without, ablated]
    memories = [each.initial(3) for each in policies]
    assert not any(name.startswith("strategy.") for name in memories[1])
    for frame in range(6):
        seen, starts = {"vector": torch.rand(3, 8)}, torch.full((3,), frame == 0)
        memories = [each.step(seen, memory, starts).memory for each, memory in zip(policies, memories, strict=True)]
        assert torch.equal(same.distribution, analysed.distribution)
        # On the same frames, a policy that plays with its features zeroed does what its counterfactual says.
        assert torch.equal(without.distribution, ablated.distribution)
    assert not torch.allclose(without.distribution, analysed.distribution, atol=1e-3)


def test_donors_by_hand() -> None:
    other, same = find_donors(torch.tensor([0, 0, 0, 1, 1, 1, 2, 2]))
    assert other.tolist() == [3, 6, 4, 0, 6, 1, 0, 3]
    assert same.tolist() == [1, 2, 0, 4, 5, 3, 7, 6]
    alone, _ = find_donors(torch.tensor([0, 0]))
    assert alone.tolist() == [0, 1]


def test_changed_decisions_by_hand() -> None:
    shift = np.array([0.2, -0.5, 0.3])
    assert changed_decisions(shift, (0, 0, 0), are_shares=True) == pytest.approx(0.5)  # one choice of three
    assert changed_decisions(shift, (0, 1, 2), are_shares=True) == pytest.approx(1.0 / 3.0)  # three keys
    assert changed_decisions(shift, (0, 1, 1), are_shares=True) == pytest.approx((0.2 + 0.4) / 2)  # a key and a choice
    assert changed_decisions(shift, (0, 1, 2), are_shares=False) == pytest.approx(1.0 / 3.0)


@pytest.mark.parametrize(
    ("space", "names", "action", "played"),
    [
        (spaces.Discrete(3), ("rock", "paper", "scissors"), 2, [0, 0, 1]),
        (spaces.Discrete(2), ("action 0", "action 1"), 1, [0, 1]),
        (spaces.MultiBinary(2), ("key 0", "key 1"), [0, 1], [0, 1]),
        (spaces.MultiDiscrete([2, 3]), ("factor 0 0", "factor 0 1", "factor 1 0", "factor 1 1", "factor 1 2"), [1, 2],
         [0, 1, 0, 0, 1]),
        (spaces.Box(-1.0, 1.0, (2,)), ("action 0", "action 1"), [0.5, -0.25], [0.5, -0.25]),
    ],
)  # fmt: skip
def test_columns_of_every_kind_of_action(
    space: spaces.Space[object], names: tuple[str, ...], action: object, played: list[float]
) -> None:
    with make_env("duel") as env:
        spec = replace(env.spec, action_space=space)
    head = make_head(space, 4)
    columns = ActionColumns(spec, head)
    assert columns.names == names
    assert columns.played(torch.tensor([action])).tolist() == [played]
    expected: Tensor = columns.expected(head(torch.zeros(1, 4)))
    assert expected.shape == (1, len(names))
    if not columns.are_shares:
        assert expected.tolist() == [[0.0, 0.0]]
        return
    sums = np.bincount(columns.factors, weights=expected[0].detach().numpy())
    alone = [columns.factors.count(factor) == 1 for factor in sorted(set(columns.factors))]
    assert sums == pytest.approx(np.where(alone, 0.5, 1.0))  # a key is pressed half the time; choices add up to 1
