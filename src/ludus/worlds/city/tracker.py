"""Track the games of a backend through their episodes: what changed since the last step, as events and metrics.

`Extra` is for what is tracked beside the figures: goals, newly opened menus, sites and guides.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ludus.envs.base import Columns
from ludus.worlds.city.actions import CONFIRMED, KIND_GROUPS, REFUSED, Catalogue
from ludus.worlds.city.backend import CityBackend, Sight
from ludus.worlds.city.config import AT_MOST, WORST
from ludus.worlds.city.game.rules import MILESTONES

LearnerBatch: TypeAlias = NDArray[np.bool_]
_T = TypeVar("_T", bound=np.generic)


class Held(NamedTuple):
    """What is known of a field: its last readable value, and whether there was any, `(games,)` each."""

    values: NDArray[np.float64]
    is_known: NDArray[np.bool_]


class Turn(NamedTuple):
    """What is known of all games after a decision, or when a city begins."""

    sight: Sight  # what is seen
    held: Callable[[str], Held]  # returns what is known of a field
    kinds: NDArray[np.int64]  # `(games,)` kinds of the last decisions; -1 where there was none
    step: NDArray[np.int64]  # `(games,)` decisions of the present episodes
    cells: NDArray[np.int64] | None = None  # `(games,)` cells of the last decisions; None before the first


class Extra(ABC):
    """Tracks one thing in all games.

    Attributes:
        events: Names of the events that it gives.
        state_metrics: Names of the state metrics that it gives.
    """

    events: tuple[str, ...] = ()
    state_metrics: tuple[str, ...] = ()

    @abstractmethod
    def begin(self, turn: Turn, games: LearnerBatch) -> None:
        """Start episodes in some games, `(games,)`."""

    @abstractmethod
    def follow(self, turn: Turn, events: NDArray[np.float32], state_metrics: NDArray[np.float32]) -> None:
        """Update after a decision of all games; write `events` and `state_metrics`, `(games, names)` each."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Return everything that is remembered, as tensors that share its memory."""


class Goals(Extra):
    """Tracks the goals of all games.

    A goal has a metric `goal_NAME`, its progress from 0 to 1, and an event of the same name, the change of the
    progress, which is also a reward term. `goals_reached` counts goals that are reached for the first time in an
    episode. A figure that cannot be read changes nothing.
    """

    def __init__(self, targets: Mapping[str, float], games: int) -> None:
        self._targets = dict(targets)
        self.state_metrics = tuple(f"goal_{name}" for name in targets)
        self.events = (*self.state_metrics, "goals_reached")
        self._progress: NDArray[np.float64] = np.zeros((games, len(targets)))
        self._reached: NDArray[np.bool_] = np.zeros((games, len(targets)), np.bool_)

    def begin(self, turn: Turn, games: LearnerBatch) -> None:
        """See `Extra`; goals met at the start do not count as reached."""
        self._progress[games] = self._now(turn)[games]
        self._reached[games] = self._progress[games] >= 1.0

    def follow(self, turn: Turn, events: NDArray[np.float32], state_metrics: NDArray[np.float32]) -> None:
        """See `Extra`."""
        now = self._now(turn)
        events[:, :-1] = now - self._progress
        events[:, -1] = ((now >= 1.0) & ~self._reached).sum(axis=1)
        self._reached |= now >= 1.0
        self._progress[:] = now
        state_metrics[:] = now

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        return {"goal_progress": torch.from_numpy(self._progress), "goal_reached": torch.from_numpy(self._reached)}

    def _now(self, turn: Turn) -> NDArray[np.float64]:
        """Return how far all goals are reached, `(games, goals)`; 0 where a figure was never readable."""
        columns = [
            np.where(held.is_known, progress(name, target, held.values), 0.0)
            for name, target in self._targets.items()
            for held in (turn.held(name),)
        ]
        return np.stack(columns, axis=1)


