"""Adam over one flat tensor that holds all parameters: one kernel a step, one norm, one reduction over ranks."""

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor, distributed, nn
from torch.optim.adamw import adamw

from ludus.algorithms.ppo.config import PpoConfig
from ludus.core.state import MAX_COUNT, clone_tensors, load_tensors
from ludus.nn.mlp import Film


class FlatAdam:
    """Moves a module's parameters and gradients into two flat tensors and steps both of Adam's averages on them.

    A step can be cancelled on the device, without the host knowing: `step(skip)` leaves parameters, averages and
    step count alone where `skip` is 1. That is how an update stops at its target KL, and how a gradient that is not
    finite never reaches the parameters.

    Attributes:
        flat: All parameters.
        gradient: Their gradient.
        starts: Where each parameter begins in them, in the order of `module.parameters()`, without those that a user's
            own network keeps as they are (`requires_grad`).
        learning_rate: `()`, read by every step.
    """

    def __init__(self, module: nn.Module, config: PpoConfig) -> None:
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        sizes = [parameter.numel() for parameter in parameters]
        bounds = list(pairwise([0, *torch.tensor(sizes).cumsum(0).tolist()]))
        self.starts = [start for start, _ in bounds]
        self._max_norm = config.max_grad_norm
        self.flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
        if distributed.is_initialized():
            distributed.broadcast(self.flat.data, src=0)  # every rank starts from the first one's parameters
        self.gradient = torch.zeros_like(self.flat.data)
        self.flat.grad = self.gradient
        for parameter, (start, stop) in zip(parameters, bounds, strict=True):
            parameter.data = self.flat.data[start:stop].view_as(parameter)
            parameter.grad = self.gradient[start:stop].view_as(parameter)
        self.learning_rate = torch.zeros((), device=self.flat.device)
        self._shares = self._rate_shares(module, bounds, config.memory_lr_scale)
        self._betas, self._eps, self._weight_decay = config.betas, config.adam_eps, config.weight_decay
        self._state = {
            "step": torch.zeros((), device=self.flat.device),
            "exp_avg": torch.zeros_like(self.flat.data),
            "exp_avg_sq": torch.zeros_like(self.flat.data),
        }

    def _rate_shares(self, module: nn.Module, bounds: list[tuple[int, int]], scale: float) -> Tensor | None:
        """Return the share of the learning rate that each parameter moves by; None where all move by all of it."""
        shares = torch.ones_like(self.flat.data)
        learned = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
        # All weights of a FiLM layer move the same way at once, since a latent hardly changes from step to step: at the
        # whole rate, 64 of them scale a hidden unit 64 times as fast as its own bias would, and a good policy is lost.
        films = {name: 1.0 / film.linear.in_features for name, film in module.named_modules() if isinstance(film, Film)}
        for name, (start, stop) in zip(learned, bounds, strict=True):
            part = name.partition(".")[0]
            shares[start:stop] = scale if part == "memory" else films.get(part, 1.0)
        return None if bool((shares == 1.0).all()) else shares

    def zero(self) -> None:
        """Set the gradient to 0."""
        self.gradient.zero_()

    def average_over_ranks(self) -> None:
        """Average the gradient over all processes of `torch.distributed`, if there are several."""
        if distributed.is_initialized():
            distributed.all_reduce(self.gradient)
            self.gradient.div_(distributed.get_world_size())

    def clip(self) -> Tensor:
        """Scale a gradient that is too long down to the maximum; return its norm `()` before that."""
        norm: Tensor = torch.linalg.vector_norm(self.gradient)
        self.gradient.mul_((self._max_norm / (norm + 1e-6)).clamp(max=1.0))
        return norm

    def step(self, skip: Tensor) -> None:
        """Step unless `skip` `()` float is 1."""
        before = self.flat.data.clone() if self._shares is not None else None
        # The function, because an instance of `torch.optim.AdamW` imports torch's compiler, which takes two seconds.
        adamw(
            [self.flat.data],
            [self.gradient],
            [self._state["exp_avg"]],
            [self._state["exp_avg_sq"]],
            [],
            [self._state["step"]],
            fused=True,
            capturable=self.flat.is_cuda,
            found_inf=skip,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=self.learning_rate,
            weight_decay=self._weight_decay,
            eps=self._eps,
            maximize=False,
        )
        if before is not None and self._shares is not None:
            torch.lerp(before, self.flat.data, self._shares, out=self.flat.data)

    def tensors(self) -> tuple[Tensor, ...]:
        """Return everything that a step changes: parameters and Adam's averages and step count."""
        return (self.flat.data, *self._state.values())

    def averages(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return Adam's two averages and its step count."""
        return self._state["exp_avg"], self._state["exp_avg_sq"], self._state["step"]

    def state(self) -> dict[str, Tensor]:
        """Return copies of Adam's averages and its step count."""
        return clone_tensors(self._state)

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, from any device; raise StateError if it does not fit."""
        ranges = {"step": (0, MAX_COUNT)}  # Adam takes powers of it
        load_tensors(state, self._state, "the optimiser", ranges=ranges, advice="use the same policy config")
