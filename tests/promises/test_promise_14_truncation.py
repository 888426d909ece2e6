"""Promise 14: truncation is not termination, proven on a problem that is solved by hand.

In `endless-v1` every step is worth 1 and games are cut off after 10 steps, which the observation does not show. With
gamma 0.9 and one-step targets the value V of its only state satisfies V = 1 + 0.9 V, so V = 10, if the cut is
bootstrapped through. If the cut were an end, every tenth step would have nothing after it: V = 1 + 0.9 * 0.9 V, so
V = 5.263.
"""

from typing import Any

import pytest
import torch

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy
from ludus.rollout.collector import Collector

GAMMA = 0.9


def _config(**changes: Any) -> PpoConfig:
    plain = {"n_steps": 20, "sequence_length": 10, "batch_size": 160, "n_epochs": 4, "gamma": GAMMA, "gae_lambda": 0.0}
    return PpoConfig.model_validate(plain | {"learning_rate": 0.03, "max_grad_norm": 100.0} | changes)


@pytest.mark.parametrize(("terminates", "value"), [(False, 1 / (1 - GAMMA)), (True, 1 / (1 - GAMMA * 0.9))])
def test_the_learned_value_is_the_hand_solved_one(terminates: bool, value: float) -> None:
    torch.manual_seed(0)
    env = make_env("endless-v1", 8, config={"terminates": terminates})
    policy = Policy(env.spec, PolicyConfig.model_validate({"net_arch": {"pi": [4], "vf": [4]}}))
    learner = PpoLearner(env, policy, _config())
    for _ in range(150):
        learner.iterate()
    learned = policy.value({"vector": torch.ones(1, 1)}, {}, torch.ones(1, dtype=torch.bool))
    assert learned.item() == pytest.approx(value, rel=0.02)


@pytest.mark.parametrize("kind", ["mlp", "lstm"])
def test_one_rollouts_targets_by_hand(kind: str) -> None:
    env = make_env("endless-v1", 2)
    settings: dict[str, Any] = {"recurrent": {"size": 4}} if kind == "lstm" else {}
    policy = Policy(env.spec, PolicyConfig.model_validate(settings))
    with torch.no_grad():
        policy.value_head.weight.zero_()
        policy.value_head.bias.fill_(3.0)  # every state is worth 3, whatever is seen
    collector = Collector(env, policy, _config(gae_lambda=1.0))
    collector.collect(torch.Generator().manual_seed(0))
    # Ten rewards of 1 and then the value 3, discounted; nothing of the next episode comes through the cut.
    for steps_left, target in zip(range(10, 0, -1), collector.buffer.returns[:10, 0].tolist(), strict=True):
        hand = sum(GAMMA**i for i in range(steps_left)) + GAMMA**steps_left * 3.0
        assert target == pytest.approx(hand, rel=1e-5)
    torch.testing.assert_close(collector.buffer.returns[10:], collector.buffer.returns[:10])
