"""A policy as a module: its state by name, and layers that are random in updates alone."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Self

import torch
from torch import Tensor, nn

from ludus.core.state import check_tensors, clone_tensors
from ludus.nn.normalizer import Normalizer
from ludus.policies.config import PolicyConfig
from ludus.policies.memory import NETWORK, part_of
from ludus.policies.network import UserNetwork


class PolicyModule(nn.Module):
    """What is saved, and what is random.

    Layers that are random, those of `policy.dropout` and the whole of a user's own network, are in training mode only
    within `updating`: rollouts and evaluations play without dropout, whatever the mode of the policy.

    Attributes:
        config: Its settings.
        device: Where it lives.
        network: The user's own network, or None.
    """

    config: PolicyConfig
    device: torch.device
    network: UserNetwork | None

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all parts but the random ones, see `updating`."""
        super().train(mode)
        self._set_random_layers(active=False)
        return self

    @contextmanager
    def updating(self, generator: torch.Generator) -> Iterator[None]:
        """Return the context of an update: what is random is active, and draws from numbers that `generator` seeds.

        Layers draw from torch's global generators, which get their state back afterwards.
        """
        if self.config.dropout == 0.0 and self.network is None:
            yield
            return
        with _seeded(generator, self.device):
            self._set_random_layers(active=True)
            try:
                yield
            finally:
                self._set_random_layers(active=False)

    def _set_random_layers(self, *, active: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.train(active)
        if self.network is not None:
            self.network.train(active)

    def state(self) -> dict[str, Tensor]:
        """Return all parameters and statistics, by name, as copies."""
        tensors: dict[str, Tensor] = {f"parameter.{name}": tensor for name, tensor in self.named_parameters()}
        for name, normaliser in self._normalisers().items():
            tensors |= {f"normaliser.{name}.{key}": value for key, value in normaliser.moments.items()}
        return clone_tensors(tensors | {f"buffer.{name}": tensor for name, tensor in self.network_buffers().items()})

    def network_buffers(self) -> dict[str, Tensor]:
        """Return what a user's own network keeps besides its parameters, such as running statistics, by name."""
        if self.network is None:
            return {}
        parameters = dict(self.network.named_parameters(remove_duplicate=False))
        kept = self.network.state_dict()
        return {f"{NETWORK}.{name}": tensor for name, tensor in kept.items() if name not in parameters}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, from any device; raise StateError if it does not fit."""
        check_tensors(state, self.state(), "the policy")
        for name, parameter in self.named_parameters():
            parameter.copy_(state[f"parameter.{name}"])
        for name, normaliser in self._normalisers().items():
            normaliser.load_state(part_of(state, f"normaliser.{name}"))
        for name, tensor in self.network_buffers().items():
            tensor.copy_(state[f"buffer.{name}"])

    def _normalisers(self) -> dict[str, Normalizer]:
        return {name: module for name, module in self.named_modules() if isinstance(module, Normalizer)}


@contextmanager
def _seeded(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Return a context in which layers draw from numbers that `generator` seeds.

    Layers draw from torch's global generators, which get their state back afterwards.
    """
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    on_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_cuda else []):
        torch.default_generator.manual_seed(seed)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
