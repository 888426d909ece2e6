"""How a world looks in a mirror: which number of an observation or an action goes where, and which changes its sign."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Reflection:
    """The mirror image of a vector: `mirrored[..., i] = sign[i] * original[..., source[i]]`.

    Attributes:
        source: For each place, the place that its number comes from.
        sign: For each place, 1 or -1.

    Raises:
        ConfigError: Lengths differ, a place does not exist, a sign is neither 1 nor -1, or the mirror image of the
            mirror image is not the original.
    """

    source: tuple[int, ...]
    sign: tuple[float, ...]

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
        """Returns the mirror image of `(..., size)`; numbers that are not floating point are moved alone."""
        moved = values.index_select(-1, torch.tensor(self.source, device=values.device))
        if not values.is_floating_point() or -1.0 not in self.sign:
            return moved
        return moved * torch.tensor(self.sign, dtype=values.dtype, device=values.device)


@dataclass(frozen=True, slots=True)
class Mirror:
    """What a seat sees and does, in a mirror: a game and its mirror image follow the same rules.

    Attributes:
        observations: For every entry of the observation, its last axis.
        actions: Of the actions' last axis.
    """

    observations: Mapping[str, Reflection]
    actions: Reflection


def mirror_faults(mirror: Mirror, observations: spaces.Dict, actions: spaces.Space[object]) -> Iterator[str]:
    """Yields in what a mirror does not fit the spaces of a seat."""
    if set(mirror.observations) != set(observations.spaces):
        got, expected = (", ".join(sorted(names)) or "none" for names in (mirror.observations, observations.spaces))
        yield f"it has the observation entries {got}; expected {expected}"
        return
    for name, space in observations.items():
        yield from _faults(mirror.observations[name], space, f"observation entry {name!r}")
    yield from _faults(mirror.actions, actions, "the action")
    if isinstance(actions, spaces.Box) and actions.shape and actions.shape[-1] == len(mirror.actions.source):
        source, sign = np.array(mirror.actions.source), np.array(mirror.actions.sign)
        ends = np.stack((actions.low[..., source] * sign, actions.high[..., source] * sign))
        if not (np.allclose(ends.min(0), actions.low) and np.allclose(ends.max(0), actions.high)):
            yield "mirrored actions leave their bounds: places that change places need the same, mirrored where signed"


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
