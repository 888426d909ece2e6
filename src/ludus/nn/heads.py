"""Heads of structured actions (masked, autoregressive, spatial), exploration mixture, and the choice of a head."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated

import torch
from gymnasium import spaces
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from ludus.envs.spaces import ActionFactors, ActionGrid, allowed_choices, draw_evenly, leave_out_unused
from ludus.nn.cnn import start_orthogonal, to_images
from ludus.nn.distributions import OUTPUT_GAIN, ActionHead, Squash, categorical, check_plain, make_plain_head
from ludus.nn.mlp import HIDDEN_GAIN, make_linear

FORBIDDEN = -1e30  # a logit whose probability is exactly 0; unlike -inf it makes no NaN of what is multiplied by 0

NOISE_SIZE = 2  # numbers per row that decide whether to explore, and whether by any action


class MaskedCategoricalHead(ActionHead):
    """One choice, or several of which the first is the kind of the action and says which others count.

    What is not allowed has the logit `FORBIDDEN`, so that parameters alone say what an action may be. A factor that
    does not count is 0 and adds nothing: log p(a) = log p(kind) + the sum of log p(factor) over those that count for
    the kind, and the entropy is H(kind) + the sum over kinds of p(kind) times the entropies of those that count for it.
    """

    uses: Tensor

    def __init__(self, latent: int, choices: ActionFactors) -> None:
        super().__init__()
        self.choices = choices
        factors = len(choices.counts)
        self.noise_kind, self.noise_shape = "uniform", (factors,)
        self.action_shape = () if choices.is_single else (factors,)
        self.action_dtype = torch.int64
        self.linear = make_linear(latent, sum(choices.counts), OUTPUT_GAIN)
        self.register_buffer("uses", choices.use_table(), persistent=False)

    def restrict(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Forbid what `mask` `(..., choices)` does not allow."""
        return parameters.masked_fill(~allowed_choices(mask, self.choices.counts), FORBIDDEN)

    def choice_logits(self, parameters: Tensor) -> Tensor:
        """Return logits `(..., choices)`, of all factors side by side, in which what is not allowed is forbidden."""
        return parameters

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Invert each cumulative distribution at its own uniform number."""
        drawn = [invert_allowed(part, noise[..., i]) for i, part in enumerate(self._parts(parameters))]
        return self._actions(drawn)

    def mode(self, parameters: Tensor) -> Tensor:
        """Take the most likely kind, and the most likely alternative of each factor that counts for it."""
        return self._actions([part.argmax(-1) for part in self._parts(parameters)])

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Add up the factors, each as far as it counts; see the class for the formulas."""
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
    """Return which choices are not forbidden, bool like `logits`."""
    return logits > 0.5 * FORBIDDEN


def invert_allowed(logits: Tensor, noise: Tensor) -> Tensor:
    """Return the first choice that is allowed and whose cumulative probability exceeds `noise` `(rows,)`.

    Sums that are added up in another order, as a GPU does, may grow by rounding over a choice whose probability is 0,
    and the last sum may stay below the noise. Neither may lead to a choice that is not allowed.
    """
    cumulative, is_open = torch.softmax(logits, -1).cumsum(-1), are_open(logits)
    places = torch.arange(logits.shape[-1], device=logits.device)
    last = torch.where(is_open, places, 0).amax(-1)
    found = torch.where(is_open & (cumulative > noise.unsqueeze(-1)), places, logits.shape[-1]).amin(-1)
    return torch.minimum(found, last)


_Channels = Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], Field(min_length=1, max_length=16)]


