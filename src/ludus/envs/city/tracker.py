"""Follows the games of a table through their episodes: what changed since the last sight, as events and measures."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.base import Columns
from ludus.envs.city.catalogue import CONFIRMED, KIND_GROUPS, REFUSED
from ludus.envs.city.extras import Extra, Held, Turn
from ludus.envs.city.game.rules import MILESTONES
from ludus.envs.city.table import CityTable, Sight

FIGURES = ("population", "happiness", "funds", "balance", "traffic", "pollution", "land_value", "tax")
MEASURES = (*FIGURES, "year", *(f"{name}_readable" for name in (*FIGURES, "year")))
DEEDS = tuple(f"did_{group}" for group in KIND_GROUPS)
EVENTS = (
    "population_gain",
    "population_loss",
    "peak_gain",
    "funds_change",
    "happiness_change",
    "traffic_change",
    "milestone",
    "placed",
    "refused",
    "discovered",
    "changed",
    "unreadable",
    "trouble",
    "recovered",
    "bankrupt",
    "idle_city",
    "final_population",
    "final_funds",
    "final_happiness",
    *DEEDS,
)
IDLE_AFTER = 50  # decisions after which a city should have people
_YEAR_DAYS = 360.0
_DATE = "date"
_FINAL = "final_"
Rows = NDArray[np.bool_]


class Tracker:
    """Remembers the last readable value of every field, and what an episode has reached.

    Attributes:
        step: `(games,)` decisions of the present episode.
        first_day: `(games,)` date of the first readable day, in days.
        last_kind: `(games,)` kind of the last decision; -1 before the first.
        event_names: `EVENTS`, but for the happiness at the end where the game shows none; then those of the extras.
        measure_names: `MEASURES`, then those of the extras.
        events: `(games, 1, events)`.
        measures: `(games, 1, measures)`.
    """

    def __init__(self, table: CityTable, extras: Sequence[Extra] = ()) -> None:
        """Begins with nothing; `extras` follow the games too, with events and measures of their own."""
        games, fields = table.num_games, len(table.fields)
        self._column = {field.name: number for number, field in enumerate(table.fields)}
        self._group = table.catalogue.group
        self.step: NDArray[np.int64] = np.zeros(games, np.int64)
        self.last_kind: NDArray[np.int64] = np.full(games, -1)
        self.first_day: NDArray[np.float64] = np.zeros(games)
        self._held: NDArray[np.float64] = np.zeros((games, fields))  # the last value that could be read
        self._known: NDArray[np.bool_] = np.zeros((games, fields), np.bool_)  # whether there was any
        self._peak: NDArray[np.float64] = np.zeros(games)
        self._milestones: NDArray[np.int64] = np.zeros(games, np.int64)
        self._nothing = np.zeros(games)
        self._extras = tuple(extras)
        self._own = tuple(name for name in EVENTS if name != "final_happiness" or "happiness" in self._column)
        self.event_names = (*self._own, *(name for extra in extras for name in extra.events))
        self.measure_names = (*MEASURES, *(name for extra in extras for name in extra.measures))
        self._events = np.zeros((games, 1, len(self.event_names)), np.float32)
        self._measures = np.zeros((games, 1, len(self.measure_names)), np.float32)
        self.events = Columns(torch.from_numpy(self._events), self.event_names)
        self.measures = Columns(torch.from_numpy(self._measures), self.measure_names)

    def begin(self, sight: Sight, games: Rows) -> None:
        """Begins episodes in some games with what is seen of them."""
        self.step[games] = 0
        self.last_kind[games] = -1
        self._known[games] = sight.readable[games]
        self._held[games] = np.where(sight.readable[games], sight.values[games], 0.0)
        self.first_day[games] = self._values(_DATE)[games]
        self._peak[games] = self._values("population")[games]
        self._milestones[games] = _passed(self._peak)[games]
        for extra in self._extras:
            extra.begin(self._turn(sight), games)

    def follow(self, sight: Sight, kinds: NDArray[np.int64]) -> None:
        """Computes events and measures of a step in which decisions of some kinds `(games,)` were carried out."""
        self.step += 1
        self.last_kind[:] = kinds
        before, knew = self._held.copy(), self._known.copy()
        self._held = np.where(sight.readable, sight.values, self._held)
        self._known |= sight.readable
        change = np.where(knew, self._held - before, 0.0)
        if _DATE in self._column:
            date = self._column[_DATE]
            is_first = ~knew[:, date] & self._known[:, date]
            self.first_day[is_first] = self._held[is_first, date]
        self._write_events(sight, change)
        self._write_measures(sight)
        event, measure = len(self._own), len(MEASURES)
        for extra in self._extras:
            ends = event + len(extra.events), measure + len(extra.measures)
            extra.follow(
                self._turn(sight), self._events[:, 0, event : ends[0]], self._measures[:, 0, measure : ends[1]]
            )
            event, measure = ends

    def end(self, ended: Rows) -> None:
        """Notes where the games stood that ended in this step."""
        for number, name in enumerate(self._own):
            if name.startswith(_FINAL):
                self._events[:, 0, number] = np.where(ended, self._values(name.removeprefix(_FINAL)), 0.0)

    def read(self, sight: Sight, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Returns what a field said last and whether it can be read now, `(games,)` each; nothing if there is none."""
        column = self._column.get(name)
        if column is None:
            return self._nothing, np.zeros(len(self._nothing), np.bool_)
        return sight.values[:, column], sight.readable[:, column]

    def held(self, name: str) -> Held:
        """Returns what is known of a field; nothing if there is none of that name."""
        column = self._column.get(name)
        known = np.zeros(len(self._nothing), np.bool_) if column is None else self._known[:, column]
        return Held(self._values(name), known)

    def _turn(self, sight: Sight) -> Turn:
        return Turn(sight, self.held, self.last_kind, self.step)

    def state(self) -> dict[str, Tensor]:
        """Returns everything that is remembered, as tensors that share its memory."""
        arrays: Mapping[str, NDArray[np.generic]] = {
            "step": self.step,
            "last_kind": self.last_kind,
            "first_day": self.first_day,
            "held": self._held,
            "known": self._known,
            "peak": self._peak,
            "milestones": self._milestones,
        }
        own = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return own | {name: tensor for extra in self._extras for name, tensor in extra.state().items()}

    def _values(self, name: str) -> NDArray[np.float64]:
        column = self._column.get(name)
        return self._nothing if column is None else self._held[:, column]

    def _write_events(self, sight: Sight, change: NDArray[np.float64]) -> None:
        changes = {
            name: change[:, self._column[name]] if name in self._column else self._nothing
            for name in ("population", "funds", "happiness", "traffic")
        }
        population = self._values("population")
        peak = np.maximum(self._peak, population)
        passed = np.maximum(_passed(peak), self._milestones)
        knows_people = self._known[:, self._column["population"]] if "population" in self._column else self._nothing > 0
        given = {
            "population_gain": np.maximum(changes["population"], 0.0),
            "population_loss": np.maximum(-changes["population"], 0.0),
            "peak_gain": peak - self._peak,
            "funds_change": changes["funds"],
            "happiness_change": changes["happiness"],
            "traffic_change": changes["traffic"],
            "milestone": passed - self._milestones,
            "placed": sight.placed == CONFIRMED,
            "refused": sight.placed == REFUSED,
            "discovered": sight.discovered,
            "changed": sight.changed,
            "unreadable": 1.0 - sight.readable.mean(axis=1),
            "trouble": sight.trouble,
            "recovered": sight.recovered,
            "bankrupt": sight.bankrupt,
            "idle_city": (self.step > IDLE_AFTER) & knows_people & (population <= 0.0),
        }
        self._peak, self._milestones = peak, passed
        for number, name in enumerate(self._own):
            if name in given:
                self._events[:, 0, number] = given[name]
        first = self._own.index(DEEDS[0])
        self._events[:, 0, first : first + len(DEEDS)] = self._group[self.last_kind][:, None] == np.arange(len(DEEDS))

    def _write_measures(self, sight: Sight) -> None:
        for number, name in enumerate((*FIGURES, "year")):
            field = _DATE if name == "year" else name
            scale = _YEAR_DAYS if name == "year" else 1.0
            self._measures[:, 0, number] = self._values(field) / scale
            self._measures[:, 0, number + len(FIGURES) + 1] = self.read(sight, field)[1]


def _passed(population: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns how many milestones a population has reached, `(games,)`."""
    return np.searchsorted(np.array(MILESTONES), population, side="right")
