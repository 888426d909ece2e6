"""A city on flat, empty land for tests: cells set by hand, days that pass without events, plain numbers."""

import numpy as np
import torch

from ludus.worlds.city.game.placement import CityEditor
from ludus.worlds.city.game.rules import CityRules, Flag, Kind, Terrain
from ludus.worlds.city.game.simulation import CitySimulation

COLUMNS = 32


class FlatCity:
    """One city of 32 x 24 cells, all of them empty land, without events and reports."""

    def __init__(self, **settings: int | bool) -> None:
        plain: dict[str, int | bool] = {"hamlet": False, "events": False, "yearly_report": False, "threads": 1}
        self.simulation = CitySimulation(CityRules.model_validate(plain | settings), 1)
        self.cells, self.city = self.simulation.cells, self.simulation.city
        self.cells.terrain[:] = Terrain.LAND
        self.city["changed"][:] = 1
        self.editor = CityEditor(self.simulation)

    def put(self, kind: Kind, column: int, row: int, amount: int = 0) -> None:
        """Sets what stands on a cell, past all rules."""
        cell = row * COLUMNS + column
        self.cells.kind[0, cell], self.cells.amount[0, cell] = kind, amount
        self.city["changed"][0] = 1

    def lay(self, terrain: Terrain, column: int, row: int) -> None:
        """Sets what a cell is made of."""
        self.cells.terrain[0, row * COLUMNS + column] = terrain

    def live(self, days: int) -> None:
        """Lets days pass."""
        self.simulation.live(torch.tensor([days], dtype=torch.int32))

    def live_on(self, days: int) -> None:
        """Lets days pass whatever the city has to tell."""
        end = int(self.number("day")) + days
        while self.number("day") < end and self.number("over") == 0:
            self.city["notice"][0] = 0
            self.live(end - int(self.number("day")))

    def number(self, name: str) -> float:
        """Returns a field of the city."""
        return float(self.city[name][0])

    def amount(self, column: int, row: int) -> int:
        """Returns people or jobs of a cell."""
        return int(self.cells.amount[0, row * COLUMNS + column])

    def has(self, flag: Flag, column: int, row: int) -> bool:
        """Whether something reaches a cell."""
        return bool(self.cells.flags[0, row * COLUMNS + column] & flag)

    def total(self, kind: Kind) -> int:
        """Returns people or jobs of all zones of a kind."""
        return int(np.where(self.cells.kind[0] == kind, self.cells.amount[0], 0).sum())
