"""Parts of a policy: the observation encoder, and functions that are compiled."""

import struct
import time
from collections.abc import Callable, Mapping
from functools import cache, wraps
from math import prod
from pathlib import Path
from typing import ParamSpec, TypeVar

import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from ludus.core.errors import ConfigError, UnsupportedError
from ludus.envs.base import ActionGrid, EnvSpec
from ludus.nn.cnn import Cnn
from ludus.nn.heads import SpatialEncoder
from ludus.nn.mlp import Mlp
from ludus.nn.normalizer import Normalizer
from ludus.policies.canonical import CanonicalView
from ludus.policies.config import PolicyConfig

P = ParamSpec("P")
R = TypeVar("R")
_ELF = b"\x7fELF\x02\x01"  # 64 bits, little endian: every system that Ludus runs on, save macOS
_ELF_HEADER = struct.Struct("<40xQ10xHH2x")  # where the section headers begin, the size of one, and their number
_LINKING_S = 2.0  # a library that was written to this recently may be another process's, which is still at work


class ObservationEncoder(nn.Module):
    """One network per entry, in the order of the space; `sizes` are the lengths of flat entries, not of pictures.

    Where a user's own network (`policy.module`) sees the observations, there are only the normalisers.
    """

    def __init__(
        self,
        space: spaces.Dict,
        config: PolicyConfig,
        device: torch.device,
        places: ActionGrid | None = None,
        canonical: CanonicalView | None = None,
    ) -> None:
        """Make the networks.

        Args:
            space: The entries.
            config: Settings of the policy.
            device: Of the statistics.
            places: The grid over a picture whose cells actions are aimed at, if each is seen.
            canonical: What turns mirrored views, or None.
        """
        super().__init__()
        self._places, self._canonical = places, canonical
        self.sizes: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._shapes = {name: entry.shape or () for name, entry in space.items()}
        self._axes = {name: len(entry.shape or ()) for name, entry in space.items()}
        self.networks = nn.ModuleDict()
        self.normalisers = nn.ModuleDict()
        for name, entry in space.items():
            self._add(name, entry, config, device)
        self.output_size = sum(network.output_size for network in self._all_networks())

    def _add(self, name: str, entry: spaces.Space[object], config: PolicyConfig, device: torch.device) -> None:
        if isinstance(entry, spaces.Box) and len(entry.shape) == 3:
            shape = (entry.shape[0], entry.shape[1], entry.shape[2])
            if config.module is not None:
                return
            if self._places is not None and config.spatial is not None and name == self._places.entry:
                self.networks[name] = SpatialEncoder(shape, self._places, config.spatial, orthogonal=config.orthogonal)
                return
            self.networks[name] = Cnn(shape, config.cnn, orthogonal=config.orthogonal)
            return
        if isinstance(entry, spaces.Discrete):
            self._counts[name] = self.sizes[name] = int(entry.n)
        elif isinstance(entry, spaces.Box | spaces.MultiBinary):
            self.sizes[name] = prod(entry.shape)
            if config.normalize.observations and isinstance(entry, spaces.Box):
                self.normalisers[name] = Normalizer(self.sizes[name], config.normalize.clip, device)
        else:
            raise UnsupportedError(
                f"observation entry {name!r} is {entry}; valid: Box (pictures have 3 axes), MultiBinary, Discrete"
            )
        if config.module is None:
            self.networks[name] = Mlp(
                self.sizes[name],
                config.encoder,
                config.activation,
                orthogonal=config.orthogonal,
                dropout=config.dropout,
            )

    def _all_networks(self) -> list[Mlp | Cnn | SpatialEncoder]:
        return [network for network in self.networks.values() if isinstance(network, Mlp | Cnn | SpatialEncoder)]

    @property
    def place_size(self) -> int:
        """Features of each place; 0 where places are not seen one by one."""
        return next((net.place_size for net in self._all_networks() if isinstance(net, SpatialEncoder)), 0)

    def flatten(self, observations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return every entry as `(..., size)` floats, turned and normalised; pictures stay as they are."""
        observations, flat = self._turned(observations), {}
        for name, tensor in observations.items():
            if name in self._counts:
                flat[name] = functional.one_hot(tensor.long(), self._counts[name]).float()
            elif name in self.sizes:
                vector = tensor if self._axes[name] == 1 else tensor.flatten(-self._axes[name])
                vector = vector if vector.dtype == torch.bfloat16 else vector.float()
                flat[name] = self.normalisers[name](vector) if name in self.normalisers else vector
            else:
                flat[name] = tensor
        return flat

    def _turned(self, observations: dict[str, Tensor]) -> dict[str, Tensor]:
        view = self._canonical
        if view is None:
            return observations
        mirrored = view.is_mirrored(observations)
        return {name: view.turn(name, tensor, mirrored) for name, tensor in observations.items()}

    def entries(self, observations: Mapping[str, Tensor], flat: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return all entries in the shapes of their spaces `(..., *shape)`, of which `flatten` gave `flat`.

        Numbers are float32, normalised where that is on; those of Discrete entries are int64, and pictures as they are.
        """
        shaped = {}
        for name, shape in self._shapes.items():
            if name in self._counts:
                shaped[name] = observations[name].long()
            else:
                vector = flat[name]
                shaped[name] = vector if len(shape) in (1, 3) else vector.reshape(*vector.shape[:-1], *shape)
        return shaped

    def forward(self, flat: dict[str, Tensor]) -> Tensor:
        """Map what `flatten` gave to `(..., output_size)`."""
        return self.see(flat)[0]

    def see(self, flat: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """Map what `flatten` gave to `(..., output_size)` and, if places are seen, `(..., cells, place_size)`."""
        features, places = [], None
        for name, network in self.networks.items():
            if isinstance(network, SpatialEncoder):
                whole, places = network(flat[name])
                features.append(whole)
            else:
                features.append(network(flat[name]))
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1), places

    def observe(self, observations: dict[str, Tensor]) -> None:
        """Add observations `(..., *shape)` to the running statistics."""
        observations = self._turned(observations) if self.normalisers else observations
        for name, normaliser in self.normalisers.items():
            assert isinstance(normaliser, Normalizer)  # noqa: S101 - for the type checker
            normaliser.update(observations[name].flatten(-self._axes[name]) if self._axes[name] else observations[name])


def seen_space(spec: EnvSpec, config: PolicyConfig) -> spaces.Dict:
    """Return the entries that the networks are fed, without an action mask that is not wanted; ConfigError if none."""
    if spec.actions.mask is None or config.sees_action_mask:
        return spec.observation_space
    seen = {name: entry for name, entry in spec.observation_space.items() if name != spec.actions.mask}
    if not seen:
        raise ConfigError(
            f"{spec.id} shows nothing but its mask of allowed actions, {spec.actions.mask!r}; set "
            "policy.sees_action_mask to feed that to the networks"
        )
    return spaces.Dict(seen)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function as `torch.compile` makes it for tensors of fixed shapes, at the first call.

    The compiler takes a library that is in its cache for finished. A run that is killed while one is being written
    leaves a part of it, which no later run could load: such parts are removed first, and the libraries rebuilt.
    """
    fast = torch.compile(function, dynamic=False)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        _remove_torn_libraries()
        return fast(*args, **kwargs)

    return call


@cache  # once per process: a process does not tear its own libraries
def _remove_torn_libraries() -> None:
    from torch._inductor.runtime.cache_dir_utils import cache_dir  # imports torch's compiler: two seconds

    newest = time.time() - _LINKING_S
    for library in Path(cache_dir()).rglob("*.so"):
        try:
            if library.stat().st_mtime < newest and _is_torn(library):
                library.unlink()
        except OSError:  # removed meanwhile, or another user's
            continue


def _is_torn(library: Path) -> bool:
    """Return whether the end of a library is missing, where linkers write the section headers."""
    size = library.stat().st_size
    with library.open("rb") as file:
        header = file.read(_ELF_HEADER.size)
    if len(header) < _ELF_HEADER.size:
        return True
    if not header.startswith(_ELF):
        return not any(header)  # space that was reserved and never written
    first, each, number = _ELF_HEADER.unpack(header)
    return int(first) == 0 or int(first) + int(each) * int(number) > size
