"""Weighs the events of a step into the learner's reward, on the device."""

from collections.abc import Mapping

from torch import Tensor

from ludus.envs.adapters.rewards import RewardWeights
from ludus.envs.base import EnvSpec, StepResult


class WeightedReward:
    """A weighted sum of events, `(games, seats)`.

    Attributes:
        weights: Weight of each event.
        last: The step that was rewarded last; its observations are those that the next step starts from.
    """

    def __init__(self, spec: EnvSpec, weights: Mapping[str, float] | None) -> None:
        """Takes the weights; None takes the world's usual ones.

        Raises:
            UnknownNameError: A weight is for an event that the world does not have.
            ConfigError: No event is left to reward.
        """
        self.weights = RewardWeights(spec, weights).weights
        self.last: StepResult | None = None

    def __call__(self, result: StepResult) -> Tensor:
        """Returns the rewards of a step."""
        self.last = result
        (first, weight), *others = self.weights.items()
        total = result.events[first] * weight
        for name, weight in others:
            total.add_(result.events[name], alpha=weight)
        return total
