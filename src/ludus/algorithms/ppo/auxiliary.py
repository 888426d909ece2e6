"""The auxiliary losses of the strategy encoder, weighed and added up: what it predicts, and whom it recognises."""

import torch
from torch import Tensor

from ludus.algorithms.ppo.buffer import Minibatch
from ludus.algorithms.ppo.config import PpoConfig
from ludus.algorithms.ppo.prediction import minibatch_error, predicting
from ludus.algorithms.ppo.recognition import recognition_loss
from ludus.policies.policy import Evaluation, Policy

_PREDICTION_LOSS, _RECOGNITION_LOSS, _RIGHT, _LABELLED = range(4)


class AuxiliaryLosses:
    """Adds to the loss of minibatches what a policy learns beside playing; nothing for a policy without such heads.

    Attributes:
        sums: `(4,)`, over minibatches: both losses, frames recognised, frames with a bot; changed in place.
        names: Metrics that `metrics` gives.
    """

    def __init__(self, policy: Policy, config: PpoConfig) -> None:
        """Takes the weights of the policy's settings.

        Raises:
            ConfigError: Segments are too short for what shall be predicted.
        """
        strategy = policy.config.strategy
        self._policy = policy
        self._predicts = predicting(policy, config) is not None
        self._recognises = policy.recognition is not None
        self._weights = (0.0, 0.0) if strategy is None else (strategy.predict, strategy.recognise)
        self.sums = torch.zeros(4, device=policy.device)
        self.names = (
            *(("prediction_loss",) if self._predicts else ()),
            *(("recognition_loss", "recognition_accuracy") if self._recognises else ()),
        )

    def add_to(self, loss: Tensor, evaluation: Evaluation, batch: Minibatch) -> Tensor:
        """Returns a minibatch's loss `()` with the weighed auxiliary ones; they join the sums."""
        error = minibatch_error(self._policy, evaluation, batch)
        if error is not None:
            self.sums[_PREDICTION_LOSS].add_(error.detach())
            loss = loss + self._weights[0] * error
        if evaluation.recognitions is not None and batch.bots is not None:
            found = recognition_loss(evaluation.recognitions, batch.bots)
            self.sums[_RECOGNITION_LOSS:].add_(torch.stack(found).detach())
            loss = loss + self._weights[1] * found.loss
        return loss

    def metrics(self, means: Tensor) -> Tensor:
        """Returns the metrics `(names,)` of the sums' means `(4,)` over minibatches and processes.

        Without any frame with a bot the accuracy is NaN.
        """
        parts = [means[_PREDICTION_LOSS : _PREDICTION_LOSS + 1]] if self._predicts else []
        if self._recognises:
            accuracy = means[_RIGHT] / means[_LABELLED]
            parts.append(torch.stack((means[_RECOGNITION_LOSS], accuracy)))
        return torch.cat(parts) if parts else means[:0]
