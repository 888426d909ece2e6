"""The backend contract: a batch of games, embedded or on real screens; decisions go in, what is seen comes back."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.errors import UnsupportedError
from ludus.worlds.city.actions import NOT_JUDGED, Catalogue
from ludus.worlds.city.config import CityConfig
from ludus.worlds.city.drivers.driver import Frame, Gesture
from ludus.worlds.city.perception.reading import MONTHS, Kind
from ludus.worlds.city.profile_schema import Plan
from ludus.worlds.city.strategies import Advice, Question


class FieldKind(NamedTuple):
    """A field that a backend reads: its name and the type of its value."""

    name: str
    kind: Kind


class Sight:
    """What is seen of all games after a decision; the backend owns the arrays, and the next decision changes them."""

    frame: NDArray[np.uint8]  # `(games, height, width, 3)`, the whole window, downscaled; empty unless observed
    map: NDArray[np.uint8]  # `(games, rows * cell_pixels, columns * cell_pixels, 3)`; empty unless observed
    # `(games, fields)` each.
    values: NDArray[np.float64]  # what was read; dates in days since year 0 (30 per month); 0 if unreadable
    readable: NDArray[np.bool_]
    confidence: NDArray[np.float32]  # from 0 to 1
    age: NDArray[np.int64]  # decisions since the field was last readable
    # `(games,)` each.
    menu: NDArray[np.int64]  # which menu is open, -1 for none
    dialog: NDArray[np.bool_]  # a dialog waits for an answer
    window: NDArray[np.bool_]  # a window covers a part of the map
    elements: NDArray[np.int64]  # elements of the interface that are remembered
    over: NDArray[np.bool_]  # the game has ended by its own rules
    bankrupt: NDArray[np.bool_]  # it has ended because the city is bankrupt
    lost: NDArray[np.bool_]  # the city was lost with a game on a real screen, so that its episode is cut off
    placed: NDArray[np.int64]  # the outcome of a placement: see `ActionKind.judge`
    changed: NDArray[np.bool_]  # an exploring action changed the picture before time passed
    discovered: NDArray[np.int64]  # elements that were never seen before
    trouble: NDArray[np.int64]  # failures: a lost window, a frozen screen, an unexpected dialog
    recovered: NDArray[np.int64]  # how many of them were recovered from

    def __init__(self, games: int, fields: int, catalogue: Catalogue, config: CityConfig) -> None:
        side = config.cell_pixels if "map" in config.observe else 0
        frame = config.frame if "frame" in config.observe else (0, 0)
        self.frame = np.zeros((games, *frame, 3), np.uint8)
        self.map = np.zeros((games, catalogue.rows * side, catalogue.columns * side, 3), np.uint8)
        self.values, self.confidence = np.zeros((games, fields)), np.zeros((games, fields), np.float32)
        self.readable, self.age = np.zeros((games, fields), np.bool_), np.zeros((games, fields), np.int64)
        self.menu, self.placed = np.full(games, -1), np.full(games, NOT_JUDGED)
        self.elements, self.discovered, self.trouble, self.recovered = np.zeros((4, games), np.int64)
        self.dialog, self.window, self.over, self.bankrupt, self.lost, self.changed = np.zeros((6, games), np.bool_)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all of them by name."""
        return dict(vars(self))

    def live_in(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Move into other arrays of the same names, shapes and types, such as some that processes share."""
        for name, own in self.arrays().items():
            arrays[name][...] = own
            setattr(self, name, arrays[name])

    def forget(self, games: NDArray[np.bool_]) -> None:
        """Forget what depends on earlier decisions of some games, `(games,)`, in which a new city begins."""
        self.forget_outcome(games)
        self.age[games] = self.elements[games] = 0

    def forget_outcome(self, games: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Forget what the last decision did, before the next one is carried out."""
        self.placed[games] = NOT_JUDGED
        for array in (self.changed, self.discovered, self.trouble, self.recovered):
            array[games] = 0

    def grow_older(self, games: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Count the age of every field, after reading: 0 where it is readable, else one more."""
        self.age[games] = np.where(self.readable[games], 0, self.age[games] + 1)


class CityBackend(ABC):
    """A batch of games."""

    advises = False  # whether strategies can be asked what they would do
    num_envs: int
    catalogue: Catalogue  # what can be done in them
    fields: tuple[FieldKind, ...]  # what is read of them, in the order of the columns of a sight
    menus: tuple[str, ...]  # names of the menus that can be open
    sight: Sight  # what is seen of them
    plan: Plan | None = None  # what the bot `plan` builds; None where a game has no plan

    @abstractmethod
    def begin(self, games: NDArray[np.bool_] | None = None, *, seed: int | None = None) -> Sight:
        """Start new cities in all games, or in those of `games`, `(games,)`; with a seed its first ones in all."""

    @abstractmethod
    def play(self, decisions: NDArray[np.int64]) -> Sight:
        """Carry out decisions `(games, 2)`, numbers of kinds and of cells, and let time pass."""

    @abstractmethod
    def picture(self, game: int) -> Frame:
        """Return a copy of the present picture of a game `(height, width, 3)`."""

    def done(self, game: int) -> Sequence[Gesture]:
        """Return the gestures of a game's last decision, for people; nothing where they are not known."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Close the games; may be called twice."""

    def advise(self, questions: Sequence[Question]) -> list[Advice]:
        """Ask strategies, which see the truth, what they would do now."""
        raise UnsupportedError(f"games on real screens hide the truth that {questions[0].strategy} needs")

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as a copy."""
        raise UnsupportedError("games on real screens cannot take snapshots")

    def restore(self, snapshot: Mapping[str, Tensor]) -> Sight:
        """Restore the state returned by `snapshot()` and return what is seen then."""
        raise UnsupportedError(f"games on real screens cannot restore a snapshot of {', '.join(snapshot)}")


UNREADABLE = "unreadable"
_YEAR_DAYS, _MONTH_DAYS = 360, 30


class Seen(NamedTuple):
    """A field as it was read last."""

    name: str  # its name
    kind: Kind  # what sort of value it is
    value: float | None  # what it says, dates in days since year 0 (30 per month); None if it could not be read
    confidence: float  # from 0 to 1
    age: int  # decisions since it was last readable

    @property
    def text(self) -> str:
        """What it says, for people."""
        if self.value is None:
            return UNREADABLE
        if self.kind == "date":
            return day_text(int(self.value))
        if self.kind == "money":
            return f"{'-' if self.value < 0 else ''}${abs(self.value):,.0f}"
        return f"{self.value:,.0f}{'%' if self.kind == 'percent' else ''}"


def seen_fields(backend: CityBackend, game: int) -> tuple[Seen, ...]:
    """Return what was read of a game, in the order of the backend's fields."""
    sight = backend.sight
    return tuple(
        Seen(
            field.name,
            field.kind,
            float(sight.values[game, number]) if sight.readable[game, number] else None,
            float(sight.confidence[game, number]),
            int(sight.age[game, number]),
        )
        for number, field in enumerate(backend.fields)
    )


def day_text(days: int) -> str:
    """Return a date, given in days since year 0 (30 per month), as `3 Mar 1987`."""
    year, rest = divmod(days, _YEAR_DAYS)
    month, day = divmod(rest, _MONTH_DAYS)
    return f"{day + 1} {MONTHS[month]} {year}"
