"""Normalises by running statistics that live with the network and stand still while it collects or evaluates."""

from collections.abc import Mapping

import torch
from torch import Tensor, distributed, nn

from ludus.core.statistics import RunningMoments

_EPSILON = 1e-8


class Normaliser(nn.Module):
    """Shifts and scales features by the mean and variance of everything that `update` was given.

    The statistics change only in `update`, which the learner calls between iterations: within one iteration the
    rollout and all epochs see the same numbers, so the probability ratio starts at 1. In evaluation mode (`eval()`)
    `update` does nothing. Under `torch.distributed` the batches of all ranks are joined.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, features: int, clip: float, device: torch.device) -> None:
        super().__init__()
        self.clip = clip
        self.moments = RunningMoments(features, device)
        # float32 copies of what every step needs, so that the hot path has two operations and a clamp.
        self.register_buffer("shift", torch.zeros(features, device=device), persistent=False)
        self.register_buffer("scale", torch.ones(features, device=device), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalises `(..., features)`."""
        return ((inputs - self.shift) * self.scale).clamp(-self.clip, self.clip)

    @torch.no_grad()
    def update(self, batch: Tensor) -> None:
        """Adds the rows of `(..., features)` of every rank; does nothing in evaluation mode."""
        if not self.training:
            return
        fresh = RunningMoments(self.moments.features, batch.device)
        fresh.update(batch)
        self.load_state(_merge([self.moments.state(), *_of_all_ranks(fresh.state())]))

    def state(self) -> dict[str, Tensor]:
        """Returns copies of the statistics."""
        return self.moments.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave."""
        self.moments.load_state(state)
        self.shift.copy_(self.moments.mean)
        self.scale.copy_(torch.rsqrt(self.moments.variance + _EPSILON))


def _of_all_ranks(state: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    if not distributed.is_initialized():
        return [state]
    flat = torch.cat([state["count"].reshape(1), state["mean"], state["squares"]])
    parts = [torch.empty_like(flat) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, flat)
    features = state["mean"].numel()
    return [{"count": p[0], "mean": p[1 : 1 + features], "squares": p[1 + features :]} for p in parts]


def _merge(groups: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Joins groups of rows: squared deviations add up with those of the groups' means from the common mean."""
    counts = torch.stack([group["count"] for group in groups]).unsqueeze(-1)
    means = torch.stack([group["mean"] for group in groups])
    total = counts.sum(0)
    mean = (counts * means).sum(0) / total.clamp(min=1.0)
    squares = torch.stack([group["squares"] for group in groups]) + counts * (means - mean).square()
    return {"count": total.squeeze(0), "mean": mean, "squares": squares.sum(0)}