class SpatialConfig(BaseModel):
    """Shape of the networks for places.

    Attributes:
        channels: Features of a cell after each layer. The first layer sees the cell's own pixels, every other one the
            cell with its eight neighbours.
        hidden: Features of a cell, together with everything else that is known, from which its logits are made.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    channels: _Channels = (16, 24, 24)
    hidden: int = Field(default=32, ge=1, le=4096)


class SpatialEncoder(nn.Module):
    """Convolutions with `place_size` outputs on every cell of the grid over a picture, and their mean and maximum."""

    def __init__(
        self, shape: tuple[int, int, int], places: ActionGrid, config: SpatialConfig, *, orthogonal: bool = True
    ) -> None:
        super().__init__()
        cell = (shape[0] // places.rows, shape[1] // places.columns)
        layers = [nn.Conv2d(shape[2], config.channels[0], cell, cell)]
        for inputs, outputs in zip(config.channels, config.channels[1:], strict=False):
            layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
        if orthogonal:
            start_orthogonal(layers)
        self.layers = nn.ModuleList(layers)
        self.place_size = config.channels[-1]
        self.output_size = 2 * self.place_size

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Map pictures `(..., height, width, colours)` to `(..., output_size)` and `(..., cells, place_size)`."""
        leading, inputs = pictures.shape[:-3], to_images(pictures, channels_last=True)
        for layer in self.layers:
            inputs = torch.relu(layer(inputs))
        cells = inputs.permute(0, 2, 3, 1).flatten(1, 2)
        whole = torch.cat((cells.mean(1), cells.amax(1)), dim=-1)
        return whole.reshape(*leading, -1), cells.reshape(*leading, *cells.shape[1:])


