"""Evaluation on a CUDA device: the policy steps as a graph there, and outcomes that are known stay known."""

from collections.abc import Callable

import pytest
import torch
from tests.strategies import TINY_STRATEGY

from ludus.envs.registry import make_env
from ludus.evaluation.evaluate import PolicyEvaluator
from ludus.evaluation.players import Player, find_players
from ludus.nn.recurrent import RecurrentConfig
from ludus.policies.agent import build_policy
from ludus.policies.config import PolicyConfig
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy

pytestmark = pytest.mark.cuda

MakePolicy = Callable[..., Policy]
REMEMBERING = PolicyConfig(recurrent=RecurrentConfig(size=8), strategy=TINY_STRATEGY)


def on_device(policy: Policy) -> Policy:
    return build_policy(PolicyDescription.of(policy.spec, policy.config), policy.state(), "cuda")


def test_known_outcomes_on_the_device(stubborn: MakePolicy) -> None:
    paper, rock = (on_device(stubborn("duel", bias)) for bias in ([-9.0, 9.0, -9.0], [9.0, -9.0, -9.0]))
    with make_env("duel", 16, "cuda") as env:
        opponents = (*find_players(["rock", "cycle"], env), Player("agent", rock))
        evaluation = PolicyEvaluator(env, opponents, matches=10).play(paper)
    assert [row["win_rate"] for row in evaluation.rows] == [1.0, 1.0, 1.0]
    assert [row["mean_return"] for row in evaluation.rows] == [10.0, 1.0, 10.0]


def test_a_policy_with_memory_is_evaluated_again_and_again(fresh: MakePolicy) -> None:
    policy = on_device(fresh("brawl", REMEMBERING))
    before = policy.state()
    with make_env("brawl", 32, "cuda", config={"step_limit": 90}) as env:
        evaluator = PolicyEvaluator(env, find_players(["based", "random"], env), matches=16)
        first, again = evaluator.play(policy).rows, evaluator.play(policy).rows
    assert [row["matches"] for row in first] == [16, 16]
    assert first == again
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state().items())
