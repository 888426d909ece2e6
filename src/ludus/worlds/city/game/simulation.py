"""Many cities at once: their state as tensors, and the kernels that found and advance them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from ludus.core.random import stream_hash
from ludus.envs.base import check_snapshot
from ludus.envs.warp_tools import (
    Launcher,
    check_state_range,
    check_struct,
    fill_struct,
    load_kernels,
    struct_array,
    struct_views,
    struct_words,
)
from ludus.worlds.city.game.kernels import life
from ludus.worlds.city.game.kernels.structs import City, Grid, Rules, cell_ranges, city_ranges
from ludus.worlds.city.game.rules import BUILDINGS, HISTORY_MONTHS, MILESTONES, CityRules, Column

_CELLS_WHOLE = ("terrain", "shore", "kind", "amount", "flags", "road", "network", "circuit")
_CELLS_REAL = ("load", "air", "value", "scenery")
_SCRATCH_WHOLE = ("order", "mark", "people", "jobs")
_SCRATCH_REAL = ("next",)
_MIN_SLICE = 8  # cities that are worth a separate thread: a step of one takes about 50 microseconds

Whole = NDArray[np.int32]
Real = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cells:
    """What is in every cell, `(games, cells)` each, as arrays that share the simulation's memory."""

    terrain: Whole  # `rules.Terrain`
    kind: Whole  # `rules.Kind`
    amount: Whole  # people or jobs
    flags: Whole  # bits of `rules.Flag`
    road: Whole  # cell of the road that serves it, -1 for none
    load: Real  # trips a day on a road
    air: Real  # pollution, 0 to 100
    value: Real  # of the land, 0 to 100


class CitySimulation:
    """The cities of one batch, on the CPU.

    A city is a pure function of (seed, game index, episode, what was done on which day), independent of the batch
    size and the number of threads.

    Attributes:
        rules: The settings.
        num_envs: Cities.
        cells: What is in their cells.
        city: Every field of `structs.City` as an array `(games,)`.
        sprite_codes: `(games, cells)` int32, as of the last `write_sprites`; see `rules.SPRITE_KIND`.
        history: `(games, months)` int32, population at the end of each of the last 120 months, a ring buffer.
    """

    def __init__(self, rules: CityRules, num_envs: int, *, seed: int = 0, first_game: int = 0) -> None:
        self.rules, self.num_envs, self.seed, self.first_game = rules, num_envs, seed, first_game
        device = torch.device("cpu")
        self._launcher = Launcher(device, rules.threads)
        self._cities = torch.zeros((num_envs, struct_words(City)), dtype=torch.int32)
        shape = (num_envs, rules.cells)
        self._tensors = {name: torch.zeros(shape, dtype=torch.int32) for name in _CELLS_WHOLE}
        self._tensors |= {name: torch.zeros(shape) for name in _CELLS_REAL}
        self._scratch = {name: torch.zeros(shape, dtype=torch.int32) for name in _SCRATCH_WHOLE}
        self._scratch |= {name: torch.zeros(shape) for name in _SCRATCH_REAL}
        self._sprite_codes = torch.zeros(shape, dtype=torch.int32)
        self._history = torch.zeros((num_envs, HISTORY_MONTHS), dtype=torch.int32)
        self._chosen = torch.zeros(num_envs, dtype=torch.bool)
        self._days = torch.zeros(num_envs, dtype=torch.int32)
        self._table = torch.tensor([[getattr(b, c.name.lower()) for c in Column] for b in BUILDINGS], dtype=torch.int32)
        self._milestones = torch.tensor(MILESTONES, dtype=torch.int32)
        self.cells = Cells(**{name: self._tensors[name].numpy() for name in Cells.__dataclass_fields__})
        self.city = {name: view.numpy() for name, view in struct_views(self._cities, City).items()}
        self.sprite_codes: Whole = self._sprite_codes.numpy()
        self.history: Whole = self._history.numpy()
        load_kernels(life, device)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Found the first cities of a seed in all games."""
        self.seed = seed
        self._prepare()
        self.city["episode"][:] = -1
        self.found()

    def found(self, games: Tensor | None = None) -> None:
        """Found the next city in every game, or in those of `games`, `(games,)` bool."""
        if games is None:
            self._chosen.fill_(True)
        else:
            self._chosen.copy_(games)
        self._run_found()

    def live(self, days: Tensor | Whole) -> None:
        """Advance every game by `days`, `(games,)` int32; a city with a notice stops there."""
        self._days.copy_(torch.as_tensor(days))
        self._run_live()

    def write_sprites(self) -> None:
        """Write the sprite codes of all cells to `sprite_codes`."""
        self._run_sprites()

    def snapshot(self) -> dict[str, Tensor]:
        """Return the whole state as a copy."""
        return {name: tensor.clone() for name, tensor in self._state().items()}

    def restore(self, snapshot: Mapping[str, Tensor]) -> None:
        """Restore the state returned by `snapshot()`; raise SnapshotError if it does not fit."""
        state, cells = self._state(), self.rules.cells
        check_snapshot(snapshot, state, "the city simulation")
        # Kernels use some of its numbers as array indices: a wrong one from an untrusted checkpoint would read or write
        # beyond the arrays.
        check_struct(snapshot["cities"], City, city_ranges(cells), "the city simulation: city")
        for name, (low, high) in cell_ranges(cells).items():
            check_state_range(snapshot[name], low, high, f"the city simulation: {name}")
        serving = snapshot["network"].gather(1, snapshot["road"].clamp(min=0).long())[snapshot["road"] >= 0]
        check_state_range(serving, 0, cells - 1, "the city simulation: network of a road that serves")
        for name, tensor in state.items():
            tensor.copy_(snapshot[name])
        self.seed = int(self._seed) % 2**64
        self._prepare()

    def close(self) -> None:
        """End the threads; may be called twice."""
        self._launcher.close()

    def _state(self) -> dict[str, Tensor]:
        return {"cities": self._cities, "history": self._history, "seed": self._seed, **self._tensors}

    def _prepare(self) -> None:
        self._seed = torch.tensor(self.seed - (self.seed >> 63 << 64), dtype=torch.int64)  # the bits of a 64-bit seed
        rules, grid = Rules(), Grid()
        same = ("columns", "rows", "cells", "funds", "tax", "events", "hamlet")
        values = {name: int(getattr(self.rules, name)) for name in same} | {"report": int(self.rules.yearly_report)}
        fill_struct(rules, values | {"seed_hash": stream_hash(self.seed), "first_game": self.first_game})
        fill_struct(grid, {name: wp.from_torch(tensor) for name, tensor in (self._tensors | self._scratch).items()})
        cities, history = struct_array(self._cities, City), wp.from_torch(self._history)
        table = wp.from_torch(self._table)
        found = [cities, grid, history, wp.from_torch(self._chosen), table, rules]
        live = [cities, grid, history, wp.from_torch(self._days), wp.from_torch(self._milestones), table, rules]
        write_sprites = [cities, grid, wp.from_torch(self._sprite_codes), rules]
        games = self.num_envs
        self._run_found = self._launcher.prepare(games, (life.found_kernel, found), min_slice=_MIN_SLICE)
        self._run_live = self._launcher.prepare(games, (life.live_kernel, live), min_slice=_MIN_SLICE)
        self._run_sprites = self._launcher.prepare(games, (life.sprite_kernel, write_sprites), min_slice=_MIN_SLICE)
