"""Rewards of a rollout: of each step as it comes, or of all steps at once when the rollout is complete."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from ludus.envs.base import StepResult
from ludus.rollout.learner_batch import LearnerBatch

RewardFunction: TypeAlias = Callable[[StepResult], Tensor]


def reward_event(result: StepResult) -> Tensor:
    """Return the world's own `reward` event, `(games, seats)`."""
    return result.events["reward"]


class RolloutReward(ABC):
    """Records every step of a rollout and returns the rewards at its end.

    Nothing needs a reward before the rollout is complete, and weighing all steps at once costs as many calls as
    weighing one.
    """

    @property
    def can_be_recorded(self) -> bool:
        """Whether a CUDA graph can hold `record` now: it changes tensors in place and never waits for the device."""
        return False

    @property
    def recording_key(self) -> object | None:
        """What a CUDA graph of `rewards` would depend on beside the values of tensors; None where there can be none."""
        return None

    @abstractmethod
    def begin(self, steps: int, rows: LearnerBatch) -> None:
        """Prepare for rollouts of `steps` steps over these rows; called once."""

    @abstractmethod
    def record(self, step: int, result: StepResult) -> None:
        """Record a step, before any seat moves; `step` counts from 0 in every rollout."""

    @abstractmethod
    def rewards(self) -> Tensor:
        """Return the rewards `(steps, rows)` of the rollout that was recorded."""


class StepRewards(RolloutReward):
    """Asks a function for the rewards of each step, `(games, seats)`."""

    def __init__(self, function: RewardFunction) -> None:
        self._function = function

    def begin(self, steps: int, rows: LearnerBatch) -> None:
        """See `RolloutReward`."""
        self._rows = rows
        self._rewards = torch.zeros((steps, rows.count), device=rows.index.device)

    def record(self, step: int, result: StepResult) -> None:
        """See `RolloutReward`."""
        self._rewards[step].copy_(self._rows.take(self._function(result)))

    def rewards(self) -> Tensor:
        """See `RolloutReward`."""
        return self._rewards
