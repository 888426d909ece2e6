"""The head for choices of which some may be forbidden, and some count for some kinds of action alone."""

import torch
from torch import Tensor

from ludus.envs.choices import Choices, allowed_choices, leave_out_unused
from ludus.networks.distributions import OUTPUT_GAIN, ActionHead, categorical
from ludus.networks.layers import make_linear

FORBIDDEN = -1e30  # a logit whose probability is exactly 0; unlike -inf it makes no NaN of what is multiplied by 0


class ChoiceHead(ActionHead):
    """One choice, or several of which the first is the kind of the action and says which others count.

    What is not allowed has the logit `FORBIDDEN`, so that parameters alone say what an action may be. A factor that
    does not count is 0 and adds nothing: log p(a) = log p(kind) + the sum of log p(factor) over those that count for
    the kind, and the entropy is H(kind) + the sum over kinds of p(kind) times the entropies of those that count for it.

    Attributes:
        choices: What an action is made of.
    """

    uses: Tensor

    def __init__(self, latent: int, choices: Choices) -> None:
        super().__init__()
        self.choices = choices
        factors = len(choices.counts)
        self.noise_kind, self.noise_shape = "uniform", (factors,)
        self.action_shape = () if choices.is_single else (factors,)
        self.action_dtype = torch.int64
        self.linear = make_linear(latent, sum(choices.counts), OUTPUT_GAIN)
        self.register_buffer("uses", choices.use_table(), persistent=False)

    def forward(self, latent: Tensor) -> Tensor:
        """Maps latents to the logits of all factors side by side."""
        logits: Tensor = self.linear(latent)
        return logits

    def restrict(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Forbids what `mask` `(..., choices)` does not allow."""
        return parameters.masked_fill(~allowed_choices(mask, self.choices.counts), FORBIDDEN)

    def choice_logits(self, parameters: Tensor) -> Tensor:
        """Returns logits `(..., choices)`, of all factors side by side, in which what is not allowed is forbidden."""
        return parameters

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Inverts each cumulative distribution at its own uniform number."""
        drawn = [invert_allowed(part, noise[..., i]) for i, part in enumerate(self._parts(parameters))]
        return self._actions(drawn)

    def mode(self, parameters: Tensor) -> Tensor:
        """Takes the most likely kind, and the most likely alternative of each factor that counts for it."""
        return self._actions([part.argmax(-1) for part in self._parts(parameters)])

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Adds up the factors, each as far as it counts; see the class for the formulas."""
        factors = self.choices.factors(actions)
        kinds, *others = self._parts(parameters)
        log_prob, entropy = categorical(kinds, factors[..., 0])
        if not others:
            return log_prob, entropy
        uses = self.uses.to(parameters.dtype)
        counts, shares = uses[factors[..., 0]], torch.softmax(kinds, -1) @ uses
        for i, part in enumerate(others):
            factor_log_prob, factor_entropy = categorical(part, factors[..., i + 1])
            log_prob = log_prob + counts[..., i] * factor_log_prob
            entropy = entropy + shares[..., i] * factor_entropy
        return log_prob, entropy

    def _parts(self, parameters: Tensor) -> tuple[Tensor, ...]:
        return torch.split(parameters, list(self.choices.counts), dim=-1)

    def _actions(self, factors: list[Tensor]) -> Tensor:
        return self.choices.actions(leave_out_unused(torch.stack(factors, dim=-1), self.uses))


def are_open(logits: Tensor) -> Tensor:
    """Says which choices are not forbidden, bool like `logits`."""
    return logits > 0.5 * FORBIDDEN


def invert_allowed(logits: Tensor, noise: Tensor) -> Tensor:
    """Returns the first choice that is allowed and whose cumulative probability exceeds `noise` `(rows,)`.

    Sums that are added up in another order, as a GPU does, may grow by rounding over a choice whose probability is 0,
    and the last sum may stay below the noise. Neither may lead to a choice that is not allowed.
    """
    cumulative, is_open = torch.softmax(logits, -1).cumsum(-1), are_open(logits)
    places = torch.arange(logits.shape[-1], device=logits.device)
    last = torch.where(is_open, places, 0).amax(-1)
    found = torch.where(is_open & (cumulative > noise.unsqueeze(-1)), places, logits.shape[-1]).amin(-1)
    return torch.minimum(found, last)
