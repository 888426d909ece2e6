"""What the loop tells others while it works, and the base class of those who listen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ludus.rollout.episodes import NO_EPISODES, Episodes

_NOTHING: Mapping[str, Any] = MappingProxyType({})


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
        episodes: What ended in it.
        rewards: For each reward term, its sum over all steps of the rollout; they add up to the rollout's reward.
        times_s: Where the time went: `simulation`, `inference`, `opponents`, `update`, `other`.
        phase: Name of the curriculum's phase that it belonged to; empty without a curriculum.
    """

    counters: Counters
    metrics: Mapping[str, float | None]
    elapsed_s: float
    episodes: Episodes = NO_EPISODES
    rewards: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    times_s: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation during training, on its own games with fixed seeds.

    Attributes:
        counters: When it was.
        rows: For each opponent, its name and the numbers: `opponent`, `matches`, `win_rate`, `win_rate_low`,
            `win_rate_high`, `damage_ratio` and the world's other episode metrics. In a world with scenarios, for each
            `trial` likewise; where there are modes also the `mode`, and where teams are unequal the `side`.
        score: By which the best agent is kept.
        is_best: Whether the agent is kept: no earlier score was higher by more than `evaluation.tolerance`.
        judged_by: The number of the rows that the score is made of.
        milestones: Env steps at which something was reached first, by name; None where it was not yet.
        messages: Messages about it for people, beside the numbers.
        seconds: Time it took.
        every_env_steps: Env steps between evaluations from now on; 0 if unknown.
    """

    counters: Counters
    rows: tuple[Mapping[str, Any], ...]
    score: float
    is_best: bool
    judged_by: str = "win_rate"
    milestones: Mapping[str, int | None] = field(default_factory=lambda: _NOTHING)
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    every_env_steps: int = 0


class BaseCallback:
    """Is told of everything and ignores it; it runs on the loop's thread, so what it takes, training waits for."""

    def on_start(self, counters: Counters) -> None:
        """Training starts, or resumes at these counters."""

    def on_iteration(self, iteration: Iteration) -> None:
        """An iteration is done and logged."""

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """The agent was evaluated."""

    def on_activity(self, text: str, share: float | None, counters: Counters) -> None:
        """The run does something else than an iteration that may take long, such as an evaluation.

        It is over when the next iteration, evaluation or checkpoint is reported. `share` is how much of it is done,
        0 to 1; None if that is not known.
        """

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """A checkpoint is safe on the disk."""

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Something happened that people want to know; `level` is `info`, `warning` or `alarm`."""

    def on_end(self, counters: Counters) -> None:
        """Training is over, by its budget, a request to stop or an error."""


class CallbackList:
    """All callbacks of a run; of several processes only the first has any. `is_listening` while they are told."""

    def __init__(self, callbacks: Sequence[BaseCallback]) -> None:
        self._callbacks, self.is_listening = tuple(callbacks), False

    def notify(self, what: Callable[[BaseCallback], None]) -> None:
        """Notify each callback, in order."""
        self.is_listening = True
        try:
            for callback in self._callbacks:
                what(callback)
        finally:
            self.is_listening = False

    def message(self, level: str, text: str, counters: Counters) -> None:
        """Send each callback a message; see `BaseCallback.on_message`."""
        self.notify(lambda callback: callback.on_message(level, text, counters))
