"""The choices that an action is made of: which are allowed now, which count, and which are there for exploring.

An action of a Discrete space is one choice, an action of a MultiDiscrete space several, its *factors*. The first one
is the *kind* of the action. A world may say three things about them (`EnvSpec`): which choices are allowed at present
(a mask among its observations), which of the other factors count for which kind, and which kinds are for exploring. A
mask holds for a factor as a whole: cells cannot be forbidden for one kind and allowed for another.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import UnsupportedError

_MASK_DTYPES = ("bool", "int8", "uint8", "float32")


@dataclass(frozen=True, slots=True)
class Places:
    """A grid of cells over a picture; the second factor of an action is one of them, row by row from the upper left.

    Attributes:
        entry: The observation entry that is the picture, `(height, width, colours)`.
        rows: Of the grid; the picture's height is a multiple of it.
        columns: Of the grid; the picture's width is a multiple of it.
    """

    entry: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Choices:
    """What a Discrete or MultiDiscrete action of one seat is made of.

    Attributes:
        counts: Alternatives of each factor.
        is_single: Whether actions are single numbers (Discrete) instead of rows of numbers.
        uses: For each kind, which of the other factors count; empty where all always do.
        exploratory: Kinds that are there for exploring; none by default.
    """

    counts: tuple[int, ...]
    is_single: bool
    uses: tuple[tuple[bool, ...], ...] = ()
    exploratory: tuple[int, ...] = ()

    def use_table(self) -> Tensor:
        """Returns which of the other factors count for each kind, `(kinds, factors - 1)` bool."""
        if self.uses:
            return torch.tensor(self.uses, dtype=torch.bool)
        return torch.ones(self.counts[0], len(self.counts) - 1, dtype=torch.bool)

    def exploratory_kinds(self) -> Tensor:
        """Returns which kinds are for exploring, `(kinds,)` bool; all of them where the world names none."""
        return torch.tensor([not self.exploratory or kind in self.exploratory for kind in range(self.counts[0])])

    def factors(self, actions: Tensor) -> Tensor:
        """Returns actions as rows of factors, `(..., factors)` int64."""
        return (actions.unsqueeze(-1) if self.is_single else actions).long()

    def actions(self, factors: Tensor) -> Tensor:
        """Returns rows of factors `(..., factors)` as actions of the space."""
        return factors.squeeze(-1) if self.is_single else factors


def choices_of(
    space: spaces.Space[object], uses: Sequence[Sequence[bool]] = (), exploratory: Sequence[int] = ()
) -> Choices:
    """Returns the choices of a space; see `Choices` for the arguments.

    Raises:
        UnsupportedError: Its actions are no choices.
    """
    counts = _counts(space)
    if not counts:
        raise UnsupportedError(
            f"actions of {space} are no choices that could be masked, left out or explored; valid: Discrete and "
            "MultiDiscrete from 0, with one axis"
        )
    rows = tuple(tuple(map(bool, row)) for row in uses)
    return Choices(counts, isinstance(space, spaces.Discrete), rows, tuple(map(int, exploratory)))


def choice_faults(
    observations: spaces.Dict,
    actions: spaces.Space[object],
    mask: str | None,
    uses: Sequence[Sequence[bool]],
    exploratory: Sequence[int],
    places: Places | None = None,
) -> Iterator[str]:
    """Yields in what a world's words about its choices do not fit its spaces."""
    if mask is None and not uses and not exploratory and places is None:
        return
    counts = _counts(actions)
    if not counts:
        yield f"actions of {actions} are no choices; valid: Discrete and MultiDiscrete from 0, with one axis"
        return
    if mask is not None:
        entry = observations.spaces.get(mask)
        if not isinstance(entry, spaces.Box) or entry.shape != (sum(counts),) or str(entry.dtype) not in _MASK_DTYPES:
            yield (
                f"action_mask is {mask!r}, which is {'missing' if entry is None else entry} among the observations; it "
                f"must be a Box of shape ({sum(counts)},), 0 or 1 for every choice, of {', '.join(_MASK_DTYPES)}"
            )
    if uses and (len(uses) != counts[0] or {len(row) for row in uses} != {len(counts) - 1} or len(counts) == 1):
        yield (
            f"action_uses must say for each of the {counts[0]} kinds which of the {len(counts) - 1} other factors "
            f"count; got {len(uses)} rows of {', '.join(sorted({str(len(row)) for row in uses}))}"
        )
    wrong = [kind for kind in exploratory if not 0 <= kind < counts[0]]
    if wrong or len(set(exploratory)) != len(exploratory):
        yield f"exploratory_kinds are {tuple(exploratory)}; valid: different numbers from 0 to {counts[0] - 1}"
    if places is not None:
        yield from _place_faults(places, observations, counts, uses)


