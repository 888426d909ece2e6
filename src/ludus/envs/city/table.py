"""A table of games as City's world sees them: decisions go in, sights come back; embedded or on real screens."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.envs.city.advice import Advice, Question
from ludus.envs.city.catalogue import NOT_JUDGED, Catalogue
from ludus.envs.city.config import CityConfig
from ludus.envs.city.drivers.driver import Frame, Gesture
from ludus.envs.city.perception.reading import Kind


class FieldKind(NamedTuple):
    """A field that a table reads: its name and what sort of value it is."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Pictures:
    """Sizes of the pictures that a table makes.

    Attributes:
        frame: Height and width of the downscaled window; None for none.
        cell_pixels: Side of a cell in the picture of the map; 0 for no picture of it.
    """

    frame: tuple[int, int] | None
    cell_pixels: int

    @classmethod
    def wanted_by(cls, config: CityConfig) -> "Pictures":
        """Returns the sizes of what is observed."""
        entries = config.observe
        return cls(config.frame if "frame" in entries else None, config.cell_pixels if "map" in entries else 0)


class Sight:
    """What is seen of all games after a decision; the arrays are the table's own, and the next decision changes them.

    Attributes:
        frame: `(games, height, width, 3)` uint8, the whole window, downscaled; no pixels where nobody asked.
        map: `(games, rows * cell_pixels, columns * cell_pixels, 3)` uint8, the map; no pixels where nobody asked.
        values: `(games, fields)` float64 what was read; dates in days of 30 a month since year 0; 0 if unreadable.
        readable: `(games, fields)` bool.
        confidence: `(games, fields)` float32 from 0 to 1.
        age: `(games, fields)` int64, decisions since the field was last readable.
        menu: `(games,)` int64, which menu is open, -1 for none.
        dialog: `(games,)` bool, a dialog waits for an answer.
        window: `(games,)` bool, a window covers a part of the map.
        elements: `(games,)` int64, elements of the interface that are remembered.
        over: `(games,)` bool, the game has ended by its own rules.
        bankrupt: `(games,)` bool, it has ended because the city is bankrupt.
        lost: `(games,)` bool, the city was lost with a game on a real screen, so that its episode is cut off.
        placed: `(games,)` int64, what became of a placement: see `ActionKind.judge`.
        changed: `(games,)` bool, an exploring action changed the picture before time passed.
        discovered: `(games,)` int64, elements that were never seen before.
        trouble: `(games,)` int64, things that went wrong: a lost window, a frozen screen, an unexpected dialog.
        recovered: `(games,)` int64, how many of them were overcome.
    """

    def __init__(self, games: int, fields: int, catalogue: Catalogue, pictures: Pictures) -> None:
        side = pictures.cell_pixels
        self.frame: NDArray[np.uint8] = np.zeros((games, *(pictures.frame or (0, 0)), 3), np.uint8)
        self.map: NDArray[np.uint8] = np.zeros((games, catalogue.rows * side, catalogue.columns * side, 3), np.uint8)
        self.values: NDArray[np.float64] = np.zeros((games, fields))
        self.readable: NDArray[np.bool_] = np.zeros((games, fields), np.bool_)
        self.confidence: NDArray[np.float32] = np.zeros((games, fields), np.float32)
        self.age: NDArray[np.int64] = np.zeros((games, fields), np.int64)
        self.menu: NDArray[np.int64] = np.full(games, -1)
        self.dialog: NDArray[np.bool_] = np.zeros(games, np.bool_)
        self.window: NDArray[np.bool_] = np.zeros(games, np.bool_)
        self.elements: NDArray[np.int64] = np.zeros(games, np.int64)
        self.over: NDArray[np.bool_] = np.zeros(games, np.bool_)
        self.bankrupt: NDArray[np.bool_] = np.zeros(games, np.bool_)
        self.lost: NDArray[np.bool_] = np.zeros(games, np.bool_)
        self.placed: NDArray[np.int64] = np.full(games, NOT_JUDGED)
        self.changed: NDArray[np.bool_] = np.zeros(games, np.bool_)
        self.discovered: NDArray[np.int64] = np.zeros(games, np.int64)
        self.trouble: NDArray[np.int64] = np.zeros(games, np.int64)
        self.recovered: NDArray[np.int64] = np.zeros(games, np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Returns all of them by name."""
        return dict(vars(self))

    def live_in(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Moves into other arrays of the same names, shapes and types, such as some that processes share."""
        for name, own in self.arrays().items():
            arrays[name][...] = own
            setattr(self, name, arrays[name])

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Forgets what depends on earlier decisions of some games, `(games,)`, in which a new city begins."""
        self.placed[games] = NOT_JUDGED
        for array in (self.age, self.elements, self.changed, self.discovered, self.trouble, self.recovered):
            array[games] = 0

    def forget_deeds(self) -> None:
        """Forgets what the last decision did, before the next one is carried out."""
        self.placed[:] = NOT_JUDGED
        for array in (self.changed, self.discovered, self.trouble, self.recovered):
            array[:] = 0

    def grow_older(self, games: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Counts the age of every field, after reading: 0 where it is readable, else one more."""
        self.age[games] = np.where(self.readable[games], 0, self.age[games] + 1)


class CityTable(ABC):
    """A batch of games.

    Attributes:
        num_games: Games.
        catalogue: What can be done in them.
        fields: What is read of them, in the order of the columns of a sight.
        menus: Menus that can be open.
        sight: What is seen of them.
        advises: Whether strategies can be asked what they would do.
    """

    advises = False
    num_games: int
    catalogue: Catalogue
    fields: tuple[FieldKind, ...]
    menus: int
    sight: Sight

    @abstractmethod
    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Begins new cities in all games, or in those of `games`, `(games,)`; what is seen of others stays.

        Args:
            games: Which games; None for all.
            seed: Begins the first cities of a seed, in all games.
        """

    @abstractmethod
    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carries out decisions `(games, 2)`, numbers of kinds and of cells, and lets time pass."""

    @abstractmethod
    def picture(self, game: int) -> Frame:
        """Returns a copy of the present picture of a game `(height, width, 3)`."""

    def done(self, game: int) -> Sequence[Gesture]:  # noqa: ARG002 - for those who know
        """Returns the gestures of a game's last decision, for people; nothing where they are not known."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Ends the games; may be called twice."""

    def advise(self, questions: Sequence[Question]) -> list[Advice]:
        """Asks strategies, which see the truth, what they would do now."""
        raise UnsupportedError(f"games on real screens hide the truth that {questions[0].strategy} needs")

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later decisions do not touch."""
        raise UnsupportedError("games on real screens cannot take snapshots")

    def restore(self, snapshot: Mapping[str, Tensor]) -> Sight:
        """Takes the state of a snapshot and returns what is seen then."""
        raise UnsupportedError(f"games on real screens cannot restore a snapshot of {', '.join(snapshot)}")
