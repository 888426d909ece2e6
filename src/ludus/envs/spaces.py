"""The structure of spaces: the choices that an action is made of, and how a world looks in a mirror.

An action of a Discrete space is one choice, an action of a MultiDiscrete space several, its *factors*. The first one
is the *kind* of the action. What a world may say about them is in `ActionKinds`. A mask holds for a factor as a whole:
cells cannot be forbidden for one kind and allowed for another.

A mirror says which number of an observation or an action goes where, and which changes its sign.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ConfigError, UnsupportedError

_MASK_DTYPES = ("bool", "int8", "uint8", "float32")


@dataclass(frozen=True, slots=True)
class ActionGrid:
    """A grid of cells over a picture; the second factor of an action is one of them, row by row from the upper left."""

    entry: str  # the observation entry that is the picture, `(height, width, colours)`
    rows: int  # of the grid; the picture's height is a multiple of it
    columns: int  # of the grid; the picture's width is a multiple of it


@dataclass(frozen=True, slots=True)
class ActionKinds:
    """What a world says about the choices of its Discrete or MultiDiscrete actions.

    Attributes:
        mask: The observation entry that says which choices are allowed now: 1 or 0 for every alternative of a Discrete
            space, or of all factors of a MultiDiscrete one side by side. Policies never do what is not allowed; the
            world still has to bear it. A factor in which nothing is allowed has everything allowed.
        uses: For each kind, which of the other factors count. Those that do not are 0. Empty where all always count.
        exploratory: Kinds that are there for exploring; `policy.exploration` plays them now and then.
        places: In a space of kinds and cells: the grid that the cells are of, over a picture among the observations, so
            that a policy can see every cell where it is. None where actions have no places.
        names: Names of the kinds, for people; empty where they have none.
    """

    mask: str | None = None
    uses: tuple[tuple[bool, ...], ...] = ()
    exploratory: tuple[int, ...] = ()
    places: ActionGrid | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionFactors:
    """What a Discrete or MultiDiscrete action of one seat is made of."""

    counts: tuple[int, ...]  # alternatives of each factor
    is_single: bool  # whether actions are single numbers (Discrete) instead of rows of numbers
    # For each kind, which of the other factors count; empty where all always do.
    uses: tuple[tuple[bool, ...], ...] = ()
    exploratory: tuple[int, ...] = ()  # kinds that are there for exploring; none by default

    def use_table(self) -> Tensor:
        """Return which of the other factors count for each kind, `(kinds, factors - 1)` bool."""
        if self.uses:
            return torch.tensor(self.uses, dtype=torch.bool)
        return torch.ones(self.counts[0], len(self.counts) - 1, dtype=torch.bool)

    def exploratory_kinds(self) -> Tensor:
        """Return which kinds are for exploring, `(kinds,)` bool; all of them where the world names none."""
        named = frozenset(self.exploratory)
        return torch.tensor([not named or kind in named for kind in range(self.counts[0])])

    def factors(self, actions: Tensor) -> Tensor:
        """Return actions as rows of factors, `(..., factors)` int64."""
        return (actions.unsqueeze(-1) if self.is_single else actions).long()

    def actions(self, factors: Tensor) -> Tensor:
        """Return rows of factors `(..., factors)` as actions of the space."""
        return factors.squeeze(-1) if self.is_single else factors


def action_factors_of(
    space: spaces.Space[object], uses: Sequence[Sequence[bool]] = (), exploratory: Sequence[int] = ()
) -> ActionFactors:
    """Return the choices of a space, see `ActionFactors`; raise UnsupportedError if its actions are none."""
    counts = _counts(space)
    if not counts:
        raise UnsupportedError(
            f"actions of {space} are no choices that could be masked, left out or explored; valid: Discrete and "
            "MultiDiscrete from 0, with one axis"
        )
    rows = tuple(tuple(map(bool, row)) for row in uses)
    return ActionFactors(counts, isinstance(space, spaces.Discrete), rows, tuple(map(int, exploratory)))


def choice_faults(observations: spaces.Dict, actions: spaces.Space[object], said: ActionKinds) -> Iterator[str]:
    """Yield in what a world's words about its choices do not fit its spaces."""
    if said == ActionKinds():
        return
    counts, mask, uses = _counts(actions), said.mask, said.uses
    if not counts:
        yield f"actions of {actions} are no choices; valid: Discrete and MultiDiscrete from 0, with one axis"
        return
    if mask is not None:
        entry = observations.spaces.get(mask)
        if not isinstance(entry, spaces.Box) or entry.shape != (sum(counts),) or str(entry.dtype) not in _MASK_DTYPES:
            yield (
                f"mask is {mask!r}, which is {'missing' if entry is None else entry} among the observations; it "
                f"must be a Box of shape ({sum(counts)},), 0 or 1 for every choice, of {', '.join(_MASK_DTYPES)}"
            )
    if uses and (len(uses) != counts[0] or {len(row) for row in uses} != {len(counts) - 1} or len(counts) == 1):
        yield (
            f"uses must say for each of the {counts[0]} kinds which of the {len(counts) - 1} other factors "
            f"count; got {len(uses)} rows of {', '.join(sorted({str(len(row)) for row in uses}))}"
        )
    wrong = [kind for kind in said.exploratory if not 0 <= kind < counts[0]]
    if wrong or len(set(said.exploratory)) != len(said.exploratory):
        yield f"exploratory are {tuple(said.exploratory)}; valid: different numbers from 0 to {counts[0] - 1}"
    if said.names and len(set(said.names)) != counts[0]:
        yield f"names must be {counts[0]} different names of the kinds, got {', '.join(said.names)}"
    if said.places is not None:
        yield from _place_faults(said.places, observations, counts, uses)


