"""One orientation for all views: a policy that plays the mirror image of a situation as it plays the situation.

Half of the views of a symmetric world are mirror images of the other half. A network that sees both has to learn
everything twice. Here a view is turned before the networks see it, if its side is the negative one, and the parameters
of its actions are turned back. But for the number that tells the side, f(mirror(x)) = mirror(f(x)) holds exactly.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from gymnasium import spaces
from torch import Tensor

from ludus.core.errors import ConfigError
from ludus.envs.base import EnvSpec


class _Image(NamedTuple):
    """The mirror image of an entry; it may move few of the numbers, so the others are not touched."""

    source: Tensor  # for each place, the place that its number comes from
    sign: Tensor  # for each place, 1 or -1
    moved: Tensor  # places whose number changes
    moved_from: Tensor  # their sources
    moved_sign: Tensor  # and signs


class CanonicalView:
    """Turns observations, and keys or their logits, of rows whose view is the mirror image of the canonical one.

    The number that tells the side stays as it is: what is not symmetric about the world can still be learned from it.
    """

    def __init__(self, spec: EnvSpec, device: torch.device) -> None:
        """Take the mirror of a world; raise ConfigError if it has none that tells the side, or other actions."""
        mirror = spec.mirror
        if mirror is None or mirror.side is None:
            raise ConfigError(
                f"policy.canonical is on, but {spec.id} does not say on which side of a mirror a seat is "
                "(`Mirror.side`); switch it off"
            )
        pictures = [name for name, space in spec.observation_space.items() if len(space.shape or ()) != 1]
        if pictures or not isinstance(spec.action_space, spaces.MultiBinary):
            found = spec.observation_space[pictures[0]] if pictures else spec.action_space
            raise ConfigError(
                f"policy.canonical is on, but {spec.id} has {found}; valid: vectors as observations and MultiBinary "
                "actions; switch it off"
            )
        self._entry, self._column = mirror.side
        self._images: dict[str, _Image] = {}
        for name, reflection in mirror.observations.items():
            signs = list(reflection.sign)
            if name == self._entry:
                signs[self._column] = 1.0
            moved = [at for at, place in enumerate(reflection.source) if at != place or reflection.sign[at] < 0.0]
            # Chosen as lists: indexing on the meta device imports sympy, which takes a second, once per process.
            sources = (reflection.source, moved, [reflection.source[at] for at in moved])
            source, places, moved_from = (torch.tensor(of, dtype=torch.int64, device=device) for of in sources)
            sign, moved_sign = (torch.tensor(of, device=device) for of in (signs, [signs[at] for at in moved]))
            self._images[name] = _Image(source, sign, places, moved_from, moved_sign)
        self._keys = torch.tensor(mirror.actions.source, device=device)

    @property
    def side(self) -> tuple[str, int]:
        """The entry and the column that tell the side."""
        return self._entry, self._column

    def image(self, name: str) -> tuple[Tensor, Tensor]:
        """Return of an entry where each number of its image comes from, and its sign."""
        found = self._images[name]
        return found.source, found.sign

    @property
    def keys(self) -> Tensor:
        """For each key, the one that it is in a mirror."""
        return self._keys

    def is_mirrored(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Return `(...,)` bool, whether views `(..., size)` are to be turned."""
        return observations[self._entry][..., self._column] < 0.0

    def turn(self, name: str, vectors: Tensor, mirrored: Tensor) -> Tensor:
        """Turn vectors `(..., size)` of an entry where `mirrored` `(...,)` says so."""
        image = self._images[name]
        turned = vectors.index_select(-1, image.moved_from) * image.moved_sign
        moved = torch.where(mirrored.unsqueeze(-1), turned, vectors.index_select(-1, image.moved))
        return vectors.index_copy(-1, image.moved, moved)

    def turn_keys(self, keys: Tensor, mirrored: Tensor) -> Tensor:
        """Turn keys, or what belongs to them, `(..., keys)`, where `mirrored` `(...,)` says so."""
        return torch.where(mirrored.unsqueeze(-1), keys.index_select(-1, self._keys), keys)
