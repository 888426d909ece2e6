"""The Gaussian head for continuous actions, with state-dependent exploration as an option."""

import math

import torch
from torch import Tensor, nn

from ludus.networks.distributions import OUTPUT_GAIN, ActionHead
from ludus.networks.layers import make_linear

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
VARIANCE_FLOOR = 1e-6


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
        """Maps latents to means and log standard deviations."""
        mean = self.linear(latent)
        return torch.cat((mean, self.log_std.to(mean.dtype).expand_as(mean)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Shifts and scales standard normal noise."""
        mean, log_std = parameters.chunk(2, dim=-1)
        return torch.addcmul(mean, log_std.exp(), noise)

    def mode(self, parameters: Tensor) -> Tensor:
        """Takes the means."""
        return parameters.chunk(2, dim=-1)[0]

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Adds up the dimensions, which are independent."""
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
        """Maps latents to means and the log standard deviations that their sizes give."""
        mean = self.linear(latent)
        variance = latent.detach().float().square() @ torch.exp(2.0 * self.log_std.float())
        return torch.cat((mean, 0.5 * torch.log(variance + VARIANCE_FLOOR).to(mean.dtype)), dim=-1)

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Adds the latent times the row's own exploration matrix."""
        exploration = torch.bmm(latent.unsqueeze(1).to(noise.dtype), noise * self.log_std.exp()).squeeze(1)
        return self.mode(parameters) + exploration
