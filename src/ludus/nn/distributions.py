"""Action heads: linear layer and action distribution in one, written out without `torch.distributions`.

Every head turns a latent into a parameter tensor and answers four questions about it: an action from given noise,
the most likely action, the log probability of actions, and the entropy. Noise comes from outside, so that a whole
rollout's noise is drawn in one call, a CUDA graph can hold the step, and one generator is all the random state.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import UnsupportedError
from ludus.nn.mlp import make_linear

OUTPUT_GAIN = 0.01  # small first logits: the first policy is nearly uniform

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
VARIANCE_FLOOR = 1e-6

Squash = Literal["stochastic", "deterministic"]

_LOWEST_LOG_STD, _HIGHEST_LOG_STD = -20.0, 2.0  # as soft actor-critic was published
_LARGEST_UNIT = 1.0 - 1e-6  # atanh of 1 is infinite


class ActionHead(nn.Module):
    """A distribution over the actions of one seat."""

    noise_kind: Literal["uniform", "normal"]  # what `sample` wants: numbers in [0, 1) or standard normal ones
    noise_shape: tuple[int, ...]  # shape of one row's noise
    action_shape: tuple[int, ...]  # shape of one row's action
    action_dtype: torch.dtype  # type of the actions that `sample` and `mode` give
    hold_noise: bool = False  # whether the noise of a row stays the same over many steps (state-dependent exploration)
    linear: nn.Linear

    def forward(self, latent: Tensor) -> Tensor:
        """Map latents `(..., latent)` to the parameters `(..., parameters)`: logits, of all choices side by side."""
        logits: Tensor = self.linear(latent)
        return logits

    @abstractmethod
    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Return actions `(rows, *action_shape)` from noise `(rows, *noise_shape)`."""

    @abstractmethod
    def mode(self, parameters: Tensor) -> Tensor:
        """Return the most likely actions `(rows, *action_shape)`."""

    @abstractmethod
    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log probability of `actions` and the entropy, each without the parameters' last axis."""

    def restrict(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Return parameters under which only what `mask` `(..., choices)` allows is chosen; or UnsupportedError."""
        raise UnsupportedError(
            f"{type(self).__name__} cannot be masked, asked for {mask.shape[-1]} choices in {parameters.shape[-1]} "
            "parameters; valid: heads of Discrete and MultiDiscrete actions"
        )


class CategoricalHead(ActionHead):
    """One choice out of `count`, numbered from 0."""

    def __init__(self, latent: int, count: int) -> None:
        super().__init__()
        self.noise_kind, self.noise_shape, self.action_shape = "uniform", (1,), ()
        self.action_dtype = torch.int64
        self.linear = make_linear(latent, count, OUTPUT_GAIN)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Invert the cumulative distribution at one uniform number per row."""
        return _invert_cumulative(parameters, noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Take the largest logit."""
        return parameters.argmax(-1)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Work on one log softmax for both."""
        return categorical(parameters, actions)


class MultiCategoricalHead(ActionHead):
    """Several independent choices with their own counts."""

    def __init__(self, latent: int, counts: Sequence[int]) -> None:
        super().__init__()
        self.counts = [int(count) for count in counts]
        self.noise_kind, self.noise_shape, self.action_shape = "uniform", (len(counts),), (len(counts),)
        self.action_dtype = torch.int64
        self.linear = make_linear(latent, sum(self.counts), OUTPUT_GAIN)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Invert each cumulative distribution at its own uniform number."""
        parts = torch.split(parameters, self.counts, dim=-1)
        return torch.stack([_invert_cumulative(part, noise[..., i : i + 1]) for i, part in enumerate(parts)], dim=-1)

    def mode(self, parameters: Tensor) -> Tensor:
        """Take the largest logit of each choice."""
        return torch.stack([part.argmax(-1) for part in torch.split(parameters, self.counts, dim=-1)], dim=-1)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Add up the choices, which are independent."""
        pairs = [
            categorical(part, actions[..., i]) for i, part in enumerate(torch.split(parameters, self.counts, dim=-1))
        ]
        log_probs, entropies = zip(*pairs, strict=True)
        return torch.stack(log_probs).sum(0), torch.stack(entropies).sum(0)


class BernoulliHead(ActionHead):
    """Buttons that are pressed (1) or not (0), each on its own."""

    def __init__(self, latent: int, buttons: int) -> None:
        super().__init__()
        self.noise_kind, self.noise_shape, self.action_shape = "uniform", (buttons,), (buttons,)
        self.action_dtype = torch.int8
        self.linear = make_linear(latent, buttons, OUTPUT_GAIN)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Press where the noise is below the probability."""
        return (noise < torch.sigmoid(parameters)).to(torch.int8)

    def mode(self, parameters: Tensor) -> Tensor:
        """Press where that is likelier than not."""
        return (parameters > 0).to(torch.int8)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Use log sigmoid(x) = x - softplus(x) and entropy = softplus(x) - x sigmoid(x), both safe for large x."""
        log_partition = functional.softplus(parameters)
        log_prob = (parameters * actions.to(parameters.dtype) - log_partition).sum(-1)
        entropy = (log_partition - parameters * torch.sigmoid(parameters)).sum(-1)
        return log_prob, entropy


def _invert_cumulative(logits: Tensor, noise: Tensor) -> Tensor:
    """Return the first index whose cumulative probability exceeds `noise` `(rows, 1)`."""
    cumulative = torch.softmax(logits, -1).cumsum(-1)
    # Rounding can leave the last sum below the noise: leaving it out of the comparison makes it catch the rest.
    return (cumulative[..., :-1] <= noise).sum(-1)


def categorical(logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Return log probability and entropy `(...)` of a choice by logits `(..., choices)`."""
    log_probs = torch.log_softmax(logits, -1)
    log_prob = log_probs.gather(-1, actions.unsqueeze(-1).long()).squeeze(-1)
    return log_prob, -(log_probs.exp() * log_probs).sum(-1)


def bounded(space: spaces.Space[object]) -> tuple[Tensor, Tensor] | None:
    """Return the bounds of a Box as float tensors, or None for spaces without bounds to clip to."""
    if not isinstance(space, spaces.Box):
        return None
    return torch.as_tensor(space.low, dtype=torch.float32), torch.as_tensor(space.high, dtype=torch.float32)


def check_plain(space: spaces.Space[object]) -> None:
    """Raise UnsupportedError for spaces without a head: discrete ones that do not count from 0, several axes."""
    plain = len(space.shape or ()) <= 1 and isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box
    )
    if not plain or np.any(getattr(space, "start", 0)):
        raise UnsupportedError(
            f"action space {space} has no head; valid: Discrete and MultiDiscrete from 0, MultiBinary and Box, "
            "each with one axis; reshape the world's actions"
        )


class GaussianHead(ActionHead):
    """Independent normal distributions; the parameters are the means and the log standard deviations side by side.

    The actions are not bounded here: the policy clips what goes to the world, and learns from what was drawn.
    """

    def __init__(self, latent: int, actions: int, log_std: float) -> None:
        super().__init__()
        self.noise_kind, self.noise_shape, self.action_shape = "normal", (actions,), (actions,)
        self.action_dtype = torch.float32
        self.linear = make_linear(latent, actions, OUTPUT_GAIN)
        self.log_std = nn.Parameter(torch.full((actions,), log_std))

    def forward(self, latent: Tensor) -> Tensor:
        """Map latents to means and log standard deviations."""
        mean = self.linear(latent)
        return torch.cat((mean, self.log_std.to(mean.dtype).expand_as(mean)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Shift and scales standard normal noise."""
        mean, log_std = parameters.chunk(2, dim=-1)
        return torch.addcmul(mean, log_std.exp(), noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Take the means."""
        return parameters.chunk(2, dim=-1)[0]

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Add up the dimensions, which are independent."""
        mean, log_std = parameters.chunk(2, dim=-1)
        deviation = (actions - mean) * torch.exp(-log_std)
        log_prob = -(0.5 * deviation.square() + log_std + _HALF_LOG_TWO_PI).sum(-1)
        return log_prob, (log_std + 0.5 + _HALF_LOG_TWO_PI).sum(-1)


class StateDependentGaussianHead(GaussianHead):
    """Exploration noise that is a linear function of the latent, held over many steps: smooth, not jittery.

    A row's noise is a matrix Z of standard normal numbers. The action is `mean + latent @ (Z * std)`, so its variance
    given the latent is `latent^2 @ std^2`. The latent is detached there: exploration does not shape the features.
    """

    hold_noise = True

    def __init__(self, latent: int, actions: int, log_std: float) -> None:
        super().__init__(latent, actions, log_std)
        self.noise_shape = (latent, actions)
        self.log_std = nn.Parameter(torch.full((latent, actions), log_std))

    def forward(self, latent: Tensor) -> Tensor:
        """Map latents to means and the log standard deviations that their sizes give."""
        mean = self.linear(latent)
        variance = latent.detach().float().square() @ torch.exp(2.0 * self.log_std.float())
        return torch.cat((mean, 0.5 * torch.log(variance + VARIANCE_FLOOR).to(mean.dtype)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Add the latent times the row's own exploration matrix."""
        exploration = torch.bmm(latent.unsqueeze(1).to(noise.dtype), noise * self.log_std.exp()).squeeze(1)
        return self.mode(parameters) + exploration


class SquashedHead(ActionHead):
    """A point, or a normal distribution, squashed by tanh into -1 ... 1 and then stretched to the bounds.

    The parameters are the means before squashing and, with a spread, the log standard deviations beside them, both of
    which depend on the state. Without a spread every action is the mean, whatever the noise.
    """

    low: Tensor
    half_range: Tensor

    def __init__(self, latent: int, space: spaces.Box, squash: Squash) -> None:
        """Make the head; raise UnsupportedError if an action has no range. Only `stochastic` actions have a spread."""
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
        """Map latents to means and, with a spread, log standard deviations."""
        mean: Tensor = self.linear(latent)
        if self.log_std is None:
            return mean
        return torch.cat((mean, self.log_std(latent).clamp(_LOWEST_LOG_STD, _HIGHEST_LOG_STD)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Shift and scales standard normal noise, then squashes; without a spread it takes the means."""
        if not self.has_spread:
            return self.mode(parameters)
        mean, log_std = parameters.chunk(2, dim=-1)
        return self.to_bounds(torch.tanh(torch.addcmul(mean, log_std.exp(), noise)))

    def mode(self, parameters: Tensor) -> Tensor:
        """Squash the means."""
        return self.to_bounds(torch.tanh(parameters.chunk(2, dim=-1)[0] if self.has_spread else parameters))

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Add up the dimensions; the entropy, which has no closed form, is the estimate that these actions give.

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
        """Stretch -1 ... 1 to the bounds."""
        return torch.addcmul(self.low, self.half_range, unit + 1.0)

    def to_unit(self, actions: Tensor) -> Tensor:
        """Shrink the bounds to -1 ... 1."""
        return (actions - self.low) / self.half_range - 1.0


def make_plain_head(
    space: spaces.Space[object], latent: int, *, log_std: float, state_dependent: bool, squash: Squash | None
) -> ActionHead:
    """Make a head that knows neither masks nor places; see `ludus.nn.heads.make_head`."""
    check_plain(space)
    if squash is not None:
        if not isinstance(space, spaces.Box):
            raise UnsupportedError(f"only continuous actions (Box) can be squashed, not {space}; use algorithm ppo")
        return SquashedHead(latent, space, squash)
    if isinstance(space, spaces.Discrete):
        return CategoricalHead(latent, int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiCategoricalHead(latent, space.nvec.tolist())
    if isinstance(space, spaces.MultiBinary):
        return BernoulliHead(latent, int(space.shape[0]))
    head = StateDependentGaussianHead if state_dependent else GaussianHead
    return head(latent, int((space.shape or (0,))[0]), log_std)
