"""Exploration by a mixture: now and then another action than the policy's, whose probability is known exactly."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ludus.envs.choices import Choices, draw_evenly, leave_out_unused
from ludus.networks.choices import FORBIDDEN, are_open, invert_allowed

NOISE_SIZE = 2  # numbers a row that decide whether to explore, and whether by any action


class Mixture(nn.Module):
    """The behaviour p(a) = (1 - e) pi(a) + e q(a) of a policy pi that explores with frequency e.

    q takes, with probability r, any allowed kind of action, else one of the exploratory kinds that are allowed (any
    kind if none of them is), each evenly, and then evenly an allowed alternative of every factor that counts for it. In
    a share of the decisions in which one of the exploratory kinds is due it takes a favoured kind instead, where there
    are any that are allowed.

    What learns from actions that were drawn from p has to reckon with p: the gradient of log p(a) is that of log pi(a)
    times (1 - e) pi(a) / p(a), which is small for actions that came from q alone.

    Attributes:
        rates: `(2,)`, e and r, changed in place, so that a CUDA graph reads their present values.
        favour: `(1 + kinds,)`, the share of favoured kinds, and the weight of each, changed in place too.
    """

    rates: Tensor
    favour: Tensor
    uses: Tensor
    exploratory: Tensor

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self.choices = choices
        self.register_buffer("rates", torch.zeros(2), persistent=False)
        self.register_buffer("favour", torch.zeros(1 + choices.counts[0]), persistent=False)
        self.register_buffer("uses", choices.use_table(), persistent=False)
        self.register_buffer("exploratory", choices.exploratory_kinds(), persistent=False)

    def set(self, frequency: float, random_frequency: float) -> None:
        """Takes e and r, both from 0 to 1."""
        self.rates[0].fill_(frequency)
        self.rates[1].fill_(random_frequency)

    def lean(self, share: float, weights: Sequence[float]) -> None:
        """Takes the share of favoured kinds and the weight of every kind, 0 or more; kinds of weight 0 are not."""
        self.favour.copy_(torch.tensor([share, *weights]))

    def replace(self, parameters: Tensor, noise: Tensor, actions: Tensor) -> Tensor:
        """Returns `actions` `(rows, *action_shape)` of the policy, some of which were replaced by others.

        Args:
            parameters: `(rows, choices)`, logits, forbidden ones among them.
            noise: `(rows, factors + NOISE_SIZE)`, numbers in [0, 1). Those of the factors may have drawn the policy's
                own action: only one of the two actions is taken, so both may come from the same numbers.
            actions: The policy's own.
        """
        is_open, kinds, exploratory = self._open(parameters)
        explores, takes_any = (noise[..., -NOISE_SIZE + i] < self.rates[i] for i in range(NOISE_SIZE))
        # What is left of the number that said "not any" is evenly spread again, so it decides about favour too.
        left = (noise[..., -1] - self.rates[1]) / (1.0 - self.rates[1]).clamp_min(1e-6)
        favoured = torch.log(self._favoured(kinds, exploratory)).clamp_min(FORBIDDEN)
        kinds = torch.where(takes_any.unsqueeze(-1), kinds, exploratory)
        sets = (kinds, *is_open[1:])
        drawn = torch.stack([draw_evenly(part, noise[..., i]) for i, part in enumerate(sets)], dim=-1)
        leans = ~takes_any & (left < self.favour[0])
        drawn[..., 0] = torch.where(leans, invert_allowed(favoured, noise[..., 0]), drawn[..., 0])
        factors = torch.where(explores.unsqueeze(-1), leave_out_unused(drawn, self.uses), self.choices.factors(actions))
        return self.choices.actions(factors).to(actions.dtype)

    def log_probs(self, parameters: Tensor, actions: Tensor, log_probs: Tensor) -> Tensor:
        """Returns log p of actions whose log probabilities under the policy are `log_probs`, `(...)`."""
        frequency = self.rates[0]
        explored = torch.log(frequency).clamp_min(FORBIDDEN) + self.exploring_log_probs(parameters, actions)
        return torch.logaddexp(torch.log1p(-frequency).clamp_min(FORBIDDEN) + log_probs, explored)

    @torch.no_grad()
    def exploring_log_probs(self, parameters: Tensor, actions: Tensor) -> Tensor:
        """Returns log q of actions, `(...)`; `FORBIDDEN` where q never takes them."""
        is_open, kinds, exploratory = self._open(parameters)
        factors = self.choices.factors(actions)
        counts = self.uses[factors[..., 0]]
        q = self._kind_shares(kinds, exploratory).gather(-1, factors[..., :1]).squeeze(-1)
        for i, part in enumerate(is_open[1:]):
            q = q * torch.where(counts[..., i], _share(part, factors[..., i + 1]), 1.0)
        return torch.log(q).clamp_min(FORBIDDEN)

    @torch.no_grad()
    def kind_shares(self, parameters: Tensor) -> Tensor:
        """Returns the probability of every kind of action under p, `(..., kinds)`."""
        is_open, kinds, exploratory = self._open(parameters)
        own = torch.softmax(parameters[..., : is_open[0].shape[-1]], -1)
        return (1.0 - self.rates[0]) * own + self.rates[0] * self._kind_shares(kinds, exploratory)

    def _kind_shares(self, kinds: Tensor, exploratory: Tensor) -> Tensor:
        """Returns the probability of every kind under q, `(..., kinds)`, of which some are open."""
        chosen = (1.0 - self.favour[0]) * _even(exploratory) + self.favour[0] * self._favoured(kinds, exploratory)
        return self.rates[1] * _even(kinds) + (1.0 - self.rates[1]) * chosen

    def _favoured(self, kinds: Tensor, exploratory: Tensor) -> Tensor:
        """Returns the probability of every kind where one is favoured; as for exploring if none of those is open."""
        weights = kinds * self.favour[1:]
        weights = torch.where((weights > 0.0).any(-1, keepdim=True), weights, exploratory.to(weights.dtype))
        return weights / weights.sum(-1, keepdim=True)

    def _open(self, parameters: Tensor) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """Returns what is open of each factor, and of the kinds: all that are, and those for exploring."""
        is_open = torch.split(are_open(parameters), list(self.choices.counts), dim=-1)
        exploratory = is_open[0] & self.exploratory
        exploratory = torch.where(exploratory.any(-1, keepdim=True), exploratory, is_open[0])
        return is_open, is_open[0], exploratory


def _even(is_open: Tensor) -> Tensor:
    """Returns the probability of every choice `(..., choices)` if all open ones are equally likely."""
    return is_open / is_open.sum(-1, keepdim=True)


def _share(is_open: Tensor, chosen: Tensor) -> Tensor:
    """Returns the probability of `chosen` `(...)` if all open choices `(..., choices)` are equally likely."""
    return is_open.gather(-1, chosen.unsqueeze(-1)).squeeze(-1) / is_open.sum(-1)
