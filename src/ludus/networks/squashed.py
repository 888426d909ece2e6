"""The head of off-policy agents: continuous actions that the hyperbolic tangent bends into their bounds."""

import math
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from ludus.core.errors import UnsupportedError
from ludus.networks.distributions import ActionHead
from ludus.networks.layers import make_linear

Squash = Literal["stochastic", "deterministic"]

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LOWEST_LOG_STD, _HIGHEST_LOG_STD = -20.0, 2.0  # as soft actor-critic was published
_LARGEST_UNIT = 1.0 - 1e-6  # atanh of 1 is infinite


class SquashedHead(ActionHead):
    """A point, or a normal distribution, squashed by tanh into -1 ... 1 and then stretched to the bounds.

    The parameters are the means before squashing and, with a spread, the log standard deviations beside them, both of
    which depend on the state. Without a spread every action is the mean, whatever the noise.
    """

    low: Tensor
    half_range: Tensor

    def __init__(self, latent: int, space: spaces.Box, squash: Squash) -> None:
        """Makes the head.

        Args:
            latent: Features that it is fed.
            space: The actions of one seat.
            squash: `stochastic` gives the actions a spread, `deterministic` none.

        Raises:
            UnsupportedError: An action has no bounds, or they are the same.
        """
        super().__init__()
        if not np.isfinite(space.high - space.low).all() or not (space.low < space.high).all():
            raise UnsupportedError(
                f"squashed actions need a finite range each, unlike {space}; bound the world's actions, or use "
                "algorithm ppo"
            )
        actions = int(space.shape[0])
        self.has_spread = squash == "stochastic"
        self.noise_kind, self.noise_shape = "normal", (actions if self.has_spread else 0,)
        self.action_shape, self.action_dtype = (actions,), torch.float32
        self.linear = make_linear(latent, actions, None)
        self.log_std = make_linear(latent, actions, None) if self.has_spread else None
        low, high = (torch.as_tensor(bound, dtype=torch.float32) for bound in (space.low, space.high))
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("half_range", 0.5 * (high - low), persistent=False)

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents to means and, with a spread, log standard deviations."""
        mean: Tensor = self.linear(latent)
        if self.log_std is None:
            return mean
        return torch.cat((mean, self.log_std(latent).clamp(_LOWEST_LOG_STD, _HIGHEST_LOG_STD)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Shifts and scales standard normal noise, then squashes; without a spread it takes the means."""
        if not self.has_spread:
            return self.mode(parameters)
        mean, log_std = parameters.chunk(2, dim=-1)
        return self.to_bounds(torch.tanh(torch.addcmul(mean, log_std.exp(), noise)))

    def mode(self, parameters: Tensor) -> Tensor:
        """Squashes the means."""
        return self.to_bounds(torch.tanh(parameters.chunk(2, dim=-1)[0] if self.has_spread else parameters))

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Adds up the dimensions; the entropy, which has no closed form, is the estimate that these actions give.

        By the change of variables, log p(a) = log N(x) - log(1 - tanh(x)^2) - log(half range), and
        log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)), which is safe for large x. A point has no density: both are
        0 without a spread.
        """
        if not self.has_spread:
            nothing = parameters.new_zeros(parameters.shape[:-1])
            return nothing, nothing
        mean, log_std = parameters.chunk(2, dim=-1)
        x = torch.atanh(self.to_unit(actions).clamp(-_LARGEST_UNIT, _LARGEST_UNIT))
        normal = -0.5 * ((x - mean) * torch.exp(-log_std)).square() - log_std - _HALF_LOG_TWO_PI
        slope = 2.0 * (math.log(2.0) - x - functional.softplus(-2.0 * x)) + torch.log(self.half_range)
        log_prob = (normal - slope).sum(-1)
        return log_prob, -log_prob

    def to_bounds(self, unit: Tensor) -> Tensor:
        """Stretches -1 ... 1 to the bounds."""
        return torch.addcmul(self.low, self.half_range, unit + 1.0)

    def to_unit(self, actions: Tensor) -> Tensor:
        """Shrinks the bounds to -1 ... 1."""
        return (actions - self.low) / self.half_range - 1.0
