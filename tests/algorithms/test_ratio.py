"""The test of tests: before the first step of an update the new policy is the old one, so every ratio is 1."""

import pytest
import torch

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train


@pytest.mark.parametrize("end_chance", [0.02, 0.2])
def test_the_first_ratio_is_one(policy_kind: tuple[str, PolicyConfig], make_arena: type, end_chance: float) -> None:
    name, config = policy_kind
    env = make_arena(4, picture=name.startswith("cnn"), end_chance=end_chance)
    torch.manual_seed(0)
    ppo = PpoConfig.model_validate(
        {"n_steps": 32, "sequence_length": 8, "batch_size": 64, "n_epochs": 2, "learning_rate": 3e-3, "gamma": 0.9}
    )
    learner = PpoLearner(env, Policy(env.spec, config), ppo, seed=1)
    for _ in range(3):  # memories, statistics and episodes go on from one iteration to the next
        metrics = learner.iterate()
        assert metrics["ratio_error"] < 1e-5
        assert metrics["approx_kl"] > 1e-5  # and then it learns
        assert metrics["updates"] == 8
        assert metrics["skipped_updates"] == 0
