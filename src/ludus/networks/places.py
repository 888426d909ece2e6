"""Places: what a policy sees of every cell of a map, and the head that chooses what to do and where."""

from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from ludus.envs.choices import Choices, Places, allowed_choices
from ludus.networks.choices import FORBIDDEN, ChoiceHead, invert_allowed
from ludus.networks.distributions import OUTPUT_GAIN, categorical
from ludus.networks.layers import make_linear
from ludus.networks.mlp import HIDDEN_GAIN


class PlacesConfig(BaseModel):
    """Shape of the networks for places.

    Attributes:
        channels: Features of a cell after each layer. The first layer sees the cell's own pixels, every other one the
            cell with its eight neighbours.
        hidden: Features of a cell, together with everything else that is known, from which its logits are made.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    channels: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], Field(min_length=1, max_length=16)] = (
        16,
        24,
        24,
    )
    hidden: int = Field(default=32, ge=1, le=4096)


class PlaceEncoder(nn.Module):
    """Convolutions whose outputs lie one on every cell of the grid over a picture.

    Attributes:
        output_size: Features of the picture as a whole: mean and maximum of each feature over all cells.
        place_size: Features of one cell.
    """

    def __init__(
        self, shape: tuple[int, int, int], places: Places, config: PlacesConfig, *, orthogonal: bool = True
    ) -> None:
        super().__init__()
        cell = (shape[0] // places.rows, shape[1] // places.columns)
        layers = [nn.Conv2d(shape[2], config.channels[0], cell, cell)]
        for inputs, outputs in zip(config.channels, config.channels[1:], strict=False):
            layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
        if orthogonal:
            for layer in layers:
                nn.init.orthogonal_(layer.weight, HIDDEN_GAIN)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        self.layers = nn.ModuleList(layers)
        self.place_size = config.channels[-1]
        self.output_size = 2 * self.place_size

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Maps pictures `(..., height, width, colours)` of floats or bytes to features of all and of each.

        Returns:
            `(..., output_size)` and, row by row, `(..., cells, place_size)`.
        """
        leading = pictures.shape[:-3]
        inputs = pictures.reshape(-1, *pictures.shape[-3:])
        if pictures.dtype == torch.uint8:
            inputs = inputs.float().div_(255.0)
        inputs = inputs.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
        for layer in self.layers:
            inputs = torch.relu(layer(inputs))
        cells = inputs.permute(0, 2, 3, 1).flatten(1, 2)
        whole = torch.cat((cells.mean(1), cells.amax(1)), dim=-1)
        return whole.reshape(*leading, -1), cells.reshape(*leading, *cells.shape[1:])


class PlaceHead(ChoiceHead):
    """A kind of action and, for kinds that need one, a place, whose probability depends on the kind.

    log p(a) = log p(kind) + log p(place | kind), and the entropy is H(kind) + the sum over kinds of p(kind) times
    H(place | kind). Parameters are the logits of the kinds, then those of all places for each kind that needs one.
    """

    rows_of: Tensor

    def __init__(self, latent: int, choices: Choices, place_size: int, hidden: int) -> None:
        super().__init__(latent, choices)
        self._kinds, self._cells = choices.counts
        # Counted without tensors: a policy is also built without any numbers, to be described. Of kinds that need no
        # place any row will do: what it says does not count.
        needs = [row[0] for row in choices.uses] or [True] * self._kinds
        self._groups = sum(needs)
        rows_of = [max(sum(needs[: kind + 1]) - 1, 0) for kind in range(self._kinds)]
        self.register_buffer("rows_of", torch.tensor(rows_of), persistent=False)
        self.linear = make_linear(latent, self._kinds, OUTPUT_GAIN)
        self.of_place = make_linear(place_size, hidden, HIDDEN_GAIN)
        self.of_all = make_linear(latent, hidden, HIDDEN_GAIN)
        self.place_linear = make_linear(hidden, self._groups, OUTPUT_GAIN)

    def forward(self, latent: Tensor, places: Tensor) -> Tensor:  # type: ignore[override]
        """Maps latents `(..., latent)` and features of places `(..., cells, place_size)` to all logits."""
        seen = torch.relu(self.of_place(places) + self.of_all(latent).unsqueeze(-2))
        where = self.place_linear(seen).transpose(-1, -2).flatten(-2)
        return torch.cat((self.linear(latent), where), dim=-1)

    def restrict(self, parameters: Tensor, mask: Tensor) -> Tensor:
        """Forbids what `mask` `(..., kinds + cells)` does not allow; a place for all kinds alike."""
        allowed = allowed_choices(mask, self.choices.counts)
        cells = allowed[..., self._kinds :]
        spread = torch.cat((allowed[..., : self._kinds], *[cells] * self._groups), dim=-1)
        return parameters.masked_fill(~spread, FORBIDDEN)

    def choice_logits(self, parameters: Tensor) -> Tensor:
        """Returns logits of kinds and places side by side, the places as the first kind that needs one sees them."""
        return parameters[..., : self._kinds + self._cells]

    def sample(self, parameters: Tensor, noise: Tensor, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Draws the kind, then the place."""
        kinds = invert_allowed(parameters[..., : self._kinds], noise[..., 0])
        return self._actions([kinds, invert_allowed(self._where(parameters, kinds), noise[..., 1])])

    def mode(self, parameters: Tensor) -> Tensor:
        """Takes the most likely kind, and the most likely place for it."""
        kinds = parameters[..., : self._kinds].argmax(-1)
        return self._actions([kinds, self._where(parameters, kinds).argmax(-1)])

    def log_prob_and_entropy(self, parameters: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Adds up kind and place; see the class for the formulas."""
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
        """Returns the logits of the places for one kind each, `(..., cells)`."""
        rows = self.rows_of[kinds][..., None, None].expand(*kinds.shape, 1, self._cells)
        return self._all_places(parameters).gather(-2, rows).squeeze(-2)
