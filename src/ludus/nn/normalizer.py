"""Normalize features by running statistics that are saved with the network.

The statistics stand still while the policy collects or evaluates.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, distributed, nn

from ludus.core.errors import StateError
from ludus.core.state import load_tensors

_EPSILON = 1e-8


class Normalizer(nn.Module):
    """Shifts and scales features by the mean and variance of everything that `update` was given.

    The statistics change only in `update`, which the learner calls between iterations: within one iteration the
    rollout and all epochs see the same numbers, so the probability ratio starts at 1. In evaluation mode (`eval()`)
    `update` does nothing. Under `torch.distributed` the batches of all ranks are joined. Nothing waits for the device.

    Attributes:
        features: Size of the last axis.
        moments: Of all rows seen, in float64: `count` `()`, `mean` `(features,)` and `squares` `(features,)`, the sum
            of squared deviations from the mean.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, features: int, clip: float, device: torch.device) -> None:
        super().__init__()
        self.features, self.clip = features, clip
        self.moments = _moments(torch.zeros((0, features), dtype=torch.float64, device=device))
        # float32 copies of what every step needs, so that the hot path has two operations and a clamp.
        self.register_buffer("shift", torch.zeros(features, device=device), persistent=False)
        self.register_buffer("scale", torch.ones(features, device=device), persistent=False)

    @property
    def variance(self) -> Tensor:
        """`(features,)` float64, variance of the rows seen (divided by their count); 1 before the first row."""
        count, squares = self.moments["count"], self.moments["squares"]
        return torch.where(count > 0, squares / count.clamp(min=1.0), 1.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalize `(..., features)`."""
        return ((inputs - self.shift) * self.scale).clamp(-self.clip, self.clip)

    @torch.no_grad()
    def update(self, batch: Tensor) -> None:
        """Add the rows of `(..., features)` of every rank; do nothing in evaluation mode."""
        if not self.training:
            return
        if batch.shape[-1:] != (self.features,):
            raise StateError(f"batch has shape {tuple(batch.shape)}; the last axis must be {self.features} features")
        fresh = _moments(batch.detach().reshape(-1, self.features).to(torch.float64))
        self.load_state(_merge([self.moments, *_of_all_ranks(fresh)]))

    def state(self) -> dict[str, Tensor]:
        """Return copies of the statistics."""
        return {name: tensor.clone() for name, tensor in self.moments.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `state()`, from any device; raise StateError if it does not fit."""
        load_tensors(state, self.moments, "running moments", advice="use the same observations")
        self.shift.copy_(self.moments["mean"])
        self.scale.copy_(torch.rsqrt(self.variance + _EPSILON))


def _moments(rows: Tensor) -> dict[str, Tensor]:
    """Return count, mean and sum of squared deviations of `(rows, features)` float64; zeros without any row."""
    count = torch.full((), float(rows.shape[0]), dtype=torch.float64, device=rows.device)
    if rows.shape[0] == 0:
        return {"count": count, "mean": rows.new_zeros(rows.shape[1]), "squares": rows.new_zeros(rows.shape[1])}
    mean = rows.mean(dim=0)
    return {"count": count, "mean": mean, "squares": (rows - mean).square_().sum(dim=0)}


def _of_all_ranks(state: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    if not distributed.is_initialized():
        return [state]
    flat = torch.cat([state["count"].reshape(1), state["mean"], state["squares"]])
    parts = [torch.empty_like(flat) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, flat)
    features = state["mean"].numel()
    return [{"count": p[0], "mean": p[1 : 1 + features], "squares": p[1 + features :]} for p in parts]


def _merge(groups: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Join groups of rows: squared deviations add up with those of the groups' means from the common mean."""
    counts = torch.stack([group["count"] for group in groups]).unsqueeze(-1)
    means = torch.stack([group["mean"] for group in groups])
    total = counts.sum(0)
    mean = (counts * means).sum(0) / total.clamp(min=1.0)
    squares = torch.stack([group["squares"] for group in groups]) + counts * (means - mean).square()
    return {"count": total.squeeze(0), "mean": mean, "squares": squares.sum(0)}
