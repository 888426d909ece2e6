"""What the loop tells others while it works: a small protocol, and a base class that ignores everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Counters:
    """How far a run is; three numbers that are never mixed up.

    Attributes:
        env_steps: Steps of learner seats.
        iterations: Rollouts that were collected and learned from.
        updates: Steps of the optimiser.
    """

    env_steps: int = 0
    iterations: int = 0
    updates: int = 0


@dataclass(frozen=True, slots=True)
class Iteration:
    """One finished iteration.

    Attributes:
        counters: After it.
        metrics: What `metrics.jsonl` gets beside the counters; None where there is nothing to average.
        elapsed_s: Time it took, without logging and checkpoints.
    """

    counters: Counters
    metrics: Mapping[str, float | None]
    elapsed_s: float


class Callback(Protocol):
    """Is told of everything; it runs on the loop's thread, so what it takes, training waits for."""

    def on_start(self, counters: Counters) -> None:
        """Training begins, or goes on from these counters."""

    def on_iteration(self, iteration: Iteration) -> None:
        """An iteration is done and logged."""

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """A checkpoint is safe on the disk."""

    def on_end(self, counters: Counters) -> None:
        """Training is over, by its budget, a request to stop or an error."""


class QuietCallback:
    """Ignores everything; a base for callbacks that want only some of it."""

    def on_start(self, counters: Counters) -> None:
        """See `Callback`."""

    def on_iteration(self, iteration: Iteration) -> None:
        """See `Callback`."""

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """See `Callback`."""

    def on_end(self, counters: Counters) -> None:
        """See `Callback`."""
