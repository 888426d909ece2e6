"""What a reward term is given: the events and state metrics of one step, or of many at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class StepInfo:
    """What happened in a step and where things stood after it, from the point of view of each seat.

    All tensors have the same shape: `(games, seats)` of one step, or `(steps, rows)` of a whole rollout. A function of
    a step works element by element, so it need not know which.

    Attributes:
        events: What happened in the step: damage, knockouts, goals.
        state_metrics: Where things stood after it, before any restart: positions, distances, states.
        seconds: Game time that a step takes.
    """

    events: Mapping[str, Tensor]
    state_metrics: Mapping[str, Tensor]
    seconds: float
