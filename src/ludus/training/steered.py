"""What steers a run by what its games show, and what it says of a rollout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ludus.training.callbacks import Counters
from ludus.training.ranks import Ranks
from ludus.training.records import Cell


@dataclass(slots=True)
class Steered:
    """What a rollout changed.

    Attributes:
        messages: In words, for people.
        metrics: Numbers for `metrics.jsonl`.
        tables: Rows of equal columns for files of the run folder.
    """

    messages: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Cell]]] = field(default_factory=dict)


class Steering(Protocol):
    """Steers a run, all processes of it in the same way."""

    def factors(self) -> Mapping[str, float]:
        """Returns the factors of reward terms in the next rollout."""

    def before(self) -> None:
        """Sets how the next rollout explores."""

    def look(self, ranks: Ranks) -> None:
        """Looks at a rollout, after it was collected and before anything is learned from it."""

    def after(self, counters: Counters) -> Steered:
        """Says what the last rollout has changed."""

    def state(self) -> dict[str, Any]:
        """Returns where it stands, for JSON."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes what `state` gave; raises StateError if it does not fit."""
