"""Auxiliary losses of the strategy encoder: predict the opponent's frames ahead, and classify which bot it is."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError
from ludus.policies.policy import Evaluation, Policy
from ludus.rollout.buffer import Minibatch

_PREDICTION_LOSS, _CLASSIFICATION_LOSS, _RIGHT, _LABELLED = range(4)


class AuxiliaryLosses:
    """Adds to the loss of minibatches what a policy learns beside playing; nothing for a policy without such heads.

    Attributes:
        sums: `(4,)`, over minibatches: both losses, frames classified correctly, frames with a bot; changed in place.
        names: Metrics that `metrics` gives.
    """

    def __init__(self, policy: Policy, config: PpoConfig) -> None:
        """Read the loss weights from the policy's settings; raise ConfigError if sequences are too short to predict."""
        strategy = policy.config.strategy
        self._policy, self._predicts = policy, policy.prediction is not None
        if policy.prediction is not None and strategy is not None and config.sequence_length <= strategy.predict_ahead:
            raise ConfigError(
                f"policy.strategy predicts {strategy.predict_ahead} frames ahead, but ppo.sequence_length is "
                f"{config.sequence_length}: no sequence holds both frames; "
                "use a longer ppo.sequence_length, or predict: 0 to switch it off"
            )
        self._classifies = policy.recognition is not None
        self._weights = (0.0, 0.0) if strategy is None else (strategy.predict, strategy.classify)
        self.sums = torch.zeros(4, device=policy.device)
        self.names = (
            *(("prediction_loss",) if self._predicts else ()),
            *(("recognition_loss", "recognition_accuracy") if self._classifies else ()),
        )

    def totals(self, episode_starts: Tensor, bots: Tensor | None) -> "AuxiliaryTotals":
        """Count what the losses of a whole minibatch are means over, for a minibatch that is worked through in parts.

        Args:
            episode_starts: `(steps, rows)` bool, of the whole minibatch.
            bots: `(steps, rows)` int64, or None.
        """
        strategy = self._policy.config.strategy
        pairs = labelled = None
        if self._predicts and strategy is not None:
            pairs = _same_episode(episode_starts, strategy.predict_ahead).sum().float()
        if self._classifies and bots is not None:
            labelled = (bots != _NOBODY).sum().float()
        return AuxiliaryTotals(pairs, labelled)

    def add_to(
        self, loss: Tensor, evaluation: Evaluation, batch: Minibatch, totals: "AuxiliaryTotals | None" = None
    ) -> Tensor:
        """Return a minibatch's loss `()` with the weighed auxiliary ones; they join the sums.

        Of a part of a minibatch, whose `totals` are given, they are its share in those of the whole.
        """
        pairs, labelled = totals or (None, None)
        strategy = self._policy.config.strategy
        if evaluation.predictions is not None and strategy is not None:
            frames = self._policy.opponent_frames(batch.observations)
            ahead = strategy.predict_ahead
            error = prediction_loss(evaluation.predictions, frames, batch.episode_starts, ahead, pairs)
            self.sums[_PREDICTION_LOSS].add_(error.detach())
            loss = loss + self._weights[0] * error
        if evaluation.opponent_logits is not None and batch.bots is not None:
            found = opponent_classification_loss(evaluation.opponent_logits, batch.bots, labelled)
            self.sums[_CLASSIFICATION_LOSS:].add_(torch.stack(found).detach())
            loss = loss + self._weights[1] * found.loss
        return loss

    def metrics(self, means: Tensor) -> Tensor:
        """Return the metrics `(names,)` of the sums' means `(4,)`; without any frame with a bot the accuracy is NaN."""
        parts = [means[_PREDICTION_LOSS : _PREDICTION_LOSS + 1]] if self._predicts else []
        if self._classifies:
            accuracy = means[_RIGHT] / means[_LABELLED]
            parts.append(torch.stack((means[_CLASSIFICATION_LOSS], accuracy)))
        return torch.cat(parts) if parts else means[:0]


class AuxiliaryTotals(NamedTuple):
    """What auxiliary losses are means over, `()` each; None where there is no such loss."""

    pairs: Tensor | None  # pairs of frames of one episode, so far apart as is predicted ahead
    labelled: Tensor | None  # frames with a bot


def _same_episode(episode_starts: Tensor, ahead: int) -> Tensor:
    """Return which frames `(steps - ahead, rows)` are of the episode of the frame that comes `ahead` steps later."""
    episodes = episode_starts.cumsum(0)
    return episodes[ahead:] == episodes[:-ahead]


def prediction_loss(
    predictions: Tensor, frames: Tensor, episode_starts: Tensor, ahead: int, pairs: Tensor | None = None
) -> Tensor:
    """Return the mean squared error `()` over pairs of frames of one episode; 0 where there is no pair.

    Args:
        predictions: `(steps, rows, inputs)`, made at each frame.
        frames: `(steps, rows, inputs)`, what there was to see, without gradient.
        episode_starts: `(steps, rows)` bool, frames that are the first of an episode.
        ahead: How many frames after a prediction its frame comes, below the number of steps.
        pairs: `()`, how many the mean is over; those that there are here if None.
    """
    same = _same_episode(episode_starts, ahead).to(predictions.dtype)
    errors = (predictions[:-ahead] - frames[ahead:].detach()).square().mean(-1)
    # A sum over pairs instead of a selection: shapes stay the same whatever the flags, as CUDA graphs need it.
    return (errors * same).sum() / torch.clamp(same.sum() if pairs is None else pairs, min=1.0)


_NOBODY = -1  # the label of games without a bot


class ClassificationLoss(NamedTuple):
    """How well bots were told apart, `()` each."""

    loss: Tensor  # mean cross entropy over frames with a bot, in nats; 0 where there is none
    right: Tensor  # frames whose bot was the most likely one
    labelled: Tensor  # frames with a bot


def opponent_classification_loss(logits: Tensor, bots: Tensor, among: Tensor | None = None) -> ClassificationLoss:
    """Compare logits `(steps, rows, bots)` with who played, `(steps, rows)` int64; -1, no bot, counts nothing.

    The mean is over `among` `()` frames; over those with a bot if None.
    """
    flat, labels = logits.flatten(0, -2), bots.flatten()
    labelled = (labels != _NOBODY).sum().to(flat.dtype)
    # A sum over labels instead of a selection: shapes stay the same whatever the labels, as CUDA graphs need it.
    total = nn.functional.cross_entropy(flat, labels, ignore_index=_NOBODY, reduction="sum")
    right = (flat.argmax(-1) == labels).sum().to(flat.dtype)
    count = labelled if among is None else among
    return ClassificationLoss(total / count.clamp(min=1.0), right, labelled)
