"""Action heads: linear layer and action distribution in one, written out without `torch.distributions`.

Every head turns a latent into a parameter tensor and answers four questions about it: an action from given noise,
the most likely action, the log probability of actions, and the entropy. Noise comes from outside, so that a whole
rollout's noise is drawn in one call, a CUDA graph can hold the step, and one generator is all the random state.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import UnsupportedError
from ludus.networks.layers import make_linear

OUTPUT_GAIN = 0.01  # small first logits: the first policy is nearly uniform


class ActionHead(nn.Module):
    """A distribution over the actions of one seat.

    Attributes:
        noise_kind: What `sample` wants: numbers in [0, 1) or standard normal ones.
        noise_shape: Shape of one row's noise.
        action_shape: Shape of one row's action.
        action_dtype: Type of the actions that `sample` and `mode` give.
        hold_noise: Whether the noise of a row stays the same over many steps (state-dependent exploration).
    """

    noise_kind: Literal["uniform", "normal"]
    noise_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    action_dtype: torch.dtype
    hold_noise: bool = False

    @abstractmethod
    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents `(..., latent)` to the distribution's parameters `(..., parameters)`."""

    @abstractmethod
    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Returns actions `(rows, *action_shape)` from noise `(rows, *noise_shape)`."""

    @abstractmethod
    def mode(self, parameters: Tensor) -> Tensor:
        """Returns the most likely actions `(rows, *action_shape)`."""

    @abstractmethod
    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the log probability of `actions` and the entropy, each without the parameters' last axis."""

    def restrict(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Returns parameters under which only what `mask` `(..., choices)` allows, by a 1, can be chosen.

        Raises:
            UnsupportedError: This head knows no masks.
        """
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

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents to logits."""
        logits: Tensor = self.linear(latent)
        return logits

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Inverts the cumulative distribution at one uniform number a row."""
        return _invert_cumulative(parameters, noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Takes the largest logit."""
        return parameters.argmax(-1)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Works on one log softmax for both."""
        return categorical(parameters, actions)


class MultiCategoricalHead(ActionHead):
    """Several independent choices with their own counts."""

    def __init__(self, latent: int, counts: Sequence[int]) -> None:
        super().__init__()
        self.counts = [int(count) for count in counts]
        self.noise_kind, self.noise_shape, self.action_shape = "uniform", (len(counts),), (len(counts),)
        self.action_dtype = torch.int64
        self.linear = make_linear(latent, sum(self.counts), OUTPUT_GAIN)

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents to the logits of all choices side by side."""
        logits: Tensor = self.linear(latent)
        return logits

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Inverts each cumulative distribution at its own uniform number."""
        parts = torch.split(parameters, self.counts, dim=-1)
        return torch.stack([_invert_cumulative(part, noise[..., i : i + 1]) for i, part in enumerate(parts)], dim=-1)

    def mode(self, parameters: Tensor) -> Tensor:
        """Takes the largest logit of each choice."""
        return torch.stack([part.argmax(-1) for part in torch.split(parameters, self.counts, dim=-1)], dim=-1)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Adds up the choices, which are independent."""
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

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents to logits of "pressed"."""
        logits: Tensor = self.linear(latent)
        return logits

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Presses where the noise is below the probability."""
        return (noise < torch.sigmoid(parameters)).to(torch.int8)

    def mode(self, parameters: Tensor) -> Tensor:
        """Presses where that is likelier than not."""
        return (parameters > 0).to(torch.int8)

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Uses log sigmoid(x) = x - softplus(x) and entropy = softplus(x) - x sigmoid(x), both safe for large x."""
        log_partition = functional.softplus(parameters)
        log_prob = (parameters * actions.to(parameters.dtype) - log_partition).sum(-1)
        entropy = (log_partition - parameters * torch.sigmoid(parameters)).sum(-1)
        return log_prob, entropy


def _invert_cumulative(logits: Tensor, noise: Tensor) -> Tensor:
    """Returns the first index whose cumulative probability exceeds `noise` `(rows, 1)`."""
    cumulative = torch.softmax(logits, -1).cumsum(-1)
    # Rounding can leave the last sum below the noise: leaving it out of the comparison makes it catch the rest.
    return (cumulative[..., :-1] <= noise).sum(-1)


def categorical(logits: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Returns log probability and entropy `(...)` of a choice by logits `(..., choices)`."""
    log_probs = torch.log_softmax(logits, -1)
    log_prob = log_probs.gather(-1, actions.unsqueeze(-1).long()).squeeze(-1)
    return log_prob, -(log_probs.exp() * log_probs).sum(-1)


def bounded(space: spaces.Space[object]) -> tuple[Tensor, Tensor] | None:
    """Returns the bounds of a Box as float tensors, or None for spaces without bounds to clip to."""
    if not isinstance(space, spaces.Box):
        return None
    return torch.as_tensor(space.low, dtype=torch.float32), torch.as_tensor(space.high, dtype=torch.float32)


def check_plain(space: spaces.Space[object]) -> None:
    """Raises UnsupportedError for spaces without a head: discrete ones that do not count from 0, several axes."""
    plain = len(space.shape or ()) <= 1 and isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box
    )
    if not plain or np.any(getattr(space, "start", 0)):
        raise UnsupportedError(
            f"action space {space} has no head; valid: Discrete and MultiDiscrete from 0, MultiBinary and Box, "
            "each with one axis; reshape the world's actions"
        )
