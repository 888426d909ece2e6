"""A loss on the latent of one's own: one registered class, and buffer, update, metrics and limits know it."""
# ruff: noqa: ARG003, ARG004 - the interface passes more than this loss needs

from typing import Any, Self

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.learner import PpoLearner
from ludus.envs.base import EnvSpec, StepResult
from ludus.envs.registry import make_env
from ludus.nn.strategy import StrategyConfig
from ludus.policies import auxiliary
from ludus.policies.auxiliary import AuxiliaryLoss, register_auxiliary_loss
from ludus.policies.config import PolicyConfig
from ludus.policies.cost import cost_of
from ludus.policies.description import PolicyDescription
from ludus.policies.policy import Policy

TINY = {"layers": 1, "heads": 2, "width": 16, "feedforward": 32, "window": 6, "latent": 8, "block": None}
CONFIG = PolicyConfig.model_validate({"strategy": TINY})
PPO = PpoConfig.model_validate({"n_steps": 16, "batch_size": 256, "n_epochs": 2, "sequence_length": 16})


class ThrowsRock(AuxiliaryLoss):
    """Tells whether the opponent throws rock in this step: mean binary cross-entropy."""

    label = "opponent_actions"

    def __init__(self, config: StrategyConfig) -> None:
        super().__init__()
        self.weight = 0.5
        self._make_head(config, 1)

    @staticmethod
    def weight_of(config: StrategyConfig) -> float:
        return 0.5

    @classmethod
    def make(cls, config: StrategyConfig, spec: EnvSpec, features: int) -> Self:
        return cls(config)

    @staticmethod
    def head_form(description: PolicyDescription, features: int) -> tuple[int, int]:
        return 0, 1

    def forward(self, latent: Tensor, features: Tensor) -> Tensor:
        logits: Tensor = self.head(latent.float())
        return logits.squeeze(-1)

    def known(self, labels: Tensor) -> Tensor:
        return (labels.squeeze(-1) if labels.dim() > 2 else labels).ge(0).float()

    def errors(self, predictions: Tensor, labels: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        rock = labels.reshape(predictions.shape).eq(0).to(predictions.dtype)
        errors = functional.binary_cross_entropy_with_logits(predictions, rock, reduction="none")
        right = (predictions > 0.0) == rock.bool()
        return (errors * counted).sum(), (right * counted).sum()


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auxiliary, "_LOSSES", dict(auxiliary._LOSSES))
    register_auxiliary_loss("rock")(ThrowsRock)


def make_learner() -> PpoLearner:
    torch.manual_seed(0)
    env = make_env("duel", 16)
    return PpoLearner(env, Policy(env.spec, CONFIG), PPO, reward=unrewarded)


def unrewarded(result: StepResult) -> Tensor:
    return torch.zeros_like(result.events["reward"])


@pytest.mark.usefixtures("registered")
def test_one_class_is_all_that_a_loss_needs() -> None:
    learner = make_learner()
    policy: Any = learner.policy
    assert set(learner.rollout.labels) == {"opponent_actions"}
    before = policy.auxiliary["rock"].head[1].weight.detach().clone()
    metrics = learner.iterate()
    assert 0.0 < metrics["rock_loss"] < 2.0
    assert 0.0 <= metrics["rock_accuracy"] <= 1.0
    assert "rock_loss" in learner.loss_names
    assert not torch.equal(policy.auxiliary["rock"].head[1].weight, before)
    cost = cost_of(PolicyDescription.of(policy.spec, policy.config))
    assert cost.parameters == sum(parameter.numel() for parameter in policy.parameters())


def test_without_it_nothing_is_left() -> None:
    learner = make_learner()
    assert not learner.rollout.labels
    assert not learner.policy.auxiliary_losses
    assert "rock_loss" not in learner.iterate()
