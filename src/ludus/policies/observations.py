"""Turns the observation dict of one seat into one feature vector: normalise, encode each entry, join."""

from math import prod

import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import EnvSpec, Places
from ludus.networks.cnn import Cnn
from ludus.networks.mlp import Mlp
from ludus.networks.normaliser import Normaliser
from ludus.networks.places import PlaceEncoder
from ludus.policies.config import PolicyConfig


class ObservationEncoder(nn.Module):
    """One network an entry; the order is that of the observation space.

    Attributes:
        output_size: Features that come out.
        sizes: Length of each flat entry, by name; pictures are not among them.
    """

    def __init__(
        self, space: spaces.Dict, config: PolicyConfig, device: torch.device, places: Places | None = None
    ) -> None:
        """Makes the networks.

        Args:
            space: Entries to encode.
            config: What the networks are made of.
            device: Where running statistics live.
            places: The grid over one of the pictures whose cells actions are aimed at, if each is to be seen.
        """
        super().__init__()
        self._places = places
        self.sizes: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._axes = {name: len(entry.shape or ()) for name, entry in space.items()}
        self.networks = nn.ModuleDict()
        self.normalisers = nn.ModuleDict()
        for name, entry in space.items():
            self._add(name, entry, config, device)
        self.output_size = sum(network.output_size for network in self._all_networks())

    def _add(self, name: str, entry: spaces.Space[object], config: PolicyConfig, device: torch.device) -> None:
        if isinstance(entry, spaces.Box) and len(entry.shape) == 3:
            shape = (entry.shape[0], entry.shape[1], entry.shape[2])
            if self._places is not None and config.places is not None and name == self._places.entry:
                self.networks[name] = PlaceEncoder(shape, self._places, config.places, orthogonal=config.orthogonal)
                return
            self.networks[name] = Cnn(shape, config.cnn, orthogonal=config.orthogonal)
            return
        if isinstance(entry, spaces.Discrete):
            self._counts[name] = self.sizes[name] = int(entry.n)
        elif isinstance(entry, spaces.Box | spaces.MultiBinary):
            self.sizes[name] = prod(entry.shape)
            if config.normalise.observations and isinstance(entry, spaces.Box):
                self.normalisers[name] = Normaliser(self.sizes[name], config.normalise.clip, device)
        else:
            raise UnsupportedError(
                f"observation entry {name!r} is {entry}; valid: Box (pictures have 3 axes), MultiBinary, Discrete"
            )
        self.networks[name] = Mlp(self.sizes[name], config.encoder, config.activation, orthogonal=config.orthogonal)

    def _all_networks(self) -> list[Mlp | Cnn | PlaceEncoder]:
        return [network for network in self.networks.values() if isinstance(network, Mlp | Cnn | PlaceEncoder)]

    @property
    def place_size(self) -> int:
        """Features of each place; 0 where places are not seen one by one."""
        return next((net.place_size for net in self._all_networks() if isinstance(net, PlaceEncoder)), 0)

    def flatten(self, observations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns every entry as `(..., size)` floats, normalised; pictures stay as they are."""
        flat = {}
        for name, tensor in observations.items():
            if name in self._counts:
                flat[name] = functional.one_hot(tensor.long(), self._counts[name]).float()
            elif name in self.sizes:
                vector = tensor.float() if self._axes[name] == 1 else tensor.flatten(-self._axes[name]).float()
                flat[name] = self.normalisers[name](vector) if name in self.normalisers else vector
            else:
                flat[name] = tensor
        return flat

    def forward(self, flat: dict[str, Tensor]) -> Tensor:
        """Maps what `flatten` gave to `(..., output_size)`."""
        return self.see(flat)[0]

    def see(self, flat: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """Maps what `flatten` gave to `(..., output_size)` and, if places are seen, `(..., cells, place_size)`."""
        features, places = [], None
        for name, network in self.networks.items():
            if isinstance(network, PlaceEncoder):
                whole, places = network(flat[name])
                features.append(whole)
            else:
                features.append(network(flat[name]))
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1), places

    def observe(self, observations: dict[str, Tensor]) -> None:
        """Adds observations `(..., *shape)` to the running statistics."""
        for name, normaliser in self.normalisers.items():
            assert isinstance(normaliser, Normaliser)  # noqa: S101 - for the type checker
            normaliser.update(observations[name].flatten(-self._axes[name]) if self._axes[name] else observations[name])


def seen_space(spec: EnvSpec, config: PolicyConfig) -> spaces.Dict:
    """Returns the entries that the networks are fed: all but the mask of allowed actions, unless that is wanted too.

    Raises:
        ConfigError: There would be none.
    """
    if spec.action_mask is None or config.sees_action_mask:
        return spec.observation_space
    seen = {name: entry for name, entry in spec.observation_space.items() if name != spec.action_mask}
    if not seen:
        raise ConfigError(
            f"{spec.id} shows nothing but its mask of allowed actions, {spec.action_mask!r}; set "
            "policy.sees_action_mask to feed that to the networks"
        )
    return spaces.Dict(seen)
