"""What may be followed in games beside the figures: parts that give events and measures of their own."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.city.table import Sight

Rows: TypeAlias = NDArray[np.bool_]


class Held(NamedTuple):
    """What is known of a field: its last readable value, and whether there was any, `(games,)` each."""

    values: NDArray[np.float64]
    is_known: NDArray[np.bool_]


class Turn(NamedTuple):
    """What is known of all games after a decision, or when a city begins.

    Attributes:
        sight: What is seen.
        held: Says what is known of a field, by its name.
        kinds: `(games,)` kinds of the last decisions; -1 where there was none.
        step: `(games,)` decisions of the present episodes.
    """

    sight: Sight
    held: Callable[[str], Held]
    kinds: NDArray[np.int64]
    step: NDArray[np.int64]


class Extra(ABC):
    """Follows one thing in all games.

    Attributes:
        events: Names of the events that it gives.
        measures: Names of the measures that it gives.
    """

    events: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()

    @abstractmethod
    def begin(self, turn: Turn, games: Rows) -> None:
        """Begins episodes in some games, `(games,)`."""

    @abstractmethod
    def follow(self, turn: Turn, events: NDArray[np.float32], measures: NDArray[np.float32]) -> None:
        """Follows a decision of all games and writes its events `(games, events)` and measures `(games, measures)`."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Returns everything that is remembered, as tensors that share its memory."""