class SpatialHead(MaskedCategoricalHead):
    """A kind of action and, for kinds that need one, a place, whose probability depends on the kind.

    log p(a) = log p(kind) + log p(place | kind), and the entropy is H(kind) + the sum over kinds of p(kind) times
    H(place | kind). Parameters are the logits of the kinds, then those of all places for each kind that needs one.
    """

    rows_of: Tensor

    def __init__(self, latent: int, choices: ActionFactors, place_size: int, hidden: int) -> None:
        super().__init__(latent, choices)
        self._kinds, self._cells = choices.counts
        # Counted without tensors: a policy is also built without any numbers, to be described. Of kinds that need no
        # place any row will do: what it says does not count.
        needs = [row[0] for row in choices.uses] or [True] * self._kinds
        self._groups = sum(needs)
        rows_of = [max(row - 1, 0) for row in accumulate(needs)]
        self.register_buffer("rows_of", torch.tensor(rows_of), persistent=False)
        self.linear = make_linear(latent, self._kinds, OUTPUT_GAIN)
        self.of_place = make_linear(place_size, hidden, HIDDEN_GAIN)
        self.of_all = make_linear(latent, hidden, HIDDEN_GAIN)
        self.place_linear = make_linear(hidden, self._groups, OUTPUT_GAIN)

    def forward(self, latent: Tensor, places: Tensor) -> Tensor:  # type: ignore[override]
        """Map latents `(..., latent)` and features of places `(..., cells, place_size)` to all logits."""
        seen = torch.relu(self.of_place(places) + self.of_all(latent).unsqueeze(-2))
        where = self.place_linear(seen).transpose(-1, -2).flatten(-2)
        return torch.cat((self.linear(latent), where), dim=-1)

    def restrict(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Forbid what `mask` `(..., kinds + cells)` does not allow; a place for all kinds alike."""
        allowed = allowed_choices(mask, self.choices.counts)
        cells = allowed[..., self._kinds :]
        spread = torch.cat((allowed[..., : self._kinds], *[cells] * self._groups), dim=-1)
        return parameters.masked_fill(~spread, FORBIDDEN)

    def choice_logits(self, parameters: Tensor) -> Tensor:
        """Return logits of kinds and places side by side, the places as the first kind that needs one sees them."""
        return parameters[..., : self._kinds + self._cells]

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:
        """Draw the kind, then the place."""
        kinds = invert_allowed(parameters[..., : self._kinds], noise[..., 0])
        return self._actions([kinds, invert_allowed(self._where(parameters, kinds), noise[..., 1])])

    def mode(self, parameters: Tensor) -> Tensor:
        """Take the most likely kind, and the most likely place for it."""
        kinds = parameters[..., : self._kinds].argmax(-1)
        return self._actions([kinds, self._where(parameters, kinds).argmax(-1)])

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Add up kind and place; see the class for the formulas."""
        kinds, places = actions[..., 0].long(), actions[..., 1].long()
        logits = parameters[..., : self._kinds]
        log_prob, entropy = categorical(logits, kinds)
        needs = self.uses[:, 0]
        where = torch.log_softmax(self._all_places(parameters), -1)  # (..., groups, cells)
        of_place = where.flatten(-2).gather(-1, (self.rows_of[kinds] * self._cells + places).unsqueeze(-1)).squeeze(-1)
        entropies = -(where.exp() * where).sum(-1)
        entropy = entropy + (torch.softmax(logits, -1)[..., needs] * entropies).sum(-1)
        return log_prob + of_place * needs[kinds].to(of_place.dtype), entropy

    def _all_places(self, parameters: Tensor) -> Tensor:
        return parameters[..., self._kinds :].reshape(*parameters.shape[:-1], self._groups, self._cells)

    def _where(self, parameters: Tensor, kinds: Tensor) -> Tensor:
        """Return the logits of the places for one kind each, `(..., cells)`."""
        rows = self.rows_of[kinds][..., None, None].expand(*kinds.shape, 1, self._cells)
        return self._all_places(parameters).gather(-2, rows).squeeze(-2)


class ExplorationMixture(nn.Module):
    """The behaviour p(a) = (1 - e) pi(a) + e q(a) of a policy pi that explores with frequency e.

    q takes, with probability r, any allowed kind of action, else one of the exploratory kinds that are allowed (any
    kind if none of them is), each evenly, and then evenly an allowed alternative of every factor that counts for it. In
    a share of the decisions in which one of the exploratory kinds is due it takes a favoured kind instead, where there
    are any that are allowed.

    PPO uses the exact probability p of the mixture, from which actions are drawn: the gradient of log p(a) is that of
    log pi(a) times (1 - e) pi(a) / p(a), which is small for actions that came from q alone.
    """

    rates: Tensor  # `(2,)`, e and r, changed in place, so that a CUDA graph reads their present values
    favour: Tensor  # `(1 + kinds,)`, the share of favoured kinds, and the weight of each, changed in place too
    uses: Tensor
    exploratory: Tensor

    def __init__(self, choices: ActionFactors) -> None:
        super().__init__()
        self.choices = choices
        self.register_buffer("rates", torch.zeros(2), persistent=False)
        self.register_buffer("favour", torch.zeros(1 + choices.counts[0]), persistent=False)
        self.register_buffer("uses", choices.use_table(), persistent=False)
        self.register_buffer("exploratory", choices.exploratory_kinds(), persistent=False)

    def set(self, frequency: float, random_frequency: float) -> None:
        """Take e and r, both from 0 to 1."""
        self.rates[0].fill_(frequency)
        self.rates[1].fill_(random_frequency)

    def lean(self, share: float, weights: Sequence[float]) -> None:
        """Take the share of favoured kinds and the weight of every kind, 0 or more; kinds of weight 0 are not."""
        self.favour.copy_(torch.tensor([share, *weights]))

    def replace(self, parameters: Tensor, noise: Tensor, actions: Tensor) -> Tensor:
        """Return `actions` `(rows, *action_shape)` of the policy, some of which were replaced by others.

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
        """Return log p of actions whose log probabilities under the policy are `log_probs`, `(...)`."""
        frequency = self.rates[0]
        explored = torch.log(frequency).clamp_min(FORBIDDEN) + self.exploring_log_probs(parameters, actions)
        return torch.logaddexp(torch.log1p(-frequency).clamp_min(FORBIDDEN) + log_probs, explored)

    @torch.no_grad()
    def exploring_log_probs(self, parameters: Tensor, actions: Tensor) -> Tensor:
        """Return log q of actions, `(...)`; `FORBIDDEN` where q never takes them."""
        is_open, kinds, exploratory = self._open(parameters)
        factors = self.choices.factors(actions)
        counts = self.uses[factors[..., 0]]
        q = self._kind_shares(kinds, exploratory).gather(-1, factors[..., :1]).squeeze(-1)
        for i, part in enumerate(is_open[1:]):
            q = q * torch.where(counts[..., i], _share(part, factors[..., i + 1]), 1.0)
        return torch.log(q).clamp_min(FORBIDDEN)

    @torch.no_grad()
    def kind_shares(self, parameters: Tensor) -> Tensor:
        """Return the probability of every kind of action under p, `(..., kinds)`."""
        is_open, kinds, exploratory = self._open(parameters)
        own = torch.softmax(parameters[..., : is_open[0].shape[-1]], -1)
        return (1.0 - self.rates[0]) * own + self.rates[0] * self._kind_shares(kinds, exploratory)

    def _kind_shares(self, kinds: Tensor, exploratory: Tensor) -> Tensor:
        """Return the probability of every kind under q, `(..., kinds)`, of which some are open."""
        chosen = (1.0 - self.favour[0]) * _even(exploratory) + self.favour[0] * self._favoured(kinds, exploratory)
        return self.rates[1] * _even(kinds) + (1.0 - self.rates[1]) * chosen

    def _favoured(self, kinds: Tensor, exploratory: Tensor) -> Tensor:
        """Return the probability of every kind where one is favoured; as for exploring if none of those is open."""
        weights = kinds * self.favour[1:]
        weights = torch.where((weights > 0.0).any(-1, keepdim=True), weights, exploratory.to(weights.dtype))
        return weights / weights.sum(-1, keepdim=True)

    def _open(self, parameters: Tensor) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """Return what is open of each factor, and of the kinds: all that are, and those for exploring."""
        is_open = torch.split(are_open(parameters), list(self.choices.counts), dim=-1)
        exploratory = is_open[0] & self.exploratory
        exploratory = torch.where(exploratory.any(-1, keepdim=True), exploratory, is_open[0])
        return is_open, is_open[0], exploratory


def _even(is_open: Tensor) -> Tensor:
    """Return the probability of every choice `(..., choices)` if all open ones are equally likely."""
    return is_open / is_open.sum(-1, keepdim=True)


def _share(is_open: Tensor, chosen: Tensor) -> Tensor:
    """Return the probability of `chosen` `(...)` if all open choices `(..., choices)` are equally likely."""
    return is_open.gather(-1, chosen.unsqueeze(-1)).squeeze(-1) / is_open.sum(-1)


def make_head(
    space: spaces.Space[object],
    latent: int,
    *,
    log_std: float = 0.0,
    state_dependent: bool = False,
    squash: Squash | None = None,
    choices: ActionFactors | None = None,
    place_size: int = 0,
    place_hidden: int = 0,
) -> ActionHead:
    """Make the head for one seat's actions.

    Args:
        space: The action space of one seat.
        latent: Features that the head is fed.
        log_std: First log standard deviation of continuous actions.
        state_dependent: Whether continuous actions explore as a function of the state.
        squash: How actions are squashed into their bounds, which only continuous ones can be; None does not.
        choices: Of a Discrete or MultiDiscrete space, for a head that knows masks and factors that do not always count;
            None makes a plain one.
        place_size: Features of each place that actions can be aimed at; 0 if places are not seen one by one.
        place_hidden: Hidden features of a place in the head.

    Raises:
        UnsupportedError: The space has no head, or no bounds to squash actions into.
    """
    if choices is None or squash is not None:
        return make_plain_head(space, latent, log_std=log_std, state_dependent=state_dependent, squash=squash)
    check_plain(space)
    if place_size:
        return SpatialHead(latent, choices, place_size, place_hidden)
    return MaskedCategoricalHead(latent, choices)
