"""What the loop tells others while it works: a small protocol, and a base class that ignores everything."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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


class Results(NamedTuple):
    """Matches that ended, in the order in which they did.

    Attributes:
        opponents: `(matches,)` int64, index of the opponent.
        outcomes: `(matches,)` int64: 1 won, 0 drawn, -1 lost.
        sides: `(matches,)` int64, index of the learner's side.
    """

    opponents: NDArray[np.int64]
    outcomes: NDArray[np.int64]
    sides: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Episodes:
    """The episodes of learner rows that ended in one iteration, in the order in which they ended.

    Attributes:
        rewards: `(episodes,)` float64, sum of the reward.
        lengths: `(episodes,)` int64, steps.
        outcomes: `(episodes,)` int64: 1 won, 0 drawn, -1 lost; all 0 in a world without winners.
        opponents: `(episodes,)` int64, index into `names`; -1 where nobody else played.
        leads: `(episodes,)` bool, whether it is that of the learner's first seat in its game.
        sides: `(episodes,)` int64, index into `side_names`; -1 where nobody else played.
        names: Opponents, by index.
        side_names: Sides that the learner can be on, such as `2v1`, by index.
        terms: For each reward term, `(episodes,)` float64, its part of `rewards`.
        behaviour: For each number of the world's behaviour, `(episodes,)` float64.
    """

    rewards: NDArray[np.float64]
    lengths: NDArray[np.int64]
    outcomes: NDArray[np.int64]
    opponents: NDArray[np.int64]
    leads: NDArray[np.bool_]
    sides: NDArray[np.int64]
    names: tuple[str, ...] = ()
    side_names: tuple[str, ...] = ()
    terms: Mapping[str, NDArray[np.float64]] = field(default_factory=lambda: _NOTHING)
    behaviour: Mapping[str, NDArray[np.float64]] = field(default_factory=lambda: _NOTHING)

    def __len__(self) -> int:
        return len(self.rewards)

    def matches(self) -> Results:
        """Returns the matches among them: games against somebody, each once however many seats the learner had."""
        chosen = self.leads & (self.opponents >= 0)
        return Results(self.opponents[chosen], self.outcomes[chosen], self.sides[chosen])

    def grouped(self) -> Iterator[tuple[str, str, NDArray[np.int64]]]:
        """Gives every opponent that was met, the learner's side, and the outcomes of their matches in their order."""
        matches, count = self.matches(), len(self.side_names)
        keys = matches.opponents * count + matches.sides
        order = np.argsort(keys, kind="stable")
        met, counts = np.unique(keys, return_counts=True)
        ends = np.cumsum(counts)
        for key, first, end in zip(met.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True):
            yield self.names[key // count], self.side_names[key % count], matches.outcomes[order[first:end]]


_NO_COUNTS = np.zeros(0, np.int64)
NO_EPISODES = Episodes(np.zeros(0), _NO_COUNTS, _NO_COUNTS, _NO_COUNTS, leads=np.zeros(0, np.bool_), sides=_NO_COUNTS)


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
        stage: Name of the curriculum's stage that it belonged to; empty without a curriculum.
    """

    counters: Counters
    metrics: Mapping[str, float | None]
    elapsed_s: float
    episodes: Episodes = NO_EPISODES
    rewards: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    times_s: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation during training, on games of its own with fixed seeds.

    Attributes:
        counters: When it was.
        rows: For each opponent, its name and the numbers: `opponent`, `matches`, `win_rate`, `win_rate_low`,
            `win_rate_high`, `damage_ratio` and what else the world's behaviour has. In a world with trials, for each
            `trial` likewise; where there are modes also the `mode`, and where teams are unequal the `side`.
        score: By which the best agent is kept.
        is_best: Whether the agent is kept: no earlier score was higher by more than `evaluation.tolerance`.
        judged_by: The number of the rows that the score is made of.
        milestones: Env steps at which something was reached first, by name; None where it was not yet.
        messages: What people want to know of it, beside the numbers.
    """

    counters: Counters
    rows: tuple[Mapping[str, Any], ...]
    score: float
    is_best: bool
    judged_by: str = "win_rate"
    milestones: Mapping[str, int | None] = field(default_factory=lambda: _NOTHING)
    messages: tuple[str, ...] = ()


class Callback(Protocol):
    """Is told of everything; it runs on the loop's thread, so what it takes, training waits for."""

    def on_start(self, counters: Counters) -> None:
        """Training begins, or goes on from these counters."""

    def on_iteration(self, iteration: Iteration) -> None:
        """An iteration is done and logged."""

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """The agent was evaluated."""

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """A checkpoint is safe on the disk."""

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """Something happened that people want to know; `level` is `info`, `warning` or `alarm`."""

    def on_end(self, counters: Counters) -> None:
        """Training is over, by its budget, a request to stop or an error."""


class QuietCallback:
    """Ignores everything; a base for callbacks that want only some of it."""

    def on_start(self, counters: Counters) -> None:
        """See `Callback`."""

    def on_iteration(self, iteration: Iteration) -> None:
        """See `Callback`."""

    def on_evaluation(self, evaluated: Evaluated) -> None:
        """See `Callback`."""

    def on_checkpoint(self, folder: Path, counters: Counters) -> None:
        """See `Callback`."""

    def on_message(self, level: str, text: str, counters: Counters) -> None:
        """See `Callback`."""

    def on_end(self, counters: Counters) -> None:
        """See `Callback`."""


class Audience:
    """All callbacks of a run; of several processes only the first has any.

    Attributes:
        is_listening: Whether they are being told something just now.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = tuple(callbacks)
        self.is_listening = False

    def tell(self, what: Callable[[Callback], None]) -> None:
        """Tells each of them, in order."""
        self.is_listening = True
        try:
            for callback in self._callbacks:
                what(callback)
        finally:
            self.is_listening = False

    def say(self, level: str, text: str, counters: Counters) -> None:
        """Tells each of them a message; see `Callback.on_message`."""
        self.tell(lambda callback: callback.on_message(level, text, counters))
