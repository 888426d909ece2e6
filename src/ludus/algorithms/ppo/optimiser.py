"""Adam over one flat tensor that holds all parameters: one kernel a step, one norm, one reduction over ranks."""

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor, distributed, nn

from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.errors import StateError
from ludus.policies.policy import MEMORY_PARTS


class FlatAdam:
    """Moves a module's parameters and gradients into two flat tensors and steps both of Adam's averages on them.

    A step can be cancelled on the device, without the host knowing: `step(skip)` leaves parameters, averages and
    step count alone where `skip` is 1. That is how an update stops at its target KL, and how a gradient that is not
    finite never reaches the parameters.

    Attributes:
        flat: All parameters.
        gradient: Their gradient.
        starts: Where each parameter begins in them, in the order of `module.parameters()`.
        learning_rate: `()`, read by every step.
    """

    def __init__(self, module: nn.Module, config: PpoConfig) -> None:
        parameters = list(module.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        bounds = list(pairwise([0, *torch.tensor(sizes).cumsum(0).tolist()]))
        self.starts = [start for start, _ in bounds]
        self._max_norm = config.max_gradient_norm
        self.flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
        if distributed.is_initialized():
            distributed.broadcast(self.flat.data, src=0)  # every rank starts from the first one's parameters
        self.gradient = torch.zeros_like(self.flat.data)
        self.flat.grad = self.gradient
        for parameter, (start, stop) in zip(parameters, bounds, strict=True):
            parameter.data = self.flat.data[start:stop].view_as(parameter)
            parameter.grad = self.gradient[start:stop].view_as(parameter)
        self.learning_rate = torch.zeros((), device=self.flat.device)
        self._shares = self._rate_shares(module, bounds, config.memory_rate)
        self._adam = torch.optim.AdamW(
            [self.flat],
            lr=self.learning_rate,
            betas=config.betas,
            eps=config.adam_epsilon,
            weight_decay=config.weight_decay,
            fused=True,
            capturable=self.flat.is_cuda,
        )
        self._adam.state[self.flat] = {
            "step": torch.zeros((), device=self.flat.device),
            "exp_avg": torch.zeros_like(self.flat.data),
            "exp_avg_sq": torch.zeros_like(self.flat.data),
        }

    def _rate_shares(self, module: nn.Module, bounds: list[tuple[int, int]], memory_rate: float) -> Tensor | None:
        """Returns the share of the learning rate that each parameter moves by; None where all move by all of it."""
        if memory_rate == 1.0:
            return None
        shares = torch.ones_like(self.flat.data)
        for (name, _), (start, stop) in zip(module.named_parameters(), bounds, strict=True):
            if name.partition(".")[0] in MEMORY_PARTS:
                shares[start:stop] = memory_rate
        return None if bool((shares == 1.0).all()) else shares

    def zero(self) -> None:
        """Sets the gradient to 0."""
        self.gradient.zero_()

    def average_over_ranks(self) -> None:
        """Averages the gradient over all processes of `torch.distributed`, if there are several."""
        if distributed.is_initialized():
            distributed.all_reduce(self.gradient)
            self.gradient.div_(distributed.get_world_size())

    def clip(self) -> Tensor:
        """Scales a gradient that is too long down to the maximum; returns its norm `()` before that."""
        norm: Tensor = torch.linalg.vector_norm(self.gradient)
        self.gradient.mul_((self._max_norm / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def step(self, skip: Tensor) -> None:
        """Steps unless `skip` `()` float is 1."""
        self._adam.found_inf = skip  # type: ignore[attr-defined]  # read by fused Adam, as gradient scalers set it
        before = self.flat.data.clone() if self._shares is not None else None
        self._adam.step()
        if before is not None and self._shares is not None:
            torch.lerp(before, self.flat.data, self._shares, out=self.flat.data)

    def tensors(self) -> tuple[Tensor, ...]:
        """Returns everything that a step changes: parameters and Adam's averages and step count."""
        return (self.flat.data, *self._adam.state[self.flat].values())

    def averages(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns Adam's two averages and its step count."""
        state = self._adam.state[self.flat]
        return state["exp_avg"], state["exp_avg_sq"], state["step"]

    def state(self) -> dict[str, Tensor]:
        """Returns copies of Adam's averages and its step count."""
        return {name: tensor.clone() for name, tensor in self._adam.state[self.flat].items()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave, from any device.

        Raises:
            StateError: A name is missing or superfluous, or a shape differs.
        """
        own = self._adam.state[self.flat]
        if set(state) != set(own) or any(state[name].shape != own[name].shape for name in own):
            shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in own.items())
            raise StateError(f"the optimiser's state does not fit; expected {shapes}; use the same policy config")
        for name, tensor in own.items():
            tensor.copy_(state[name])
