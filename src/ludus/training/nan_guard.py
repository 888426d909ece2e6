"""NaN guard: find NaN or Inf in the iteration in which it appears, and where it was first seen.

Two passes. After every iteration the norm of every tensor is computed on the device, of all tensors by one call: one
NaN or Inf makes it NaN or Inf, and a norm costs a fraction of an exact test. Only if a norm is bad are all tensors
examined, in the order of cause and effect: parameters from before, observations, rewards, the policy's outputs, loss,
gradient, parameters. Norms that merely overflowed are recognised there.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ludus.algorithms.learner import Fault, Part
from ludus.training.components import Components

_GRADIENT = "gradient_norm"


class NanGuard:
    """Watch a run: call `begin` before an iteration, `look` after its update, and `verdict` after the metrics."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._before = torch.zeros(())
        self._norms = torch.zeros(())

    def begin(self) -> None:
        """Record whether the parameters are finite before the iteration."""
        self._before = self._components.learner.learned()[0].tensor.sum()
        self._components.trace.truncated_final.zero_()

    @torch.no_grad()
    def look(self) -> None:
        """Compute the norms on the device, without waiting for it."""
        on_host = self._components.trace.truncated_final  # `verdict` reads it
        tensors = [part.tensor for part in (*self._rollout(), *self._components.learner.learned())]
        plain = [tensor for tensor in tensors if tensor.dtype == torch.float32 and tensor is not on_host]
        others = [tensor.sum(dtype=torch.float32) for tensor in tensors if tensor.dtype != torch.float32]
        norms = torch._foreach_norm(plain)  # noqa: SLF001 - torch has no public name for it
        self._norms = torch.stack([self._before, *norms, *others])

    def verdict(self, metrics: Mapping[str, float]) -> Fault | None:
        """Return the fault of this iteration, or None; reads the norms, which are ready once the metrics are."""
        suspicious = not all(map(math.isfinite, self._norms.tolist()))
        suspicious |= not math.isfinite(self._components.trace.truncated_final.item())
        suspicious |= not all(math.isfinite(metrics[name]) for name in self._components.learner.loss_names)
        suspicious |= not math.isfinite(metrics.get(_GRADIENT, 0.0))
        return self._examine(metrics) if suspicious else None

    def _examine(self, metrics: Mapping[str, float]) -> Fault | None:
        learner = self._components.learner
        learned = next((part.place for part in learner.learned() if not bool(part.tensor.isfinite().all())), None)
        if learned is not None and not math.isfinite(self._before.item()):
            return Fault("parameter", f"{self._parameter_name()}, already before the iteration")
        fault = self.rollout_fault()
        if fault is not None:
            return fault
        for name in learner.loss_names:
            if not math.isfinite(metrics[name]):
                return Fault("loss", name)
        if not math.isfinite(metrics.get(_GRADIENT, 0.0)):
            return Fault("gradient", f"{int(metrics['skipped_updates'])} updates were skipped")
        return None if learned is None else Fault("parameter", learned)

    def rollout_fault(self) -> Fault | None:
        """Return the first fault in the last rollout, or None."""
        for kind, place, tensor in self._rollout():
            if not bool(tensor.isfinite().all()):
                return Fault(kind, place + self._where(tensor))
        return None

    def _parameter_name(self) -> str:
        parameters = self._components.policy.named_parameters()
        return next((name for name, tensor in parameters if not bool(tensor.isfinite().all())), "optimiser")

    def _rollout(self) -> list[Part]:
        """Yield kind, name and tensor of everything in a rollout, causes before effects."""
        rollout, last = self._components.learner.rollout, self._components.trace.last
        found = [Part("observation", f"entry {name!r}", tensor) for name, tensor in rollout.observations.items()]
        if last is not None:
            found += [
                Part("observation", f"entry {name!r} after the last step", tensor)
                for name, tensor in last.observations.items()
            ]
        found += [
            Part("observation", "a final one of a truncated episode", self._components.trace.truncated_final),
            Part("reward", "weighted terms", rollout.rewards),
            *self._components.learner.outputs(),
        ]
        return [part for part in found if part.tensor.is_floating_point()]

    def _where(self, tensor: Tensor) -> str:
        """Return where in `(steps, rows, ...)`, `(rows, ...)` or `(games, seats, ...)` the first bad number is."""
        index = (~tensor.isfinite()).nonzero()[0].tolist()
        rollout = self._components.learner.rollout
        if len(index) > 1 and tensor.shape[:2] == (rollout.steps, rollout.rows):
            return f", first at step {index[0]} of the rollout, row {index[1]}"
        return f", first at index {index[0]}" if index else ""