def progress(name: str, target: float, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far a goal is reached, 0 to 1: at least `target`, or at most for traffic and pollution."""
    share = (WORST - values) / (WORST - target) if name in AT_MOST else values / target
    return np.clip(share, 0.0, 1.0)


class Novelty(Extra):
    """Tracks which parts of the interface were open.

    `new_menus` counts menus, and the first dialog and the first window, that are open for the first time in an episode;
    the event is also a reward term. New elements have their own event, `discovered`.
    """

    events = ("new_menus",)

    def __init__(self, menus: int, games: int) -> None:
        self._menus = menus
        self._seen: NDArray[np.bool_] = np.zeros((games, menus + 2), np.bool_)

    def begin(self, turn: Turn, games: LearnerBatch) -> None:
        """See `Extra`; what is open from the beginning is not new."""
        self._seen[games] = self._open(turn)[games]

    def follow(self, turn: Turn, events: NDArray[np.float32], state_metrics: NDArray[np.float32]) -> None:
        """See `Extra`."""
        is_open = self._open(turn)
        events[:, 0] = (is_open & ~self._seen).sum(axis=1)
        self._seen |= is_open

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        return {"menus_seen": torch.from_numpy(self._seen)}

    def _open(self, turn: Turn) -> NDArray[np.bool_]:
        """Return what is open, `(games, menus + 2)`: each menu, a dialog, a window."""
        sight = turn.sight
        menus = sight.menu[:, None] == np.arange(self._menus)
        return np.concatenate((menus, sight.dialog[:, None], sight.window[:, None]), axis=1)


class Sites(Extra):
    """Tracks where something was tried, and what was built, for the action mask, the entry `built` and the bot `plan`.

    A cell where a placement was tried is built on, or the game has refused it there and would do so again.

    Attributes:
        tried: `(games, cells)` bool.
        done: `(games, kinds)` bool, kinds by whose cost the funds have fallen.
        built: `(games, kinds)` placements of each kind that were not refused: those that are confirmed, and those that
            the funds cannot tell about, as when a year's taxes come in meanwhile.
    """

    def __init__(self, catalogue: Catalogue, games: int) -> None:
        self._catalogue = catalogue
        self._builds = catalogue.is_placement & (catalogue.group == KIND_GROUPS.index("build"))
        self.tried: NDArray[np.bool_] = np.zeros((games, catalogue.cells), np.bool_)
        self.done: NDArray[np.bool_] = np.zeros((games, len(catalogue)), np.bool_)
        self.built: NDArray[np.int64] = np.zeros((games, len(catalogue)), np.int64)
        self._funds: NDArray[np.float64] = np.zeros(games)

    def begin(self, turn: Turn, games: LearnerBatch) -> None:
        """See `Extra`."""
        self.tried[games] = self.done[games] = False
        self.built[games] = 0
        self._funds[games] = turn.held("funds").values[games]

    def follow(self, turn: Turn, events: NDArray[np.float32], state_metrics: NDArray[np.float32]) -> None:
        """See `Extra`."""
        funds, catalogue = turn.held("funds").values, self._catalogue
        cells = np.zeros_like(turn.kinds) if turn.cells is None else turn.cells
        for game in np.flatnonzero(self._builds[turn.kinds]).tolist():
            kind, cell = int(turn.kinds[game]), int(cells[game])
            last = min(cell + catalogue.kinds[kind].columns, (cell // catalogue.columns + 1) * catalogue.columns)
            self.tried[game, cell:last] = True
            # Taxes may have come in meanwhile; a kind that is worth remembering costs more than they bring.
            self.done[game, kind] |= self._funds[game] - funds[game] >= 0.5 * catalogue.least_cost[kind]
            self.built[game, kind] += turn.sight.placed[game] != REFUSED
        self._funds[:] = funds

    def allowed(self, rule: str) -> NDArray[np.bool_]:
        """Return the cells that a rule of the setting `sites` allows, `(games, cells)`."""
        if rule == "all":
            return np.ones_like(self.tried)
        free: NDArray[np.bool_] = np.logical_not(self.tried)
        if rule == "beside":
            padded = np.pad(self.tried.reshape(-1, self._catalogue.rows, self._catalogue.columns), ((0,), (1,), (1,)))
            near = padded[:, :-2, 1:-1] | padded[:, 2:, 1:-1] | padded[:, 1:-1, :-2] | padded[:, 1:-1, 2:]
            free &= near.reshape(free.shape) | ~self.tried.any(axis=1, keepdims=True)
        return free | ~free.any(axis=1, keepdims=True)

    def state(self) -> dict[str, Tensor]:
        """See `Extra`."""
        arrays = {"tried": self.tried, "done": self.done, "built": self.built, "funds": self._funds}
        return {f"sites_{name}": torch.from_numpy(array) for name, array in arrays.items()}


FIGURES = ("population", "happiness", "funds", "balance", "traffic", "pollution", "land_value", "tax")
MEASURES = (*FIGURES, "year", *(f"{name}_readable" for name in (*FIGURES, "year")))
GROUP_EVENTS = tuple(f"did_{group}" for group in KIND_GROUPS)
EVENTS = (
    *("population_gain", "population_loss", "peak_gain", "funds_change", "happiness_change", "traffic_change"),
    *("milestone", "placed", "refused", "discovered", "changed", "unreadable", "trouble", "recovered", "bankrupt"),
    *("idle_city", "final_population", "final_funds", "final_happiness"),
    *GROUP_EVENTS,
)
IDLE_AFTER = 50  # decisions after which a city should have people
_YEAR_DAYS = 360.0
_DATE = "date"
_FINAL = "final_"


class Tracker:
    """Remembers the last readable value of every field, and what an episode has reached.

    Attributes:
        step: `(games,)` decisions of the present episode.
        first_day: `(games,)` date of the first readable day, in days.
        last_kind: `(games,)` kind of the last decision; -1 before the first.
        event_names: `EVENTS`, but for the happiness at the end where the game shows none; then those of the extras.
        measure_names: `MEASURES`, then those of the extras.
        events: `(games, 1, events)`.
        state_metrics: `(games, 1, measures)`.
    """

    def __init__(self, backend: CityBackend, extras: Sequence[Extra] = ()) -> None:
        """Start empty; `extras` add their own events and metrics."""
        games, fields = backend.num_envs, len(backend.fields)
        self._column = {field.name: number for number, field in enumerate(backend.fields)}
        self._group = backend.catalogue.group
        self.step: NDArray[np.int64] = np.zeros(games, np.int64)
        self.last_kind: NDArray[np.int64] = np.full(games, -1)
        self.first_day: NDArray[np.float64] = np.zeros(games)
        self._held: NDArray[np.float64] = np.zeros((games, fields))  # the last value that could be read
        self._known: NDArray[np.bool_] = np.zeros((games, fields), np.bool_)  # whether there was any
        self._peak: NDArray[np.float64] = np.zeros(games)
        self._milestones: NDArray[np.int64] = np.zeros(games, np.int64)
        self._extras = tuple(extras)
        self._own = tuple(name for name in EVENTS if name != "final_happiness" or "happiness" in self._column)
        self.event_names = (*self._own, *(name for extra in extras for name in extra.events))
        self.measure_names = (*MEASURES, *(name for extra in extras for name in extra.state_metrics))
        self._events = np.zeros((games, 1, len(self.event_names)), np.float32)
        self._measures = np.zeros((games, 1, len(self.measure_names)), np.float32)
        self.events = Columns(torch.from_numpy(self._events), self.event_names)
        self.state_metrics = Columns(torch.from_numpy(self._measures), self.measure_names)

    def begin(self, sight: Sight, games: LearnerBatch) -> None:
        """Start episodes in some games with what is seen of them."""
        self.step[games] = 0
        self.last_kind[games] = -1
        self._known[games] = sight.readable[games]
        self._held[games] = np.where(sight.readable[games], sight.values[games], 0.0)
        self.first_day[games] = self._column_of(_DATE, self._held)[games]
        self._peak[games] = self._column_of("population", self._held)[games]
        self._milestones[games] = _passed(self._peak)[games]
        turn = Turn(sight, self.held, self.last_kind, self.step)
        for extra in self._extras:
            extra.begin(turn, games)

    def follow(self, sight: Sight, kinds: NDArray[np.int64], cells: NDArray[np.int64] | None = None) -> None:
        """Compute events and measures of a step in which kinds and cells `(games,)` were decided for."""
        self.step += 1
        self.last_kind[:] = kinds
        before, knew = self._held.copy(), self._known.copy()
        self._held = np.where(sight.readable, sight.values, self._held)
        self._known |= sight.readable
        change = np.where(knew, self._held - before, 0.0)
        is_first = self._column_of(_DATE, self._known) & ~self._column_of(_DATE, knew)
        self.first_day[is_first] = self._column_of(_DATE, self._held)[is_first]
        self._write_events(sight, change)
        self._write_measures(sight)
        turn = Turn(sight, self.held, self.last_kind, self.step, cells)
        event, measure = len(self._own), len(MEASURES)
        for extra in self._extras:
            ends = event + len(extra.events), measure + len(extra.state_metrics)
            extra.follow(turn, self._events[:, 0, event : ends[0]], self._measures[:, 0, measure : ends[1]])
            event, measure = ends

    def end(self, ended: LearnerBatch) -> None:
        """Note where the games stood that ended in this step."""
        for number, name in enumerate(self._own):
            if name.startswith(_FINAL):
                values = self._column_of(name.removeprefix(_FINAL), self._held)
                self._events[:, 0, number] = np.where(ended, values, 0.0)

    def read(self, sight: Sight, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the value of a field and whether it is readable now, `(games,)` each; zeros for an unknown field."""
        return self._column_of(name, sight.values), self._column_of(name, sight.readable)

    def held(self, name: str) -> Held:
        """Return what is known of a field; nothing if there is none of that name."""
        return Held(self._column_of(name, self._held), self._column_of(name, self._known))

    def state(self) -> dict[str, Tensor]:
        """Return everything that is remembered, as tensors that share its memory."""
        names = ("step", "last_kind", "first_day", "_held", "_known", "_peak", "_milestones")
        own = {name.removeprefix("_"): torch.from_numpy(getattr(self, name)) for name in names}
        return own | {name: tensor for extra in self._extras for name, tensor in extra.state().items()}

    def _column_of(self, name: str, array: NDArray[_T]) -> NDArray[_T]:
        """Return the column of a field, `(games,)`; zeros if there is none of that name."""
        column = self._column.get(name)
        return np.zeros(len(array), array.dtype) if column is None else array[:, column]

    def _write_events(self, sight: Sight, change: NDArray[np.float64]) -> None:
        changes = {name: self._column_of(name, change) for name in ("population", "funds", "happiness", "traffic")}
        population = self._column_of("population", self._held)
        peak = np.maximum(self._peak, population)
        passed = np.maximum(_passed(peak), self._milestones)
        given = {
            "population_gain": np.maximum(changes["population"], 0.0),
            "population_loss": np.maximum(-changes["population"], 0.0),
            "peak_gain": peak - self._peak,
            **{f"{name}_change": changes[name] for name in ("funds", "happiness", "traffic")},
            "milestone": passed - self._milestones,
            "placed": sight.placed == CONFIRMED,
            "refused": sight.placed == REFUSED,
            **{name: getattr(sight, name) for name in ("discovered", "changed", "trouble", "recovered", "bankrupt")},
            "unreadable": 1.0 - sight.readable.mean(axis=1),
            "idle_city": (self.step > IDLE_AFTER) & self.held("population").is_known & (population <= 0.0),
        }
        self._peak, self._milestones = peak, passed
        for number, name in enumerate(self._own):
            if name in given:
                self._events[:, 0, number] = given[name]
        first = self._own.index(GROUP_EVENTS[0])
        groups = np.arange(len(GROUP_EVENTS))
        self._events[:, 0, first : first + len(groups)] = self._group[self.last_kind][:, None] == groups

    def _write_measures(self, sight: Sight) -> None:
        for number, name in enumerate((*FIGURES, _DATE)):
            scale = _YEAR_DAYS if name == _DATE else 1.0
            self._measures[:, 0, number] = self._column_of(name, self._held) / scale
            self._measures[:, 0, number + len(FIGURES) + 1] = self._column_of(name, sight.readable)


def _passed(population: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many milestones a population has reached, `(games,)`."""
    return np.searchsorted(np.array(MILESTONES), population, side="right")