def _place_faults(
    places: ActionGrid, observations: spaces.Dict, counts: tuple[int, ...], uses: Sequence[Sequence[bool]]
) -> Iterator[str]:
    cells = places.rows * places.columns
    if len(counts) != 2 or counts[1] != cells or min(places.rows, places.columns) < 1:
        yield (
            f"places are {places.rows} rows of {places.columns} cells; the actions must be a kind and one of "
            f"these {cells} cells, MultiDiscrete([kinds, {cells}]), got {list(counts)}"
        )
    elif uses and not any(row[0] for row in uses):
        yield "places are given, but uses says that no kind of action needs a cell"
    entry = observations.spaces.get(places.entry)
    shape = entry.shape if isinstance(entry, spaces.Box) else ()
    if len(shape) != 3 or shape[0] % max(places.rows, 1) or shape[1] % max(places.columns, 1):
        yield (
            f"places lie over {places.entry!r}, which is {'missing' if entry is None else entry} among the "
            f"observations; it must be a picture (height, width, colours) whose height is a multiple of {places.rows} "
            f"and whose width is one of {places.columns}"
        )


def allowed_choices(mask: Tensor, counts: Sequence[int]) -> Tensor:
    """Return which choices `mask` `(..., choices)` allows, bool of its shape: it has 1 for those that are, else 0.

    A factor in which nothing is allowed would leave no action at all: it is taken for a mistake of the world, and
    everything in it is allowed.
    """
    # Halfway between the two, so that an agent that is tested with noise in what it sees still knows what is allowed.
    parts = [part > 0.5 for part in torch.split(mask, list(counts), dim=-1)]
    return torch.cat([part | ~part.any(-1, keepdim=True) for part in parts], dim=-1)


def draw_evenly(allowed: Tensor, noise: Tensor) -> Tensor:
    """Return an allowed `(..., choices)` choice, each as likely, by noise `(...)` in [0, 1): `(...)` int64."""
    counted = allowed.long().cumsum(-1)
    count = counted[..., -1]
    # The product may be rounded up to the count itself.
    place = torch.minimum((noise * count).long(), count - 1)
    return (counted <= place.unsqueeze(-1)).sum(-1)


def leave_out_unused(factors: Tensor, uses: Tensor) -> Tensor:
    """Return rows of factors `(..., factors)` with 0 for those that do not count; `uses` is that of `use_table`."""
    if factors.shape[-1] == 1:
        return factors
    return torch.cat((factors[..., :1], factors[..., 1:] * uses[factors[..., 0]]), dim=-1)


def draw_actions(choices: ActionFactors, mask: Tensor | None, noise: Tensor) -> Tensor:
    """Return random actions: an allowed kind, then what counts for it, evenly by noise `(..., factors)` in [0, 1)."""
    if mask is None:
        mask = torch.ones(sum(choices.counts), dtype=torch.bool, device=noise.device).expand(*noise.shape[:-1], -1)
    parts = torch.split(allowed_choices(mask, choices.counts), list(choices.counts), dim=-1)
    factors = torch.stack([draw_evenly(part, noise[..., i]) for i, part in enumerate(parts)], dim=-1)
    return choices.actions(leave_out_unused(factors, choices.use_table().to(noise.device)))


def are_allowed(choices: ActionFactors, mask: Tensor | None, actions: Tensor) -> Tensor:
    """Return which actions `mask` `(..., choices)`, or None, allows, with 0 for factors that do not count, `(...)`."""
    factors, uses = choices.factors(actions), choices.use_table().to(actions.device)
    fits = (factors == leave_out_unused(factors, uses)).all(-1)
    if mask is None:
        return fits
    parts = torch.split(allowed_choices(mask, choices.counts), list(choices.counts), dim=-1)
    taken = torch.stack([part.gather(-1, factors[..., i : i + 1]).squeeze(-1) for i, part in enumerate(parts)], dim=-1)
    unused = torch.cat((torch.zeros_like(taken[..., :1]), ~uses[factors[..., 0]]), dim=-1)
    return fits & (taken | unused).all(-1)


def _counts(space: spaces.Space[object]) -> tuple[int, ...]:
    """Return the alternatives of each factor; nothing for spaces that are no choices."""
    if isinstance(space, spaces.Discrete) and int(space.start) == 0:
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1 and not np.any(space.start):
        return tuple(map(int, space.nvec))
    return ()


