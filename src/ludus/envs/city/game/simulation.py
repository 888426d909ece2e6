"""Many cities at once: their state as tensors, and the kernels that found them and let them live."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs.base import check_snapshot
from ludus.envs.city.game.kernels import life
from ludus.envs.city.game.kernels.structs import City, Grid, Rules
from ludus.envs.city.game.rules import BUILDINGS, HISTORY_MONTHS, MILESTONES
from ludus.envs.city.game.settings import CityRules
from ludus.envs.city.game.state_check import check_state
from ludus.envs.warp_tools import Launcher, fill_struct, load_kernels, struct_array, struct_views, struct_words

_CELLS_WHOLE = ("terrain", "shore", "kind", "amount", "flags", "road", "network", "circuit")
_CELLS_REAL = ("load", "air", "value", "scenery")
_SCRATCH_WHOLE = ("order", "mark", "people", "jobs")
_SCRATCH_REAL = ("next",)
_MIN_SLICE = 8  # cities that are worth a thread of their own: a step of one takes some 50 microseconds

Whole = NDArray[np.int32]
Real = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cells:
    """What is in every cell, `(games, cells)` each, as arrays that share the simulation's memory.

    Attributes:
        terrain: `rules.Terrain`.
        kind: `rules.Kind`.
        amount: People or jobs.
        flags: Bits of `rules.Flag`.
        road: Cell of the road that serves it, -1 for none.
        load: Trips a day on a road.
        air: Pollution, 0 to 100.
        value: Of the land, 0 to 100.
    """

    terrain: Whole
    kind: Whole
    amount: Whole
    flags: Whole
    road: Whole
    load: Real
    air: Real
    value: Real


class CitySimulation:
    """The cities of one batch, on the CPU.

    A city is a pure function of (seed, game index, episode, what was done on which day), whatever the size of the batch
    and the number of threads.

    Attributes:
        rules: The settings.
        num_games: Cities.
        cells: What is in their cells.
        city: Every field of `structs.City` as an array `(games,)`.
        looks: `(games, cells)` int32, how every cell looked at the last `look`; see `game.looks`.
        history: `(games, months)` int32, population at the end of each of the last 120 months, month by month anew.
    """

    def __init__(self, rules: CityRules, num_games: int, *, seed: int = 0, first_game: int = 0) -> None:
        self.rules, self.num_games, self.seed, self.first_game = rules, num_games, seed, first_game
        self._device = torch.device("cpu")
        self._launcher = Launcher(self._device, rules.threads)
        self._cities = torch.zeros((num_games, struct_words(City)), dtype=torch.int32)
        shape = (num_games, rules.cells)
        self._tensors = {name: torch.zeros(shape, dtype=torch.int32) for name in _CELLS_WHOLE}
        self._tensors |= {name: torch.zeros(shape) for name in _CELLS_REAL}
        self._scratch = {name: torch.zeros(shape, dtype=torch.int32) for name in _SCRATCH_WHOLE}
        self._scratch |= {name: torch.zeros(shape) for name in _SCRATCH_REAL}
        self._looks = torch.zeros(shape, dtype=torch.int32)
        self._history = torch.zeros((num_games, HISTORY_MONTHS), dtype=torch.int32)
        self._chosen = torch.zeros(num_games, dtype=torch.bool)
        self._keys = torch.full((num_games,), -1, dtype=torch.int64)
        self._days = torch.zeros(num_games, dtype=torch.int32)
        self._table = torch.tensor(
            [[b.upkeep, b.department, b.power, b.reach, b.serves] for b in BUILDINGS], dtype=torch.int32
        )
        self._milestones = torch.tensor(MILESTONES, dtype=torch.int32)
        self.cells = Cells(**{name: self._tensors[name].numpy() for name in Cells.__dataclass_fields__})
        self.city = {name: view.numpy() for name, view in struct_views(self._cities, City).items()}
        self.looks: Whole = self._looks.numpy()
        self.history: Whole = self._history.numpy()
        load_kernels(life, self._device)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Founds the first cities of a seed in all games."""
        self.seed = seed
        self._prepare()
        self.city["episode"][:] = -1
        self.found()

    def found(self, games: Tensor | None = None) -> None:
        """Founds the next city in every game, or in those of `games`, `(games,)` bool."""
        self._keys.fill_(-1)
        if games is None:
            self._chosen.fill_(True)
        else:
            self._chosen.copy_(games)
        self._run_found()

    def found_one(self, game: int, seed: int) -> None:
        """Founds the city of a seed in one game; it does not depend on which game that is."""
        self._keys.fill_(-1)
        self._keys[game] = stream_hash(seed)
        self._chosen.fill_(False)
        self._chosen[game] = True
        self._run_found()

    def live(self, days: Tensor | Whole) -> None:
        """Lets days pass in every game, `(games,)` int32; a city that has something to tell waits before the rest."""
        self._days.copy_(torch.as_tensor(days))
        self._run_live()

    def look(self) -> None:
        """Writes how every cell looks now to `looks`."""
        self._run_look()

    def snapshot(self) -> dict[str, Tensor]:
        """Returns the whole state as tensors that later days do not touch."""
        return {name: tensor.clone() for name, tensor in self._state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> None:
        """Takes the state of a snapshot.

        Raises:
            SnapshotError: It does not fit.
        """
        state = self._state()
        check_snapshot(snapshot, state, "the city simulation")
        check_state(snapshot, self.rules.cells)
        for name, tensor in state.items():
            tensor.copy_(snapshot[name])
        self.seed = int(self._seed) % 2**64
        self._prepare()

    def close(self) -> None:
        """Ends the threads; may be called twice."""
        self._launcher.close()

    def _state(self) -> dict[str, Tensor]:
        return {"cities": self._cities, "history": self._history, "seed": self._seed, **self._tensors}

    def _prepare(self) -> None:
        self._seed = torch.tensor(self.seed - (self.seed >> 63 << 64), dtype=torch.int64)  # the bits of a 64-bit seed
        rules, grid = Rules(), Grid()
        values = {
            "columns": self.rules.columns,
            "rows": self.rules.rows,
            "cells": self.rules.cells,
            "funds": self.rules.funds,
            "tax": self.rules.tax,
            "events": int(self.rules.events),
            "hamlet": int(self.rules.hamlet),
            "report": int(self.rules.yearly_report),
            "seed_hash": stream_hash(self.seed),
            "first_game": self.first_game,
        }
        fill_struct(rules, values)
        for name, tensor in (self._tensors | self._scratch).items():
            setattr(grid, name, wp.from_torch(tensor))
        cities, history = struct_array(self._cities, City), wp.from_torch(self._history)
        table = wp.from_torch(self._table)
        found = [cities, grid, history, wp.from_torch(self._chosen), wp.from_torch(self._keys), table, rules]
        live = [cities, grid, history, wp.from_torch(self._days), wp.from_torch(self._milestones), table, rules]
        look = [cities, grid, wp.from_torch(self._looks), rules]
        games = self.num_games
        self._run_found = self._launcher.prepare(games, (life.found_kernel, found), min_slice=_MIN_SLICE)
        self._run_live = self._launcher.prepare(games, (life.live_kernel, live), min_slice=_MIN_SLICE)
        self._run_look = self._launcher.prepare(games, (life.look_kernel, look), min_slice=_MIN_SLICE)
