"""Heads of the strategy encoder's auxiliary losses, which training alone uses: what they make of the latent."""

from math import prod

import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec
from ludus.nn.mlp import Mlp, make_linear
from ludus.nn.strategy import StrategyConfig

_IMPOSSIBLE = -1e30  # logit of choices that a factor does not have
_LEAST_SPREAD = 1e-6  # keeps the logarithm of a standard deviation finite


def make_prediction(config: StrategyConfig | None, inputs: int) -> nn.Sequential | None:
    """Make what predicts the `inputs` numbers that the encoder reads some frames later; None where it is off."""
    return None if config is None or config.predict == 0.0 else _make_head(config, inputs)


def make_opponent_classifier(config: StrategyConfig | None, spec: EnvSpec) -> nn.Sequential | None:
    """Make what tells which bot the opponent is, None where it is off; raise ConfigError in a world without bots."""
    if config is None or config.classify == 0.0:
        return None
    if not spec.bots:
        raise ConfigError(
            f"policy.strategy.classify is {config.classify:g}, but {spec.id} has no scripted players that could be "
            "classified; set it to 0, or let the latent predict: policy.strategy.predict"
        )
    return _make_head(config, len(spec.bots))


def make_action_prediction(config: StrategyConfig | None, spec: EnvSpec, features: int) -> "ActionPrediction | None":
    """Make what predicts the opponent's action, None where it is off; raise ConfigError in a world of one team.

    `features` is the number of features of the observation.
    """
    if config is None or config.predict_actions == 0.0:
        return None
    if len(set(spec.teams)) < 2:
        raise ConfigError(
            f"policy.strategy.predict_actions is {config.predict_actions:g}, but {spec.id} has one team, so no seat of "
            "an opponent whose actions could be predicted; set it to 0, or use policy.strategy.predict"
        )
    return ActionPrediction(config, spec.action_space, features)


def make_contrast(config: StrategyConfig | None) -> nn.Sequential | None:
    """Make the projection in whose space latents are compared; None where it is off."""
    return None if config is None or config.contrast == 0.0 else _make_head(config, config.latent)


def _make_head(config: StrategyConfig, outputs: int, features: int = 0) -> nn.Sequential:
    hidden = Mlp(config.latent + features, (config.width,), "relu")
    return nn.Sequential(hidden, make_linear(hidden.output_size, outputs, 1.0))


def ask(head: nn.Sequential | None, latent: Tensor | None) -> Tensor | None:
    """Return what a head makes of a latent `(..., latent)`, in float32: `(..., outputs)`; None without either."""
    if head is None or latent is None:
        return None
    output: Tensor = head(latent.float())
    return output


class ActionPrediction(nn.Module):
    """Predicts the opponent's action of this step from the latent and what is seen now, without gradient to the latter.

    What an opponent does depends on the situation as much as on its style. Every factor of the action is one
    categorical distribution; a Box is predicted as it is.

    Attributes:
        is_choice: Whether actions are choices; else they are numbers.
    """

    def __init__(self, config: StrategyConfig, space: spaces.Space[object], features: int) -> None:
        super().__init__()
        counts = _choice_counts(space)
        self.is_choice = bool(counts)
        self._shape = (len(counts), max(counts)) if counts else (space.shape or ())
        self._impossible: Tensor | None
        missing = None
        if len(set(counts)) > 1:
            missing = torch.arange(max(counts)) >= torch.tensor(counts).unsqueeze(-1)
        self.register_buffer("_impossible", missing, persistent=False)
        self.head = _make_head(config, prod(self._shape), features)

    def forward(self, latent: Tensor, features: Tensor) -> Tensor:
        """Map latents and features of observations to `(..., factors, choices)` or `(..., actions)`."""
        outputs: Tensor = self.head(torch.cat((latent.float(), features.detach().float()), dim=-1))
        outputs = outputs.view(*outputs.shape[:-1], *self._shape)
        return outputs if self._impossible is None else outputs.masked_fill(self._impossible, _IMPOSSIBLE)

    def errors(self, predictions: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Compare predictions with actions `(..., *action_shape)`.

        Returns:
            The error `(...)`, mean cross-entropy of the factors in nats or mean squared error, and the share of factors
            `(...)` whose most likely choice was taken, 0 for numbers. What stands for unknown actions must be masked.
        """
        if not self.is_choice:
            error = (predictions - actions.detach()).square().mean(-1)
            return error, torch.zeros_like(error)
        factors = actions.long().reshape(*predictions.shape[:-1]).clamp(min=0)
        losses = functional.cross_entropy(predictions.flatten(0, -2), factors.flatten(), reduction="none")
        right = (predictions.argmax(-1) == factors).to(predictions.dtype)
        return losses.view_as(factors).mean(-1), right.mean(-1)


def _choice_counts(space: spaces.Space[object]) -> tuple[int, ...]:
    """Return the choices of every factor of an action; none for a Box."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(map(int, space.nvec))
    return (2,) * int(space.shape[0]) if isinstance(space, spaces.MultiBinary) else ()


class LatentSample(nn.Module):
    """What the heads read of a variational latent: its mean, or a sample of it in training mode."""

    def forward(self, latent: Tensor) -> Tensor:
        """Map mean and standard deviation `(..., 2 * size)` to `(..., size)`."""
        mean, spread = latent.float().chunk(2, dim=-1)
        return mean + spread * torch.randn_like(mean) if self.training else mean


def kl_to_standard_normal(latent: Tensor) -> Tensor:
    """Return the KL divergence `(...)` to N(0, 1) of Gaussians `(..., 2 * size)`: mean and standard deviation.

    KL = 1/2 sum(mean^2 + std^2 - 1 - 2 log std).
    """
    mean, spread = latent.float().chunk(2, dim=-1)
    return 0.5 * (mean.square() + spread.square() - 1.0 - 2.0 * spread.clamp(min=_LEAST_SPREAD).log()).sum(-1)
