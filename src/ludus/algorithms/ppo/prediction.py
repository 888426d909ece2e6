"""The auxiliary loss of the strategy encoder: how the opponent will look some frames later, told by the latent."""

import torch
from torch import Tensor

from ludus.algorithms.ppo.buffer import Minibatch
from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import ConfigError
from ludus.networks.strategy import StrategyConfig
from ludus.policies.policy import Evaluation, Policy


def predicting(policy: Policy, config: PpoConfig) -> StrategyConfig | None:
    """Returns the strategy settings of a policy that learns to predict its opponent, None for any other.

    Raises:
        ConfigError: Segments are too short to hold what shall be predicted.
    """
    strategy = policy.config.strategy
    if policy.prediction is None or strategy is None:
        return None
    if config.chunk <= strategy.predict_ahead:
        raise ConfigError(
            f"policy.strategy predicts {strategy.predict_ahead} frames ahead, but ppo.chunk is {config.chunk}: "
            "no segment holds both frames; use a longer ppo.chunk, or predict: 0 to switch it off"
        )
    return strategy


def minibatch_error(policy: Policy, evaluation: Evaluation, batch: Minibatch) -> Tensor | None:
    """Returns how wrong the predictions of a minibatch are, `()`; None for a policy that makes none."""
    strategy = policy.config.strategy
    if evaluation.predictions is None or strategy is None:
        return None
    frames = policy.opponent_frames(batch.observations)
    return prediction_loss(evaluation.predictions, frames, batch.starts, strategy.predict_ahead)


def prediction_loss(predictions: Tensor, frames: Tensor, starts: Tensor, ahead: int) -> Tensor:
    """Returns the mean squared error `()` over pairs of frames of one episode; 0 where there is no pair.

    Args:
        predictions: `(steps, rows, inputs)`, made at each frame.
        frames: `(steps, rows, inputs)`, what there was to see, without gradient.
        starts: `(steps, rows)` bool, frames that are the first of an episode.
        ahead: How many frames after a prediction its frame comes, below the number of steps.
    """
    episodes = starts.cumsum(0)
    same = (episodes[ahead:] == episodes[:-ahead]).to(predictions.dtype)
    errors = (predictions[:-ahead] - frames[ahead:].detach()).square().mean(-1)
    # A sum over pairs instead of a selection: shapes stay the same whatever the flags, as CUDA graphs need it.
    return (errors * same).sum() / torch.clamp(same.sum(), min=1.0)
