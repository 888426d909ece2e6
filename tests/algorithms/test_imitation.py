"""Imitation of a bot beside PPO: what it adds to the loss, and that it leads where rewards do not."""

from typing import Any

import pytest
import torch

from ludus.algorithms.algorithm import find_algorithm
from ludus.algorithms.ppo.config import ImitationConfig, PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.core.errors import UnknownNameError
from ludus.envs.registry import make_env
from ludus.policies.config import PolicyConfig
from ludus.policies.policy import Policy

pytestmark = pytest.mark.train

POLICY = PolicyConfig.model_validate({"net_arch": {"pi": [8], "vf": [8]}})


def make_learner(bot: str | None = "rock", **settings: Any) -> PpoLearner:
    torch.manual_seed(0)
    env = make_env("duel-v1", 8)
    given: dict[str, Any] = {"n_steps": 16, "batch_size": 64, "n_epochs": 2, "learning_rate": 3e-2, "native": False}
    given |= {} if bot is None else {"imitation": {"bot": bot, "coef": 1.0}}
    config = PpoConfig.model_validate(given | settings)
    return PpoLearner(env, Policy(env.spec, POLICY), config, reward=lambda _: torch.zeros((8, 2)))


def test_without_rewards_the_policy_becomes_the_bot() -> None:
    learner = make_learner()
    metrics = [learner.iterate() for _ in range(12)]
    assert metrics[0]["imitation_loss"] > 0.5  # three throws: log 3 = 1.1 at first
    assert metrics[-1]["imitation_loss"] < 0.1
    shown = learner.rollout.labels["demonstrations"]
    assert bool((shown == shown[0, 0]).all())
    assert (learner.rollout.actions == shown).float().mean() > 0.9


def test_the_loss_is_the_mean_of_the_log_probabilities_and_scaled_by_its_weight() -> None:
    learner = make_learner()
    learner.collect()
    batch = learner.rollout.minibatch(torch.arange(64))
    auxiliary, policy = learner.updater.auxiliary, learner.policy
    auxiliary.imitation.fill_(0.25)
    evaluation = policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.actions)
    shown = policy.unroll(batch.observations, batch.memory, batch.episode_starts, batch.labels["demonstrations"])
    found = auxiliary.add_to(torch.tensor(2.0), evaluation, batch)
    assert found.item() == pytest.approx(2.0 - 0.25 * shown.log_probs.mean().item())


@pytest.mark.parametrize("parts", [2, 5])
def test_parts_give_the_steps_of_the_whole(parts: int) -> None:
    states = []
    for count in (1, parts):
        learner = make_learner(n_accumulate=count)
        metrics = learner.iterate()
        states.append((learner.policy.state(), metrics["imitation_loss"]))
    assert states[1][1] == pytest.approx(states[0][1], rel=1e-4)
    for name, tensor in states[0][0].items():
        torch.testing.assert_close(states[1][0][name], tensor, atol=2e-5, rtol=1e-4, msg=name)


def test_a_weight_that_has_fallen_to_zero_costs_nothing() -> None:
    coef = {"kind": "linear", "start": 1.0, "end": 0.0, "until": 0.5}
    learner, plain = make_learner(imitation={"bot": "rock", "coef": coef}), make_learner(None)
    for one in (learner, plain):
        one.collect(progress=0.5)
        one.update(progress=0.5)
    assert learner.metrics()["imitation_loss"] == 0.0
    assert "imitation_loss" not in plain.metrics()
    for name, tensor in plain.policy.state().items():
        torch.testing.assert_close(learner.policy.state()[name], tensor, msg=name)


def test_unknown_bots_are_refused() -> None:
    ppo, spec = find_algorithm("ppo"), make_env("duel-v1", 2).spec
    settings = PpoConfig(imitation=ImitationConfig(bot="nobody"), n_steps=8, batch_size=16)
    with pytest.raises(UnknownNameError, match=r"ppo\.imitation\.bot"):
        ppo.check(settings, POLICY, spec, 4)
