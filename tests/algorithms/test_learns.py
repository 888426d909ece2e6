"""It learns: tiny problems with known best play, each in seconds, and the ones that need memory need it."""

from typing import Any

import pytest
import torch

from ludus import make_env
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train

STREAMING = {"layers": 1, "heads": 2, "width": 32, "feedforward": 64, "window": 9, "latent": 16}
MEMORIES: dict[str, dict[str, Any]] = {
    "lstm": {"recurrent": {"size": 32}},
    "streaming": {"strategy": STREAMING},
}
PPO = {"n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 2e-3, "ent_coef": 0.01}


def _best_return(
    world: str, policy_settings: dict[str, Any], enough: float, iterations: int, **ppo_changes: Any
) -> float:
    """Trains until an iteration's mean return is enough; gives the best one."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    env = make_env(world, 32)
    policy = Policy(env.spec, PolicyConfig.model_validate(policy_settings))
    learner = PpoLearner(env, policy, PpoConfig.model_validate(PPO | ppo_changes))
    best = -float("inf")
    for i in range(iterations):
        best = max(best, learner.iterate(i / iterations)["episode_return"])
        if best > enough:
            break
    return best


def test_identity() -> None:
    assert _best_return("identity-v1", {}, enough=3.8, iterations=40) > 3.8  # blind play: 1


@pytest.mark.parametrize("memory", list(MEMORIES))
def test_recall_with_memory(memory: str) -> None:
    settings = {"strategy": {**MEMORIES[memory]["strategy"], "block": None}} if "strategy" in MEMORIES[memory] else None
    assert _best_return("recall-v1", settings or MEMORIES[memory], enough=0.95, iterations=60) > 0.95


def test_recall_without_memory_is_guessing() -> None:
    assert _best_return("recall-v1", {}, enough=0.95, iterations=30) < 0.55  # 1/3 on average over 160 episodes


@pytest.mark.parametrize("memory", ["streaming", "lstm"])
def test_recognising_the_opponent(memory: str) -> None:
    assert _best_return("rps-v1", MEMORIES[memory], enough=10.0, iterations=80) > 10.0  # best play: 14


def test_recognising_the_opponent_takes_memory() -> None:
    assert _best_return("rps-v1", {}, enough=10.0, iterations=20) < 3.0  # 0 on average


@pytest.mark.parametrize("state_dependent", [False, True])
def test_continuous_control(state_dependent: bool) -> None:
    settings = {"state_dependent_exploration": state_dependent, "log_std": -1.0, "normalize": {"observations": True}}
    # Doing nothing loses about 38; good play loses about 8.
    ppo: dict[str, Any] = {"n_steps": 64, "n_epochs": 10, "batch_size": 512, "learning_rate": 4e-3}
    assert _best_return("point-v1", settings, enough=-14.0, iterations=60, **ppo) > -14.0
