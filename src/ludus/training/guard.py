"""Finds NaN and infinity in the iteration in which they appear, and says where they began.

Two stages. After every iteration a handful of sums is computed on the device: a sum over numbers of which one is not
finite is not finite either, and it costs a fifth of an exact test. Only if one of them looks wrong are all tensors
examined, in the order of cause and effect: parameters from before, observations, rewards, the policy's outputs, loss,
gradient, parameters. Sums that merely overflow are told apart there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ludus.algorithms.learner import Part
from ludus.training.workbench import Workbench

_GRADIENT = "gradient_norm"


@dataclass(frozen=True, slots=True)
class Fault:
    """Where the first number that is not finite was found.

    Attributes:
        kind: observation, reward, policy output, loss, gradient or parameter.
        place: More exactly, in words.
    """

    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.place})"


class Guard:
    """Watches one workbench; call `begin` before an iteration, `look` after its update, `verdict` after the metrics."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._before = torch.zeros(())
        self._sums = torch.zeros(())

    def begin(self) -> None:
        """Notes whether the parameters are finite before the iteration."""
        self._before = self._bench.learner.learned()[0].tensor.sum()
        self._bench.trace.truncated_final.zero_()

    def look(self) -> None:
        """Computes the sums on the device, without waiting for it."""
        parts = (*self._rollout(), *self._bench.learner.learned())
        self._sums = torch.stack([self._before, *(part.tensor.sum(dtype=torch.float32) for part in parts)])

    def verdict(self, metrics: Mapping[str, float]) -> Fault | None:
        """Returns the fault of this iteration, or None; reads the sums, which are ready once the metrics are."""
        suspicious = not all(map(math.isfinite, self._sums.tolist()))
        suspicious |= not all(math.isfinite(metrics[name]) for name in self._bench.learner.loss_names)
        suspicious |= not math.isfinite(metrics.get(_GRADIENT, 0.0))
        return self._examine(metrics) if suspicious else None

    def _examine(self, metrics: Mapping[str, float]) -> Fault | None:
        learner = self._bench.learner
        learned = next((part.place for part in learner.learned() if not bool(part.tensor.isfinite().all())), None)
        if learned is not None and not math.isfinite(self._before.item()):
            return Fault("parameter", f"{self._parameter_name()}, already before the iteration")
        for kind, place, tensor in self._rollout():
            if not bool(tensor.isfinite().all()):
                return Fault(kind, place + self._where(tensor))
        for name in learner.loss_names:
            if not math.isfinite(metrics[name]):
                return Fault("loss", name)
        if not math.isfinite(metrics.get(_GRADIENT, 0.0)):
            return Fault("gradient", f"{int(metrics['skipped_updates'])} updates were skipped")
        return None if learned is None else Fault("parameter", learned)

    def _parameter_name(self) -> str:
        parameters = self._bench.policy.named_parameters()
        return next((name for name, tensor in parameters if not bool(tensor.isfinite().all())), "optimiser")

    def _rollout(self) -> list[Part]:
        """Names kind and place of what a rollout consists of, causes before effects."""
        rollout, last = self._bench.learner.rollout, self._bench.trace.last
        found = [Part("observation", f"entry {name!r}", tensor) for name, tensor in rollout.observations.items()]
        if last is not None:
            found += [
                Part("observation", f"entry {name!r} after the last step", tensor)
                for name, tensor in last.observations.items()
            ]
        final_flag = self._bench.trace.truncated_final.to(rollout.rewards.device, non_blocking=True)
        found += [
            Part("observation", "a final one of a truncated episode", final_flag),
            Part("reward", "weighted terms", rollout.rewards),
            *self._bench.learner.outputs(),
        ]
        return [part for part in found if part.tensor.is_floating_point()]

    def _where(self, tensor: Tensor) -> str:
        """Says where in `(steps, rows, ...)`, `(rows, ...)` or `(games, seats, ...)` the first bad number is."""
        index = (~tensor.isfinite()).nonzero()[0].tolist()
        rollout = self._bench.learner.rollout
        if len(index) > 1 and tensor.shape[:2] == (rollout.steps, rollout.rows):
            return f", first at step {index[0]} of the rollout, row {index[1]}"
        return f", first at index {index[0]}" if index else ""