def _place_faults(
    places: Places, observations: spaces.Dict, counts: tuple[int, ...], uses: Sequence[Sequence[bool]]
) -> Iterator[str]:
    cells = places.rows * places.columns
    if len(counts) != 2 or counts[1] != cells or min(places.rows, places.columns) < 1:
        yield (
            f"action_places are {places.rows} rows of {places.columns} cells; the actions must be a kind and one of "
            f"these {cells} cells, MultiDiscrete([kinds, {cells}]), got {list(counts)}"
        )
    elif uses and not any(row[0] for row in uses):
        yield "action_places are given, but action_uses says that no kind of action needs a cell"
    entry = observations.spaces.get(places.entry)
    shape = entry.shape if isinstance(entry, spaces.Box) else ()
    if len(shape) != 3 or shape[0] % max(places.rows, 1) or shape[1] % max(places.columns, 1):
        yield (
            f"action_places lie over {places.entry!r}, which is {'missing' if entry is None else entry} among the "
            f"observations; it must be a picture (height, width, colours) whose height is a multiple of {places.rows} "
            f"and whose width is one of {places.columns}"
        )


def allowed_choices(mask: Tensor, counts: Sequence[int]) -> Tensor:
    """Returns which choices `mask` `(..., choices)` allows, bool of its shape: it has 1 for those that are, else 0.

    A factor in which nothing is allowed would leave no action at all: it is taken for a mistake of the world, and
    everything in it is allowed.
    """
    # Halfway between the two, so that an agent that is tested with noise in what it sees still knows what is allowed.
    parts = [part > 0.5 for part in torch.split(mask, list(counts), dim=-1)]
    return torch.cat([part | ~part.any(-1, keepdim=True) for part in parts], dim=-1)


def draw_evenly(allowed: Tensor, noise: Tensor) -> Tensor:
    """Returns one of the allowed choices of a factor, each as likely as the others, `(...)` int64.

    Args:
        allowed: `(..., choices)` bool, at least one of them.
        noise: `(...)`, numbers in [0, 1).
    """
    counted = allowed.long().cumsum(-1)
    count = counted[..., -1]
    # The product may be rounded up to the count itself.
    place = torch.minimum((noise * count).long(), count - 1)
    return (counted <= place.unsqueeze(-1)).sum(-1)


def leave_out_unused(factors: Tensor, uses: Tensor) -> Tensor:
    """Returns rows of factors `(..., factors)` with 0 for those that do not count; `uses` is that of `use_table`."""
    if factors.shape[-1] == 1:
        return factors
    return torch.cat((factors[..., :1], factors[..., 1:] * uses[factors[..., 0]]), dim=-1)


def draw_actions(choices: Choices, mask: Tensor | None, noise: Tensor) -> Tensor:
    """Returns random actions, for scripted players: an allowed kind, then what counts for it, all evenly.

    Args:
        choices: Of the world, `EnvSpec.choices`.
        mask: `(..., choices)`, 0 for what is not allowed; None allows everything.
        noise: `(..., factors)`, numbers in [0, 1).
    """
    if mask is None:
        mask = torch.ones(sum(choices.counts), dtype=torch.bool, device=noise.device).expand(*noise.shape[:-1], -1)
    parts = torch.split(allowed_choices(mask, choices.counts), list(choices.counts), dim=-1)
    factors = torch.stack([draw_evenly(part, noise[..., i]) for i, part in enumerate(parts)], dim=-1)
    return choices.actions(leave_out_unused(factors, choices.use_table().to(noise.device)))


def are_allowed(choices: Choices, mask: Tensor | None, actions: Tensor) -> Tensor:
    """Says which actions are allowed and have 0 where a factor does not count, `(...)` bool.

    Args:
        choices: Of the world, `EnvSpec.choices`.
        mask: `(..., choices)`, 0 for what is not allowed; None allows everything.
        actions: `(..., *action_shape)`.
    """
    factors, uses = choices.factors(actions), choices.use_table().to(actions.device)
    fits = (factors == leave_out_unused(factors, uses)).all(-1)
    if mask is None:
        return fits
    parts = torch.split(allowed_choices(mask, choices.counts), list(choices.counts), dim=-1)
    taken = torch.stack([part.gather(-1, factors[..., i : i + 1]).squeeze(-1) for i, part in enumerate(parts)], dim=-1)
    unused = torch.cat((torch.zeros_like(taken[..., :1]), ~uses[factors[..., 0]]), dim=-1)
    return fits & (taken | unused).all(-1)


def _counts(space: spaces.Space[object]) -> tuple[int, ...]:
    """Returns the alternatives of each factor; nothing for spaces that are no choices."""
    if isinstance(space, spaces.Discrete) and int(space.start) == 0:
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 and not np.any(space.start):
        return tuple(map(int, space.nvec))
    return ()
