"""Weighs the events of a step into the learner's reward, on the device."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.envs.adapters.rewards import RewardWeights
from ludus.envs.base import EnvSpec, StepResult


class WeightedReward:
    """A weighted sum of events, `(games, seats)`; it sees every step, so it also keeps what only a step shows.

    Attributes:
        weights: Weight of each event.
        last: The step that was rewarded last; its observations are those that the next step starts from.
        final_flag: `()`, NaN if a final observation of a truncated game was not finite since this was set to 0. Kept
            on the host alone: on a GPU it would cost every step, and the values of these observations show it too.
    """

    def __init__(self, spec: EnvSpec, weights: Mapping[str, float] | None) -> None:
        """Takes the weights; None takes the world's usual ones.

        Raises:
            UnknownNameError: A weight is for an event that the world does not have.
            ConfigError: No event is left to reward.
        """
        self.weights = RewardWeights(spec, weights).weights
        self.last: StepResult | None = None
        self.final_flag = torch.zeros(())

    def __call__(self, result: StepResult) -> Tensor:
        """Returns the rewards of a step."""
        self.last = result
        if result.truncated.device.type == "cpu" and bool(result.truncated.any()):
            for final in result.final_observations.values():
                if not bool(final[result.truncated].isfinite().all()):
                    self.final_flag.fill_(math.nan)
        (first, weight), *others = self.weights.items()
        total = result.events[first] * weight
        for name, weight in others:
            total.add_(result.events[name], alpha=weight)
        return total