def action_bounds(space: spaces.Space[object]) -> tuple[Tensor, Tensor]:
    """Return the least and the greatest valid action; NaN is never between them."""
    if isinstance(space, spaces.Box):
        return torch.as_tensor(space.low), torch.as_tensor(space.high)
    if isinstance(space, spaces.Discrete):
        return torch.as_tensor(int(space.start)), torch.as_tensor(int(space.start + space.n - 1))
    if isinstance(space, spaces.MultiDiscrete):
        return torch.as_tensor(space.start), torch.as_tensor(space.start + space.nvec - 1)
    return torch.tensor(0), torch.tensor(1)


@dataclass(frozen=True, slots=True)
class Reflection:
    """The mirror image of a vector: `mirrored[..., i] = sign[i] * original[..., source[i]]`.

    Raises:
        ConfigError: Lengths differ, a place does not exist, a sign is neither 1 nor -1, or the mirror image of the
            mirror image is not the original.
    """

    source: tuple[int, ...]  # for each place, the place that its number comes from
    sign: tuple[float, ...]  # for each place, 1 or -1

    def __post_init__(self) -> None:
        size = len(self.source)
        if len(self.sign) != size or size == 0:
            raise ConfigError(
                f"a reflection needs as many signs as sources, at least one; got {len(self.sign)} and {size}"
            )
        wrong = [place for place in self.source if not 0 <= place < size]
        if wrong:
            raise ConfigError(f"a reflection of {size} numbers has the source {wrong[0]}; valid: 0 to {size - 1}")
        odd = [sign for sign in self.sign if sign not in (1.0, -1.0)]
        if odd:
            raise ConfigError(f"a reflection has the sign {odd[0]}; valid: 1 and -1")
        for place, source in enumerate(self.source):
            if self.source[source] != place or self.sign[source] != self.sign[place]:
                raise ConfigError(
                    f"a reflection applied twice must give the original: place {place} comes from {source} with sign "
                    f"{self.sign[place]:g}, so {source} must come from {place} with the same sign; "
                    f"got {self.source[source]} and {self.sign[source]:g}"
                )

    def apply(self, values: Tensor) -> Tensor:
        """Return the mirror image of `(..., size)`; numbers that are not floating point are moved alone."""
        moved = values.index_select(-1, torch.tensor(self.source, device=values.device))
        if not values.is_floating_point() or -1.0 not in self.sign:
            return moved
        return moved * torch.tensor(self.sign, dtype=values.dtype, device=values.device)


@dataclass(frozen=True, slots=True)
class Mirror:
    """What a seat sees and does, in a mirror: a game and its mirror image follow the same rules."""

    observations: Mapping[str, Reflection]  # for every entry of the observation, its last axis
    actions: Reflection  # of the actions' last axis
    # The entry and the place of a number that tells a view from its mirror image: never 0, and of the other sign there.
    side: tuple[str, int] | None = None


def mirror_faults(mirror: Mirror, observations: spaces.Dict, actions: spaces.Space[object]) -> Iterator[str]:
    """Yield in what a mirror does not fit the spaces of a seat."""
    if set(mirror.observations) != set(observations.spaces):
        got, expected = (", ".join(sorted(names)) or "none" for names in (mirror.observations, observations.spaces))
        yield f"it has the observation entries {got}; expected {expected}"
        return
    for name, space in observations.items():
        yield from _faults(mirror.observations[name], space, f"observation entry {name!r}")
    yield from _faults(mirror.actions, actions, "the action")
    yield from _side_faults(mirror)
    if isinstance(actions, spaces.Box) and actions.shape and actions.shape[-1] == len(mirror.actions.source):
        source, sign = np.array(mirror.actions.source), np.array(mirror.actions.sign)
        ends = np.stack((actions.low[..., source] * sign, actions.high[..., source] * sign))
        if not (np.allclose(ends.min(0), actions.low) and np.allclose(ends.max(0), actions.high)):
            yield "mirrored actions leave their bounds: places that change places need the same, mirrored where signed"


def _side_faults(mirror: Mirror) -> Iterator[str]:
    if mirror.side is None:
        return
    name, place = mirror.side
    reflection = mirror.observations.get(name)
    if reflection is None or not 0 <= place < len(reflection.source):
        yield f"its side is number {place} of entry {name!r}, which is not there"
    elif reflection.source[place] != place or reflection.sign[place] > 0.0:
        yield f"its side is number {place} of entry {name!r}, which does not change its sign in place"


def _faults(reflection: Reflection, space: spaces.Space[object], what: str) -> Iterator[str]:
    size = space.shape[-1] if space.shape else None
    if size is None:
        yield f"{what} is {space}, which has no axis to mirror"
    elif len(reflection.source) != size:
        yield f"{what} has {size} numbers, its reflection {len(reflection.source)}"
    elif -1.0 in reflection.sign and not (isinstance(space, spaces.Box) and str(space.dtype).startswith("float")):
        yield f"{what} is {space}, whose numbers cannot change their sign"
    elif isinstance(space, spaces.MultiDiscrete) and any(space.nvec[list(reflection.source)] != space.nvec):
        yield f"{what} is {space}, of which choices with different counts change places"
