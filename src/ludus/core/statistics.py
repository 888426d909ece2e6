"""Running mean and variance of features, merged batch by batch on the device where the data is."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.core.errors import StateError


class RunningMoments:
    """Mean and variance of everything seen, in float64, without ever waiting for the device.

    Batches are merged by Chan's formula for two groups A and B with counts n, means m and sums of squared
    deviations s:  d = mB - mA;  m = mA + d nB / n;  s = sA + sB + d^2 nA nB / n.  All tensors are changed in
    place, so an update can be recorded in a CUDA graph.

    Attributes:
        count: `()` float64, rows seen.
        mean: `(features,)` float64; 0 before the first row.
        frozen: Whether `update` leaves everything as it is.
    """

    def __init__(self, features: int, device: torch.device | str = "cpu") -> None:
        self.features = features
        self.count = torch.zeros((), dtype=torch.float64, device=device)
        self.mean = torch.zeros(features, dtype=torch.float64, device=device)
        self._squares = torch.zeros(features, dtype=torch.float64, device=device)
        self.frozen = False

    @property
    def variance(self) -> Tensor:
        """`(features,)` float64, variance of the rows seen (divided by their count); 1 before the first row."""
        return torch.where(self.count > 0, self._squares / self.count.clamp(min=1.0), 1.0)

    def update(self, batch: Tensor) -> None:
        """Adds rows; does nothing while frozen.

        Args:
            batch: `(rows, features)`, or with more leading axes.
        """
        if batch.shape[-1:] != (self.features,):
            raise StateError(f"batch has shape {tuple(batch.shape)}; the last axis must be {self.features} features")
        rows = batch.detach().reshape(-1, self.features).to(torch.float64)
        if self.frozen or rows.shape[0] == 0:
            return
        batch_mean = rows.mean(dim=0)
        batch_squares = (rows - batch_mean).square_().sum(dim=0)
        total = self.count + rows.shape[0]
        delta = batch_mean - self.mean
        self.mean += delta * (rows.shape[0] / total)
        self._squares += batch_squares + delta.square() * (self.count * rows.shape[0] / total)
        self.count.copy_(total)

    def normalize(self, x: Tensor, clip: float | None = None, epsilon: float = 1e-8) -> Tensor:
        """Returns `(x - mean) / sqrt(variance + epsilon)` in the type of `x`, cut to -clip..clip if given.

        Args:
            x: `(..., features)`.
            clip: Largest size of a result, or None.
            epsilon: Keeps constant features finite.
        """
        scale = torch.rsqrt(self.variance + epsilon)
        normalized = (x - self.mean.to(x.dtype)) * scale.to(x.dtype)
        return normalized if clip is None else normalized.clamp(-clip, clip)

    def denormalize(self, x: Tensor, epsilon: float = 1e-8) -> Tensor:
        """Undoes `normalize` (but not its clip) for `x` of `(..., features)`."""
        return x * torch.sqrt(self.variance + epsilon).to(x.dtype) + self.mean.to(x.dtype)

    def freeze(self) -> None:
        """Makes every later `update` do nothing, as in an evaluation."""
        self.frozen = True

    def state(self) -> dict[str, Tensor]:
        """Returns copies of all tensors, to be kept in a checkpoint."""
        return {"count": self.count.clone(), "mean": self.mean.clone(), "squares": self._squares.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` gave, from any device.

        Raises:
            StateError: A name is missing or superfluous, or a shape or type differs.
        """
        own = {"count": self.count, "mean": self.mean, "squares": self._squares}
        if set(state) != set(own):
            raise StateError(f"moments need {', '.join(sorted(own))}; got {', '.join(sorted(state)) or 'nothing'}")
        for name, tensor in own.items():
            given = state[name]
            if given.shape != tensor.shape or given.dtype != tensor.dtype:
                raise StateError(
                    f"moments {name!r} is {tuple(given.shape)} {given.dtype}, "
                    f"expected {tuple(tensor.shape)} {tensor.dtype}; use the same observations"
                )
        for name, tensor in own.items():
            tensor.copy_(state[name])
